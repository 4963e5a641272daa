"""Measures time and memory, as ratios within one session, since machines are noisy."""

import environment  # noqa: F401 - it ends a process that lacks packages, before they are imported
