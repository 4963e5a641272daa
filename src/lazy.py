"""JAX, imported when something of it is asked for: for classes whose fields are flags, and whose methods compute."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["jax", "jnp"]


class Lazy:
    """Stands for a module, which is imported when one of its attributes is taken."""

    def __init__(self, module: str):
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._module), name)


if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
else:
    jax, jnp = Lazy("jax"), Lazy("jax.numpy")
