"""Figures from files. Reads run directories through `store` and imports no JAX."""

from icl_lab.lab import environment  # noqa: F401 - it ends a process that lacks packages, before they are imported
from icl_lab.src import namespace

namespace.check(__name__)
