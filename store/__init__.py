"""Reads and writes run directories: file names, atomic writes, locks, checkpoints, provenance. Imports no JAX."""

import environment  # noqa: F401 - it ends a process that lacks packages, before they are imported
from store.loading import Run, load
from store.readers import StoreError
from store.tables import table

__all__ = ["Run", "StoreError", "load", "table"]
