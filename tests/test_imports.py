"""The floors: a room imports only from floors below its own."""

import ast
from collections.abc import Iterator
from pathlib import Path

FLOORS = (
    ("environment",),
    ("utils_log", "utils_attention", "cli"),
    ("src", "store", "configs"),
    ("plots", "baselines", "curricula"),
    ("analysis",),
    ("runners",),
    ("sweeps",),
    ("report", "eval_order", "eval_noise", "eval_diversity", "scripts", "demos_ref", "benchmarks"),
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
SAME_FLOOR = {("configs", "src"), ("store", "src"), ("curricula", "baselines")}
WITHOUT_JAX = ("store", "plots", "configs", "environment", "cli", "utils_log", "utils_attention")
HEAVY = ("jax", "jaxlib", "haiku", "optax")


def modules(root: Path) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """(file, dotted name in parts) of every module of a room."""
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if parts[0] in FLOOR:
            yield path, parts


def imported(tree: ast.AST, name: tuple[str, ...], is_package: bool) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of everything imported, wherever in the file; relative imports made absolute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = name if is_package else name[:-1]
            base = parent[: len(parent) - node.level + 1] if node.level else ()
            start = ".".join((*base, *([node.module] if node.module else [])))
            yield from ((node.lineno, f"{start}.{alias.name}") for alias in node.names)


def at_import(tree: ast.Module) -> ast.Module:
    """The statements that run at import: not those in functions or under TYPE_CHECKING."""
    kept = [node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))]
    return ast.Module([node for node in kept if not isinstance(node, ast.FunctionDef | ast.ClassDef)], [])


def violations(root: Path) -> list[str]:
    """Every import that points up, or sideways without leave, or brings JAX into a room that must do without."""
    found = []
    for path, parts in modules(root):
        tree, room = ast.parse(path.read_text()), parts[0]
        package = path.name == "__init__.py"
        name = parts[:-1] if package else parts
        for line, target in imported(tree, name, package):
            other = target.split(".")[0]
            if other not in FLOOR or other == room or (room, other) in SAME_FLOOR:
                continue
            if FLOOR[other] >= FLOOR[room] or room == "src":
                found.append(f"{'/'.join(parts)}:{line} imports {target}")
        for line, target in imported(at_import(tree), name, package):
            if room in WITHOUT_JAX and target.split(".")[0] in HEAVY:
                found.append(f"{'/'.join(parts)}:{line} imports {target}")
    return found


def test_imports_point_down(root: Path) -> None:
    assert len(list(modules(root))) > 30
    assert violations(root) == []


def test_every_folder_of_code_has_a_floor(root: Path) -> None:
    folders = {path.parent.name for path in root.glob("*/*.py")} - {"tests"}
    files = {path.stem for path in root.glob("*.py")}
    assert folders | files <= set(FLOOR)


def plant(root: Path, file: str, text: str) -> list[str]:
    """The violations of a tree with this one file."""
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return violations(root)


def test_planted_violations_are_found(tmp_path: Path) -> None:
    planted = {
        "src/a.py": "from store import load",
        "baselines/b.py": "def late():\n    import runners.common",
        "store/c.py": "from ..analysis import subject",
        "plots/d.py": "import jax.numpy as jnp",
        "curricula/e.py": "from plots.style import save",
        "cli.py": "import src",
        "store/__init__.py": "from ..sweeps import grid",
    }
    for number, (file, text) in enumerate(planted.items(), start=1):
        assert len(plant(tmp_path, file, text)) == number, file


def test_what_is_allowed_is_not_found(tmp_path: Path) -> None:
    for file, text in {
        "runners/a.py": "import jax\nfrom analysis.subject import x\nfrom . import b",
        "store/b.py": "from src.config import RunConfig\nfrom .c import d\nfrom typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import jax",
        "curricula/c.py": "from baselines.gradient_descent import gd",
        "src/d.py": "from src.config import DataConfig\nfrom .config import x",
    }.items():
        assert plant(tmp_path, file, text) == [], file
