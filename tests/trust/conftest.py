"""The shared runs, and commands in this process."""

from tests.doors import ran, refused
from tests.runners.tiny import lsa1_run, sine_run, twolayer_run, workshop
from tests.sweeps.tiny_sweep import swept

__all__ = ["lsa1_run", "ran", "refused", "sine_run", "swept", "twolayer_run", "workshop"]
