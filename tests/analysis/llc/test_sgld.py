"""SGLD chains: identities with gradient descent, NumPy, blackjax and themselves."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from blackjax.sgmcmc import diffusions
from blackjax.util import generate_gaussian_noise
from hypothesis import given
from hypothesis import strategies as st
from jax import Array

from icl_lab.analysis.llc import sgld
from icl_lab.src.checks import ConfigError
from icl_lab.src.prng import Purpose, key, purpose_key

RNG = np.random.default_rng(0)
X, NOISE = RNG.standard_normal((12, 3)), RNG.standard_normal(12)
Y = X @ np.array([1.0, -2.0, 0.5]) + 0.3 * NOISE
TASKS = (X, Y)
START = np.array([0.7, -1.0, 0.1])
OWN = key(3)
ROUNDING = 1e-14  # in float64: XLA compiles the losses of draws and of their baselines apart
UNASKED = {"measured", "losses", "observed"}  # of draws
STEPS = sgld.Steps(burn_in=3, draws=17, thin=1, check_every=4)


def losses(w: Array, tasks: Any) -> Array:
    x, y = tasks
    return (x @ w - y) ** 2


def gradient(w: np.ndarray) -> np.ndarray:
    """Of the mean loss, by hand."""
    return 2 * X.T @ (X @ w - Y) / len(Y)


def ran(own: Array = OWN, eps: float = 1e-2, nbeta: float = 5.0, gamma: float = 2.0, **kwargs: Any) -> sgld.Draws:
    """A full-batch chain from START."""
    target = sgld.Target(losses, jnp.asarray(START), nbeta, gamma, kwargs.pop("mask", None))
    source = kwargs.pop("source", sgld.all_tasks)(losses, target.centre, jax.tree.map(jnp.asarray, TASKS))
    steps = kwargs.pop("steps", STEPS)
    return jax.jit(lambda k: sgld.chain(k, target, source, TASKS, eps, steps, **kwargs))(own)


@jax.jit
def in_units(own: Array, of_loss: Array, of_weights: Array) -> sgld.Draws:
    """The chain of `ran` with the loss and the weights in other units: w = s u, and loss c L at nbeta / c."""
    start = jnp.asarray(START) / of_weights
    target = sgld.Target(
        lambda u, tasks: of_loss * losses(of_weights * u, tasks), start, 5.0 / of_loss, 2.0 * of_weights**2
    )
    source = sgld.all_tasks(target.losses, start, TASKS)
    return sgld.chain(own, target, source, TASKS, 1e-2 / of_weights**2, STEPS)


def looped(step: Callable[[np.ndarray, int], np.ndarray], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Excess and distance of a NumPy loop."""
    w, excess, distance = START, [], []
    for t in range(count):
        excess.append(np.mean((X @ w - Y) ** 2) - np.mean((X @ START - Y) ** 2))
        distance.append(np.linalg.norm(w - START))
        w = step(w, t)
    return np.array(excess), np.array(distance)


def noise_of(own: Array, t: int) -> np.ndarray:
    """The exact normals of a chain's step t."""
    at = purpose_key(jax.random.fold_in(own, t), Purpose.NOISE_VALUE)
    return np.asarray(jax.random.normal(at, (3,), jnp.float64))


