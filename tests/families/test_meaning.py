"""The first line of a run's summary says what the run is, and how its loss compares with the algorithms'."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from icl_lab.families.summary import compared
from icl_lab.lab.configs.outputs import TRAIN_LONGER
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.lab.configs.registry import family_of, outputs_of
from icl_lab.store import layout


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


NOISE = {"noise_mode": "label_noise", "noise_p": 0.5, "noise_sigma": 1.0}


def told(config: Any, summary: dict[str, Any], run: Path = Path("none")) -> str:
    return outputs_of(family_of(config)).meaning(summary, run, config)


def of(model: str, **fields: Any) -> Any:
    config = preset(model)
    set_values(config, fields)
    return resolve(config)


def regression(steps: int = 1, **losses: float) -> dict[str, Any]:
    return {"headline": {"tf_loss": 1.08, "gd_loss": 1.0} | losses, "alignment": {"gd_steps": steps}}


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
    assert told(of(model, **fields), regression(steps)) == said


def test_gd_plus_plus_comes_first_and_an_unknown_loss_is_left_out() -> None:
    config = of("lsa1")
    both = regression(gd_plus_plus_loss=0.9, gd_loss=1.27)
    assert told(config, both).endswith(": 20 % above one step of GD++, 15 % below one step of gradient descent")
    assert told(config, regression(gd_loss=math.nan)) == ""
    assert told(config, regression(tf_loss=math.nan)) == ""


def test_noisy_contexts_are_compared_with_what_knows_the_noise(tmp_path: Path) -> None:
    config = of("lsa1", **{f"base.{name}": value for name, value in NOISE.items()})
    assert told(config, regression(), tmp_path).endswith("8.0 % above one step of gradient descent")  # not measured
    values = {"gd_tuned_step": {"loss": 1.0}, "linear_mmse": {"loss": 0.9}, "mask_bayes": {"reason": "too many"}}
    (tmp_path / layout.COMPARATORS).parent.mkdir()
    (tmp_path / layout.COMPARATORS).write_text(json.dumps(values))
    known = "20 % above the best linear predictor that knows the noise, 8.0 % above one step of gradient descent tuned"
    assert told(config, regression(), tmp_path) == f"one linear layer, seed 0: {known} on the noise"


@pytest.mark.parametrize(
    ("config", "summary", "said"),
    [
        (
            of("tiny", num_tasks=16),
            {"headline": {"id_tf_loss": 0.3, "id_dmmse_loss": 0.2, "ood_tf_loss": 0.66, "ood_ridge_loss": 0.6}},
            "a decoder of two layers, pool of 16 tasks, seed 0: 50 % above dMMSE on its pool's tasks, "
            "10 % above ridge on fresh tasks",
        ),
        (
            of("tiny", num_tasks="inf"),
            {"headline": {"id_tf_loss": 0.3, "ood_tf_loss": 0.6, "ood_ridge_loss": 0.6}},
            "a decoder of two layers, fresh tasks, seed 0: matches ridge on fresh tasks to 0.0 % of the loss",
        ),
        (
            of("languages"),
            {"headline": {"loss": 0.1, "ridge_loss": 0.2, "gd_loss": 0.05}},
            "one layer on strings, seed 0: 50 % below ridge, 2.0 times the loss of one step of gradient descent",
        ),
        (
            of("markov"),
            {"headline": {"loss": 0.91, "bayes_loss": 0.9, "unigram_loss": 1.0, "excess": 0.01}},
            "two layers, seed 0: 0.0100 nats a symbol above exact posterior (Bayes); closes 90 % of the gap from "
            "unigrams of the context",
        ),
        (
            of("linear", num_layers=2),
            {"layerwise": {"layers": 2, "rolled_out": False, "trimmed_mean": [3, 1.5], "gd": {"trimmed_mean": [2, 1]}}},
            "two layers, seed 0: 50 % above two steps of gradient descent",
        ),
        (
            of("sine"),
            {"headline": {"loss": 0.01, "initial_loss": 0.02}},
            "sines, seed 0: 50 % below its loss before the context",
        ),
        (
            of("autoencoder"),
            {"headline": {"symbol_accuracy": 0.979}},
            "an autoencoder, seed 0: decodes 97.9 % of the symbols of unseen strings",
        ),
    ],
)
def test_each_family_says_what_came_out(config: Any, summary: dict[str, Any], said: str) -> None:
    assert told(config, summary) == said


def test_a_run_with_a_known_solution_is_told_what_to_do_there(tmp_path: Path) -> None:
    config, remedy = of("lsa1"), outputs_of(family_of(of("lsa1"))).remedy
    assert remedy(tmp_path, config) == TRAIN_LONGER
    (tmp_path / layout.SOLUTIONS).parent.mkdir()
    for solution, said in {
        "gradient descent": TRAIN_LONGER,
        "mixed": "what to do stands behind its solution, above",
    }.items():
        (tmp_path / layout.SOLUTIONS).write_text(json.dumps({"solution": solution}))
        assert remedy(tmp_path, config) == said
