"""The Gaussian process through a curve: its posterior, its hyperparameters and what it says of noise."""

import numpy as np
import pytest

from icl_lab.analysis.development import smooth_curve
from icl_lab.analysis.development.smooth_curve import change_error, draws, fit, log_step, posterior, step_of
from tests.analysis.development.curves import noise, spaced, stairs

STEPS = spaced(20)
RISES = {3.0: 40.0, 8.0: 60.0}
VALUES = stairs(STEPS, RISES) + noise(len(STEPS), 0)
ERRORS = np.linspace(0.5, 1.5, len(STEPS))


def test_the_posterior_is_that_of_kriging_with_a_line() -> None:
    """By the inverse of the kriging system, whose multipliers hold weights without bias; slopes by differences.

    [K H'; H 0] [weights; multipliers] = [k(u); h(u)],  covariance(u, v) = k(u, v) - [k(u); h(u)] . solution(v)
    """
    rng = np.random.default_rng(1)
    at, values, grid = np.sort(rng.uniform(0, 10, 7)), rng.normal(size=7), np.array([0.5, 4.0, 9.0])
    a, length, error = 2.3, 1.7, np.diag(rng.uniform(0.01, 0.1, 7))
    h = 1e-4

    def k(u: float, v: float) -> float:
        return a * np.exp(-((u - v) ** 2) / (2 * length**2))

    line = np.stack([np.ones(7), at])
    system = np.block([[np.array([[k(u, v) for v in at] for u in at]) + error, line.T], [line, np.zeros((2, 2))]])
    inverse = np.linalg.inv(system)

    def asked(u: float) -> np.ndarray:
        return np.array([*(k(u, v) for v in at), 1.0, u])

    def mean_of(u: float) -> float:
        return float(asked(u) @ inverse @ [*values, 0, 0])

    def covariance_of(u: float, v: float) -> float:
        return float(k(u, v) - asked(u) @ inverse @ asked(v))

    def sloped_of(u: float, v: float) -> float:
        corners = [(su * sv, covariance_of(u + su * h, v + sv * h)) for su in (1, -1) for sv in (1, -1)]
        return sum(sign * value for sign, value in corners) / (2 * h) ** 2

    mean, slope, covariance, sloped = posterior(at, values, error, grid, a, length)
    np.testing.assert_allclose(mean, [mean_of(u) for u in grid], rtol=1e-9)
    np.testing.assert_allclose(slope, [(mean_of(u + h) - mean_of(u - h)) / (2 * h) for u in grid], rtol=1e-5)
    np.testing.assert_allclose(covariance, [[covariance_of(u, v) for v in grid] for u in grid], atol=1e-10)
    np.testing.assert_allclose(sloped, [[sloped_of(u, v) for v in grid] for u in grid], atol=1e-5)
    of_line = posterior(at, 3 + 2 * at, error, grid, a, length)
    np.testing.assert_allclose(of_line[0], 3 + 2 * grid, rtol=1e-9)
    np.testing.assert_allclose(of_line[1], 2.0, rtol=1e-9)


def likelihood(values: np.ndarray, a: float, length: float, jitter: float) -> float:
    """log N(values less their line; 0, K), but for its constant."""
    at = log_step(STEPS)
    rest = values - np.polyval(np.polyfit(at, values, 1), at)
    apart = at[:, None] - at[None, :]
    cov = a**2 * np.exp(-(apart**2) / (2 * length**2)) + np.diag(ERRORS**2 + jitter**2)
    return float(-0.5 * rest @ np.linalg.solve(cov, rest) - 0.5 * np.linalg.slogdet(cov)[1])


def test_hyperparameters_are_the_likeliest() -> None:
    values = VALUES + noise(len(STEPS), 5, 3.0)
    found = fit(STEPS, values, ERRORS)
    best = likelihood(values, found.height, found.length, found.jitter)
    for a in (0.7, 1.0, 1.4):
        for length in (0.8, 1.0, 1.25):
            for jitter in (0.8, 1.0, 1.25):
                at = likelihood(values, a * found.height, length * found.length, jitter * found.jitter)
                assert at <= best + 1e-6
    of_noise = max(likelihood(values, 0.0, 1.0, jitter) for jitter in np.geomspace(1, 100, 2000))
    assert found.evidence == pytest.approx(best - of_noise, abs=1e-3)
    assert likelihood(values, 0.0, 1.0, found.line_jitter) == pytest.approx(of_noise, abs=1e-3)