@pytest.mark.usefixtures("x64")
class TestSteps:
    def test_without_noise_it_is_gradient_descent(self) -> None:
        found = ran(eps=0.02, nbeta=5.0, gamma=0.0, normals=sgld.no_noise)
        excess, distance = looped(lambda w, _: w - 0.05 * gradient(w), 20)  # eps nbeta / 2
        np.testing.assert_allclose(found.excess, excess, atol=1e-12)
        np.testing.assert_allclose(found.distance, distance, atol=1e-12)

    def test_it_is_a_numpy_loop(self) -> None:
        own, eps, nbeta, gamma = key(3), 1e-2, 5.0, 2.0

        def step(w: np.ndarray, t: int) -> np.ndarray:
            return w - eps / 2 * (nbeta * gradient(w) + gamma * (w - START)) + np.sqrt(eps) * noise_of(own, t)

        found, (excess, distance) = ran(own, normals=sgld.exact_normals), looped(step, 20)
        np.testing.assert_allclose(found.excess, excess, atol=1e-12)
        np.testing.assert_allclose(found.distance, distance, atol=1e-12)

    def test_rmsprop_is_a_numpy_loop(self) -> None:
        own, eps, nbeta, gamma, mean = key(3), 1e-2, 5.0, 2.0, np.zeros(3)

        def step(w: np.ndarray, t: int) -> np.ndarray:
            nonlocal mean
            mean = 0.9 * mean + 0.1 * gradient(w) ** 2
            scale = 1 / (np.sqrt(mean / (1 - 0.9 ** (t + 1))) + 0.2)
            drift = nbeta * gradient(w) + gamma * (w - START)
            return w - eps / 2 * scale * drift + np.sqrt(eps * scale) * noise_of(own, t)

        found = ran(own, normals=sgld.exact_normals, sampler=sgld.Sampler(sgld.rmsprop(0.9, 0.2)))
        np.testing.assert_allclose(found.excess, looped(step, 20)[0], atol=1e-12)

    def test_with_friction_it_is_a_numpy_loop(self) -> None:
        """SGHMC keeps 1 - f of the last step, its noise has variance f eps, and no acceptance is told of it."""
        own, eps, nbeta, gamma, friction, v = key(3), 1e-2, 5.0, 2.0, 0.1, np.zeros(3)

        def step(w: np.ndarray, t: int) -> np.ndarray:
            nonlocal v
            drift = nbeta * gradient(w) + gamma * (w - START)
            v = (1 - friction) * v - eps / 2 * drift + np.sqrt(friction * eps) * noise_of(own, t)
            return w + v

        found = ran(own, normals=sgld.exact_normals, sampler=sgld.Sampler(sgld.PLAIN, friction))
        np.testing.assert_allclose(found.excess, looped(step, 20)[0], atol=1e-12)
        assert np.isnan(found.acceptance).all()

    def test_the_slope_is_along_the_way_from_w_star(self) -> None:
        """u.grad L of the draws of a NumPy loop."""
        own, w, slopes = key(3), START, []
        for t in range(20):
            slopes.append((w - START) @ gradient(w))
            w = w - 5e-3 * (5.0 * gradient(w) + 2.0 * (w - START)) + 0.1 * noise_of(own, t)
        found = ran(own)
        np.testing.assert_allclose(found.slope, slopes, atol=1e-12)
        np.testing.assert_allclose(found.second_slope, slopes[::4], atol=1e-12)  # all tasks have no other batch

    def test_preconditioning_by_one_is_none(self) -> None:
        target = sgld.Target(losses, jnp.asarray(START), 5.0, 2.0)
        w, slope, noise = (jnp.asarray(RNG.standard_normal(3)) for _ in range(3))
        drift = 5.0 * slope + 2.0 * (w - START)
        plain = w + (-0.5 * 0.01 * drift + jnp.sqrt(0.01) * noise)
        np.testing.assert_array_equal(sgld.sgld_step(target, w, slope, jnp.ones(3), noise, 0.01), plain)
        none = sgld.rmsprop(0.5, 1.0)._replace(update=lambda state, slope: (state, jnp.ones_like(slope)))
        np.testing.assert_array_equal(ran(sampler=sgld.Sampler(none)).excess, ran().excess)

    def test_a_step_is_blackjaxs_on_the_same_noise(self) -> None:
        """Its step size is eps / 2, and its drift the gradient of the log density."""
        target, w, eps = sgld.Target(losses, jnp.asarray(START), 5.0, 2.0), jnp.asarray([0.2, 0.4, -1.0]), 0.03
        slope, own = jnp.asarray(gradient(np.asarray(w))), jax.random.key(1)
        theirs = diffusions.overdamped_langevin()(own, w, -(5.0 * slope + 2.0 * (w - START)), eps / 2)
        ours = sgld.sgld_step(target, w, slope, jnp.ones(3), generate_gaussian_noise(own, w), eps)
        np.testing.assert_allclose(ours, theirs, atol=1e-15)

    def test_a_thinned_chain_is_every_third_draw(self) -> None:
        thin, all_draws = ran(steps=sgld.Steps(2, 6, 3, 2)), ran(steps=sgld.Steps(2, 22, 1, 2))
        np.testing.assert_allclose(thin.excess, all_draws.excess[::3], atol=1e-12)

    def test_checks_are_those_of_the_full_batch(self) -> None:
        found = ran()
        base = np.mean((X @ START - Y) ** 2)
        np.testing.assert_allclose(found.fixed_loss - base, found.excess[::4], atol=1e-12)

    @pytest.mark.parametrize("chain", [0, 2])
    def test_a_chain_of_a_pack_is_that_chain_alone(self, chain: int) -> None:
        target = sgld.Target(losses, jnp.asarray(START), 5.0, 2.0)
        source = sgld.minibatches(losses, target.centre, jax.tree.map(jnp.asarray, TASKS), 4)
        keys = jax.random.split(key(5), 3)
        one = jax.jit(lambda own: sgld.chain(own, target, source, TASKS, 0.01, STEPS))
        pack, alone = jax.jit(jax.vmap(one))(keys), one(keys[chain])
        assert {name for name, values in pack._asdict().items() if isinstance(values, tuple)} == UNASKED
        for together, apart in zip(jax.tree.leaves(pack), jax.tree.leaves(alone), strict=True):
            np.testing.assert_allclose(together[chain], apart, rtol=1e-12)
        assert not np.allclose(pack.excess[0], pack.excess[1])

    def test_what_is_asked_for_is_of_the_draws(self) -> None:
        """The losses of every task and w - w* at every draw, the excess on another set at every check."""
        other = (jnp.asarray(X[:5]), jnp.asarray(Y[:5]))

        def measured(w: Array) -> Array:
            return jnp.mean(losses(w, other) - losses(jnp.asarray(START), other))

        found = ran(extras=sgld.Extras(measured, lambda w: losses(w, TASKS), lambda w: w - START))
        np.testing.assert_allclose(
            np.mean(found.losses, axis=1) - np.mean((X @ START - Y) ** 2), found.excess, atol=1e-12
        )
        np.testing.assert_allclose(np.linalg.norm(found.observed, axis=1), found.distance, atol=1e-12)
        at_checks = START + np.asarray(found.observed)[::4]
        expected = np.mean((at_checks @ X[:5].T - Y[:5]) ** 2, axis=1) - np.mean((X[:5] @ START - Y[:5]) ** 2)
        np.testing.assert_allclose(found.measured, expected, atol=1e-12)

    def test_a_check_has_a_batch_of_its_own(self) -> None:
        """The second batch of minibatches is not the first, and at w* its excess is 0 too."""
        found = ran(source=lambda loss, w, tasks: sgld.minibatches(loss, w, tasks, 4))
        assert abs(found.second_excess[0]) < ROUNDING
        assert np.all(found.second_excess[1:] != found.excess[4::4])

    def test_the_same_seed_is_the_same_chain(self) -> None:
        first, again, other = ran(key(1)), ran(key(1)), ran(key(2))
        np.testing.assert_array_equal(first.excess, again.excess)
        assert not np.array_equal(first.excess, other.excess)

    @given(st.integers(-8, 8), st.integers(0, 2**16))
    def test_a_loss_c_times_as_large_at_nbeta_over_c_is_the_same_chain(self, power: int, seed: int) -> None:
        c = 2.0**power  # exact in floating point
        plain, scaled = in_units(key(seed), 1.0, 1.0), in_units(key(seed), c, 1.0)
        np.testing.assert_array_equal(plain.distance, scaled.distance)
        np.testing.assert_array_equal(plain.excess, scaled.excess / c)

    @given(st.integers(-4, 4))
    def test_weights_in_other_units_are_the_same_chain(self, power: int) -> None:
        """With w = s u: eps u / s^2, gamma s^2."""
        s = 2.0**power
        plain, scaled = in_units(key(3), 1.0, 1.0), in_units(key(3), 1.0, s)
        np.testing.assert_allclose(s * scaled.distance, plain.distance, atol=1e-12)
        np.testing.assert_allclose(scaled.excess, plain.excess, atol=1e-12)


