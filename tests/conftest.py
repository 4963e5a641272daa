"""Strict numerics and a fixed hypothesis profile. The root is on the path through pytest's `pythonpath`."""

from collections.abc import Iterator
from pathlib import Path

import hypothesis
import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")

hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=30)
hypothesis.settings.load_profile("fixed")


@pytest.fixture
def x64() -> Iterator[None]:
    """Float64 for identities."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root folder."""
    return Path(__file__).resolve().parent.parent
