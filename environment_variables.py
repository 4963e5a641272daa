"""What is done with the environment variables that change how JAX, XLA and the libraries under them compute.

Uses only the standard library, as old Pythons have it: `environment` imports it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

# Conditions of bitwise identity, beside versions and threads: flags of the compilers, and how the libraries of linear
# algebra divide their sums. meta.json has their values.
RECORDED = (
    "XLA_FLAGS",
    "LIBTPU_INIT_ARGS",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "OPENBLAS_CORETYPE",
)


def recorded(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The values of the recorded variables; "" for one that is unset."""
    return {name: " ".join(variables.get(name, "").split()) for name in RECORDED}
