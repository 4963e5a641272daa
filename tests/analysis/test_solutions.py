"""Which solution did a run of one linear layer find? Its file and its line, and runs for which nobody can say."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from icl_lab.analysis.solutions import heads
from icl_lab.baselines.construction import gd_params
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.solutions import WORDS, in_words, reason_against
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.runners.summary import summary_text
from icl_lab.src import one_layer, solutions
from icl_lab.src.registries import INPUT_DISTRIBUTIONS, InputDistribution
from icl_lab.src.registry import Registry
from icl_lab.store import layout
from icl_lab.store.rundir import read_config
from tests.runners.tiny import Workshop, copied


def config_of(**fields: Any) -> RegressionConfig:
    config = preset(fields.pop("model", "lsa1"))
    set_values(config, fields)
    resolved: RegressionConfig = resolve(config)
    return resolved


@pytest.mark.parametrize("fields", [{}, {"damping": 0.5}, {"merged": True}])
def test_the_construction_is_gradient_descent(fields: dict[str, Any]) -> None:
    """At the best step size; damping multiplies what the layer adds, so that its weights have to be larger."""
    config = config_of(dim=3, num_pairs=8, **fields)
    setting = one_layer.setting_of(config.data)
    params = gd_params(config.architecture, setting.step_size / config.model.damping)
    told = solutions.classify(setting, heads(config, params))
    assert told.solution == solutions.DESCENT
    assert told.loss == pytest.approx(told.best, rel=1e-6)


def test_a_run_has_the_file_and_its_summary_the_line(lsa1_run: Path) -> None:
    values, config = json.loads((lsa1_run / layout.SOLUTIONS).read_text()), read_config(lsa1_run)
    assert values["solution"] in solutions.SOLUTIONS
    assert set(values) == set(solutions.Found._fields)
    assert in_words(values, config) in summary_text(lsa1_run).splitlines()
    assert set(WORDS) == set(solutions.SOLUTIONS)


def test_the_command_writes_it_again(lsa1_run: Path, workshop: Workshop, tmp_path: Path) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    (run / layout.SOLUTIONS).unlink()
    done = workshop.run("analysis.solutions", "--run", run)
    assert done.returncode == 0, done.stderr
    assert (run / layout.SOLUTIONS).read_bytes() == (lsa1_run / layout.SOLUTIONS).read_bytes()
    assert "solution" in done.stdout


def test_the_command_refuses_a_run_of_two_layers(twolayer_run: Path, workshop: Workshop) -> None:
    done = workshop.run("analysis.solutions", "--run", twolayer_run)
    assert done.returncode == 2
    assert done.stderr.strip() == (
        "error: solutions are known only for one linear layer on clean contexts, and this run differs: it has 2 layers"
    )


AGAINST = {
    "it has 2 layers": {"num_layers": 2, "attention": "linear"},
    "its attention is softmax": {"attention": "softmax"},
    "it has layer norm": {"layer_norm": True},
    "it has biases": {"bias": True},
    "its tokens are interleaved": {"tokens": "interleaved"},
    "its labels are noisy": {"noise_std": 0.1},
    "it has positional encodings": {"pos_enc_size": 4},
    "its activations are clipped": {"activation_clip": 10.0},
}


@pytest.mark.parametrize("reason", AGAINST)
def test_of_which_runs_nobody_can_say(reason: str) -> None:
    assert reason_against(config_of(**AGAINST[reason])) == reason


def test_a_plugins_inputs_are_refused_before_their_moments_are_needed(
    registered: Callable[[Registry[Any], str, Any], None],
) -> None:
    """They may have none, and a mixed point that lies elsewhere; a run of them ends as any other."""
    registered(INPUT_DISTRIBUTIONS, "cauchy", InputDistribution())
    assert reason_against(config_of(input_distribution="cauchy")) == "its inputs are cauchy"


def test_of_which_runs_it_is_said() -> None:
    assert reason_against(config_of(input_distribution="gaussian")) == ""
    assert reason_against(config_of()) == ""
    assert reason_against(config_of(num_heads=2)) == ""
    config = config_of()
    noisy = replace(config, train=replace(config.train, noise_mode="label_noise", noise_p=0.2, noise_sigma=1.0))
    assert reason_against(noisy)
