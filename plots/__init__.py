"""Figures from files. Reads run directories through `store` and imports no JAX."""

import environment  # noqa: F401 - it ends a process that lacks packages, before they are imported
