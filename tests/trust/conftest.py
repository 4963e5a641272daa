"""The shared runs, and commands in this process."""

from tests.doors import ran, refused
from tests.runners.tiny import lsa1_run, twolayer_run, workshop

__all__ = ["lsa1_run", "ran", "refused", "twolayer_run", "workshop"]
