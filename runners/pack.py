"""A pack in training: its compiled program, its state, and how it is advanced, saved and restored."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.families.native_kernel import of_training
from icl_lab.families.shared_arrays import shared_with
from icl_lab.families.task import task_key, task_of, with_parts_as_batches
from icl_lab.lab.configs.registry import family_of, outputs_of
from icl_lab.lab.configs.run import RunConfig
from icl_lab.lab.native.kernel import XLA, Kernel
from icl_lab.runners.distributed import values_of_all
from icl_lab.runners.static_shape import Run, static_shape, training_part
from icl_lab.src.checks import require
from icl_lab.src.prng import Purpose, purpose_key
from icl_lab.src.prng import key as make_key
from icl_lab.src.train import ChunkInfo, Hyperparameters, Shared, TrainState, make_trainer, run_of
from icl_lab.store import checkpoint
from icl_lab.store.weights import read_given

CHUNK_SECONDS = 1.0  # target; a chunk must stay below 2 s, so that signals are handled in time
NORMS = ("train_grad_norm", "param_norm", "lr")  # in a record
GROWTH = 20  # a chunk has at most this many times the steps of the one before; the first has one step


def batched_hyperparameters(configs: Sequence[RunConfig], width: int) -> Hyperparameters:
    """The values that differ within a pack, as arrays [width]; unused places repeat the last config."""
    padded = [*configs, *[configs[-1]] * (width - len(configs))]
    seeds = (np.array([getattr(config, name) for config in padded], np.uint32) for name in ("init_seed", "data_seed"))
    init_keys, data_keys = _keys(*seeds)
    if any(config.init_from for config in padded):
        data_keys = jnp.stack([task_key(config, Purpose.TRAIN) for config in padded])
    lr = jnp.array([config.training.lr for config in padded], jnp.float32)
    batched = [task_of(config).batched(config) for config in padded]
    return Hyperparameters(init_keys, data_keys, lr, jax.tree.map(_stacked, *batched))


def _stacked(*values: Any) -> Array:
    """Stacks the values of one hyperparameter [width]; keys stay keys."""
    return jnp.stack(values) if isinstance(values[0], jax.Array) else jnp.asarray(np.stack(values))


@jax.jit
@jax.vmap
def _keys(init_seed: Array, data_seed: Array) -> tuple[Array, Array]:
    init_key = purpose_key(make_key(init_seed), Purpose.INIT)
    return init_key, purpose_key(make_key(data_seed), Purpose.TRAIN)


class Programs:
    """The program that trains packs of one static shape, compiled on first use."""

    def __init__(self, shape: RunConfig, kernel: Kernel = XLA):
        task = task_of(shape)
        model_of, batches = partial(task.make_model, shape), task.batches(with_parts_as_batches(shape))
        self.trainer = make_trainer(model_of, shape.training, batches, backend=of_training(kernel, shape))
        self._chunk: Any = None

    def compile(self, state: TrainState, batched: Hyperparameters, shared: Shared) -> tuple[Any, float]:
        """The compiled chunk, and the seconds that compiling it took."""
        began = time.perf_counter()
        if self._chunk is None:
            self._chunk = self.trainer.chunk.lower(state, batched, shared, np.int32(0), np.int32(0)).compile()
        return self._chunk, time.perf_counter() - began


@lru_cache(maxsize=16)
def programs(shape: RunConfig, width: int, kernel: Kernel = XLA) -> Programs:
    """The programs of a static shape and width, cached per process."""
    return Programs(shape, kernel)


class Pack:
    """Runs of one static shape that train together; `step` is the number of steps made.

    Runs that differ in evaluation alone share a training; `places` has the place of each run's training in the pack.
    `eval_sets` has what its family needs to evaluate each run, and `alive` says which have not diverged.
    """

    def __init__(self, runs: Sequence[Run], width: int, kernel: Kernel = XLA):
        """Compiles the training program and restores the last readable checkpoint that all runs have."""
        config = runs[0].config
        self.kernel = kernel
        self.runs, self.width, self.alive = list(runs), width, [True] * len(runs)
        self.num_steps, self.record_steps = config.training.steps, config.record_steps
        trainings = list(dict.fromkeys(training_part(run.config) for run in runs))
        self.places = [trainings.index(training_part(run.config)) for run in runs]
        self.task, compiled = task_of(config), programs(static_shape(config), width, kernel)
        self.trainer = compiled.trainer
        self.shared = shared_with(config, *(run.directory for run in runs))
        self.model = self.task.make_model(config, self.shared)
        self.hyperparameters = self.trainer.placed(batched_hyperparameters(trainings, width), width)
        self._placed_shared = self.trainer.placed(self.shared, 0)
        self.step, state, self.damaged = self._restore()
        self._norms_of_step: tuple[int, list[np.ndarray]] = -1, []
        self.state = self.trainer.placed(state, width)
        self.run_seconds, self.chunk_steps = 0.0, 1
        self._loss_units = np.array([self.task.loss_unit(run.config) for run in runs], np.float64)
        with ThreadPoolExecutor(1) as background:
            compiling = background.submit(compiled.compile, self.state, self.hyperparameters, self._placed_shared)
            self.eval_sets = [self._eval_set(run.config) for run in runs]
        self._program, self.compile_seconds = compiling.result()

    def advance(self) -> tuple[np.ndarray, np.ndarray]:
        """Trains the next chunk.

        Returns each run's last training loss and the step at which it diverged (`src.train.NEVER` if it did not).
        """
        start = self.step
        stop = values_of_all(self._next_stop())[0]  # processes differ in speed, and run one program together
        began = time.perf_counter()
        self.state, info = self._run(self.state, start, stop)
        losses, diverged_at = np.asarray(info.loss), np.asarray(info.diverged_at)
        seconds = time.perf_counter() - began
        self.run_seconds += seconds
        if not CHUNK_SECONDS / 2 < seconds * self.chunk_steps / (stop - start) < 1.5 * CHUNK_SECONDS:
            self.chunk_steps = max(1, min(int(CHUNK_SECONDS * (stop - start) / seconds), GROWTH * (stop - start)))
        self.step = stop
        return losses[self.places] * self._loss_units, diverged_at[self.places]

    def _run(self, state: TrainState, start: int, stop: int) -> tuple[TrainState, ChunkInfo]:
        """Runs the program from one step to another."""
        state, info = self._program(state, self.hyperparameters, self._placed_shared, np.int32(start), np.int32(stop))
        return state, info

    def _eval_set(self, config: RunConfig) -> Any:
        return self.task.make_eval_set(config, self.shared)

    def first_losses(self) -> np.ndarray:
        """Each run's loss on its first training batch, from a step that is discarded."""
        copy = self.trainer.placed(jax.tree.map(np.asarray, self.state), self.width)
        _, info = self._run(copy, 0, 1)
        return np.asarray(info.loss)[self.places] * self._loss_units

    def record(self, index: int, train_loss: float) -> dict[str, Any]:
        """A record of a run's metrics."""
        measured = self.task.eval_metrics(self.model, self.params(index), self.eval_sets[index])
        config = self.runs[index].config
        values, family = {"train_loss": train_loss, **measured}, family_of(config)
        drawn = {curve.field for panel in outputs_of(family).panels_of(config) for curve in panel.curves}
        missing = sorted({"eval_loss", *drawn} - {*values})
        require(not missing, f"the family {family.name} plots {', '.join(missing)}, but does not record it")
        return {"step": self.step, **values, **self._norms(index)}

    def _norms(self, index: int) -> dict[str, float]:
        """The norms and the rate of a run's next step, if its records have them."""
        if not self.runs[index].config.log_norms:
            return {}
        if self._norms_of_step[0] != self.step:  # one computation gives those of all runs
            norms = self.trainer.norms(self.state, self.hyperparameters, self._placed_shared, np.int32(self.step))
            self._norms_of_step = self.step, [np.asarray(values) for values in norms]
        place = self.places[index]
        return {name: float(values[place]) for name, values in zip(NORMS, self._norms_of_step[1], strict=True)}

    def params(self, index: int) -> Any:
        """A run's parameters as NumPy arrays."""
        return run_of(self.state.params, self.places[index])

    def save(self, index: int) -> None:
        """Saves a run's state."""
        names, _ = _names(self.state)
        arrays = dict(zip(names, jax.tree.leaves(run_of(self.state, self.places[index])), strict=True))
        checkpoint.save(self.runs[index].directory, self.step, arrays, {"step": self.step})

    def _restore(self) -> tuple[int, TrainState, list[Path]]:
        """The last step of which all runs have a checkpoint, the state there, and checkpoints that were set aside.

        Runs that share a training use the first one's.
        """
        state = self.trainer.init(self.hyperparameters, self._placed_shared)
        names, treedef = _names(state)
        like = dict(zip(names, jax.tree.leaves(run_of(state, 0)), strict=True))
        step, saved, damaged = checkpoint.restore_last([run.directory for run in self.runs], like)
        if not saved:
            return 0, self._with_given(state), damaged
        last = max(self.places)  # those that pad the pack repeat it
        padded = [saved[self.places.index(min(place, last))] for place in range(self.width)]
        leaves = [jnp.stack([jnp.asarray(arrays[name]) for arrays in padded]) for name in names]
        return step, jax.tree.unflatten(treedef, leaves), damaged

    def _with_given(self, state: TrainState) -> TrainState:
        """A state at step 0 with the parameters that runs are given in the place of those of the initialisation."""
        if not any(run.config.init_from for run in self.runs):
            return state
        given = {
            place: read_given(run.directory) if run.config.init_from else run_of(state.params, place)
            for place, run in zip(self.places, self.runs, strict=True)
        }
        rows = [given[min(place, max(self.places))] for place in range(self.width)]
        params = jax.tree.map(lambda like, *leaves: jnp.stack(leaves).astype(like.dtype), state.params, *rows)
        return state._replace(params=params)

    def _next_stop(self) -> int:
        """The end of the next chunk, which is never past a record or the end of training."""
        next_record = self.record_steps[bisect_right(self.record_steps, self.step)]
        return min(self.step + self.chunk_steps, next_record)


def _names(state: TrainState) -> tuple[list[str], Any]:
    """A name for each array of a training state, and its tree structure."""
    leaves, treedef = jax.tree_util.tree_flatten_with_path(state)
    return [jax.tree_util.keystr(path) for path, _ in leaves], treedef
