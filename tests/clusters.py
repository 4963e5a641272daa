"""Clusters that this machine can be, each with its package and flags: Ray, and SLURM's local executor."""

import pytest

ON_CLUSTERS = pytest.mark.parametrize(
    ("package", "executor"),
    [("submitit", ("--executor", "slurm", "--slurm", "cluster=local")), ("ray", ("--executor", "ray"))],
)
