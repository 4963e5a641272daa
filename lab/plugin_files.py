"""Loads plugins from files, and finds out which plugin registers a name."""

from __future__ import annotations

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

from icl_lab.lab.loaded_plugins import LOADED, Plugin
from icl_lab.lab.plugin_digest import digest_of, trained_digest_of
from icl_lab.lab.registries import ALL
from icl_lab.src import namespace
from icl_lab.src.checks import ConfigError, require


class PluginError(ConfigError):
    """A plugin that cannot be loaded; the message is one sentence that names the file and, if known, the line."""


def calling_plugin(registrar: str) -> Plugin:
    """The plugin whose code calls the module `registrar`; recorded now if Python has imported it by itself."""
    frame: FrameType | None = sys._getframe(1)
    while frame and frame.f_code.co_filename == registrar:
        frame = frame.f_back
    assert frame is not None
    source = Path(frame.f_code.co_filename).resolve()
    require(source.is_file(), "a plugin must be a file; put this code into one, and import it or use plugins.load")
    for plugin in LOADED.values():
        if source.is_relative_to(plugin.path):
            return plugin
    package = sys.modules.get(str(frame.f_globals.get("__package__") or "").partition(".")[0])
    whole = getattr(package, "__file__", None)
    plugin = _plugin_at(Path(whole).resolve().parent if whole else source)
    _record(plugin)
    return plugin


def _plugin_at(path: Path) -> Plugin:
    name = path.stem if path.is_file() else path.name
    return Plugin(name, path, digest_of(path), trained_digest_of(path))


def _record(plugin: Plugin) -> None:
    """Records a plugin as loaded; `ConfigError` if another has its name."""
    known = LOADED.get(plugin.name)
    require(
        known is None or known.path == plugin.path,
        f"a plugin named {plugin.name} is loaded already, {known.path if known else ''}; rename one of them",
    )
    require(known in (None, plugin), f"{plugin.path} has changed since it was loaded; restart Python")
    LOADED[plugin.name] = plugin


def load(path: str | os.PathLike[str]) -> ModuleType:
    """Loads a plugin (a .py file, or a folder with an __init__.py) once, and returns its module.

    `PluginError` if it fails; then nothing of it stays registered.
    """
    source = Path(path)
    with plugin_errors(source):
        file = _main_file(source)
        plugin = _plugin_at(source.resolve())
        module, known = sys.modules.get(plugin.name), plugin.name in LOADED
        _record(plugin)
        require(module is not None or not known, f"Python has imported it already, but not as {plugin.name}")
        if module is None or _file_of(module) != file.resolve():
            module = _execute(plugin, file.resolve())
    return module


def _main_file(path: Path) -> Path:
    """The file of a plugin that is executed."""
    require(path.exists(), "it does not exist")
    file = path / "__init__.py" if path.is_dir() else path
    require(file.suffix == ".py", "it is not a .py file")
    require(file.is_file(), "it is a folder without an __init__.py" if path.is_dir() else "it is not a regular file")
    name = path.resolve().name if path.is_dir() else path.resolve().stem
    require(re.fullmatch(r"[A-Za-z_]\w*", name, re.A) is not None, f"{name!r} is not a valid module name; rename it")
    require(not _is_taken(name, file.resolve()), f"{name} is the name of another module; rename it")
    return file


def _is_taken(name: str, file: Path) -> bool:
    """Whether `import NAME` gives another file than this one; a folder without modules does not count."""
    if name in sys.modules:
        return _file_of(sys.modules[name]) != file
    spec = find_spec(name)
    return spec is not None and spec.origin is not None and _file_of(spec) != file


def _file_of(module: ModuleType | ModuleSpec) -> Path | None:
    """The file that a module is, or would be, loaded from."""
    file = module.origin if isinstance(module, ModuleSpec) else getattr(module, "__file__", None)
    return Path(file).resolve() if file else None


def _execute(plugin: Plugin, file: Path) -> ModuleType:
    """Executes a plugin as the module of its name; `ConfigError` if it changes the results of other runs."""
    folder = [str(plugin.path)] if plugin.path.is_dir() else None
    spec = spec_from_file_location(plugin.name, file, submodule_search_locations=folder)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[plugin.name] = module
    was_64_bit = _in_64_bits()
    try:
        with _no_bytecode():
            exec(_compiled(file), module.__dict__)
        require(was_64_bit or not _in_64_bits(), "it turns on JAX's 64-bit numbers, which changes every run's results")
        require(digest_of(plugin.path) == plugin.digest, "it has changed while it was loaded")
    except BaseException:
        _forget(plugin)
        raise
    return module


@contextmanager
def _no_bytecode() -> Iterator[None]:
    """Writes no .pyc, which Python would reuse for a source edited within the same second."""
    cached, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = cached


def imported_module(plugin: Plugin, module: str) -> ModuleType:
    """Imports a module of a loaded plugin; `PluginError` if that fails or the plugin has changed."""
    with plugin_errors(plugin.path), _no_bytecode():
        imported = import_module(module)
        require(digest_of(plugin.path) == plugin.digest, "it has changed since it was loaded; restart Python")
    return imported


def _compiled(file: Path) -> CodeType:
    return compile(file.read_bytes(), str(file), "exec", dont_inherit=True)


def _in_64_bits() -> bool:
    """Whether JAX uses 64-bit numbers, or will once it is imported."""
    jax = sys.modules.get("jax")
    return bool(jax.config.jax_enable_x64) if jax else os.environ.get("JAX_ENABLE_X64", "0").lower() in ("1", "true")


def _forget(plugin: Plugin) -> None:
    """Removes everything that a plugin registered before it failed."""
    for registry in ALL:
        registry.drop(plugin.name)
    LOADED.pop(plugin.name, None)
    for name in [name for name in sys.modules if name.partition(".")[0] == plugin.name]:
        del sys.modules[name]


@contextmanager
def plugin_errors(path: Path) -> Iterator[None]:
    """Turns any error in a plugin into a `PluginError` that names its file and line."""
    try:
        yield
    except (Exception, SystemExit) as error:
        message = " ".join(str(error).split())
        if isinstance(error, SyntaxError):
            message = f"{type(error).__name__}: {error.msg}"
        elif isinstance(error, ModuleNotFoundError) and error.name and namespace.is_of_ours(error.name):
            message = namespace.sentence(error.name)
        elif not isinstance(error, (ConfigError, namespace.Misnamed)):
            message = f"{type(error).__name__}{f': {message}' if message else ''}"
        raise PluginError(f"plugin {_location(error, path)}: {message}") from error


def _location(error: BaseException, path: Path) -> str:
    """The innermost file and line of a plugin at which an error arose."""
    whole = path.resolve()
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        frames.append((error.filename or "", error.lineno))
    plugin_frames = [(Path(name), line) for name, line in frames if Path(name).is_relative_to(whole)]
    if not plugin_frames:
        return str(path)
    file, line = plugin_frames[-1]
    return f"{path / file.relative_to(whole) if path.is_dir() else path}, line {line}"
