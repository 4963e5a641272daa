"""The LLC as a function of the loss: it is found where there is one, also where it turns, and says how sure it is."""

import numpy as np
import pytest

from icl_lab.analysis.development import of_loss

RNG = np.random.default_rng(3)
LOSSES = np.exp(RNG.uniform(-4, 0, 120))
SCATTER = 0.1


def turning(losses: np.ndarray) -> np.ndarray:
    """A rise and a fall over a loss that only falls."""
    return np.asarray(5 * np.exp(-((np.log(losses) + 2) ** 2)))


@pytest.fixture(scope="module")
def fitted() -> of_loss.OfLoss:
    return of_loss.fit(LOSSES, turning(LOSSES) + SCATTER * RNG.normal(size=len(LOSSES)))


def test_the_function_and_the_scatter_about_it_are_found(fitted: of_loss.OfLoss) -> None:
    """Of 120 points with a scatter of .1 the curve is known to about .03."""
    at = np.exp(np.linspace(-3.8, -0.2, 20))
    np.testing.assert_allclose(fitted.at(at)[0], turning(at), atol=0.12)
    assert fitted.scatter == pytest.approx(SCATTER, rel=0.2)


def test_a_change_has_the_scatter_at_both_ends(fitted: of_loss.OfLoss) -> None:
    delta, variance = fitted.change(0.02, 0.13)
    assert delta == pytest.approx(float(np.diff(turning(np.array([0.02, 0.13])))[0]), abs=0.1)
    assert 2 * SCATTER**2 * 0.6 < variance < 2 * SCATTER**2 * 2
    assert fitted.change(0.1, 0.1)[0] == 0.0


def test_far_from_every_loss_it_is_not_known(fitted: of_loss.OfLoss) -> None:
    assert fitted.change(0.1, 1e-6)[1] > 10 * fitted.change(0.1, 0.2)[1]
    assert np.isnan(fitted.change(0.1, 0.0)[0])
    assert np.isnan(fitted.change(np.nan, 1.0)[1])


@pytest.mark.parametrize(
    ("losses", "llcs"),
    [
        (LOSSES[:5], LOSSES[:5]),
        (LOSSES, LOSSES[:-1]),
        (np.append(LOSSES, 0.0), np.append(LOSSES, 1.0)),
        (LOSSES, np.where(LOSSES > 0.5, np.nan, 1.0)),
    ],
)
def test_it_refuses_what_it_cannot_fit(losses: np.ndarray, llcs: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"6 estimates or more|must be finite"):
        of_loss.fit(losses, llcs)
