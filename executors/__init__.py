"""Executors carry out named tasks: in this process, in one process per core, on a Ray cluster or by SLURM."""

import environment  # noqa: F401 - it ends a process that lacks packages, before they are imported
