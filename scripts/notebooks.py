"""Makes tutorials/*.ipynb of the scripts beside them, and executes them: python -m scripts.notebooks [--execute].

A script has cells, each below a line `# %%` (code) or `# %% [markdown]` (text in comments). What stands behind `# %%`
is the cell's title, and the alternative text of its figure. A notebook has one cell more than its script, the first,
which installs the laboratory on Colab. Executed notebooks are kept in build/tutorials/, under a hash of the script's
cells and of the versions; what is there is not executed again.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from icl_lab.lab import cli
from icl_lab.lab.command_end import typed
from icl_lab.lab.configs.identity import RESULTS_VERSION
from icl_lab.lab.environment import PACKAGES, ROOT, extra
from icl_lab.src.checks import ConfigError, require

REPOSITORY = ""  # the address that Colab clones; the publisher fills it in, and makes the notebooks again
FOLDER, KEPT = Path(ROOT, "tutorials"), Path(ROOT, "build", "tutorials")
MARK, TEXT = "# %%", " [markdown]"
DIGITS = 16  # of a SHA-256, in hexadecimal
FIRST = """# On Colab this installs the laboratory, and keeps Colab's JAX and NumPy. Elsewhere it does nothing.
import sys

if "google.colab" in sys.modules:
    import subprocess
    from importlib.metadata import version
    from pathlib import Path

    address = "{repository}"
    assert address, "this copy of the notebook does not say where the laboratory is: put its address into this cell"
    kept = [f"{{name}}=={{version(name)}}\\n" for name in ("jax", "jaxlib", "numpy")]
    Path("kept.txt").write_text("".join(kept))
    subprocess.run(["git", "clone", "--depth", "1", address, "icl-lab"], check=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--constraint", "kept.txt"]
    subprocess.run([*pip, "--editable", "icl-lab"], check=True)
    sys.path.insert(0, str(Path("icl-lab").resolve()))"""


def main(argv: list[str]) -> int:
    """The command line; the exit status."""
    built = cli.Parser("scripts.notebooks", "Makes the notebooks of tutorials/ from their scripts, and executes them.")
    built.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a notebook would change")
    built.add_argument("--execute", action="store_true", help="execute those that have not been executed as they are")
    cli.add_list(built, "--only", str, [], "names of tutorials; all if not given")
    built.needs("nbclient", lambda flags: flags.execute)
    flags = built.parse(argv)
    from icl_lab.store.atomic import write_bytes

    chosen = [script for script in scripts() if script.stem in flags.only or not flags.only]
    unknown = set(flags.only) - {script.stem for script in chosen}
    names = ", ".join(script.stem for script in scripts())
    require(not unknown, f"there is no tutorial {', '.join(sorted(unknown))}; there are {names}")
    other = [script for script in chosen if not _same(script.with_suffix(".ipynb"), text(notebook(script)))]
    if flags.check:
        for script in other:
            print(f"tutorials/{script.stem}.ipynb is not what its script says: {typed('scripts.notebooks')}")
        return bool(other)
    for script in other:
        write_bytes(script.with_suffix(".ipynb"), text(notebook(script)).encode())
    for script in chosen if flags.execute else ():
        print(script.stem, execute(script))
    return 0


def _same(path: Path, made: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == made


# --- from scripts to notebooks ---


def scripts() -> list[Path]:
    """The tutorials, in their order."""
    return sorted(FOLDER.glob("*.py"))


def notebook(script: Path) -> dict[str, Any]:
    """The notebook of a script, in version 4.5 of the format, without outputs."""
    first = ("", False, FIRST.format(repository=REPOSITORY))
    cells = [_cell(number, *cell) for number, cell in enumerate([first, *cells_of(script)])]
    cells[0]["metadata"]["tags"] = ["remove-cell"]  # the site leaves it out
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python", "pygments_lexer": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def cells_of(script: Path) -> Iterator[tuple[str, bool, str]]:
    """(title, whether it is text, content) of each cell of a script."""
    begin, *parts = ("\n" + script.read_text(encoding="utf-8")).split(f"\n{MARK}")
    require(not begin.strip() and bool(parts), f"{script.name} does not begin with a line {MARK}")
    for part in parts:
        head, _, content = part.partition("\n")
        is_text = head == TEXT
        lines = content.strip("\n").split("\n")
        if is_text:
            code = next((line for line in lines if not line.startswith("#")), None)
            require(code is None, f"{script.name} has text that is no comment: {code}")
            lines = [line.removeprefix("#").removeprefix(" ") for line in lines]
        yield "" if is_text else head.strip(), is_text, "\n".join(lines)


def _cell(number: int, title: str, is_text: bool, content: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": "markdown", "id": f"cell-{number}", "metadata": {}}
    if not is_text:
        cell |= {"cell_type": "code", "execution_count": None, "outputs": []}
    if title:
        cell["metadata"] = {"title": title, "mystnb": {"image": {"alt": title}}}
    return cell | {"source": content.splitlines(keepends=True)}


def text(made: dict[str, Any]) -> str:
    """A notebook as Jupyter writes it."""
    return json.dumps(made, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


# --- executed ---


def executed(script: Path) -> Path:
    """Where the executed notebook of a script is kept: its name has a hash of cells and versions."""
    return KEPT / f"{script.stem}-{_digest([*cells_of(script)], _versions())}.ipynb"


def _digest(*values: Any) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:DIGITS]


def _versions() -> dict[str, str]:
    packages = {name: version(name) for name in PACKAGES.values()}
    return packages | {"python": platform.python_version(), "results": str(RESULTS_VERSION)}


def execute(script: Path) -> Path:
    """Executes a tutorial, unless its executed notebook is there; `ConfigError` says what fails.

    Its runs are trained in a folder of these versions, build/tutorials/runs-HASH; those of other versions go.
    """
    from icl_lab.store.atomic import write_bytes

    path = executed(script)
    if path.exists():
        return path
    nbclient, nbformat = extra("nbclient"), extra("nbformat")
    folder = KEPT / f"runs-{_digest(_versions())}"
    folder.mkdir(parents=True, exist_ok=True)
    made = nbformat.reads(text(notebook(script)), as_version=4)
    kernel = {"kernel_name": "python3", "extra_arguments": ["--log-level=ERROR"]}
    try:
        client = nbclient.NotebookClient(made, timeout=None, resources={"metadata": {"path": str(folder)}}, **kernel)
        client.execute(env=os.environ | {"PYTHONPATH": ROOT})  # the laboratory of this checkout
    except nbclient.exceptions.CellExecutionError as error:
        raise ConfigError(f"a cell of tutorials/{script.name} fails with {error.ename}: {error.evalue}") from None
    except nbclient.exceptions.DeadKernelError:
        raise ConfigError(f"the process of tutorials/{script.name} was killed; it may have lacked memory") from None
    for earlier in KEPT.glob(f"{script.stem}-*.ipynb"):
        earlier.unlink()
    for cell in made["cells"]:
        cell["metadata"].pop("execution", None)  # when it ran
    write_bytes(path, nbformat.writes(made).encode())
    return path


if __name__ == "__main__":
    cli.launch(main)
