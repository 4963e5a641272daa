"""Registries: names and what they stand for, added to by plugins and never overwritten."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

from icl_lab.src.checks import require

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=Iterable[str])

RESERVED = ("auto",)  # command-line value that keeps the base config's value


class Deferred(NamedTuple):
    """A built-in entry that is imported when it is asked for: an attribute of a module."""

    module: str
    attribute: str


class Registry(Mapping[str, T]):
    """Names of one kind -> what they stand for. Built-in names come first, those of plugins in the order they came."""

    def __init__(self, kind: str, built_in: Mapping[str, T], reserved: Iterable[str] = ()):
        self.kind = kind
        self._entries: dict[str, T | Deferred] = dict(built_in)
        self._plugins: dict[str, str] = {}
        self._reserved = (*RESERVED, *reserved)

    def __getitem__(self, name: str) -> T:
        entry = self._entries[name]
        if isinstance(entry, Deferred):
            loaded: T = getattr(import_module(entry.module), entry.attribute)
            self._entries[name] = entry = loaded
        return entry

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def built_in(self) -> tuple[str, ...]:
        """The names that no plugin added."""
        return tuple(name for name in self if name not in self._plugins)

    def owner(self, name: str) -> str:
        """The plugin that added a name; "" for a built-in or unknown one."""
        return self._plugins.get(name, "")

    def build_in(self, name: str, entry: T | Deferred) -> None:
        """Adds a built-in name, whose entry is made above the registry."""
        require(name not in self, f"{self.kind} {name!r} exists already")
        self._entries[name] = entry

    def add(self, name: str, entry: T, plugin: str) -> None:
        """Adds a plugin's name; `ConfigError` for one that is taken or cannot be typed on a command line."""
        plain = name.isidentifier() and name.isascii()
        require(plain, f"{self.kind} {name!r}: a name is letters, digits and _, and begins with no digit")
        require(name not in self._reserved, f"{self.kind} {name!r}: the word is reserved; take another name")
        owner = self._plugins.get(name)
        require(name not in self or owner is not None, f"{self.kind} {name!r} is built in and cannot be replaced")
        require(owner is None, f"{self.kind} {name!r} is registered already, by the plugin {owner}")
        self._entries[name] = entry
        self._plugins[name] = plugin

    def reserving(self, table: C) -> C:
        """A table of built-in names, among which this registry's stand too; `ConfigError` if it would take one's place.

        Tables are made above the registry, and so its reserved words are written down with it.
        """
        open_names = {*table} - {*self._reserved, *self.built_in}
        names = ", ".join(sorted(open_names))
        require(not open_names, f"{names}: a plugin's {self.kind} could have this name; src/registries.py reserves it")
        return table

    def drop(self, plugin: str) -> None:
        """Removes the names added by a plugin that then failed to load."""
        for name in [name for name, owner in self._plugins.items() if owner == plugin]:
            del self._entries[name], self._plugins[name]


class Selection(Collection[str]):
    """The names of a registry whose entries have a field set, as it is now."""

    def __init__(self, registry: Registry[Any], chosen: Callable[[Any], bool]):
        self._registry, self._chosen = registry, chosen

    def __contains__(self, name: object) -> bool:
        return name in self._registry and self._chosen(self._registry[str(name)])

    def __iter__(self) -> Iterator[str]:
        return (name for name, entry in self._registry.items() if self._chosen(entry))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Functions(Mapping[str, F]):
    """Name -> function: for built-in names a module's own, for a plugin's the field of its entry; as they are now.

    Names without a function are left out.
    """

    def __init__(self, registry: Registry[Any], field: str, own: Mapping[str, F]):
        self._registry, self._field, self._own = registry, field, registry.reserving(own)

    def __getitem__(self, name: str) -> F:
        function: F | None = self._own.get(name) or getattr(self._registry[name], self._field)
        if function is None:
            raise KeyError(name)
        return function

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._registry if self._own.get(name) or getattr(self._registry[name], self._field))

    def __len__(self) -> int:
        return sum(1 for _ in self)
