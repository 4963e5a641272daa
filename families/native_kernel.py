"""What the compiled C++ computes for a config of a family whose models are stacks."""

from __future__ import annotations

from typing import Any

from jax import Array

from icl_lab.lab.native.kernel import Kernel
from icl_lab.src import train
from icl_lab.src.data_config import FileData
from icl_lab.src.model import Batch, Params
from icl_lab.src.native.bits import native_keys
from icl_lab.src.native.library import Library, open_library
from icl_lab.src.native.stack import LossesAndGradient, loss_and_gradient
from icl_lab.src.units import units_of


def of_training(kernel: Kernel, config: Any) -> train.Backend:
    """What computes a config's losses, gradients and random bits: XLA where the kernel has no object."""
    if kernel.path is None:
        return train.Backend(train.in_blocks(kernel.block)) if kernel.block else train.BY_XLA
    library = open_library(kernel.path, kernel.tag)
    computed = of_config(config, library)

    def mean_and_gradient(params: Params, batch: Batch) -> tuple[Array, Params]:
        found = computed(params, batch)
        return found.mean, found.gradient

    return train.Backend(lambda model: mean_and_gradient, native_keys(library))


def of_config(config: Any, library: Library) -> LossesAndGradient:
    """(params, batch) -> losses [B], their mean and its gradient, as a config's model has them."""
    units = units_of(config.data) if isinstance(config.data, FileData) else None
    return loss_and_gradient(config.architecture, library, units)
