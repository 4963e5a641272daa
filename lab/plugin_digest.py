"""The hashes of a plugin: of its sources, and of the data files that it declares.

The hash of what runs are trained with enters the ids of the runs that use the plugin; it does not have the values that
are written into a conjecture, so that a range can be edited and nothing is trained again. Files are read and not run,
and what is no regular file is refused.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from icl_lab.lab import regular_file
from icl_lab.src.checks import ConfigError, require

DIGITS = 16  # of a SHA-256, in hexadecimal
FILES = "FILES"  # what a source of a plugin calls its data files
MOST_SOURCE = 2**24  # bytes of a source
# what is imported, from where -> what stands behind its name where a conjecture is stated
CALLED: dict[tuple[str | None, str], str] = {
    ("icl_lab.lab", "plugins"): ".conjecture",
    ("icl_lab.lab.plugins", "conjecture"): "",
}


def digest_of(path: Path) -> str:
    """The hash of a plugin: of a file's bytes (as sha256sum), or of the names and bytes of a folder's .py files.

    With data files, of that hash and of theirs. `ConfigError` for a file that cannot be read.
    """
    return _digest(path, bytes)


def trained_digest_of(path: Path) -> str:
    """The same hash without the values that are written into `plugins.conjecture(...)`.

    Of a plugin that states none it is the hash of `digest_of`. The settings of a conjecture are in its runs' configs.
    """
    return _digest(path, without_conjecture)


def _digest(path: Path, hashed: Callable[[bytes], bytes]) -> str:
    alone = not path.is_dir()
    sources, data = hashlib.sha256(), []
    for file in [path] if alone else sorted(path.rglob("*.py")):
        name = file.relative_to(path.parent if alone else path).as_posix()
        source = _source(file, name)
        content = hashed(source)
        sources.update(content if alone else f"{name}\0{len(content)}\0".encode() + content)
        data += [_file_hash(file.parent / each, each) for each in data_files(source)]
    whole = hashlib.sha256(" ".join([sources.hexdigest(), *data]).encode()) if data else sources
    return whole.hexdigest()[:DIGITS]


def without_conjecture(source: bytes) -> bytes:
    """A source in which each `plugins.conjecture(...)` at the top level has lost its literal arguments.

    Arguments that are computed stay: they may depend on anything. A source without such a call stays as it is, and so
    does one that gives another meaning to the name by which it is called.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return source
    lines, names = source.splitlines(keepends=True), _names_of_conjecture(tree)
    for node in reversed([each for each in tree.body if _called(each) in names]):
        assert isinstance(node, ast.Expr)
        assert isinstance(node.value, ast.Call)
        call, end = node.value, (node.end_lineno or node.lineno) - 1
        call.args = [each for each in call.args if not _is_literal(each)]
        call.keywords = [each for each in call.keywords if not (each.arg and _is_literal(each.value))]
        before, behind = lines[node.lineno - 1][: node.col_offset], lines[end][node.end_col_offset :]
        lines[node.lineno - 1 : end + 1] = [before + ast.unparse(call).encode() + behind]
    return b"".join(lines)


def _called(node: ast.stmt) -> str:
    """What a statement calls, as it is written; "" for one that is no call."""
    call = node.value if isinstance(node, ast.Expr) else None
    return ast.unparse(call.func) if isinstance(call, ast.Call) else ""


def _names_of_conjecture(tree: ast.Module) -> set[str]:
    """How a source that imports `icl_lab.lab.plugins`, or `conjecture` of it, and binds the name once, may call it."""
    bound = [name for node in ast.walk(tree) for name in _bound_by(node)]
    found = set()
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.level == 0]
    for node in imports:
        for alias in node.names:
            name = alias.asname or alias.name
            if bound.count(name) == 1 and (node.module, alias.name) in CALLED:
                found.add(name + CALLED[node.module, alias.name])
    return found


def _bound_by(node: ast.AST) -> list[str]:
    """The names that a node of a syntax tree gives a meaning."""
    if isinstance(node, ast.alias):
        return [(node.asname or node.name).partition(".")[0]]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.arg):
        return [node.arg]
    return [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else []


def _is_literal(node: ast.expr) -> bool:
    """Whether an argument is written out: numbers, texts, and lists, tuples and dictionaries of them."""
    with suppress(ValueError):
        ast.literal_eval(node)
        return True
    return False


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
