"""A pack in training: its programs, its state, how far it is, and how it is saved and restored."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from analysis.alignment import compare_with_gd
from analysis.subject import GradientDescent, find_gd
from curricula.context import Context, evaluation_context, task_key, training_batches
from src.config import ContextConfig, RunConfig
from src.prng import Purpose, purpose_key
from src.prng import key as make_key
from src.train import Member, Trainer, TrainState, make_trainer, stack_members
from src.transformer import make_model
from store import checkpoint
from store.rundir import METRICS_FIELDS

CHUNK_SECONDS = 1.0  # aimed at; a chunk must stay below 2 s for signals to be heard in time
GROWTH = 20  # the first chunk is one step, and no chunk is longer than so many times the one before


class Job(NamedTuple):
    """A config and the directory its run lives in."""

    run: Path
    config: RunConfig


def by_checkpoint(jobs: Sequence[Job]) -> list[list[Job]]:
    """The jobs in groups that can go on together: each has a step that all of its runs hold, 0 for those not begun."""
    groups: list[tuple[set[int], list[Job]]] = []
    for job in jobs:
        steps = set(checkpoint.steps(job.run)) or {0}
        for common, members in groups:
            if common & steps:
                common &= steps
                members.append(job)
                break
        else:
            groups.append((steps, [job]))
    return [members for _, members in groups]


class Lane(NamedTuple):
    """What the host keeps of one run while its pack trains."""

    job: Job
    context: Context
    gd: GradientDescent


def static_shape(config: RunConfig) -> RunConfig:
    """The config with all that may differ within a pack set to one value."""
    train = replace(config.train, noise_p=0.0, noise_sigma=0.0)
    same = ContextConfig()
    training = replace(config.training, lr=1.0)
    return replace(config, data_seed=0, init_seed=0, training=training, train=train, base=same, eval=same, preset="")


def make_member(config: RunConfig) -> Member:
    """What of a config may differ within a pack, as arrays."""
    return Member(
        init_key=purpose_key(make_key(config.init_seed), Purpose.INIT),
        data_key=task_key(config, Purpose.TRAIN),
        lr=jnp.float32(config.training.lr),
        knobs={"noise_p": jnp.float32(config.train.noise_p), "noise_sigma": jnp.float32(config.train.noise_sigma)},
    )


@lru_cache(maxsize=4)
def shared_trainer(shape: RunConfig) -> Trainer:
    """The trainer of a static shape, the same for all packs of it: later ones of a process find its programs."""
    return make_trainer(make_model(shape), shape.training, training_batches(shape))


class Pack:
    """Runs of one static shape that train together; `step` is how many steps all of them have made."""

    def __init__(self, jobs: Sequence[Job], width: int):
        """Compiles the training program and takes up the last checkpoint that all runs have and can read."""
        config = jobs[0].config
        self.width, self.num_steps, self.eval_every = width, config.training.steps, config.eval_every
        self.alive = [True] * len(jobs)
        self.model, self.trainer = make_model(config), shared_trainer(static_shape(config))
        self.members = jax.jit(lambda: stack_members(self._padded([make_member(job.config) for job in jobs])))()
        self.step, self.state = self._restore([job.run for job in jobs])
        self.compile_seconds, self.run_seconds, self.chunk_steps = 0.0, 0.0, 1
        lowered = self.trainer.chunk.lower(self.state, self.members, jnp.int32(0), jnp.int32(0))
        with ThreadPoolExecutor(1) as meanwhile:
            compiling = meanwhile.submit(self._compile, lowered)
            self.lanes = [Lane(job, evaluation_context(job.config), find_gd(job.config)) for job in jobs]
        self._program = compiling.result()

    def advance(self) -> tuple[np.ndarray, np.ndarray]:
        """Trains to the next step at which the host looks.

        Gives each lane's last training loss and the step at which it diverged (`src.train.NEVER` if it did not).
        """
        began, start, stop = time.perf_counter(), self.step, self._next_stop()
        self.state, info = self._program(self.state, self.members, jnp.int32(start), jnp.int32(stop))
        losses, diverged_at = np.asarray(info.loss), np.asarray(info.diverged_at)
        seconds = time.perf_counter() - began
        self.run_seconds += seconds
        if not CHUNK_SECONDS / 2 < seconds * self.chunk_steps / (stop - start) < 1.5 * CHUNK_SECONDS:
            self.chunk_steps = max(1, min(int(CHUNK_SECONDS * (stop - start) / seconds), GROWTH * (stop - start)))
        self.step = stop
        return losses, diverged_at

    def first_losses(self) -> np.ndarray:
        """Each lane's loss on its first training batch: that of a step which is not kept."""
        copy = jax.tree.map(np.asarray, self.state)
        _, info = self._program(copy, self.members, jnp.int32(0), jnp.int32(1))
        return np.asarray(info.loss)

    def record(self, index: int, train_loss: float) -> dict[str, Any]:
        """A lane's line of the metrics."""
        context, gd = self.lanes[index].context, self.lanes[index].gd
        step_size = np.float32(gd.step_size)
        values = compare_with_gd(self.model, gd.steps, self.params(index), step_size, context.batch)
        found = values | {"train_loss": train_loss, "test_loss": values["tf_loss"]}
        return {"step": self.step} | {name: float(found[name]) for name in METRICS_FIELDS if name != "step"}

    def params(self, index: int) -> Any:
        """A lane's parameters as NumPy arrays."""
        return _lane(self.state.params, index)

    def save(self, index: int) -> None:
        """Saves a lane's state."""
        names, _ = _names(self.state)
        arrays = dict(zip(names, jax.tree.leaves(_lane(self.state, index)), strict=True))
        checkpoint.save(self.lanes[index].job.run, self.step, arrays, {"step": self.step})

    def _restore(self, runs: list[Path]) -> tuple[int, TrainState]:
        state = self.trainer.init(self.members)
        names, treedef = _names(state)
        step, saved = checkpoint.restore_last(runs, dict(zip(names, jax.tree.leaves(_lane(state, 0)), strict=True)))
        if not saved:
            return 0, state
        leaves = [jnp.stack([jnp.asarray(arrays[name]) for arrays in self._padded(saved)]) for name in names]
        return step, jax.tree.unflatten(treedef, leaves)

    def _compile(self, lowered: jax.stages.Lowered) -> Any:
        began = time.perf_counter()
        program = lowered.compile()
        self.compile_seconds = time.perf_counter() - began
        return program

    def _next_stop(self) -> int:
        """At most a chunk away, and never past a record or the end."""
        next_record = (self.step // self.eval_every + 1) * self.eval_every
        return min(self.step + self.chunk_steps, next_record, self.num_steps)

    def _padded(self, values: list[Any]) -> list[Any]:
        """One value for each place in the pack: the places beyond the runs repeat the last."""
        return values + [values[-1]] * (self.width - len(values))


def _lane(tree: Any, index: int) -> Any:
    """One lane of a pack's tree, as NumPy arrays."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[index], tree)


def _names(state: TrainState) -> tuple[list[str], Any]:
    """A name for each array of a training state, and the structure to put them back into."""
    leaves, treedef = jax.tree_util.tree_flatten_with_path(state)
    return [jax.tree_util.keystr(path) for path, _ in leaves], treedef
