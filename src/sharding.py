"""How the arrays of a pack are sharded over devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from icl_lab.src.model import Batch

State = TypeVar("State")


class Devices:
    """Devices that train a pack. `batch_size` is the number of tasks that are drawn at once.

    If the devices divide the runs, each trains its part of these, and none waits for another. Else, if they divide
    the batch, the tasks are sharded, and the compiler sums gradients across devices. Else the first one has everything.
    """

    def __init__(self, devices: Sequence[Any], batch_size: int):
        mesh = Mesh(np.array(devices), ("devices",))
        self.count, self.batch_size = len(devices), batch_size
        self.sharded, self.everywhere = (
            NamedSharding(mesh, spec) for spec in (PartitionSpec("devices"), PartitionSpec())
        )

    def _shards_runs(self, width: int) -> bool:
        """Whether runs are divided: not between processes, each of which reads all of them."""
        return self.count > 1 and width > 1 and width % self.count == 0 and self.sharded.is_fully_addressable

    def _shards_tasks(self, width: int) -> bool:
        return self.count > 1 and not self._shards_runs(width) and self.batch_size % self.count == 0

    def shard_tasks(self, width: int) -> Callable[[Batch], Batch]:
        """Shards the tasks of a batch over the devices, inside a program, if that is how this width is trained."""
        if not self._shards_tasks(width):
            return lambda batch: batch
        return lambda batch: jax.tree.map(lambda leaf: lax.with_sharding_constraint(leaf, self.sharded), batch)

    def shard_runs(self, state: State, width: int) -> State:
        """Keeps runs where they are, inside a program, if that is how this width is trained."""
        if not self._shards_runs(width):
            return state
        kept: State = jax.tree.map(lambda leaf: lax.with_sharding_constraint(leaf, self.sharded), state)
        return kept

    def placed(self, tree: Any, width: int) -> Any:
        """Places arrays on the devices: divided runs sharded, others replicated."""
        if self.count == 1:
            return tree
        place = self.sharded if self._shards_runs(width) else self.everywhere
        return jax.jit(lambda arrays: arrays, out_shardings=place)(tree)  # device_put takes no keys between processes
