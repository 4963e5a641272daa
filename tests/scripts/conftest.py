"""Commands in this process, and the shared runs."""

from tests.doors import ran, refused
from tests.runners.tiny import lsa1_run, twolayer_run, workshop

__all__ = ["lsa1_run", "ran", "refused", "twolayer_run", "workshop"]