def test_what_checkpoints_scatter_beyond_their_errors_is_jitter() -> None:
    steps = spaced(100)
    smooth = stairs(steps, RISES)
    quiet = fit(steps, smooth + noise(len(steps), 2, 0.5), np.full(len(steps), 0.5))
    loud = fit(steps, smooth + noise(len(steps), 2, 2.0), np.full(len(steps), 0.5))
    assert quiet.jitter < 0.25
    assert loud.jitter == pytest.approx(np.sqrt(2.0**2 - 0.5**2), rel=0.2)
    np.testing.assert_allclose(loud.noise, np.hypot(0.5, loud.jitter))


def test_a_line_stays_one_to_its_ends() -> None:
    """About a constant the curve would turn to the mean there."""
    line = 3.0 + 2.0 * log_step(STEPS)
    found = fit(STEPS, line + noise(len(STEPS), 3, 0.1), np.full(len(STEPS), 0.1))
    assert not found.has_shape
    np.testing.assert_allclose(found.slope, 2.0, atol=0.1)
    exact = fit(STEPS, line)
    np.testing.assert_allclose(exact.mean, 3.0 + 2.0 * exact.grid, atol=1e-6)
    assert not exact.has_shape


@pytest.mark.parametrize("errors", [None, np.ones(17)])
@pytest.mark.parametrize("seed", range(6))
def test_noise_has_no_shape(seed: int, errors: np.ndarray | None) -> None:
    steps = spaced(17)
    assert not fit(steps, noise(len(steps), seed), None if errors is None else np.ones(len(steps))).has_shape


def test_draws_have_the_posteriors_moments() -> None:
    found = fit(STEPS, VALUES, ERRORS)
    curves, slopes = draws(found, 4000, np.random.default_rng(4))
    places = [50, 200, 350]
    spread = np.sqrt(np.diag(found.covariance)[places])
    np.testing.assert_allclose(curves[:, places].mean(axis=0), found.mean[places], atol=5 * spread.max() / 4000**0.5)
    np.testing.assert_allclose(curves[:, places].std(axis=0), spread, rtol=0.06)
    np.testing.assert_allclose(slopes[:, places].mean(axis=0), found.slope[places], atol=0.3)
    np.testing.assert_allclose(
        slopes[:, places].std(axis=0), np.sqrt(np.diag(found.slope_covariance)[places]), rtol=0.06
    )
    assert (curves[:, 350] - curves[:, 50]).std() == pytest.approx(change_error(found, 50, 350), rel=0.06)


def test_a_length_that_is_given_stays() -> None:
    assert fit(STEPS, VALUES, ERRORS, length=0.8).length == 0.8
    assert fit(STEPS, VALUES, ERRORS).length != 0.8


def test_step_0_has_a_place() -> None:
    np.testing.assert_allclose(log_step(np.array([0, 1, 999])), [0, np.log(2), np.log(1000)])
    np.testing.assert_allclose(step_of(log_step(STEPS)), STEPS, atol=1e-9)


@pytest.mark.parametrize(
    ("steps", "values", "errors", "sentence"),
    [
        (STEPS[:5], VALUES[:5], None, f"stages need {smooth_curve.LEAST} checkpoints or more, not 5"),
        (STEPS[::-1], VALUES, None, "steps must rise"),
        (STEPS - 1, VALUES, None, "steps must rise from 0"),
        (STEPS, VALUES[:-1], None, "not of one length"),
        (STEPS, VALUES * np.nan, None, "values must be finite"),
        (STEPS, VALUES, -ERRORS, "errors not negative"),
    ],
)
def test_what_is_no_curve_is_refused(steps: np.ndarray, values: np.ndarray, errors: np.ndarray, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        fit(steps, values, errors)
