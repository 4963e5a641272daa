"""Forms and their random-walk null: curves whose bends are known, SciPy's filter, and cosines."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter1d

from icl_lab.analysis.development.forms import dynamics, forms, null, smooth_growing, walk_like, walks

RNG = np.random.default_rng(0)


def saddle_to_saddle(rates: tuple[float, ...] = (10.0, 6.0, 4.0), points: int = 400) -> np.ndarray:
    """Modes that grow one after the other, mixed into 30 outputs."""
    t = np.linspace(0, 0.6, points)
    modes = np.stack([np.sqrt(s) * np.exp(2 * s * t) / np.sqrt(1000 + np.exp(4 * s * t)) for s in rates], axis=1)
    return modes @ np.linalg.qr(np.random.default_rng(1).standard_normal((30, len(rates))))[0].T


def test_smoothing_is_scipys_at_each_rows_own_width() -> None:
    scores = RNG.standard_normal((60, 3)).cumsum(axis=0)
    found = smooth_growing(scores, 6.0)
    for t, width in enumerate(np.linspace(0, 6, 60)):
        if width > 0.5:  # SciPy rounds the reach of a kernel
            reach = int(4 * width)
            own = gaussian_filter1d(scores, width, axis=0, mode="reflect", radius=reach)[t]
            np.testing.assert_allclose(found[t], own, atol=1e-10)
    np.testing.assert_array_equal(smooth_growing(scores, 0.0), scores)
    np.testing.assert_allclose(smooth_growing(np.ones((60, 2)), 20.0), 1.0)


def test_a_trajectory_from_saddle_to_saddle_has_a_form_at_each_saddle() -> None:
    """Between two modes that are half grown at log(1000) / (4 s)."""
    found = dynamics(saddle_to_saddle(), widest=0.0)
    half = np.log(1000) / (4 * np.array([10.0, 6.0, 4.0])) / 0.6 * 400
    times = sorted(form.checkpoint for form in found.forms)
    assert len(times) == 2
    assert half[0] < times[0] < half[1] < times[1] < half[2]
    assert found.explained.sum() == pytest.approx(1)


def test_bends_at_different_times_are_different_forms() -> None:
    """Corners of y and of z, over x = t: each is seen in two planes."""
    t = np.linspace(-1, 1, 401)
    corners = np.stack([t, np.hypot(t + 0.5, 0.1), np.hypot(t - 0.5, 0.1)], axis=1)
    found = [form for form in forms(corners, 8.0) if form.strength > 1]
    assert sorted(round(form.checkpoint, -1) for form in found) == [100, 300]
    assert {form.planes for form in found} == {2}
    assert len(forms(corners, 8.0)) == len(forms(corners[::-1], 8.0))


def test_the_point_of_a_form_is_the_centre_of_the_circle() -> None:
    """(t, t^2, 2 t^2) / 2: circles of radius 1 and 1/2 in two planes at t = 0, and a line in the third."""
    t = np.linspace(-1, 1, 401)
    (form,) = forms(np.stack([t, t**2 / 2, t**2], axis=1), 4.0)
    assert (form.checkpoint, form.planes) == (200, 2)
    np.testing.assert_allclose(form.point, [0, 1, 0.5], atol=1e-3)
    assert form.spread == pytest.approx(0, abs=1e-3)


def test_walks_take_the_trajectorys_steps_with_random_signs() -> None:
    """Lengths in order, and the spectrum of the steps, are the trajectory's, whatever the lengths."""
    steps = RNG.standard_normal((79, 30)) * np.geomspace(1, 0.1, 30) * np.geomspace(3, 0.3, 79)[:, None]
    gram = steps @ steps.T
    walk = walk_like(gram, RNG)
    moved = np.diff(np.diff(walk, axis=0), axis=1)
    np.testing.assert_allclose(np.abs(moved), np.abs(gram), atol=1e-9)
    np.testing.assert_allclose(np.diag(moved), np.diag(gram))
    np.testing.assert_allclose(np.linalg.eigvalsh(moved), np.linalg.eigvalsh(gram), atol=1e-9)
    assert np.linalg.eigvalsh(walk).min() > -1e-9 * np.linalg.eigvalsh(walk).max()
    assert not np.allclose(walk, walk_like(gram, RNG))


