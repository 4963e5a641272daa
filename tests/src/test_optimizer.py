"""The learning rate of each step: constant, or up and down, whose sum, ends and symmetry have closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from icl_lab.src.checks import ConfigError
from icl_lab.src.config import TrainConfig
from icl_lab.src.decoder import block_kernels
from icl_lab.src.optimizer import check_trained, make_optimizer, scheduled

LR = 3e-3


def rates(steps, **parts):
    """The learning rates of all steps, in float64."""
    config = TrainConfig(steps=steps, **parts)
    return np.asarray(jax.jit(lambda step: scheduled(jnp.asarray(LR, jnp.float64), config, step))(np.arange(steps)))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("steps", [2, 4, 1000])
def test_linear_up_down_rises_to_the_middle_and_falls_to_the_end(steps):
    """Straight lines from lr/(steps/2) at the first step to lr at the two in the middle, and back."""
    found, half = rates(steps, schedule="linear_up_down"), steps // 2
    corners = [0, half - 1, half, steps - 1]
    expected = np.interp(np.arange(steps), corners, [LR / half, LR, LR, LR / half])
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(found[:half].sum(), LR * (half + 1) / 2, rtol=1e-12)  # a mean of ends, half times


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("steps", [1, 3, 7, 1001])
def test_an_odd_number_of_steps_has_one_step_at_the_peak(steps):
    """The rates rise by lr/(steps/2); in the middle, half a step past the end of the rise, they stay at lr."""
    found, middle = rates(steps, schedule="linear_up_down"), steps // 2
    assert found.argmax() == middle
    assert found[middle] == pytest.approx(LR, rel=1e-12)
    np.testing.assert_allclose(found[:middle], LR * 2 / steps * np.arange(1, middle + 1), rtol=1e-12)
    np.testing.assert_allclose(found.sum() / LR, (steps**2 - 1) / (2 * steps) + 1, rtol=1e-12)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("steps", [1, 2, 7, 1000])
def test_up_and_down_are_symmetric_and_above_zero(steps):
    found = rates(steps, schedule="linear_up_down")
    np.testing.assert_allclose(found, found[::-1], rtol=1e-12)
    assert found[-1] > 0
    assert found.min() == pytest.approx(LR * min(2 / steps, 1), rel=1e-12)


@pytest.mark.usefixtures("x64")
def test_without_a_schedule_the_rate_is_the_members():
    np.testing.assert_array_equal(rates(50), LR)


def test_in_float32_the_last_of_500_000_steps_still_has_a_rate():
    """lr/250 000, one rounding of each operation off."""
    config = TrainConfig(steps=500_000, schedule="linear_up_down")
    for step in (0, 499_999):
        assert float(scheduled(jnp.float32(LR), config, jnp.int32(step))) == pytest.approx(LR / 250_000, rel=1e-6)


def test_linear_up_down_with_a_warm_up_is_refused():
    with pytest.raises(ConfigError) as error:
        TrainConfig(schedule="linear_up_down", warmup_steps=5)
    assert str(error.value) == (
        "warmup_steps is 5; it must be 0 with linear_up_down, which itself warms up, over the first half of training"
    )


@pytest.mark.usefixtures("x64")
def test_the_schedules_of_optax():
    """The cosine is optax's, below a linear warm-up that begins a step above zero."""
    cosine = optax.cosine_decay_schedule(LR, decay_steps=40)
    np.testing.assert_allclose(rates(40, schedule="cosine"), [cosine(step) for step in range(40)], rtol=1e-12)
    both = optax.warmup_cosine_decay_schedule(0.0, LR, warmup_steps=10, decay_steps=40)
    expected = [LR * (step + 1) / 10 if step < 10 else both(step) for step in range(40)]
    np.testing.assert_allclose(rates(40, schedule="cosine", warmup_steps=10), expected, rtol=1e-12)
    rising = optax.linear_schedule(LR / 10, LR, 9)
    np.testing.assert_allclose(rates(40, warmup_steps=10), [rising(step) for step in range(40)], rtol=1e-12)


@pytest.mark.usefixtures("x64")
def test_a_cosine_oscillation_is_a_warm_up_that_comes_back_down():
    """0 at the start, lr after 1000 steps, 0 after 2000: what the published program does."""
    found = rates(4001, schedule="cosine_oscillation")
    np.testing.assert_allclose(found[[0, 500, 1000, 2000, 3000, 4000]], LR * np.array([0, 0.5, 1, 0, 1, 0]), atol=1e-15)
    np.testing.assert_allclose(found[:2000], found[2000:4000], atol=1e-15)


PARAMS = {"layer_0/mlp": {"w": np.array([3.0, -4.0]), "b": np.array([1.0])}, "layer_1/mlp": {"w": np.array([2.0])}}
GRADIENT = {"layer_0/mlp": {"w": np.array([3.0, 4.0]), "b": np.array([12.0])}, "layer_1/mlp": {"w": np.array([84.0])}}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_parameters_that_are_not_trained_have_no_update_no_decay_and_no_part_in_the_clip(optimizer):
    """The trained ones move as if the others did not exist: by the same chain on them alone."""
    parts = {"grad_clip": 1.0, "weight_decay": 0.1, "optimizer": optimizer}
    config = TrainConfig(train_only="^layer_0/", **parts)
    some, whole = make_optimizer(config, block_kernels), make_optimizer(TrainConfig(**parts), block_kernels)
    alone = {"layer_0/mlp": PARAMS["layer_0/mlp"]}
    found, _ = some.update(GRADIENT, some.init(PARAMS), PARAMS)
    expected, _ = whole.update({"layer_0/mlp": GRADIENT["layer_0/mlp"]}, whole.init(alone), alone)
    np.testing.assert_array_equal(found["layer_1/mlp"]["w"], 0.0)
    for name in ("w", "b"):
        np.testing.assert_allclose(found["layer_0/mlp"][name], expected["layer_0/mlp"][name], rtol=1e-12)
    if optimizer == "sgd":  # the norm of (3, 4, 12) is 13; the kernel is decayed, the bias is not
        np.testing.assert_allclose(found["layer_0/mlp"]["w"], np.array([3, 4]) / 13 + 0.1 * np.array([3, -4]))
        np.testing.assert_allclose(found["layer_0/mlp"]["b"], 12 / 13)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("layer_7", "matches none of the parameters a/w, b/w"),
        ("w$", "matches all parameters: a/w, b/w"),
    ],
)
def test_what_is_trained_is_some_of_the_parameters(pattern, said):
    check_trained("^a/", ["a/w", "b/w"])
    with pytest.raises(ConfigError, match=said):
        check_trained(pattern, ["a/w", "b/w"])


def test_a_pattern_is_a_regular_expression():
    with pytest.raises(ConfigError, match=r"train_only is '\(', which is not a regular expression: .*"):
        TrainConfig(train_only="(")
