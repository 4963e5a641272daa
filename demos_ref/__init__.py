"""Walk-throughs of the papers' experiments, to read and to run."""

import environment  # noqa: F401 - it ends a process that lacks packages, before they are imported
