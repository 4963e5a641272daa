"""Input distributions: samplers have the registered moments; what needs one that is not registered is refused."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.baselines.gradient_descent import context_losses
from icl_lab.families.layerwise.config import LayerwiseConfig
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.src import inputs, prng
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError, named
from icl_lab.src.config import ContextConfig
from icl_lab.src.data_config import DataConfig, QueriesData
from icl_lab.src.one_step import one_step_size
from icl_lab.src.registries import INPUT_DISTRIBUTIONS, InputDistribution

COUNT = 200_000
SIGMAS = 5.0


@pytest.mark.parametrize("law", INPUT_DISTRIBUTIONS)
@pytest.mark.parametrize("input_range", [1.0, 2.5])
def test_samples_have_the_registered_moments(law: str, input_range: float) -> None:
    data = DataConfig(input_distribution=law, input_range=input_range)
    x = np.asarray(inputs.sample_inputs(prng.key(1), data, (COUNT,)), np.float64)
    for power, moment in ((1, 0.0), (2, data.input_variance), (3, 0.0), (4, data.input_fourth_moment)):
        values = x**power
        assert abs(values.mean() - moment) < SIGMAS * values.std() / np.sqrt(COUNT)


@pytest.fixture
def student(registered: Any) -> DataConfig:
    """Tasks whose inputs have a variance and no fourth moment."""
    sample = lambda key, scale, shape: scale * jax.random.t(key, 3.0, shape)  # noqa: E731
    registered(INPUT_DISTRIBUTIONS, "student", InputDistribution(lambda scale: 3 * scale**2, sample=sample))
    return DataConfig(input_distribution="student", dim=3, num_pairs=4)


def test_a_registered_moment_is_used_and_no_other_stands_in_for_a_missing_one(student: DataConfig) -> None:
    assert student.input_variance == 3
    with pytest.raises(ConfigError, match="'student' is registered without a fourth moment"):
        _ = student.input_fourth_moment
    with pytest.raises(ConfigError, match="fourth moment"):
        one_step_size(student)
    ones = jnp.ones((1, 4, 3))
    batch = Batch(ones, ones[:, :, 0], ones[:, 0], ones[:, 0, 0], ones[:, 0])
    uniform = replace(student, input_distribution="uniform")
    ratio = context_losses(batch, student, 0.1) / context_losses(batch, uniform, 0.1)
    np.testing.assert_allclose(ratio, 3 / (1 / 12), rtol=1e-6)


def test_what_cannot_be_run_without_the_step_is_refused_as_a_config(student: DataConfig) -> None:
    assert RegressionConfig(data=student, train=ContextConfig(ordering="smallnorm2largenorm")).data == student
    for name, order in (("train", "easy2hard"), ("eval", "hard2easy")):
        with pytest.raises(ConfigError, match=f"input_distribution is 'student'.*{order} needs both"):
            RegressionConfig(data=student, **{name: ContextConfig(ordering=order)})
    with pytest.raises(ConfigError, match="the depth curve needs both"):
        LayerwiseConfig(data=QueriesData(input_distribution="student"))


def test_a_name_without_a_function_is_said_to_have_none() -> None:
    module = {"__name__": "src.inputs", "uniform": len, "gaussian": None}
    assert named(["uniform"], module) == {"uniform": len}
    with pytest.raises(ConfigError, match=r"'gaussian' is registered in src/registries.py, but .* has no gaussian"):
        named(["uniform", "gaussian"], module)
