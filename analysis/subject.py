"""A stored run as the subject of an analysis: its predictor, and the gradient descent it is held against."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax.tree_util import Partial

import store
from configs.regression import RegressionConfig
from families.regression import GradientDescent, find_gd, make_model
from src.batch import Batch
from src.model import Model
from src.prng import key as make_key
from store import layout
from store.params import flattened
from store.readers import check_arrays


class Subject(NamedTuple):
    """What an analysis looks at."""

    run: Path
    config: RegressionConfig
    model: Model
    params: Any
    batch: Batch
    gd: GradientDescent

    @property
    def predict(self) -> Partial:
        """The trained transformer: batch in, predictions [B] out."""
        return Partial(self.model.predict, self.params)


def load_subject(run: Path, eta: float | None = None, allow_pickle: bool = False) -> Subject:
    """Loads a finished run and finds its baseline; `StoreError` if the parameters are another model's."""
    jax.config.update("jax_default_matmul_precision", "highest")  # as in training, see runners.common
    config, params, batch = store.load(run, allow_pickle)
    model = make_model(config)
    expected = flattened(jax.eval_shape(model.init, make_key(0)))
    check_arrays(run / layout.PARAMS, flattened(params), {name: leaf.shape for name, leaf in expected.items()})
    return Subject(run, config, model, params, batch, find_gd(config, eta))
