"""What all commands share: command line, environment, caches, plugins, executors, and the registry of configs."""

from icl_lab.lab import environment  # noqa: F401 - it ends a process that lacks packages, before they are imported
from icl_lab.src import namespace

namespace.check(__name__)
