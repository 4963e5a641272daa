"""Executors carry out named tasks: in this process, in one process per core, on a Ray cluster or by SLURM."""
