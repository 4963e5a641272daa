"""A finished run of any family with its model, and of linear regression with its gradient descent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import jax
from jax.tree_util import Partial

from icl_lab import store
from icl_lab.families.regression.baselines import made_or_reason, names_of
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import GradientDescent, find_gd
from icl_lab.families.shared_arrays import arrays_of_model
from icl_lab.families.task import model_of
from icl_lab.lab.progress import along
from icl_lab.src.model import Model
from icl_lab.src.precision import use_highest_precision
from icl_lab.src.prng import Purpose, key, purpose_key
from icl_lab.src.registries import ALGORITHM, ALWAYS
from icl_lab.store import layout, snapshots
from icl_lab.store.params import flattened
from icl_lab.store.readers import StoreError, check_arrays
from icl_lab.store.weights import read_given


@dataclass(frozen=True, eq=False)
class LoadedRun:
    """A run with its trained model and its evaluation set, which is `store.load`'s batch."""

    run: Path
    config: Any
    model: Model
    params: Any  # module -> name -> array, NumPy's or JAX's
    batch: Any
    eval_set: Any = field(default=None, kw_only=True)  # all that its family evaluates it on, if that is made already

    @property
    def predict(self) -> Partial:
        """The trained model: batch in, predictions out, [B] of one query a task. Its arrays are arguments of a jit."""
        return Partial(self.model.predict, self.params)

    def checkpoints(self) -> Iterator[tuple[int, Self]]:
        """(step, this run with the parameters it had then) for each snapshot of its training, one at a time.

        `StoreError` if it kept none, or if they are another model's.
        """
        shapes = {name: leaf.shape for name, leaf in flattened(self.params).items()}
        kept = snapshots.read(self.run)
        for step, params in along(kept, len(snapshots.steps(self.run)), "checkpoints"):
            check_arrays(self.run / layout.SNAPSHOTS, flattened(params), shapes)
            yield step, replace(self, params=params)

    def untrained(self) -> Self:
        """The run with the parameters that its training began with, drawn again from the seed or given: a control."""
        if self.config.init_from:
            return replace(self, params=read_given(self.run))
        init_key = purpose_key(key(self.config.init_seed), Purpose.INIT)
        return replace(self, params=jax.jit(self.model.init)(init_key))

    def of_family(self, family: str) -> Self:
        """Itself; `StoreError` if it is a run of another family."""
        if self.config.family != family:
            raise StoreError(f"{self.run} is a run of the family {self.config.family}, not of {family}")
        return self


@partial(jax.jit, static_argnums=0)
def predictions_of(model: Model, params: Any, batch: Any) -> jax.Array:
    """A model's predictions on a batch: one program for all parameters, and batches of one shape."""
    return model.predict(params, batch)


def shapes_of(model: Model) -> dict[str, tuple[int, ...]]:
    """The shapes of a model's parameters, by module/name."""
    return {name: leaf.shape for name, leaf in flattened(jax.eval_shape(lambda: model.init(key(0)))).items()}


def load_run(directory: str | Path) -> LoadedRun:
    """Loads a finished run: `store.load` with the model, in the precision of its training.

    `StoreError` says what is missing or broken, also parameters of another model.
    """
    use_highest_precision()
    run = Path(directory)
    config, params, batch = store.load(run)
    model = model_of(config, arrays_of_model(config, run))
    check_arrays(run / layout.PARAMS, flattened(params), shapes_of(model))
    return LoadedRun(run, config, model, params, batch)


@dataclass(frozen=True, eq=False)
class ComparedRun(LoadedRun):
    """A run of linear regression, and its gradient descent."""

    gd: GradientDescent


def load_compared(directory: str | Path, eta: float | None = None) -> ComparedRun:
    """`load_run` of a run of linear regression, and its gradient descent as `find_gd` finds it."""
    return with_descent(load_run(directory).of_family(RegressionConfig.family), eta)


def with_descent(loaded: LoadedRun, eta: float | None = None) -> ComparedRun:
    """A run of linear regression with its gradient descent, if it has not got it already."""
    if isinstance(loaded, ComparedRun):
        return loaded
    gd = find_gd(loaded.config, eta)
    return ComparedRun(loaded.run, loaded.config, loaded.model, loaded.params, loaded.batch, gd)


def compared(loaded: LoadedRun) -> ComparedRun:
    """A run whose evaluation set is made already, with the gradient descent of that."""
    parts = (loaded.run, loaded.config, loaded.model, loaded.params, loaded.batch)
    return ComparedRun(*parts, loaded.eval_set.gd, eval_set=loaded.eval_set)


def baselines_of(loaded: ComparedRun, names: Iterable[str] = ()) -> dict[str, Partial | str]:
    """The algorithms of a run as predictors, and the baselines that its config names; all if no names are given.

    An undefined one is replaced by the reason.
    """
    wanted = names or (*names_of(ALWAYS, ALGORITHM), *loaded.config.baselines)
    return {name: made_or_reason(name, loaded.config, loaded.gd, loaded.batch) for name in wanted}
