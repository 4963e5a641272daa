"""What has no meaning for a family is refused in one sentence; what has is accepted."""

import re

import pytest

from cli import UsageError
from configs.meaning import refuse_without_meaning
from configs.regression import RegressionConfig
from src.checks import ConfigError
from src.config import ContextConfig, DataConfig, ModelConfig

SINES = {"family": "sine", "data": DataConfig(dim=1), "model": ModelConfig(embed_size=4)}
CONTROL = SINES | {"model": ModelConfig(embed_size=4, step_size=0.1)}


@pytest.mark.parametrize("parts", [{}, SINES, CONTROL, {"data": DataConfig(noise_std=0.5)}])
def test_what_a_run_makes_use_of_is_accepted(parts):
    refuse_without_meaning(RegressionConfig(**parts))


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"model": ModelConfig(embed_size=4)}, "embed_size is 4, but has no meaning for the family regression"),
        ({"data": DataConfig(amplitude_low=0.2)}, "amplitude_low is 0.2, but has no meaning for the family regression"),
        (SINES | {"data": DataConfig()}, "dim is 10; a sine has inputs of one dimension"),
        (SINES | {"model": ModelConfig(embed_size=1)}, "embed_size is 1; it must be at least 2"),
        (
            SINES | {"data": DataConfig(dim=1, noise_std=0.5)},
            "noise_std is 0.5, but has no meaning for the family sine",
        ),
        (SINES | {"step_size_tasks": 7}, "step_size_tasks is 7, but has no meaning for the family sine"),
        (
            SINES | {"eval": ContextConfig(ordering="easy2hard")},
            "ordering is easy2hard, but has no meaning for the family sine",
        ),
        (CONTROL | {"train": ContextConfig(noise_p=0.5)}, "noise_p is 0.5, but has no meaning for a control"),
        (
            CONTROL | {"model": ModelConfig(embed_size=4, step_size=0.1, num_layers=2)},
            "num_layers is 2, but has no meaning for a control",
        ),
    ],
)
def test_what_would_reach_nothing_is_refused_in_a_sentence(parts, sentence):
    with pytest.raises((ConfigError, UsageError), match=re.escape(sentence)) as error:
        refuse_without_meaning(RegressionConfig(**parts))
    assert "\n" not in str(error.value)
