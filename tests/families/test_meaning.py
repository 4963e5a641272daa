"""The first line of a run's summary says what the run is, and how its loss compares with the algorithms'."""

import math
from dataclasses import replace
from typing import Any

import pytest

from icl_lab.families.regression.outputs import compared, meaning
from icl_lab.lab.configs.presets import preset, resolve


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (1.0024, "matches GD to 0.2 % of the loss"),
        (0.996, "matches GD to 0.4 % of the loss"),
        (1.016, "1.6 % above GD"),
        (0.92, "8.0 % below GD"),
        (1.999, "100 % above GD"),
        (2.7, "2.7 times the loss of GD"),
    ],
)
def test_a_ratio_of_losses_is_told(ratio: float, said: str) -> None:
    assert compared("GD", ratio) == said


@pytest.mark.parametrize(
    ("model", "fields", "steps", "said"),
    [
        ("lsa1", {}, 1, "one linear layer, seed 0: 8.0 % above one step of gradient descent"),
        ("twolayer", {}, 1, "a softmax and a linear layer, seed 0: 8.0 % above one step of gradient descent"),
        ("lsa1", {"num_layers": 12}, 12, "12 linear layers, seed 0: 8.0 % above 12 steps of gradient descent"),
        (
            "lsa1",
            {"num_layers": 2, "recurrent": True},
            2,
            "two linear layers with shared weights, seed 0: 8.0 % above two steps of gradient descent",
        ),
    ],
)
def test_it_names_layers_and_steps(model: str, fields: dict[str, Any], steps: int, said: str) -> None:
    config = resolve(preset(model))
    config = replace(config, model=replace(config.model, **fields))
    summary = {"headline": {"loss_ratio": 1.08}, "alignment": {"gd_steps": steps}}
    assert meaning(summary, config) == said


def test_gd_plus_plus_comes_first_and_an_unknown_ratio_is_left_out() -> None:
    config, align = resolve(preset("lsa1")), {"gd_steps": 1}
    both = {"headline": {"loss_ratio": 0.85, "gd_plus_plus_ratio": 1.2}, "alignment": align}
    assert meaning(both, config).endswith(": 20 % above one step of GD++, 15 % below one step of gradient descent")
    assert meaning({"headline": {"loss_ratio": math.nan, "gd_plus_plus_ratio": None}, "alignment": align}, config) == ""
