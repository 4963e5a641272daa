"""Parameters of which the fast tests take a part, and `make test-all` all."""

from collections.abc import Iterable
from typing import Any

import pytest

SLOW = pytest.mark.slow


def thinned(values: Iterable[Any], every: int) -> list[Any]:
    """The values, of which all but the first of each `every` are slow."""
    return [
        value if number % every == 0 else pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=SLOW)
        for number, value in enumerate(values)
    ]
