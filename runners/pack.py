"""A pack in training: its programs, its state, how far it is, and how it is saved and restored."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from configs.registry import family_of
from configs.run import RunConfig
from families.experiment import experiment_of
from families.shared_arrays import shared_with
from runners.shapes import static_shape, training_part
from src.checks import require
from src.prng import Purpose, purpose_key
from src.prng import key as make_key
from src.train import Member, Shared, TrainState, lane, make_trainer
from store import checkpoint

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
    """What the host keeps of one run while its pack trains.

    `place` is where in the pack its training stands, `eval_set` what its family evaluates it on.
    """

    job: Job
    place: int
    eval_set: Any


def make_members(configs: Sequence[RunConfig], width: int) -> Member:
    """What of the configs may differ within a pack, as arrays [width]; the places beyond them repeat the last."""
    places = [*configs, *[configs[-1]] * (width - len(configs))]
    seeds = (np.array([getattr(config, name) for config in places], np.uint32) for name in ("init_seed", "data_seed"))
    init_keys, data_keys = _keys(*seeds)
    lanes = [experiment_of(config).lane(config) for config in places]
    lr = jnp.array([config.training.lr for config in places], jnp.float32)
    return Member(init_keys, data_keys, lr, jax.tree.map(_stacked, *lanes))


def _stacked(*values: Any) -> Array:
    """The values of a lane array [width]; keys stay keys."""
    return jnp.stack(values) if isinstance(values[0], jax.Array) else jnp.asarray(np.stack(values))


@jax.jit
@jax.vmap
def _keys(init_seed: Array, data_seed: Array) -> tuple[Array, Array]:
    init_key = purpose_key(make_key(init_seed), Purpose.INIT)
    return init_key, purpose_key(make_key(data_seed), Purpose.TRAIN)


class Programs:
    """The programs that train packs of one static shape, compiled when the first of them needs it."""

    def __init__(self, shape: RunConfig):
        experiment = experiment_of(shape)
        model_of = partial(experiment.make_model, shape)
        self.trainer = make_trainer(model_of, shape.training, experiment.batches(shape))
        self._chunk: Any = None

    def compile(self, state: TrainState, members: Member, shared: Shared) -> tuple[Any, float]:
        """The compiled chunk, and the seconds that compiling it took."""
        began = time.perf_counter()
        if self._chunk is None:
            self._chunk = self.trainer.chunk.lower(state, members, shared, jnp.int32(0), jnp.int32(0)).compile()
        return self._chunk, time.perf_counter() - began


@lru_cache(maxsize=16)
def programs(shape: RunConfig, width: int) -> Programs:
    """The programs of a static shape and width: the same ones for every pack of it in this process."""
    return Programs(shape)


class Pack:
    """Runs of one static shape that train together; `step` is how many steps all of them have made.

    Runs that differ in evaluation alone share a training, hence a place in the pack.
    """

    def __init__(self, jobs: Sequence[Job], width: int):
        """Compiles the training program and takes up the last checkpoint that all runs have and can read."""
        config = jobs[0].config
        self.experiment = experiment_of(config)
        self.width, self.num_steps, self.record_steps = width, config.training.steps, config.record_steps
        trainings = list(dict.fromkeys(training_part(job.config) for job in jobs))
        places = [trainings.index(training_part(job.config)) for job in jobs]
        self.alive = [True] * len(jobs)
        ours = programs(static_shape(config), width)
        self.shared = shared_with(config, *(job.run for job in jobs))
        self.model = self.experiment.make_model(config, self.shared)
        self.trainer, self.members = ours.trainer, make_members(trainings, width)
        self.step, self.state = self._restore([job.run for job in jobs], places)
        self.compile_seconds, self.run_seconds, self.chunk_steps = 0.0, 0.0, 1
        with ThreadPoolExecutor(1) as meanwhile:
            compiling = meanwhile.submit(ours.compile, self.state, self.members, self.shared)
            eval_sets = [self.experiment.make_eval_set(job.config) for job in jobs]
        self.lanes = [Lane(*lane) for lane in zip(jobs, places, eval_sets, strict=True)]
        self._program, self.compile_seconds = compiling.result()

    def advance(self) -> tuple[np.ndarray, np.ndarray]:
        """Trains to the next step at which the host looks.

        Gives each run's last training loss and the step at which it diverged (`src.train.NEVER` if it did not).
        """
        began, start, stop = time.perf_counter(), self.step, self._next_stop()
        self.state, info = self._program(self.state, self.members, self.shared, jnp.int32(start), jnp.int32(stop))
        losses, diverged_at = np.asarray(info.loss), np.asarray(info.diverged_at)
        seconds = time.perf_counter() - began
        self.run_seconds += seconds
        if not CHUNK_SECONDS / 2 < seconds * self.chunk_steps / (stop - start) < 1.5 * CHUNK_SECONDS:
            self.chunk_steps = max(1, min(int(CHUNK_SECONDS * (stop - start) / seconds), GROWTH * (stop - start)))
        self.step = stop
        places = [lane.place for lane in self.lanes]
        return losses[places], diverged_at[places]

    def first_losses(self) -> np.ndarray:
        """Each run's loss on its first training batch: that of a step which is not kept."""
        copy = jax.tree.map(np.asarray, self.state)
        _, info = self._program(copy, self.members, self.shared, jnp.int32(0), jnp.int32(1))
        return np.asarray(info.loss)[[lane.place for lane in self.lanes]]

    def record(self, index: int, train_loss: float) -> dict[str, Any]:
        """A run's line of the metrics."""
        job, _, eval_set = self.lanes[index]
        values = {"train_loss": train_loss, **self.experiment.eval_metrics(self.model, self.params(index), eval_set)}
        family = family_of(job.config)
        drawn = {curve.field for panel in family.panels for curve in panel.curves}
        missing = sorted({"test_loss", *drawn} - {*values})
        require(not missing, f"the family {family.name} draws {', '.join(missing)}, which it does not record")
        return {"step": self.step, **values}

    def params(self, index: int) -> Any:
        """A run's parameters as NumPy arrays."""
        return lane(self.state.params, self.lanes[index].place)

    def save(self, index: int) -> None:
        """Saves a run's state."""
        names, _ = _names(self.state)
        job, place, _ = self.lanes[index]
        arrays = dict(zip(names, jax.tree.leaves(lane(self.state, place)), strict=True))
        checkpoint.save(job.run, self.step, arrays, {"step": self.step})

    def _restore(self, runs: list[Path], places: list[int]) -> tuple[int, TrainState]:
        """The state after the last step that all runs hold; of those that share a training, the first one's."""
        state = self.trainer.init(self.members, self.shared)
        names, treedef = _names(state)
        step, saved = checkpoint.restore_last(runs, dict(zip(names, jax.tree.leaves(lane(state, 0)), strict=True)))
        if not saved:
            return 0, state
        lanes = [saved[places.index(min(place, max(places)))] for place in range(self.width)]
        leaves = [jnp.stack([jnp.asarray(arrays[name]) for arrays in lanes]) for name in names]
        return step, jax.tree.unflatten(treedef, leaves)

    def _next_stop(self) -> int:
        """At most a chunk away, and never past a record or the end."""
        next_record = self.record_steps[bisect_right(self.record_steps, self.step)]
        return min(self.step + self.chunk_steps, next_record)


def _names(state: TrainState) -> tuple[list[str], Any]:
    """A name for each array of a training state, and the structure to put them back into."""
    leaves, treedef = jax.tree_util.tree_flatten_with_path(state)
    return [jax.tree_util.keystr(path) for path, _ in leaves], treedef
