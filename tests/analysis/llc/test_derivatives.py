"""Derivatives and the degree from exact draws, made in NumPy, of posteriors whose values are closed forms."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import gammaincinv

from icl_lab.analysis.llc.derivatives import Slopes, slopes

CHAINS, DRAWS = 16, 4000
ERRORS = 4.0  # standard errors within which a closed form has to be


class Drawn(NamedTuple):
    """Draws u [C, T, d] with excess losses, u.grad L and |u|."""

    excess: np.ndarray
    slope: np.ndarray
    distance: np.ndarray


H = np.array([3.0, 1.0, 0.3, 0.05, 0.0, 0.0])


def gaussian(nbeta: float, gamma: float, seed: int = 0, h: np.ndarray = H) -> Drawn:
    """Of sum_i h_i u_i^2 / 2: independent normal draws of precision nbeta h + gamma."""
    u = np.random.default_rng(seed).standard_normal((CHAINS, DRAWS, len(h))) / np.sqrt(nbeta * h + gamma)
    excess = 0.5 * np.sum(h * u**2, axis=2)
    return Drawn(excess, 2 * excess, np.linalg.norm(u, axis=2))


def quartic(nbeta: float, parameters: int, seed: int = 0) -> Drawn:
    """Of sum_i u_i^4 without a pull: nbeta u^4 has a gamma distribution of shape 1 / 4."""
    rng = np.random.default_rng(seed)
    fourth = gammaincinv(0.25, rng.uniform(size=(CHAINS, DRAWS, parameters))) / nbeta
    excess = fourth.sum(axis=2)
    return Drawn(excess, 4 * excess, np.sqrt(np.sqrt(fourth).sum(axis=2)))


def found(drawn: Drawn, nbeta: float, gamma: float, forgets: bool = True, **changed: Any) -> Slopes:
    checks = {
        **{"first": drawn.excess, "second": drawn.excess, "distance": drawn.distance},
        **{"first_slope": drawn.slope, "second_slope": drawn.slope},
    } | changed
    checks = {name: values for name, values in checks.items() if values is not None}
    draws = {"excess": drawn.excess, "slope": drawn.slope}
    if "first_slope" not in checks:
        del draws["slope"]
    return slopes(checks, draws, nbeta, gamma, forgets)


def exact(nbeta: float, gamma: float, h: np.ndarray = H) -> tuple[float, float]:
    """d ln LLC / d ln nbeta and d ln LLC / d ln gamma of LLC = sum_i (1/2) nbeta h_i / a_i."""
    share = nbeta * h / (nbeta * h + gamma)
    left = np.sum(share * (1 - share)) / np.sum(share)
    return float(left), float(-left)


@pytest.mark.parametrize(("nbeta", "gamma"), [(100.0, 1.0), (100.0, 30.0), (10.0, 100.0)])
@pytest.mark.parametrize("form", ["both", "distance", "slope"])
def test_the_derivatives_of_a_quadratic_are_its_closed_forms(nbeta: float, gamma: float, form: str) -> None:
    """By both forms of the derivative in gamma; the errors are below .03, so that a factor of 2 is seen."""
    drawn = gaussian(nbeta, gamma)
    without: dict[str, dict[str, Any]] = {
        "both": {},
        "distance": {"first_slope": None, "second_slope": None},
        "slope": {"distance": None},
    }
    d_nbeta, d_gamma = exact(nbeta, gamma)
    one = found(drawn, nbeta, gamma, **without[form])
    assert one.d_nbeta_error < 0.03
    assert one.d_gamma_error < 0.15 if form == "distance" else one.d_gamma_error < 0.03
    assert one.d_nbeta == pytest.approx(d_nbeta, abs=ERRORS * one.d_nbeta_error)
    assert one.d_gamma == pytest.approx(d_gamma, abs=ERRORS * one.d_gamma_error)
    if form != "distance":
        assert (one.degree, one.degree_error) == (pytest.approx(2.0, abs=1e-12), pytest.approx(0.0, abs=1e-12))


def test_the_errors_are_those_of_repetitions() -> None:
    """Of twelve independent sets of chains, the spread is the stated error within a factor of 2 (a chi of 11)."""
    told = [found(gaussian(100.0, 30.0, seed), 100.0, 30.0) for seed in range(12)]
    for name in ("d_nbeta", "d_gamma"):
        values = np.array([getattr(one, name) for one in told])
        errors = np.array([getattr(one, f"{name}_error") for one in told])
        assert 0.5 < values.std(ddof=1) / errors.mean() < 2


def test_the_form_with_less_noise_is_taken() -> None:
    """Flat directions add to |u|^2 and not to the loss; where they do not relax the first form is left out."""
    h = np.concatenate([H, np.zeros(100)])
    drawn = gaussian(100.0, 30.0, h=h)
    by_slope, by_distance = (
        found(drawn, 100.0, 30.0, distance=None),
        found(drawn, 100.0, 30.0, first_slope=None, second_slope=None),
    )
    assert by_slope.d_gamma_error < by_distance.d_gamma_error
    both = found(drawn, 100.0, 30.0)
    assert (both.d_gamma, both.d_gamma_error) == (by_slope.d_gamma, by_slope.d_gamma_error)
    short = drawn._replace(distance=0.1 * drawn.distance)  # of chains that have not forgotten w*
    assert found(short, 100.0, 30.0, forgets=False).d_gamma == by_slope.d_gamma
    assert np.isnan(found(short, 100.0, 30.0, forgets=False, first_slope=None, second_slope=None).d_gamma)


def test_a_quartic_has_degree_four_and_a_plateau() -> None:
    """LLC = d / 4 for every nbeta, without a pull."""
    one = found(quartic(50.0, 3), 50.0, 0.0)
    assert one.degree == pytest.approx(4.0, abs=1e-12)
    assert one.d_nbeta == pytest.approx(0.0, abs=ERRORS * one.d_nbeta_error)
    assert one.d_nbeta_error < 0.03
    assert 50.0 * quartic(50.0, 3).excess.mean() == pytest.approx(0.75, abs=0.02)


def test_a_mixture_of_degrees_is_between() -> None:
    """Two parameters in u^2 / 2 and three in u^4: (2 * 1 + 4 * 3/4) / (1 + 3/4) = 20 / 7."""
    two, four = gaussian(50.0, 0.0, h=np.ones(2)), quartic(50.0, 3)
    both = Drawn(*(a + b for a, b in zip(two, four, strict=True)))
    one = found(both, 50.0, 0.0)
    assert one.degree == pytest.approx(20 / 7, abs=ERRORS * one.degree_error)
    assert one.degree_error < 0.03


def test_noise_of_minibatches_does_not_bias() -> None:
    """Noise of the losses' own size: with one batch alone the derivative would be off by its variance."""
    nbeta, gamma = 100.0, 30.0
    drawn, rng = gaussian(nbeta, gamma), np.random.default_rng(5)

    def noisy(values: np.ndarray) -> np.ndarray:
        return values + drawn.excess.std() * rng.standard_normal(values.shape)

    first, second = (drawn._replace(excess=noisy(drawn.excess), slope=noisy(drawn.slope)) for _ in range(2))
    d_nbeta, d_gamma = exact(nbeta, gamma)
    own = {"first": first.excess, "first_slope": first.slope}
    paired = found(first, nbeta, gamma, **own, second=second.excess, second_slope=second.slope)
    assert paired.d_nbeta == pytest.approx(d_nbeta, abs=ERRORS * paired.d_nbeta_error)
    assert paired.d_gamma == pytest.approx(d_gamma, abs=ERRORS * paired.d_gamma_error)
    alone = found(first, nbeta, gamma)
    variance = nbeta * drawn.excess.var() / drawn.excess.mean()
    assert alone.d_nbeta == pytest.approx(d_nbeta - variance, abs=ERRORS * alone.d_nbeta_error)
    assert variance > 10 * ERRORS * paired.d_nbeta_error  # so that the bias would be seen


def test_what_is_not_known_is_not_a_number() -> None:
    drawn = gaussian(100.0, 30.0)
    holed = drawn.excess.copy()
    holed[1, -1] = np.nan
    assert np.isnan(found(drawn._replace(excess=holed), 100.0, 30.0)).all()
    still = Drawn(*(0 * values for values in drawn))
    assert np.isnan(found(still, 100.0, 30.0)).all()
    bare = found(drawn, 100.0, 30.0, distance=None, first_slope=None, second_slope=None)
    assert np.isnan([bare.d_gamma, bare.degree]).all()
    assert np.isfinite([bare.d_nbeta, bare.d_nbeta_error]).all()
