"""Names that are registered for the time of a test, as a plugin would register them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from src.registry import Plugin, Registry

OF_A_TEST = Plugin("of_a_test", Path("of_a_test.py"), "0")


@contextmanager
def registered(registry: Registry[Any], name: str, entry: Any) -> Iterator[None]:
    """Adds a name, or gives one that was added so another entry; in the end it is gone."""
    registry.drop(OF_A_TEST)
    registry.add(name, entry, OF_A_TEST)
    try:
        yield
    finally:
        registry.drop(OF_A_TEST)
