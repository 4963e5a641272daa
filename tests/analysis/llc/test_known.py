"""Known learning coefficients: golden values of the papers, agreement of the theorems, and closed forms by SciPy."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import integrate

from icl_lab.analysis.llc.validation.known import (
    crossing,
    deep_linear,
    normal_crossing,
    quadratic,
    reduced_rank,
    regular,
    sum_of_powers,
)
from icl_lab.src.checks import ConfigError


@pytest.mark.parametrize(
    ("widths", "rank", "value"),
    [
        ((5, 3, 5), 0, 6.5),
        ((5, 4, 5), 0, 8.0),
        ((4, 3, 8), 0, 6.0),
        ((8, 3, 4), 0, 6.0),
        ((3, 8, 4), 0, 6.0),
        ((8, 8, 8, 8), 0, 21.5),
        ((4, 4, 4), 2, 7.5),
        ((8, 8, 8, 8), 4, 29.5),
        ((10, 10, 10), 3, 44.0),
    ],
)
def test_golden_values(widths: tuple[int, ...], rank: int, value: float) -> None:
    assert deep_linear(widths, rank).value == pytest.approx(value)


def test_the_two_theorems_agree() -> None:
    """Aoyagi 2024 for one hidden layer is Aoyagi and Watanabe 2005, multiplicities too."""
    shapes = [(*widths, rank) for widths in product(range(1, 8), repeat=3) for rank in range(min(widths) + 1)]
    assert len(shapes) == 1127
    for m, h, n, rank in shapes:
        assert deep_linear((m, h, n), rank) == pytest.approx(reduced_rank(m, h, n, rank)), (m, h, n, rank)


def test_one_matrix_is_regular() -> None:
    assert deep_linear((4, 6), 3).value == regular(24).value == 12


def test_crossings_and_sums() -> None:
    assert normal_crossing((1, 2)) == (0.25, 1)
    assert normal_crossing((2, 2)) == (0.25, 2)
    assert sum_of_powers((1, 1, 2)).value == pytest.approx(1.25)


@pytest.mark.parametrize(
    ("powers", "values"),
    [
        ((0, 1), (0.492, 0.498, 0.500)),
        ((1, 1), (0.326, 0.361, 0.412)),
        ((0, 2), (0.235, 0.243, 0.249)),
        ((1, 2), (0.191, 0.210, 0.236)),
        ((2, 2), (0.135, 0.151, 0.179)),
        ((1, 3), (0.131, 0.142, 0.158)),
    ],
)
def test_crossings_at_finite_nbeta(powers: tuple[int, int], values: tuple[float, ...]) -> None:
    found = [crossing(powers, nbeta, 1.0) for nbeta in (30.0, 145.0, 1e4)]
    assert found == pytest.approx(values, abs=6e-4)  # the values are given to three digits


def test_the_quadrature_is_scipys() -> None:
    """(1, 1), whose inner integral is closed: w2 is normal of precision gamma + 2 nbeta w1^2."""
    nbeta, gamma = 145.0, 2.0

    def weight(w: float) -> float:
        return math.exp(-0.5 * gamma * w**2) / math.sqrt(gamma + 2 * nbeta * w**2)

    top = integrate.quad(lambda w: nbeta * w**2 * weight(w) / (gamma + 2 * nbeta * w**2), 0, 20, epsabs=1e-13)[0]
    bottom = integrate.quad(weight, 0, 20, epsabs=1e-13, points=[0.1])[0]
    assert crossing((1, 1), nbeta, gamma) == pytest.approx(top / bottom, rel=1e-6)


def test_a_quadratic_is_regular_in_the_limit() -> None:
    eigenvalues = np.array([1.0, 3.0, 0.2])
    assert quadratic(eigenvalues, 1e9, 1.0) == pytest.approx(1.5)
    assert quadratic(np.array([1.0, 0.0]), 100.0, 1.0) == pytest.approx(0.5 * 100 / 101)
    assert quadratic(np.ones(1), 100.0, 0.0, eps=0.01) == pytest.approx(0.5 / (1 - 0.25))


def test_what_is_not_defined_is_said() -> None:
    with pytest.raises(ConfigError, match="diverges"):
        quadratic(np.ones(1), 100.0, 0.0, eps=0.05)
    with pytest.raises(ConfigError, match="rank is 4"):
        reduced_rank(3, 4, 5, 4)
    with pytest.raises(ConfigError, match="rank is 4"):
        deep_linear((3, 4, 5), 4)


@pytest.mark.parametrize("slope", [0.0, 0.3, -1.2])
def test_off_a_minimum_by_scipy(slope: float) -> None:
    """One direction, u of density exp(-nbeta (g u + h u^2 / 2) - gamma u^2 / 2): negative where the slope is steep."""
    nbeta, gamma, h = 20.0, 3.0, 1.5

    def weight(u: float) -> float:
        return math.exp(-nbeta * (slope * u + h * u**2 / 2) - gamma * u**2 / 2)

    ends = (-6.0, 6.0)
    top = integrate.quad(lambda u: nbeta * (slope * u + h * u**2 / 2) * weight(u), *ends, limit=200)[0]
    expected = top / integrate.quad(weight, *ends, limit=200)[0]
    assert quadratic(np.array([h]), nbeta, gamma, slopes=slope) == pytest.approx(expected, rel=1e-8)
    assert (expected < 0) == (slope != 0)
