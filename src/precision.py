"""The precision of matrix products."""

from __future__ import annotations

import jax


def use_highest_precision() -> None:
    """From here on this process multiplies matrices in float32; on a CPU it always does.

    Accelerators would round the factors to shorter formats, and TF32 is too coarse for losses near 1e-3. Training and
    whatever measures a run call this first, so that a run is measured as it was trained.
    """
    jax.config.update("jax_default_matmul_precision", "highest")
