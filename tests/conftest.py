"""Strict numerics, a fixed hypothesis profile, and the repository root on the path."""

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import hypothesis  # noqa: E402
import jax  # noqa: E402
import pytest  # noqa: E402

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
    return ROOT
