"""Commands in this process, and the shared runs."""

from tests.doors import ran, refused
from tests.runners.tiny import lsa1_run, sine_run, twolayer_run, workshop

__all__ = ["lsa1_run", "ran", "refused", "sine_run", "twolayer_run", "workshop"]
