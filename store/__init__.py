"""Run directories on disk: names, atomic files, locks, checkpoints, provenance, loading. Imports no JAX."""

from store.loading import Run, load
from store.readers import StoreError

__all__ = ["Run", "StoreError", "load"]
