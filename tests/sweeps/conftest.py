"""The shared runs, the shared sweep, and commands in this process."""

from tests.doors import ran, refused
from tests.runners.tiny import workshop
from tests.sweeps.tiny_sweep import swept

__all__ = ["ran", "refused", "swept", "workshop"]
