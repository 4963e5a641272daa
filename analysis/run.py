"""A run for its user: the contents of its directory, read on demand, and its model as a function of arrays.

`icl_lab.load_run(directory)` gives one. A `Run` can be passed wherever a path is expected.
"""

from __future__ import annotations

import html
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from icl_lab.families.own_arrays import batch_from_arrays
from icl_lab.lab.configs.presets import command_of
from icl_lab.lab.configs.run import RunConfig
from icl_lab.lab.guest import as_guest
from icl_lab.src.batch import Batch
from icl_lab.src.checks import require
from icl_lab.store import best_params, listing, rundir
from icl_lab.store.metrics import metrics, read_summary
from icl_lab.store.params import Params, read_params
from icl_lab.store.weights import BEST

if TYPE_CHECKING:
    import pandas as pd

    from icl_lab.analysis.loaded_run import LoadedRun
    from icl_lab.src.model import Model

MOST_NUMBERS = 12  # of a summary, that a run shows of itself


def own_weights(value: Any) -> Any:
    """What a run stands for that has others than its directory's: RUN@STEP, RUN@best, or arrays; else the value."""
    if not isinstance(value, Run) or not value.has_own_weights:
        return value
    return f"{value.path}@{value.kept_as}" if value.kept_as else value.params


class Run:
    """A run: its directory `path`, and what is in it.

    With `params` it is the same run with other weights: a checkpoint's at `step`, or a user's own. kept_as: the suffix
    in RUN@STEP or RUN@best that names these weights.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        params: Mapping[str, Any] | None = None,
        step: int | None = None,
        kept_as: str = "",
    ):
        self.path: Path = Path(path)
        self.step = step
        self._params, self.kept_as = params, kept_as

    @property
    def has_own_weights(self) -> bool:
        """Whether its weights are a checkpoint's, the best record's or the user's own, not the final ones."""
        return self._params is not None

    def __fspath__(self) -> str:
        return str(self.path)

    @cached_property
    def config(self) -> RunConfig:
        """The frozen config that it was trained with; `StoreError` if this is not a run."""
        config: RunConfig = rundir.read_config(self.path)
        return config

    @property
    def status(self) -> str:
        """done, running, stopped, diverged or failed."""
        return rundir.read_status(self.path)

    @property
    def params(self) -> Mapping[str, Mapping[str, Any]]:
        """The parameters, module -> name -> array."""
        own: Params | Mapping[str, Any] = read_params(self.path) if self._params is None else self._params
        return own

    @property
    def model(self) -> Model:
        """The model, pure functions of parameters and a batch (`src.model.Model`)."""
        return self._loaded.model

    @property
    def batch(self) -> Any:
        """The batch on which it was evaluated."""
        return self._loaded.batch

    @cached_property
    def _loaded(self) -> LoadedRun:
        from icl_lab.analysis.loaded_run import load_run

        with as_guest():
            return load_run(self.path)

    @property
    def metrics(self) -> pd.DataFrame:
        """The records over training: a row for each, indexed by step."""
        import pandas as pd

        return pd.DataFrame(list(metrics(self.path))).set_index("step")

    @property
    def summary(self) -> pd.Series:
        """The numbers of a finished run under dotted names, such as `headline.tf_loss`."""
        import pandas as pd

        return pd.Series(listing.numeric(read_summary(self.path)), dtype=float, name=str(self.path))

    def checkpoints(self) -> Iterator[tuple[int, Run]]:
        """(step, this run with its parameters at that step) for each snapshot; `StoreError` if it kept none."""
        for step, then in self._loaded.checkpoints():
            yield step, self._with(then.params, step, str(step))

    @property
    def best(self) -> Run:
        """The run with the parameters of its lowest eval_loss; `StoreError` if it did not keep them."""
        found = best_params.read(self.path)
        return self._with(found.params, found.step, BEST)

    def with_params(self, params: Mapping[str, Mapping[str, Any]]) -> Run:
        """The same run with your weights; `StoreError` if they do not fit its model."""
        from icl_lab.analysis.loaded_run import shapes_of
        from icl_lab.store.params import flattened
        from icl_lab.store.readers import check_arrays

        check_arrays(Path("these parameters"), flattened(params), shapes_of(self.model))
        return self._with(params)

    def _with(self, params: Mapping[str, Any], step: int | None = None, kept_as: str = "") -> Run:
        """The run with other weights; what is read of its directory already is not read again."""
        run = Run(self.path, params, step, kept_as)
        run.__dict__["_loaded"] = self._loaded
        return run

    def with_file(self, path: str | os.PathLike[str]) -> Run:
        """The same run, with the same contexts read from another file, such as a copy."""
        config: Any = self.config
        run = Run(self.path, self._params, self.step, self.kept_as)
        moved = replace(config, data=replace(config.data, file=os.path.abspath(path)))
        run.__dict__.update({name: value for name, value in vars(self).items() if name == "_loaded"}, config=moved)
        return run

    def predict(self, x: ArrayLike, y: ArrayLike, x_query: ArrayLike | None = None) -> np.ndarray:
        """Predictions on contexts x [B, N, D] with labels y [B, N], or on one context without the axis B.

        With x_query [B, D] the predictions are of its labels, [B]. Without it a model with one query predicts the last
        pair's label from the other pairs, [B], and a model that predicts at every position predicts each pair's label,
        [B, N]. `ConfigError` for other shapes than the run's.
        """
        single = np.ndim(x) == 2
        arrays = (np.asarray(each)[None] if single and each is not None else each for each in (x, y, x_query))
        pairs, labels, query = arrays
        found = self._predict(pairs, labels, query)  # type: ignore[arg-type]  # mypy: the first two are given
        return found[0] if single else found

    def contexts(self) -> tuple[int, int, bool]:
        """Pairs and dimensions of its contexts, and whether every pair is a query.

        `ConfigError` for a run of a family that has no pairs.
        """
        shapes = self.config.batch_shapes()
        has_pairs = {"x", "y", "x_query"} <= set(shapes)
        require(has_pairs, f"{self.path} is a run of the family {self.config.family}, which has no pairs (x, y)")
        _, pairs, dim = shapes["x"]
        return pairs, dim, len(shapes["x_query"]) == 3

    def _predict(self, x: ArrayLike, y: ArrayLike, x_query: ArrayLike | None) -> np.ndarray:
        most, dim, sequences = self.contexts()
        batch = batch_from_arrays(x, y, x_query, sequences=sequences)
        length = batch.x.shape[1]
        seen = length - int(sequences)
        require(batch.x.shape[2] == dim, f"x has {batch.x.shape[2]} dimensions, but {self.path} was trained on {dim}")
        fits, takes = (length <= most, f"at most {most - 1}") if sequences else (length == most, str(most))
        require(fits, f"the contexts have {seen} pairs before the last query, but {self.path} takes {takes}")
        if not sequences:
            return self._predictions(batch)
        found = self._predictions(_padded(batch, most))
        return found[:, :length] if x_query is None else found[:, length - 1]

    def _predictions(self, batch: Batch) -> np.ndarray:
        from icl_lab.analysis.loaded_run import predictions_of

        loaded = self._loaded
        with as_guest():
            return np.asarray(predictions_of(loaded.model, self._params or loaded.params, batch))

    # --- how it shows itself ---

    def facts(self) -> dict[str, Any]:
        """What its repr shows: directory, status, the command that trains it, and the first numbers of its summary."""
        shown: dict[str, Any] = {"run": str(self.path), "status": self.status, "command": command_of(self.config)}
        if self.step is not None:
            shown["step"] = self.step
        elif self.status == "done":
            if self.config.keep_best:
                shown["numbers"] = "of the last parameters; run.best has the best ones"
            loss = listing.loss_of(self.path, self.config.family, self.status)
            numbers = [loss] * (loss is not None) + list(self.summary.items())[:MOST_NUMBERS]
            shown |= {name: f"{value:.4g}" for name, value in numbers}
        return shown

    def __repr__(self) -> str:
        facts = self.facts()
        width = max(map(len, facts))
        return "\n".join(f"{name:{width}}  {value}" for name, value in facts.items())

    def _repr_html_(self) -> str:
        rows = (
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(v))}</td></tr>" for name, v in self.facts().items()
        )
        return f"<table>{''.join(rows)}</table>"


def _padded(batch: Batch, length: int) -> Batch:
    """Sequences of `length` pairs, with zeros at the end: a causal model's earlier predictions do not see them."""
    more = ((0, 0), (0, length - batch.x.shape[1]))
    x, y = np.pad(np.asarray(batch.x), (*more, (0, 0))), np.pad(np.asarray(batch.y), more)
    return Batch(*_as_jax(x, y, x, y, batch.w))


def _as_jax(*arrays: Any) -> tuple[Any, ...]:
    return arrays  # models take NumPy's arrays, where the type says JAX's
