"""When and how far curves dip, against loops, SciPy, and closed forms; verdicts on predictors between the two."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from icl_lab.analysis.transience import critical_step, power_law, rise, verdict

CURVES = hnp.arrays(float, st.integers(1, 12), elements=st.sampled_from(np.arange(0, 2, 0.25).tolist()))


# The critical step


@given(CURVES)
def test_the_critical_step_is_the_first_of_the_lowest_losses(losses: np.ndarray) -> None:
    steps = 10 * np.arange(len(losses)) ** 2
    expected = min(zip(losses, steps, strict=True))[1]  # the lowest loss, of several the lowest step
    assert critical_step(steps, losses) == expected


def test_a_curve_that_only_falls_is_lowest_at_its_end_and_a_parabola_at_its_vertex() -> None:
    steps = np.arange(0, 1001, 50)
    assert critical_step(steps, np.exp(-steps / 300)) == 1000
    assert critical_step(steps, (steps - 350.0) ** 2) == 350
    assert isinstance(critical_step(steps, steps.astype(float)), int)


@pytest.mark.parametrize(
    ("steps", "losses", "message"),
    [
        ([0, 1], [1.0], "not one loss for each step"),
        ([], [], "not one loss for each step"),
        ([[0, 1]], [[1.0, 2.0]], "not one loss for each step"),
        ([0, 2, 1], [1.0, 2.0, 3.0], "do not increase"),
        ([0, 1], [1.0, np.nan], "not all finite"),
        ([0, 1], [1.0, np.inf], "not all finite"),
    ],
)
def test_a_critical_step_of_no_curve_is_refused(steps: list, losses: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        critical_step(np.array(steps), np.array(losses))


# Rises


@given(CURVES, st.sampled_from([1, 3, 5]))
def test_the_rise_is_that_of_the_mean_of_the_records_around_each(losses: np.ndarray, window: int) -> None:
    if window > len(losses):
        with pytest.raises(ValueError, match=f"window is {window}"):
            rise(losses, window)
        return
    half = window // 2
    averaged = [losses[max(i - half, 0) : i + half + 1].mean() for i in range(len(losses))]
    assert float(rise(losses, window)) == pytest.approx(averaged[-1] - min(averaged), abs=1e-12)
    np.testing.assert_allclose(rise(np.stack([losses, losses + 1]), window), float(rise(losses, window)), atol=1e-12)
    assert float(rise(np.sort(losses)[::-1], window)) == pytest.approx(0, abs=1e-12)  # it only falls


def test_without_a_window_a_rise_is_exact() -> None:
    np.testing.assert_array_equal(rise(np.array([[1.0, 0.3, 0.7], [0.9, 0.8, 0.1]])), [0.7 - 0.3, 0.0])


def test_noise_alone_is_a_rise_unless_it_is_averaged() -> None:
    """200 constant curves of 100 records with noise .01: the minimum is 2.5 noises low, whatever the number of seeds.

    E max of 100 normals is 2.51; averages of 25 rise by less than sqrt(2 log 100) .01 / sqrt 25 = .006.
    """
    losses = 0.5 + np.random.default_rng(0).normal(0, 0.01, (200, 100))
    raw, averaged = rise(losses), rise(losses, 25)
    assert raw.mean() == pytest.approx(0.0251, abs=4 * stats.sem(raw))
    assert averaged.mean() < 0.006


def test_what_has_no_rise_is_refused() -> None:
    for window in (0, 2, 5, -1):
        with pytest.raises(ValueError, match=f"window is {window}"):
            rise(np.ones((2, 4)), window)
    with pytest.raises(ValueError, match="not all finite"):
        rise(np.array([[1.0, np.nan]]))


# The power law


@given(st.floats(-2, 2), st.floats(0.01, 100), st.sampled_from([(1, 2), (1, 4, 16, 1024), (3, 50, 7)]))
def test_a_power_law_is_found(exponent: float, factor: float, m: tuple[int, ...]) -> None:
    m = np.array(m)
    found = power_law(m, np.stack([factor * m**exponent] * 2))
    assert found == pytest.approx((exponent, exponent, exponent, factor), rel=1e-8, abs=1e-8)


def test_the_exponent_is_the_seeds_mean_with_its_interval() -> None:
    """Each seed's line by scipy's linregress; the factor is the geometric mean."""
    m, rng = 2.0 ** np.arange(1, 9), np.random.default_rng(2)
    t = 300 * m**0.47 * np.exp(rng.normal(0, 0.3, (5, 8)))
    lines = [stats.linregress(np.log(m), np.log(row)) for row in t]
    exponents = [line.slope for line in lines]
    found = power_law(m, t)
    assert found.exponent == pytest.approx(np.mean(exponents))
    assert (found.low, found.high) == pytest.approx(stats.t.interval(0.95, 4, np.mean(exponents), stats.sem(exponents)))
    assert found.factor == pytest.approx(stats.gmean([np.exp(line.intercept) for line in lines]))


def test_steps_of_another_size_change_the_factor_alone() -> None:
    m, t = np.array([1, 8, 32]), np.array([[3.0, 5.0, 20.0], [2.0, 9.0, 11.0]])
    one, ten = power_law(m, t), power_law(m, 10 * t)
    assert ten[:3] == pytest.approx(one[:3])
    assert ten.factor == pytest.approx(10 * one.factor)


def test_one_seed_has_an_exponent_and_no_interval() -> None:
    found = power_law(np.array([1, 4]), np.array([[10, 20]]))
    assert (found.exponent, found.factor) == pytest.approx((0.5, 10))
    assert np.isnan([found.low, found.high]).all()


@pytest.mark.parametrize(
    ("m", "t", "message"),
    [
        ([1, 2], [[0.0, 1.0]], "t is not above 0"),
        ([1, 2], [[-1.0, 1.0]], "t is not above 0"),
        ([1, 2], [[np.nan, 1.0]], "t is not above 0"),
        ([0, 2], [[1.0, 1.0]], "M is not above 0"),
        ([1, np.inf], [[1.0, 1.0]], "M is not above 0 and finite"),
        ([2, 2], [[1.0, 1.0]], "two M or more"),
        ([1, 2, 3], [[1.0, 1.0]], "a time for each seed"),
        ([1, 2], [1.0, 1.0], "a time for each seed"),
        ([1, 2], np.ones((0, 2)), "no mean of no values"),
    ],
)
def test_what_is_no_power_law_is_refused(m: list, t: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        power_law(np.array(m), np.array(t))


# Verdicts


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.0, "ridge"), (0.49, "ridge"), (0.51, "between"), (0.68, "between"), (0.69, "dmmse"), (1.0, "dmmse")],
)
def test_the_verdict_on_a_way_from_ridge_to_dmmse(share: float, expected: str) -> None:
    """PT = ridge + a (dMMSE - ridge) is on ridge up to a = 1/2, on dMMSE from 1 - sqrt(.1) = .684 on, M = 16's gaps."""
    gaps = {"id": 0.154, "ood": 0.422}
    assert verdict((1 - share) ** 2 * gaps["id"], gaps["id"], share**2 * gaps["ood"], gaps["ood"]) == expected


