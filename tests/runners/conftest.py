"""The shared runs."""

from tests.runners.tiny import control_run, lsa1_run, sine_run, twolayer_run, workshop

__all__ = ["control_run", "lsa1_run", "sine_run", "twolayer_run", "workshop"]
