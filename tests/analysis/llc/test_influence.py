"""Influences and susceptibilities against the Gaussian case, on exact draws made in NumPy."""

import numpy as np
import pytest

from icl_lab.analysis.llc.influence import influence, susceptibility
from icl_lab.src.checks import ConfigError

CHAINS, DRAWS, D, N = 8, 4000, 3, 6
NBETA, GAMMA = 20.0, 4.0
ERRORS = 4.5  # standard errors, of 36 pairs, with 7 degrees of freedom each

RNG = np.random.default_rng(0)
ROOTS = RNG.standard_normal((N, D, D))
HESSIANS = np.einsum("nij,nkj->nik", ROOTS, ROOTS)  # of each sample's loss
SLOPES = RNG.standard_normal((N, D))
SLOPES -= SLOPES.mean(axis=0)  # at a minimum of their mean


def drawn(mask: np.ndarray | None = None, seed: int = 1) -> np.ndarray:
    """u [C, T, d] of exp(-nbeta L - gamma/2 |u|^2), exactly; of a mask the others stay at 0."""
    moves = np.arange(D) if mask is None else np.flatnonzero(mask)
    precision = (NBETA * HESSIANS.mean(axis=0) + GAMMA * np.eye(D))[np.ix_(moves, moves)]
    normals = np.random.default_rng(seed).standard_normal((CHAINS, DRAWS, len(moves)))
    u = np.zeros((CHAINS, DRAWS, D))
    u[..., moves] = normals @ np.linalg.inv(np.linalg.cholesky(precision))
    return u


def losses_of(u: np.ndarray) -> np.ndarray:
    """l_i [C, T, n], less its value at w*."""
    return np.einsum("nd,ctd->ctn", SLOPES, u) + 0.5 * np.einsum("ctd,nde,cte->ctn", u, HESSIANS, u, optimize=True)


def covariances(sigma: np.ndarray) -> np.ndarray:
    """Cov(l_i, l_j) = g_i.S g_j + tr(H_i S H_j S) / 2 [n, n]."""
    turned = HESSIANS @ sigma
    return SLOPES @ sigma @ SLOPES.T + 0.5 * np.einsum("nij,mji->nm", turned, turned)


SIGMA = np.linalg.inv(NBETA * HESSIANS.mean(axis=0) + GAMMA * np.eye(D))


def test_influences_of_samples_on_each_other_are_the_closed_form() -> None:
    losses = losses_of(drawn())
    found = influence(losses, losses)
    exact = -covariances(SIGMA)
    assert found.values.shape == (N, N)
    assert (np.abs(found.values - exact) < ERRORS * found.errors).all()
    assert found.errors.max() < 0.1 * np.abs(exact).max()


def test_one_observable_is_a_column_and_a_coordinate_has_the_closed_form() -> None:
    """Cov(l_i, u_k) = (S g_i)_k: the quadratic part is even, and adds nothing."""
    u = drawn()
    losses = losses_of(u)
    found = influence(losses, u)
    exact = -SLOPES @ SIGMA
    assert (np.abs(found.values - exact) < ERRORS * found.errors).all()
    one = influence(losses, u[..., 1])
    assert one.values.shape == one.errors.shape == (N,)
    np.testing.assert_allclose(one.values, found.values[:, 1], rtol=1e-9)


def test_it_is_numpys_covariance_and_has_no_origin() -> None:
    """A constant of the losses or of the observable changes nothing: 1e3 times their size leaves 1e-6."""
    u = drawn()[:, :200]
    losses = losses_of(u)
    found = influence(losses, u[..., 0])
    flat = np.cov(losses.reshape(-1, N).T, u[..., 0].ravel())
    np.testing.assert_allclose(found.values, -flat[:N, N], rtol=1e-9)
    moved = influence(losses + 100.0, u[..., 0] - 100.0)
    np.testing.assert_allclose(moved.values, found.values, atol=1e-6)


def test_the_errors_are_those_of_repetitions() -> None:
    """Of twelve sets of chains, within a factor of 2 for the mean over samples."""
    told = [influence(losses_of(u), u[..., 0]) for u in (drawn(seed=seed)[:, :300] for seed in range(12))]
    spread = np.std([one.values for one in told], axis=0, ddof=1).mean()
    assert 0.5 < spread / np.mean([one.errors for one in told]) < 2


def test_the_susceptibility_of_a_component_is_of_draws_in_which_it_alone_moves() -> None:
    """-Cov(L_C, l_i - L) with u of two coordinates: sums of the closed form of the sub-Gaussian; they sum to 0."""
    mask = np.array([1, 0, 1])
    losses = losses_of(drawn(mask))
    excess = losses.mean(axis=2)
    found = susceptibility(excess, losses)
    moves = np.ix_([0, 2], [0, 2])
    sigma = np.zeros((D, D))
    sigma[moves] = np.linalg.inv((NBETA * HESSIANS.mean(axis=0) + GAMMA * np.eye(D))[moves])
    whole = covariances(sigma)
    exact = -(whole.mean(axis=1) - whole.mean())
    assert (np.abs(found.values - exact) < ERRORS * found.errors).all()
    assert found.errors.max() < 0.2 * np.abs(exact).max()
    assert found.values.sum() == pytest.approx(0.0, abs=1e-9)


def test_arrays_of_other_draws_are_refused() -> None:
    losses = np.zeros((2, 5, 3))
    for wrong in (np.zeros((2, 4)), np.zeros((3, 5)), np.zeros(2), np.zeros((2, 5, 3, 1))):
        with pytest.raises(ConfigError, match=r"the observable has shape .*; it must be \[chains, draws\] or"):
            influence(losses, wrong)
    for short in (np.zeros((2, 5)), np.zeros(4)):
        with pytest.raises(ConfigError, match=r"losses has shape .*; it must be \[chains, draws, samples\]"):
            influence(short, np.zeros((2, 5)))
        with pytest.raises(ConfigError, match=r"losses has shape .*; it must be \[chains, draws, samples\]"):
            susceptibility(np.zeros((2, 5)), short)
    with pytest.raises(ConfigError, match="losses has only one chain; a standard error needs two or more"):
        influence(losses[:1], np.zeros((1, 5)))