def test_on_dmmse_goes_before_on_ridge() -> None:
    """Predictors that are dMMSE on the pool's tasks and ridge elsewhere, or nearly so."""
    assert verdict(0.0, 0.154, 0.0, 0.422) == "dmmse"
    assert verdict(0.0153, 0.154, 0.1, 0.422) == "dmmse"
    assert verdict(0.0155, 0.154, 0.1, 0.422) == "ridge"
    assert verdict(0.0155, 0.154, 0.11, 0.422) == "between"


@given(hnp.arrays(float, 4, elements=st.floats(0.01, 2)), st.sampled_from([0.25, 8.0]), st.sampled_from([0.5, 4.0]))
def test_verdicts_have_no_unit_in_either_distribution(deltas: np.ndarray, first: float, second: float) -> None:
    assert verdict(*deltas) == verdict(*(deltas * [first, first, second, second]))


@pytest.mark.parametrize(
    ("deltas", "message"),
    [
        ((-0.1, 1, 1, 1), "mean square"),
        ((1, 1, np.nan, 1), "mean square"),
        ((1, np.inf, 1, 1), "mean square"),
        ((1, 0, 1, 1), "do not differ"),
        ((1, 1, 1, 0), "do not differ"),
    ],
)
def test_there_is_no_verdict_without_distances(deltas: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        verdict(*deltas)