@pytest.mark.usefixtures("x64")
class TestSources:
    @pytest.mark.parametrize(
        "source",
        [
            sgld.all_tasks,
            lambda loss, w, tasks: sgld.minibatches(loss, w, tasks, 4),
            lambda loss, w, tasks: sgld.fresh_tasks(loss, w, lambda own: (jax.random.normal(own, (4, 3)), jnp.ones(4))),
        ],
    )
    def test_at_w_star_the_excess_is_zero(self, source: Any) -> None:
        """The baseline is of the same tasks; draw 0 is w* itself."""
        excess = ran(source=source).excess
        assert abs(excess[0]) < ROUNDING
        assert np.all(np.abs(excess[1:]) > 1e6 * ROUNDING)

    def test_minibatches_come_with_their_own_baselines(self) -> None:
        (x, y), baseline = sgld.minibatches(losses, jnp.asarray(START), TASKS, 5).draw(key(1))
        np.testing.assert_allclose(baseline, (x @ START - y) ** 2, atol=1e-14)
        assert {tuple(row) for row in np.asarray(x)} <= {tuple(row) for row in X}

    def test_fresh_tasks_that_are_all_tasks_are_the_full_batch(self) -> None:
        same = ran(source=lambda loss, w, tasks: sgld.fresh_tasks(loss, w, lambda _: tasks))
        np.testing.assert_allclose(same.excess, ran().excess, atol=1e-14)


