"""Modules that are imported when something of theirs is asked for: for code that says its fields without JAX."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Lazy:
    """Stands for a module: `jnp = Lazy("jax.numpy")`, of which `jnp.sum` imports it."""

    def __init__(self, module: str):
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._module), name)
