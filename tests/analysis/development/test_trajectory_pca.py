"""The joint PCA against scikit-learn's; random walks against the eigenvalues of their covariance; cosines."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from icl_lab.analysis.development.trajectory_pca import fit, null_explained, project, random_walk, smooth

SHAPES = st.tuples(st.integers(3, 12), st.integers(2, 12), st.integers(0, 99))


def rows_of(count: int, width: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, width)) * np.geomspace(1, 0.1, width) + rng.normal(size=width)


# The joint PCA


@given(SHAPES)
def test_the_joint_pca_is_scikit_learns(shape: tuple[int, int, int]) -> None:
    """By its full SVD, with the same rule for signs, whether rows or columns are more."""
    rows = rows_of(*shape)
    joint, reference = fit(rows, 2), PCA(2, svd_solver="full")
    scores = reference.fit_transform(rows)
    np.testing.assert_allclose(joint.mean, reference.mean_, atol=1e-12)
    np.testing.assert_allclose(joint.axes, reference.components_, atol=1e-8)
    np.testing.assert_allclose(joint.scores, scores, atol=1e-8)
    np.testing.assert_allclose(joint.explained, reference.explained_variance_ratio_, atol=1e-10)


@given(SHAPES)
def test_axes_are_orthonormal_and_scores_uncorrelated(shape: tuple[int, int, int]) -> None:
    joint = fit(rows_of(*shape), 2)
    np.testing.assert_allclose(joint.axes @ joint.axes.T, np.eye(2), atol=1e-9)
    products = joint.scores.T @ joint.scores
    np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-9)


@given(SHAPES)
def test_projection_of_the_fitted_rows_is_their_scores_and_of_the_mean_is_zero(shape: tuple[int, int, int]) -> None:
    rows = rows_of(*shape)
    joint = fit(rows, 2)
    np.testing.assert_allclose(project(joint, rows), joint.scores, atol=1e-10)
    np.testing.assert_allclose(project(joint, joint.mean), 0, atol=1e-12)
    np.testing.assert_allclose(project(joint, joint.mean + joint.axes), np.eye(2), atol=1e-10)


def test_the_order_of_rows_changes_no_axis_and_no_sign() -> None:
    rows, order = rows_of(9, 5, 0), np.random.default_rng(1).permutation(9)
    one, other = fit(rows, 3), fit(rows[order], 3)
    np.testing.assert_allclose(other.axes, one.axes, atol=1e-10)
    np.testing.assert_allclose(other.scores, one.scores[order], atol=1e-10)
    largest = np.abs(one.axes).argmax(axis=1)
    assert (one.axes[np.arange(3), largest] > 0).all()


def test_a_plane_is_recovered_and_explains_all() -> None:
    """Rows of a plane keep their distances; a point beside it is projected to its foot."""
    rng = np.random.default_rng(2)
    basis = np.linalg.qr(rng.normal(size=(7, 3)))[0].T
    places = rng.normal(size=(20, 2))
    joint = fit(5 + places @ basis[:2], 2)
    assert joint.explained.sum() == pytest.approx(1)
    for scores in (joint.scores, project(joint, 5 + places @ basis[:2] + 3 * basis[2])):
        gaps = np.linalg.norm(scores[:, None] - scores, axis=-1)
        np.testing.assert_allclose(gaps, np.linalg.norm(places[:, None] - places, axis=-1), atol=1e-10)


def test_rows_in_float32_are_fitted_in_float64() -> None:
    rows = rows_of(6, 4, 3).astype(np.float32)
    np.testing.assert_array_equal(fit(rows, 2).scores, fit(rows.astype(float), 2).scores)


@pytest.mark.parametrize(
    ("rows", "components", "message"),
    [
        (np.eye(3), 0, "do not have 0 components"),
        (np.eye(3), 4, "do not have 4 components"),
        (np.eye(3), 3, "span fewer than 3 components"),
        (np.outer(np.arange(5), np.arange(4)), 2, "span fewer than 2 components"),
        (np.ones(3), 1, "do not have 1 components"),
        (np.array([[1.0, np.nan], [0, 1]]), 1, "not all finite"),
        (np.full((3, 2), 0.1), 1, "all the same"),
    ],
)
def test_what_has_no_components_is_refused(rows: np.ndarray, components: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(rows, components)


# Smoothing


def test_smoothing_is_a_gaussian_mean_over_checkpoints() -> None:
    """By explicit weights exp(-k^2 / 2 sigma^2), the ends repeated."""
    scores, sigma, reach = np.random.default_rng(4).normal(size=(30, 2)), 1.5, 6
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    padded = np.pad(scores, ((reach, reach), (0, 0)), mode="edge")
    expected = [[np.dot(weights, padded[t : t + 13, c]) / weights.sum() for c in (0, 1)] for t in range(30)]
    np.testing.assert_allclose(smooth(scores, sigma), expected, atol=1e-12)


def test_smoothing_keeps_constants_lines_and_everything_at_width_zero() -> None:
    line = np.stack([np.full(40, 3.0), np.arange(40.0)], axis=1)
    np.testing.assert_allclose(smooth(line, 2.0)[8:-8], line[8:-8], atol=1e-12)
    np.testing.assert_allclose(smooth(line, 2.0)[:, 0], 3.0)
    np.testing.assert_array_equal(smooth(line, 0), line)
    assert smooth(np.arange(4).reshape(4, 1), 1.0)[0, 0] > 0.1  # whole numbers are not rounded
    for sigma in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="at least 0"):
            smooth(line, sigma)


# Random walks


def test_walks_start_together_and_step_by_independent_unit_normals() -> None:
    """Moments of 60 000 steps within five standard errors; walks and checkpoints are uncorrelated."""
    walks = random_walk([21, 11, 2], 2000, np.random.default_rng(5))
    assert [walk.shape for walk in walks] == [(21, 2000), (11, 2000), (2, 2000)]
    assert not any(walk[0].any() for walk in walks)
    steps = np.concatenate([np.diff(walk, axis=0) for walk in walks])
    assert abs(steps.mean()) < 5 / np.sqrt(steps.size)
    assert abs(steps.var() - 1) < 5 * np.sqrt(2 / steps.size)
    assert abs((steps**4).mean() - 3) < 5 * np.sqrt(96 / steps.size)
    correlations = np.corrcoef(steps) - np.eye(len(steps))
    assert np.abs(correlations).max() < 5 / np.sqrt(2000)


def limits(lengths: list[int]) -> np.ndarray:
    """Shares in infinitely many dimensions: eigenvalues of the rows' centred covariance, min(s, t) within a walk."""
    walk = np.repeat(np.arange(len(lengths)), lengths)
    time = np.concatenate([np.arange(length) for length in lengths])
    covariance = np.minimum(time[:, None], time) * (walk[:, None] == walk)
    centre = np.eye(len(time)) - 1 / len(time)
    values = np.linalg.eigvalsh(centre @ covariance @ centre)[::-1]
    return values / values.sum()


