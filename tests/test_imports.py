"""The floors: a room imports only from floors below its own, no module one that imports it; commands stand last."""

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

PACKAGE = "icl_lab"
FLOORS = (
    ("src",),
    ("lab",),
    ("store",),
    ("baselines", "plots"),
    ("families",),
    ("analysis",),
    ("runners",),
    ("sweeps", "utils_log", "utils_attention"),
    ("studies", "eval_order", "eval_noise", "eval_diversity", "eval_languages", "eval_tokens", "eval_functions"),
    ("icl_lab",),
    ("demos_ref", "tutorials", "scripts", "benchmarks", "docs"),  # as its readers, they may use the library
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
# of rooms, folders and files; of families all but their tasks, whose model is made of JAX
WITHOUT_JAX = ("store", "plots", "lab", "utils_log", "utils_attention")
APART = {"baselines": ("analysis", "runners")}  # room -> rooms it needs nothing of
NAMESPACE = "icl_lab.src.namespace"  # every room, the package too, begins with it
HEAVY = ("jax", "jaxlib", "haiku", "optax")


def modules(root: Path) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """(file, dotted name in parts) of every module of a room."""
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if parts[0] in FLOOR and not any((root / each).is_symlink() for each in path.relative_to(root).parents[:-1]):
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


def room_of(target: str) -> str:
    """The room, or the file of the root, that a dotted name below the package stands in; "" for other packages."""
    package, _, rest = target.partition(".")
    if package != PACKAGE:
        return ""
    if not rest:
        return PACKAGE
    return rest.split(".")[0] if rest.split(".")[0] in FLOOR else PACKAGE


def at_import(tree: ast.Module) -> ast.Module:
    """The statements that run at import: not those in functions or under TYPE_CHECKING."""
    kept = [node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))]
    return ast.Module([node for node in kept if not isinstance(node, ast.FunctionDef | ast.ClassDef)], [])


def violations(root: Path) -> list[str]:
    """Every import that points up or sideways, or brings JAX into a room that must do without."""
    found = []
    for path, parts in modules(root):
        tree, room = ast.parse(path.read_text()), parts[0]
        package = path.name == "__init__.py"
        name = (PACKAGE, *(parts[:-1] if package else parts))
        for line, target in imported(tree, name, package):
            other = room_of(target)
            if other == room:
                continue
            if target.split(".")[0] in {*FLOOR} - {PACKAGE}:
                found.append(f"{'/'.join(parts)}:{line} imports {target} by another name")
            elif other in FLOOR and (FLOOR[other] >= FLOOR[room] or other in APART.get(room, ())):
                found.append(f"{'/'.join(parts)}:{line} imports {target}")
        if room in WITHOUT_JAX or parts[-1] == "config":
            for line, target in imported(at_import(tree), name, package):
                if target.split(".")[0] in HEAVY:
                    found.append(f"{'/'.join(parts)}:{line} imports {target} at import")
    return found


def graph(root: Path, in_functions: bool) -> dict[str, set[str]]:
    """module -> the modules that it imports, when it is imported or, with `in_functions`, ever.

    A package stands for what its own file holds; that a module's import runs its package's file is no arrow.
    """
    files = {parts[:-1] if path.name == "__init__.py" else parts: path for path, parts in modules(root)}
    names = {".".join((PACKAGE, *parts)): path for parts, path in files.items()}
    arrows: dict[str, set[str]] = {}
    for name, path in names.items():
        tree = ast.parse(path.read_text())
        found = imported(tree if in_functions else at_import(tree), tuple(name.split(".")), path.name == "__init__.py")
        targets = {target if target in names else target.rpartition(".")[0] for _, target in found}
        arrows[name] = targets & set(names) - {name}
    return arrows


def circle(root: Path, in_functions: bool) -> list[str]:
    """Modules of which each imports the next, the last being the first; none if there is no such circle."""
    try:
        TopologicalSorter(graph(root, in_functions)).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))  # it names first what is imported
    return []


def early_commands(root: Path) -> list[str]:
    """Every `if __name__ == ...` that is not its module's last statement: what stands below it runs twice, or never."""
    found = []
    for path, parts in modules(root):
        lines = [node.lineno for node in ast.parse(path.read_text()).body[:-1] if is_command(node)]
        found += [f"{'/'.join(parts)}:{line}" for line in lines]
    return found


def is_command(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)


def test_imports_point_down(root: Path) -> None:
    assert len(list(modules(root))) > 30
    assert violations(root) == []


def test_no_module_imports_one_that_imports_it(root: Path) -> None:
    assert circle(root, in_functions=False) == []


def test_nor_does_one_of_its_functions(root: Path) -> None:
    assert circle(root, in_functions=True) == []