@pytest.mark.usefixtures("x64")
def test_a_mask_leaves_the_rest_where_it_is() -> None:
    mask = jnp.asarray([0.0, 1.0, 0.0])
    target = sgld.Target(losses, jnp.asarray(START), 5.0, 2.0, mask)
    w = jnp.asarray([0.3, 0.1, 0.9])
    moved = sgld.sgld_step(target, w, jnp.ones(3), jnp.ones(3), jnp.ones(3), 0.1)
    np.testing.assert_array_equal(moved == w, [True, False, True])
    still = ran(mask=jnp.zeros(3))
    assert not np.any(still.distance)
    np.testing.assert_allclose(still.excess, 0.0, atol=ROUNDING)


@pytest.mark.parametrize(
    ("before", "after", "eps", "accepted"),
    [
        ((0.0, 0.0), (1.5, 5.5), 0.1, 0.6661436),
        ((1.0, 1.0), (1.5, 0.5), 0.5, 0.9692332),
        ((0.0, 0.0), (10.5, 5.5), 0.1, 0.17268492),
        ((0.0, 0.0), (10.5, 5.5), 0.5, 0.00015359),
    ],
)
@pytest.mark.usefixtures("x64")
def test_acceptance_of_published_cases(
    before: tuple[float, float], after: tuple[float, float], eps: float, accepted: float
) -> None:
    """U = |w|^2 / 2, golden values of the devinterp library; half as nbeta L and half as localisation is the same."""
    points = [(jnp.asarray(w), jnp.sum(jnp.asarray(w) ** 2) / 2, jnp.asarray(w)) for w in (before, after)]
    for nbeta, gamma in ((1.0, 0.0), (0.5, 0.5), (0.0, 1.0)):
        target = sgld.Target(losses, jnp.zeros(2), nbeta, gamma)
        found = jnp.exp(sgld.log_acceptance(target, jnp.ones(2), eps, *points))
        assert float(found) == pytest.approx(accepted, rel=1e-4)


def test_acceptance_of_no_step_is_one_and_ignores_what_is_masked() -> None:
    target = sgld.Target(losses, jnp.zeros(2), 1.0, 0.0)
    point = (jnp.zeros(2), jnp.asarray(0.0), jnp.zeros(2))
    assert sgld.log_acceptance(target, jnp.ones(2), 0.1, point, point) == 0.0
    far = (jnp.asarray([0.1, 3.0]), jnp.asarray(0.005), jnp.asarray([0.1, 50.0]))
    masked = target._replace(mask=jnp.asarray([1.0, 0.0]))
    one = sgld.Target(losses, jnp.zeros(1), 1.0, 0.0)
    alone = [(w[:1], loss, slope[:1]) for w, loss, slope in (point, far)]
    expected = sgld.log_acceptance(one, jnp.ones(1), 0.1, *alone)
    np.testing.assert_allclose(sgld.log_acceptance(masked, jnp.ones(2), 0.1, point, far), expected, rtol=1e-5)


@pytest.mark.parametrize("wrong", [{"decay": 1.0}, {"decay": -0.1}, {"damping": 0.0}])
def test_rmsprop_refuses(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="must be"):
        sgld.rmsprop(**wrong)


def test_memory_does_not_depend_on_the_number_of_draws() -> None:
    """A longer chain needs no more than the three numbers of each draw and the four of each check."""

    single = jax.tree.map(np.float32, (START, TASKS))

    def memory(draws: int) -> tuple[int, int]:
        centre, tasks = jax.tree.map(jnp.asarray, single)
        target = sgld.Target(losses, centre, 5.0, 2.0)
        source, steps = sgld.all_tasks(losses, centre, tasks), sgld.Steps(0, draws)
        own = jax.random.key(0)
        found = jax.jit(lambda k: sgld.chain(k, target, source, tasks, 1e-2, steps)).lower(own).compile()
        used = found.memory_analysis()
        assert used is not None
        return used.temp_size_in_bytes, used.output_size_in_bytes

    (short, few), (long, many) = memory(100), memory(10_000)
    assert short == long
    assert many - few == pytest.approx((10_000 - 100) * (3 + 4 / 10) * 4)