def test_the_shares_of_one_walk_are_six_over_pi_j_squared() -> None:
    """The eigenvalues are 1 / (4 sin^2(pi j / 2T)), their sum (T^2 - 1) / 6; in 4000 dimensions within 5 %."""
    count, j = 60, np.arange(1, 5)
    exact = 6 / ((count**2 - 1) * 4 * np.sin(np.pi * j / (2 * count)) ** 2)
    np.testing.assert_allclose(limits([count])[:4], exact, rtol=1e-8)
    mean, sd = null_explained([count], 4000, 4, 8, np.random.default_rng(6))
    np.testing.assert_allclose(mean, exact, rtol=0.05)
    np.testing.assert_allclose(mean, 6 / (np.pi * j) ** 2, rtol=0.05)
    assert (sd > 0).all()
    assert (sd < 0.05 * exact).all()


@pytest.mark.parametrize("lengths", [[40, 40, 40], [20, 60]])
def test_the_shares_of_several_walks_are_those_of_their_covariance(lengths: list[int]) -> None:
    mean, _ = null_explained(lengths, 4000, 4, 4, np.random.default_rng(7))
    expected = limits(lengths)[:4]
    np.testing.assert_allclose(mean[:2].sum(), expected[:2].sum(), rtol=0.03)
    np.testing.assert_allclose(mean, expected, rtol=0.08)  # equal ones are parted by the draw


def test_n_long_walks_of_one_start_have_n_minus_one_equal_shares() -> None:
    found = limits([100] * 9)[:9]
    np.testing.assert_allclose(found[:8], (4 / np.pi**2) / (8 / 2 + 1 / 6), rtol=0.02)
    assert found[8] < 0.3 * found[7]


def test_the_null_is_the_joint_pca_of_walks() -> None:
    """One draw by scikit-learn; its sd is not known. The mean and sd of two draws are theirs."""
    walks = random_walk([7, 5], 30, np.random.default_rng(8))
    mean, sd = null_explained([7, 5], 30, 3, 1, np.random.default_rng(8))
    expected = PCA(3, svd_solver="full").fit(np.concatenate(walks)).explained_variance_ratio_
    np.testing.assert_allclose(mean, expected, rtol=1e-9)
    assert np.isnan(sd).all()
    rng = np.random.default_rng(8)
    draws = np.array([fit(np.concatenate(random_walk([7, 5], 30, rng)), 3).explained for _ in range(2)])
    mean, sd = null_explained([7, 5], 30, 3, 2, np.random.default_rng(8))
    np.testing.assert_allclose(mean, draws.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(sd, np.abs(draws[0] - draws[1]) / np.sqrt(2), rtol=1e-9)


def test_walks_that_do_not_move_are_refused() -> None:
    rng = np.random.default_rng(0)
    for lengths, dimension in (([1, 5], 3), ([], 3), ([5], 0)):
        with pytest.raises(ValueError, match="a walk needs at least 2 checkpoints and 1 dimension"):
            random_walk(lengths, dimension, rng)
    with pytest.raises(ValueError, match="draws is 0"):
        null_explained([5], 3, 1, 0, rng)
    with pytest.raises(ValueError, match="do not have 6 components"):
        null_explained([5], 9, 6, 1, rng)


# Cosines


def cosine_content(scores: np.ndarray) -> list[float]:
    """The squared correlation of column j (from 1) of scores [T, C] with cos(j pi (t + 1/2) / T). Hess 2000."""
    times = (np.arange(len(scores)) + 0.5) / len(scores)
    return [np.corrcoef(column, np.cos(j * np.pi * times))[0, 1] ** 2 for j, column in enumerate(scores.T, start=1)]


def test_a_random_walks_scores_are_cosines_and_noises_are_not() -> None:
    (walk,) = random_walk([100], 5000, np.random.default_rng(9))
    assert min(cosine_content(fit(walk, 3).scores)) > 0.95
    noise = np.random.default_rng(10).normal(size=(100, 5000))
    assert max(cosine_content(fit(noise, 3).scores)) < 0.1


def test_in_a_joint_pca_walks_of_one_start_are_quarter_sines() -> None:
    """Two walks of one start are one walk through it: the first component is a sine of a quarter period along each."""
    walks = random_walk([80, 80], 5000, np.random.default_rng(11))
    score = fit(np.concatenate(walks), 1).scores[:80, 0]
    assert np.corrcoef(score, np.sin(np.pi * np.arange(80) / 160))[0, 1] ** 2 > 0.99
