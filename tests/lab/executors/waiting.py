"""Waiting for what another process does."""

import time
from collections.abc import Callable
from typing import Any


def until(what: str, ask: Callable[[], Any], seconds: float = 120) -> Any:
    """What a question gives as soon as it gives something; an `AssertionError` says what did not happen."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := ask():
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what} did not happen")
