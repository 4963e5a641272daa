"""How much of a study is done: minutes on a laptop, an hour or a night on one, or a day on a GPU."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

PROFILES = ("quick", "full", "gpu")  # each contains those before it


class _Profiled(Protocol):
    @property
    def profile(self) -> str: ...


T = TypeVar("T", bound=_Profiled)


def contains(profile: str, other: str) -> bool:
    """Whether a profile contains another."""
    return PROFILES.index(other) <= PROFILES.index(profile)


def of_profile(items: Iterable[T], profile: str) -> list[T]:
    """The claims, or the figures, of a profile and those it contains."""
    return [item for item in items if contains(profile, item.profile)]
