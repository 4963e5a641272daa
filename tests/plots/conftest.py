"""The shared runs."""

from tests.runners.tiny import lsa1_run, twolayer_run, workshop

__all__ = ["lsa1_run", "twolayer_run", "workshop"]
