"""Commands in this process."""

from tests.doors import ran

__all__ = ["ran"]