def test_commands_stand_at_the_end_of_their_modules(root: Path) -> None:
    assert sum(is_command(node) for path, _ in modules(root) for node in ast.parse(path.read_text()).body) > 30
    assert early_commands(root) == []


def test_every_folder_of_code_has_a_floor(root: Path) -> None:
    folders = {path.parent.name for path in root.glob("*/*.py")} - {"tests"}
    files = {path.stem for path in root.glob("*.py")}
    assert folders | files <= set(FLOOR)


def test_the_pages_table_has_these_floors(root: Path) -> None:
    """Each row is of one floor, from the top down, and every room stands in one."""
    page = root / "CONTRIBUTING.md"
    section = page.read_text().partition("\n## Code layers\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")]
    named = [
        [word.strip("/").removesuffix(".py") for word in re.findall(r"`([\w.]+/?)`", " ".join(r[:2]))] for r in rows
    ]
    floors = [{FLOOR[word] for word in words if word in FLOOR} for words in named if {*words} & {*FLOOR}]
    assert all(len(floor) == 1 for floor in floors)
    assert [*map(max, floors)] == sorted(map(max, floors), reverse=True)
    assert {word for words in named for word in words} >= {*FLOOR}


def plant(root: Path, file: str, text: str) -> list[str]:
    """The violations of a tree with this one file."""
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return violations(root)


def test_planted_violations_are_found(tmp_path: Path) -> None:
    planted = {
        "src/a.py": "from icl_lab.store import load",
        "baselines/b.py": "def late():\n    from icl_lab.runners import loop",
        "store/c.py": "from ..analysis import trained",
        "plots/d.py": "import jax.numpy as jnp",
        "plots/e.py": "from icl_lab.baselines import gd_step",
        "src/f.py": "def late():\n    from icl_lab.lab import cli",
        "store/__init__.py": "from ..sweeps import grid",
        "baselines/g.py": "from icl_lab.analysis.command import Command",
        "families/small/h.py": "def late():\n    from icl_lab.analysis import load_run",
        "lab/configs/j.py": "from icl_lab.store.rundir import read_config",
        "families/small/config.py": "import jax",
        "analysis/k.py": "from src import data",
        "runners/l.py": "def late():\n    import baselines.bayes",
        "store/m.py": "import icl_lab",
    }
    for number, (file, text) in enumerate(planted.items(), start=1):
        assert len(plant(tmp_path, file, text)) == number, file


def test_what_is_allowed_is_not_found(tmp_path: Path) -> None:
    for file, text in {
        "runners/a.py": "import jax\nfrom icl_lab.analysis.loaded_run import x\nfrom . import b",
        "store/b.py": "from icl_lab.lab.configs.run import RunConfig\nfrom .c import d\n"
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import jax",
        "families/small/task.py": "import jax\nfrom icl_lab.src.context import x\nfrom icl_lab.store.params import y",
        "src/d.py": "from icl_lab.src.config import DataConfig\nfrom .config import x",
        "eval_order.py": "from icl_lab.sweeps import command",
        "icl_lab/__init__.py": "def train():\n    from icl_lab.runners import loop",
    }.items():
        assert plant(tmp_path, file, text) == [], file


def planted_tree(root: Path, files: dict[str, str]) -> Path:
    """A tree of these files."""
    for file, text in files.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)
    return root


@pytest.mark.parametrize("file", ["analysis/c.py", "analysis/__init__.py"])
def test_planted_circles_are_found(tmp_path: Path, file: str) -> None:
    """At import and in a function, by a module and by a package's file; what only types need is none."""
    last = "icl_lab.analysis" if file.endswith("__init__.py") else "icl_lab.analysis.c"
    files = {"analysis/a.py": "from icl_lab.analysis import b", "analysis/b.py": f"import {last}\nimport json"}
    within = planted_tree(tmp_path, files | {file: "def late():\n    from icl_lab.analysis.a import x"})
    assert circle(within, in_functions=False) == []
    found = circle(within, in_functions=True)
    assert (set(found), found[0]) == ({"icl_lab.analysis.a", "icl_lab.analysis.b", last}, found[-1])
    assert all(after in graph(within, True)[before] for before, after in pairwise(found))
    assert set(circle(planted_tree(tmp_path, {file: "from .a import x"}), in_functions=False)) == set(found)
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from icl_lab.analysis.a import x"
    assert circle(planted_tree(tmp_path, {file: typed}), in_functions=False) == []


def test_planted_commands_above_imports_are_found(tmp_path: Path) -> None:
    command = 'if __name__ == "__main__":\n    run()\n'
    files = {"analysis/a.py": f"{command}import jax", "analysis/b.py": f"import jax\n{command}"}
    assert early_commands(planted_tree(tmp_path, files)) == ["analysis/a:1"]