def test_a_walk_whose_steps_change_is_not_told_from_its_null() -> None:
    """Steps large and in one direction at first, small and in all directions later: ranks are even, mean 1/2.

    The mean of 60 ranks has a standard error of 1 / sqrt(12 60) = .037; three of these are .11.
    """
    rng, late = np.random.default_rng(3), np.linspace(0, 1, 60)[:, None]
    ranks = []
    for _ in range(60):
        sizes = np.where(np.arange(40) == 0, 4.0 * (1 - late), 0.3 + 0.2 * late)
        rows = (rng.standard_normal((60, 40)) * sizes).cumsum(axis=0)
        own = dynamics(rows).explained[0]
        ranks.append(np.mean([explained[0] < own for _, explained in walks(rows, 40, rng)]))
    assert np.mean(ranks) == pytest.approx(0.5, abs=0.11)
    assert np.mean(np.array(ranks) > 0.95) < 0.15


def test_an_isotropic_walk_explains_what_cosines_do() -> None:
    """6 / (pi k)^2: .608, .152, .068, of a walk in many dimensions with steps of one length."""
    rows = RNG.standard_normal((200, 4000)).cumsum(axis=0)
    found = null(rows, 5, RNG)
    np.testing.assert_allclose(found.explained.mean(axis=0), 6 / (np.pi * np.arange(1, 4)) ** 2, atol=0.02)
    scores, _ = next(walks(rows, 1, RNG))
    cosine = np.cos(np.pi * (np.arange(200) + 0.5) / 200)
    assert abs(np.corrcoef(scores[:, 0], cosine)[0, 1]) > 0.97


def test_a_random_walk_is_not_told_from_its_null_and_a_saddle_is() -> None:
    walk = RNG.standard_normal((150, 1000)).cumsum(axis=0)
    of_walk, at = null(walk, 40, np.random.default_rng(2)), dynamics(walk)
    assert at.forms[0].strength < np.quantile(of_walk.strongest, 0.99)
    low, high = of_walk.explained.min(axis=0), of_walk.explained.max(axis=0)
    assert (at.explained > low - 0.02).all()
    assert (at.explained < high + 0.02).all()
    saddle = saddle_to_saddle(points=150)
    of_saddle = null(saddle + 1e-3 * RNG.standard_normal(saddle.shape), 20, np.random.default_rng(2))
    assert dynamics(saddle).explained.sum() > of_saddle.explained.sum(axis=1).mean()


def test_the_same_generator_gives_the_same_null() -> None:
    rows = RNG.standard_normal((60, 50)).cumsum(axis=0)
    one, other = (null(rows, 3, np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(one.explained, other.explained)
    np.testing.assert_array_equal(one.strongest, other.strongest)


def test_what_has_no_form_is_refused() -> None:
    with pytest.raises(ValueError, match="a trajectory needs 5 checkpoints or more, not 4"):
        dynamics(RNG.standard_normal((4, 9)))
    with pytest.raises(ValueError, match="it must be at least 0 checkpoints"):
        smooth_growing(np.ones((9, 3)), -1.0)
    with pytest.raises(ValueError, match="draws is 0"):
        null(RNG.standard_normal((9, 9)), 0, RNG)


def test_below_fifty_checkpoints_no_form_is_sought() -> None:
    """The window within which two planes share a bend would be narrower than a checkpoint."""
    rows = saddle_to_saddle(points=50)
    assert dynamics(rows, widest=0.0).forms
    assert dynamics(rows[:-1], widest=0.0).forms == []


def test_checkpoints_that_do_not_move_are_steps_of_no_length() -> None:
    still = RNG.standard_normal((40, 50)).cumsum(axis=0)
    still[4:7] = still[3]
    scores, _ = next(walks(still, 1, RNG))
    np.testing.assert_allclose(scores[3:7], scores[[3, 3, 3, 3]], atol=1e-6)
    assert np.isfinite(null(still, 3, RNG).explained).all()
