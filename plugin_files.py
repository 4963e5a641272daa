"""A plugin on disk: whose code registers a name, the hash of its sources, and how it is loaded."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, FrameType, ModuleType

from src import registries
from src.checks import ConfigError, require
from src.registry import LOADED, Plugin

DIGITS = 16  # of a SHA-256, in hexadecimal


class PluginError(ConfigError):
    """A plugin that cannot be loaded; the message is one sentence that names the file, and the line if there is one."""


def calling_plugin(registrar: str) -> Plugin:
    """The plugin whose code calls the module `registrar`: one that is loaded, or that Python has imported by itself."""
    frame: FrameType | None = sys._getframe(1)
    while frame and frame.f_code.co_filename == registrar:
        frame = frame.f_back
    assert frame is not None
    source = Path(frame.f_code.co_filename).resolve()
    require(source.is_file(), "a plugin is a file: put this into one, and import it or give it to plugins.load")
    for plugin in LOADED.values():
        if source.is_relative_to(plugin.path):
            return plugin
    package = sys.modules.get(str(frame.f_globals.get("__package__") or "").partition(".")[0])
    whole = getattr(package, "__file__", None)
    plugin = _described(Path(whole).resolve().parent if whole else source)
    _enter(plugin)
    return plugin


def _described(path: Path) -> Plugin:
    return Plugin(path.stem if path.is_file() else path.name, path, digest_of(path))


def digest_of(path: Path) -> str:
    """A hash of a plugin: of a file's bytes, as sha256sum gives it, or of a folder's .py files with their names."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()[:DIGITS]
    found = hashlib.sha256()
    for file in sorted(path.rglob("*.py")):
        content = file.read_bytes()
        found.update(f"{file.relative_to(path).as_posix()}\0{len(content)}\0".encode() + content)
    return found.hexdigest()[:DIGITS]


def _enter(plugin: Plugin) -> None:
    """Notes a plugin; `ConfigError` if another has its name."""
    known = LOADED.get(plugin.name)
    require(
        known is None or known.path == plugin.path,
        f"a plugin named {plugin.name} is loaded already, {known.path if known else ''}; rename one of them",
    )
    require(known in (None, plugin), f"{plugin.path} has changed since it was loaded; start Python anew")
    LOADED[plugin.name] = plugin


def load(path: str | os.PathLike[str]) -> ModuleType:
    """Loads a plugin, a .py file or a folder with an __init__.py, and gives its module; once if called again.

    Raises `PluginError`, and nothing of it is registered then.
    """
    given = Path(path)
    with _sentence_of(given):
        file = _main_file(given)
        plugin = _described(given.resolve())
        module, entered = sys.modules.get(plugin.name), plugin.name in LOADED
        _enter(plugin)
        require(module is not None or not entered, f"Python has imported it already, but not as {plugin.name}")
        if module is None or _file_of(module) != file.resolve():
            module = _executed(plugin, file.resolve())
    return module


def _main_file(path: Path) -> Path:
    """The file of a plugin that is run first."""
    require(path.exists(), "it does not exist")
    file = path / "__init__.py" if path.is_dir() else path
    require(file.suffix == ".py", "it is no .py file")
    require(file.is_file(), "it is a folder without an __init__.py" if path.is_dir() else "it is no regular file")
    name = path.resolve().name if path.is_dir() else path.resolve().stem
    require(re.fullmatch(r"[A-Za-z_]\w*", name, re.A) is not None, f"{name!r} is no name for a module; rename it")
    require(not _is_taken(name, file.resolve()), f"{name} is the name of another module, so rename it")
    return file


def _is_taken(name: str, file: Path) -> bool:
    """Whether `import NAME` gives something else than this file; a folder without modules is nothing."""
    if name in sys.modules:
        return _file_of(sys.modules[name]) != file
    spec = find_spec(name)
    return spec is not None and spec.origin is not None and _file_of(spec) != file


def _file_of(module: ModuleType | ModuleSpec) -> Path | None:
    """The file that a module is, or would be, loaded from."""
    found = module.origin if isinstance(module, ModuleSpec) else getattr(module, "__file__", None)
    return Path(found).resolve() if found else None


def _executed(plugin: Plugin, file: Path) -> ModuleType:
    """Runs a plugin as the module of its name. It must not change the numbers of runs that do not use it."""
    folder = [str(plugin.path)] if plugin.path.is_dir() else None
    spec = spec_from_file_location(plugin.name, file, submodule_search_locations=folder)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[plugin.name] = module
    wide = _in_64_bits()
    try:
        with _uncached():
            exec(_code_of(file), module.__dict__)
        require(wide or not _in_64_bits(), "it turns on JAX's 64-bit numbers, which changes those of every run")
        require(digest_of(plugin.path) == plugin.digest, "it has changed while it was loaded")
    except BaseException:
        _forget(plugin)
        raise
    return module


@contextmanager
def _uncached() -> Iterator[None]:
    """Leaves no .pyc, which may be taken for that of a source edited within the same second."""
    cached, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = cached


def imported_module(plugin: Plugin, module: str) -> ModuleType:
    """A module that a plugin names, imported after the plugin; `PluginError` if it fails or the plugin has changed."""
    with _sentence_of(plugin.path), _uncached():
        found = import_module(module)
        require(digest_of(plugin.path) == plugin.digest, "it has changed since it was loaded; start Python anew")
    return found


def _code_of(file: Path) -> CodeType:
    return compile(file.read_bytes(), str(file), "exec", dont_inherit=True)


def _in_64_bits() -> bool:
    """Whether JAX computes in 64 bits, or will once it is imported."""
    jax = sys.modules.get("jax")
    return bool(jax.config.jax_enable_x64) if jax else os.environ.get("JAX_ENABLE_X64", "0").lower() in ("1", "true")


def _forget(plugin: Plugin) -> None:
    """Takes back all that a plugin registered before it failed."""
    for registry in registries.ALL:
        registry.drop(plugin)
    LOADED.pop(plugin.name, None)
    for name in [name for name in sys.modules if name.partition(".")[0] == plugin.name]:
        del sys.modules[name]


@contextmanager
def _sentence_of(path: Path) -> Iterator[None]:
    """Turns whatever goes wrong in a plugin into a `PluginError` that names its file and line."""
    try:
        yield
    except (Exception, SystemExit) as error:
        said = " ".join(str(error).split())
        if isinstance(error, SyntaxError):
            said = f"{type(error).__name__}: {error.msg}"
        elif not isinstance(error, ConfigError):
            said = f"{type(error).__name__}{f': {said}' if said else ''}"
        raise PluginError(f"plugin {_place(error, path)}: {said}") from error


def _place(error: BaseException, path: Path) -> str:
    """The file and line of a plugin at which an error arose: the innermost of its frames."""
    whole = path.resolve()
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        frames.append((error.filename or "", error.lineno))
    own = [(Path(name), line) for name, line in frames if Path(name).is_relative_to(whole)]
    if not own:
        return str(path)
    file, line = own[-1]
    return f"{path / file.relative_to(whole) if path.is_dir() else path}, line {line}"
