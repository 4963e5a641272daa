"""The growth of small weights: the loss's lowest order by sampling, rates and times by integrating the flow."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from icl_lab.analysis import plateau
from icl_lab.src.data_config import DataConfig
from icl_lab.src.one_step import one_step_loss, one_step_size

DATA = DataConfig(dim=3, num_pairs=4, input_range=2.0, weight_scale=1.5)
VARIANCE = 2.0**2 / 12


def sampled(count: int) -> tuple[np.ndarray, ...]:
    """The scatter S of tokens, queries and targets, in NumPy."""
    rng = np.random.default_rng(0)
    x, x_query = rng.uniform(-1, 1, (count, 4, 3)), rng.uniform(-1, 1, (count, 3))
    w = 1.5 * rng.normal(size=(count, 3))
    tokens = np.concatenate([x, np.einsum("bnd,bd->bn", x, w)[..., None]], axis=-1)
    return np.einsum("bnu,bnw->buw", tokens, tokens), x_query, np.einsum("bd,bd->b", x_query, w)


def form() -> np.ndarray:
    """That of the loss, kappa (c_y tr M_xx + c_x . m_y), as its coefficients of M_au c_w."""
    found = np.zeros((3, 4, 4))
    for a in range(3):
        found[a, a, 3] = found[a, 3, a] = plateau.coupling(DATA)
    return found


def test_the_lowest_order_of_the_loss() -> None:
    """E[x_q y_q S], to five standard errors of 200 000 contexts, which are a twentieth of kappa at most."""
    scatter, x_query, target = sampled(200_000)
    terms = np.einsum("bd,buw,b->bduw", x_query, scatter, target)
    errors = terms.std(axis=0) / math.sqrt(len(terms))
    assert (np.abs(terms.mean(axis=0) - form()) < 5 * errors).all()
    assert errors.max() < plateau.coupling(DATA) / 20


def test_the_rate_is_the_largest_singular_value_of_the_bilinear_form() -> None:
    """Of the matrix [M's entries, c's entries] of kappa (c_y tr M_xx + c_x . m_y)."""
    values = np.linalg.svd(form().reshape(12, 4), compute_uv=False)
    assert plateau.growth_rate(DATA) == pytest.approx(values[0], rel=1e-12)
    assert plateau.coupling(DATA) == pytest.approx(4 * VARIANCE**2 * 1.5**2, rel=1e-12)


def merged(trace_part: float, label: float) -> dict[str, np.ndarray]:
    """t of these and c_y, spread so that other entries do nothing."""
    kq, pv = np.zeros((1, 4, 4)), np.zeros((1, 4, 4))
    kq[0, :3, :3] = trace_part / math.sqrt(3) * np.eye(3)
    pv[0, 3, 3] = label
    return {"key_query": kq, "projection_value": pv}


@pytest.mark.parametrize("share", [0.5, 0.9])
@pytest.mark.parametrize(("t", "c"), [(1e-3, -1e-3), (2e-4, 1e-5), (0.0, 3e-4)])
def test_the_escape_of_merged_matrices_is_that_of_the_integrated_flow(t: float, c: float, share: float) -> None:
    """Balanced from the start or not, with the whole loss of a layer that takes a step of size p = -t c / sqrt(D).

    L = L0 - (L0 - L1) (2 p / c* - (p / c*)^2) in t and c, integrated by SciPy.
    """
    best, lr, root = one_step_size(DATA), 1e-3, math.sqrt(3)
    zero = VARIANCE * 1.5**2 * 3 / 2
    fall = zero - one_step_loss(DATA, best)

    def flow(_: float, at: np.ndarray) -> list[float]:
        p = -at[0] * at[1] / root
        slope = -fall * 2 / best * (1 - p / best)
        return [slope * at[1] / root, slope * at[0] / root]

    def made(_: float, at: np.ndarray) -> float:
        done = -at[0] * at[1] / root / best
        return float(2 * done - done**2 - share)

    made.terminal = True  # type: ignore[attr-defined]
    solved = solve_ivp(flow, (0, 1e4), [t, c], events=made, rtol=1e-9, atol=1e-14)
    assert plateau.merged_escape(merged(t, c), DATA, lr, share) * lr == pytest.approx(solved.t[-1], rel=2e-3)


def test_each_tenth_of_the_scale_takes_the_merged_as_much_longer() -> None:
    """log(10) / log(1 + lr lambda)."""
    found = [plateau.merged_escape(merged(scale, -scale), DATA, 0.01) for scale in (1e-4, 1e-5, 1e-6)]
    step = math.log(10) / math.log1p(0.01 * plateau.growth_rate(DATA))
    np.testing.assert_allclose(np.diff(found), step, rtol=1e-6)


def aligned(a: float) -> dict[str, np.ndarray]:
    """Factors a I_x, a I_x, and labels' b, -b with b^2 = D a^2, which the flow keeps: balanced."""
    on_inputs, on_label = np.diag([1.0, 1, 1, 0]), np.diag([0.0, 0, 0, 1])
    b = math.sqrt(3) * a
    return {
        "query": a * on_inputs[:, None],
        "key": a * on_inputs[:, None],
        "value": b * on_label[:, None],
        "projection": -b * on_label[None],
    }


@pytest.mark.parametrize("a", [0.1, 0.01])
def test_balanced_factors_diverge_at_a_time_in_closed_form(a: float) -> None:
    """(a^2)' = 2 kappa a^2 b^2 = 2 kappa D a^4, so the time is 1 / (2 kappa D a^2): as one over the scale squared."""
    expected = 1 / (2 * plateau.coupling(DATA) * 3 * a**2)
    found = plateau.factors_escape(aligned(a), DATA, 0.5)
    assert found.step * 0.5 == pytest.approx(expected, rel=1e-5)
    assert not found.rank_one


def test_factors_of_one_direction_diverge_in_it() -> None:
    """query and projection a on x_1, key and value a on the label's channel: all four grow as a' = kappa a^3."""
    a, first, label = 0.1, np.eye(4)[0], np.eye(4)[3]
    factors = {
        "query": a * np.outer(first, first)[:, None],
        "key": a * np.outer(label, first)[:, None],
        "value": a * np.outer(first, label)[:, None],
        "projection": -a * np.outer(label, label)[None],
    }
    found = plateau.factors_escape(factors, DATA, 1.0)
    assert found.step == pytest.approx(1 / (2 * plateau.coupling(DATA) * a**2), rel=1e-5)
    assert found.rank_one


def test_the_learnt_loss_is_below_zeros() -> None:
    """Of D = N = 10 uniform inputs, 0.2062, as gradient descent with step .606 has."""
    data = DataConfig()
    assert plateau.least_loss(data) == pytest.approx(0.2062, abs=2e-4)
