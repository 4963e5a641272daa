"""Reads and writes run directories: file names, atomic writes, locks, checkpoints, provenance. Imports no JAX."""

from icl_lab.lab import environment  # noqa: F401 - it ends a process that lacks packages, before they are imported
from icl_lab.src import namespace
from icl_lab.store.listing import table
from icl_lab.store.params import Run, load
from icl_lab.store.readers import StoreError

namespace.check(__name__)

__all__ = ["Run", "StoreError", "load", "table"]
