"""Sweeps: a grid of settings becomes runs, runs become packs, an executor trains the packs, runs become a CSV."""

from icl_lab.lab import environment  # noqa: F401 - it ends a process that lacks packages, before they are imported
from icl_lab.src import namespace

namespace.check(__name__)
