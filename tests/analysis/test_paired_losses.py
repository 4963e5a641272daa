"""The headline of several linear layers has GD++ with learned rates beside it, where fitting takes seconds."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab.analysis.loaded_run import ComparedRun
from icl_lab.analysis.paired_losses import LARGEST_DIM, MOST_RATES, fitted_gd_plus_plus_of, measure_test_set
from icl_lab.baselines.construction import gd_params
from icl_lab.baselines.gd_plus_plus import fit_gd_plus_plus
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import GradientDescent, make_model, make_test_batch
from icl_lab.families.summary import row
from icl_lab.src.config import ModelConfig
from icl_lab.src.data_config import DataConfig
from icl_lab.src.inputs import uniform
from icl_lab.src.registries import INPUT_DISTRIBUTIONS, InputDistribution

DATA = DataConfig(dim=3, num_pairs=5)


def subject(model: ModelConfig, data: DataConfig = DATA, plus_plus: bool = False) -> ComparedRun:
    """Layers that are steps of gradient descent, or of GD++ with the rates that are fitted."""
    config = RegressionConfig(data=data, model=model, test_tasks=500, step_size_tasks=200)
    rates = np.array([[0.2], [0.0]])
    if plus_plus:
        rates = np.array(fit_gd_plus_plus(data, model.num_layers, model.recurrent, config.data_seed), float)
    shared = model.recurrent or not plus_plus
    params = gd_params(config.architecture, *(part[0] if shared else part.tolist() for part in rates))
    gd = GradientDescent(model.num_layers, 0.2, "given")
    return ComparedRun(Path("nowhere"), config, make_model(config), params, make_test_batch(config), gd)


@pytest.mark.slow
@pytest.mark.parametrize("recurrent", [True, False])
def test_layers_that_are_gd_plus_plus_have_its_loss(recurrent: bool) -> None:
    found = measure_test_set(subject(ModelConfig(num_layers=2, recurrent=recurrent), plus_plus=True))
    assert found["gd_plus_plus_loss"] == pytest.approx(found["tf_loss"], rel=1e-4)
    assert found["gd_plus_plus_ratio"] == pytest.approx(1, abs=1e-4)
    assert found["gd_plus_plus_loss"] < found["gd_loss"]
    losses = [name for name in found if name.endswith("_loss")]
    assert losses == ["tf_loss", "gd_loss", "gd_plus_plus_loss", "ridge_loss", "zero_loss"]


def test_gd_plus_plus_moves_no_other_number() -> None:
    two = measure_test_set(subject(ModelConfig(num_layers=2), plus_plus=True))
    one = measure_test_set(subject(ModelConfig(num_layers=1)))
    assert set(two) - set(one) == {
        *("gd_plus_plus_loss", "gd_plus_plus_loss_se"),
        *("gd_plus_plus_ratio", "gd_plus_plus_ratio_se"),
    }
    assert two["zero_loss"] == one["zero_loss"]


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (ModelConfig(), DATA),
        (ModelConfig(num_layers=MOST_RATES + 1), DATA),
        (ModelConfig(num_layers=2), DataConfig(dim=LARGEST_DIM + 1, num_pairs=LARGEST_DIM + 1)),
    ],
)
def test_it_is_not_fitted_where_that_takes_longer_or_there_is_one_layer(model: ModelConfig, data: DataConfig) -> None:
    assert fitted_gd_plus_plus_of(subject(model, data)) is None


def test_without_the_inputs_variance_it_is_null_with_the_reason(registered: Any) -> None:
    """And the run can end: only the rates of GD++ are made from that variance."""
    registered(INPUT_DISTRIBUTIONS, "bare", InputDistribution(sample=uniform))
    model = ModelConfig(num_layers=2, recurrent=True)
    whole, found = (
        measure_test_set(subject(model, replace(DATA, input_distribution=law))) for law in ("uniform", "bare")
    )
    for name in ("gd_plus_plus_loss", "gd_plus_plus_ratio"):
        assert (found[name], found[f"{name}_se"]) == (None, None)
        assert "'bare' is registered without a variance" in found[f"{name}_reason"]
        assert "not defined: the input distribution 'bare'" in row("GD++", found, name)
    others = {name for name in whole if not name.startswith("gd_plus_plus")}
    assert {name: found[name] for name in others} == {name: whole[name] for name in others}
    assert [name for name in found if name.endswith("_loss")] == [name for name in whole if name.endswith("_loss")]
