"""The shared runs, and commands in this process."""

from tests.doors import ran, refused
from tests.runners.tiny import workshop

__all__ = ["ran", "refused", "workshop"]
