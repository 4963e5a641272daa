"""Measures time and memory, as ratios within one session, since machines are noisy."""

from icl_lab.lab import environment  # noqa: F401 - it ends a process that lacks packages, before they are imported
from icl_lab.src import namespace

namespace.check(__name__)
