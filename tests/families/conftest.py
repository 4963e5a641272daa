"""The shared runs of two families that are no part of the tree, and the families in this process."""

import sys
from collections.abc import Iterator

import pytest

from icl_lab.lab import plugins
from icl_lab.lab.loaded_plugins import LOADED
from icl_lab.lab.registries import ALL
from tests.families.small import LOGISTIC, READERS
from tests.runners.tiny import workshop

__all__ = ["workshop"]


@pytest.fixture
def fresh() -> Iterator[None]:
    """Plugins that are loaded here are gone afterwards."""
    before = dict(LOADED)
    yield
    for plugin in [plugin for name, plugin in LOADED.items() if name not in before]:
        for registry in ALL:
            registry.drop(plugin.name)
        del LOADED[plugin.name]
        for name in [name for name in sys.modules if name.partition(".")[0] == plugin.name]:
            del sys.modules[name]


@pytest.fixture
def both(fresh: None) -> None:
    """Both families in this process."""
    for folder in (LOGISTIC, READERS):
        plugins.load(folder)
