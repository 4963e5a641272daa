"""The hash of a plugin: of its sources, and of the data files that it declares.

It enters the ids of the runs that use the plugin. Files are read and not run, and what is no regular file is refused.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from icl_lab.lab import regular_file
from icl_lab.src.checks import ConfigError, require

DIGITS = 16  # of a SHA-256, in hexadecimal
FILES = "FILES"  # what a source of a plugin calls its data files
MOST_SOURCE = 2**24  # bytes of a source


def digest_of(path: Path) -> str:
    """The hash of a plugin: of a file's bytes (as sha256sum), or of the names and bytes of a folder's .py files.

    With data files, of that hash and of theirs. `ConfigError` for a file that cannot be read.
    """
    alone = not path.is_dir()
    sources, data = hashlib.sha256(), []
    for file in [path] if alone else sorted(path.rglob("*.py")):
        name = file.relative_to(path.parent if alone else path).as_posix()
        content = _source(file, name)
        sources.update(content if alone else f"{name}\0{len(content)}\0".encode() + content)
        data += [_file_hash(file.parent / each, each) for each in data_files(content)]
    whole = hashlib.sha256(" ".join([sources.hexdigest(), *data]).encode()) if data else sources
    return whole.hexdigest()[:DIGITS]


def _source(file: Path, name: str) -> bytes:
    with _reading(name):
        return regular_file.read(file, MOST_SOURCE)


def _file_hash(file: Path, name: str) -> str:
    with _reading(name), regular_file.opened(file) as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def data_files(source: bytes) -> tuple[str, ...]:
    """The data files that a source declares, `FILES = ("data.csv",)`, by paths from its folder; it is read and not run.

    `ConfigError` unless they are written out, once. A source that is no Python has none: executing it says why.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ()
    places = [node for node in ast.walk(tree) if _names_files(node)]
    assigned = [each for each in tree.body if isinstance(each, ast.Assign) and places == each.targets]
    files = None
    with suppress(ValueError):
        files = ast.literal_eval(assigned[0].value) if assigned else None
    listed = isinstance(files, tuple | list) and all(isinstance(name, str) for name in files)
    require(listed or not places, f"{FILES} must be written out once, at the top level: {FILES} = ('data.csv',)")
    return tuple(files or ())


def _names_files(node: ast.AST) -> bool:
    """Whether a node of a syntax tree gives the name `FILES` a value."""
    if isinstance(node, ast.alias):
        return (node.asname or node.name) == FILES
    return isinstance(node, ast.Name) and node.id == FILES and isinstance(node.ctx, ast.Store)


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Turns errors of a plugin's file into one sentence."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"its file {name} cannot be read: {error.strerror or error}") from None
