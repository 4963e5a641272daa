"""The plugins that are loaded, and what a run's config says of those that it was trained with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from icl_lab.src.registry import Registry


class Plugin(NamedTuple):
    """A file or a folder that registers names: its name, where it is, and hashes of its sources and data files.

    trained: the hash without the values of a conjecture, on which no training depends.
    """

    name: str
    path: Path
    digest: str
    trained: str

    @property
    def record(self) -> str:
        """The plugin as a run's config has it: name:hash."""
        return f"{self.name}:{self.trained}"


LOADED: dict[str, Plugin] = {}  # by name; `lab.plugin_files.load` and imports of plugins fill it


def plugin_of(registry: Registry[Any], name: str) -> Plugin | None:
    """The plugin that added a name to a registry; None for a built-in or unknown one."""
    return LOADED.get(registry.owner(name))


def why_changed(config: Mapping[str, Any]) -> str | None:
    """The message for a run if a plugin of its config is loaded with other sources; None otherwise.

    The config is parsed JSON; the message is a sentence without its subject, the run.
    """
    for name, digest in _recorded(config):
        if name in LOADED and LOADED[name].trained != digest:
            plugin = LOADED[name]
            return (
                f"was trained with another version of the plugin {name} (hash {digest}); sources or data of "
                f"{plugin.path} have changed (hash {plugin.trained}), so give the plugin as it was"
            )
    return None


def _recorded(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The name and the hash of each plugin of a config."""
    records = config.get("plugins")
    named = records if isinstance(records, (list, tuple)) else ()
    parts = (record.partition(":") for record in named if isinstance(record, str))  # reading it refuses others
    return [(name, digest) for name, _, digest in parts]


def not_loaded(config: Mapping[str, Any]) -> list[str]:
    """The plugins of a config, NAME:HASH each, that are not loaded, or not with these sources and data."""
    loaded = {plugin.record for plugin in LOADED.values()}
    return [record for name, digest in _recorded(config) if (record := f"{name}:{digest}") not in loaded]


def why_not_loaded(config: Mapping[str, Any]) -> str | None:
    """The message for a run if a plugin of its config is not loaded or has changed; None otherwise."""
    for name, _ in _recorded(config):
        if name not in LOADED:
            return f"was trained with the plugin {name}; give --plugin FILE (in Python: plugins.load(FILE))"
    return why_changed(config)
