"""Answers at finite nbeta: quadrature against closed forms and SciPy, HMC against quadrature, the committed table."""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate

from icl_lab.analysis.llc.validation import hmc, known
from icl_lab.analysis.llc.validation.models import made
from icl_lab.analysis.llc.validation.quadrature import Axis, even_axis, integrated, log_axis, radial, rank_regression
from icl_lab.analysis.llc.validation.targets import ASKED, TABLE, Target, answer, of_quadratic, read, targets
from icl_lab.src.checks import ConfigError

COLD = 1e4
SLOW = ("line_and_dot", "sphere", "relu_unit")  # quadratures of seconds


@pytest.mark.parametrize("powers", [(0, 1), (1, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("nbeta", [30.0, 1e4])
def test_crossings_by_another_quadrature(powers: tuple[int, int], nbeta: float) -> None:
    found = integrated(made(f"crossing{powers}"), nbeta, 1.0, log_axis)
    assert found.value == pytest.approx(known.crossing(powers, nbeta, 1.0), rel=1e-9)
    assert found.error < 1e-9


@pytest.mark.parametrize(
    ("nbeta", "gamma", "value"),
    [(1e10, 1.0, 0.25), (1e4, 10.0, 0.452), (1e10, 10.0, 0.298), (1e10, 100.0, 0.5)],
)
def test_off_the_origin_the_limit_at_one_gamma_is_the_global_coefficient(
    nbeta: float, gamma: float, value: float
) -> None:
    """w1^4 w2^2 at (1, 0), of local coefficient 1/2 and global 1/4; values to three digits."""
    found = answer("crossing(2, 1, (1.0, 0.0))", "quadrature", nbeta, gamma)
    assert found.value == pytest.approx(value, abs=6e-4)


def test_off_the_origin_by_scipy() -> None:
    """w1^4 w2^2 around (1, 0): w2 is normal of precision gamma + 2 nbeta w1^4."""
    nbeta, gamma = 1e4, 10.0

    def weight(w: float) -> float:
        return math.exp(-0.5 * gamma * (w - 1) ** 2) / math.sqrt(gamma + 2 * nbeta * w**4)

    ends = {"epsabs": 1e-14, "points": [-0.1, 0.0, 0.1], "limit": 200}
    top = integrate.quad(lambda w: nbeta * w**4 * weight(w) / (gamma + 2 * nbeta * w**4), -2, 4, **ends)[0]
    expected = top / integrate.quad(weight, -2, 4, **ends)[0]
    assert answer("crossing(2, 1, (1.0, 0.0))", "quadrature", nbeta, gamma).value == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("axis_of", [partial(even_axis, points=601), partial(log_axis, points=1001)])
def test_a_quadratic_by_quadrature(axis_of: Callable[[float, float], Axis]) -> None:
    model = made("quadratic((1.0, 30.0))")
    found = integrated(model, 100.0, 7.0, axis_of)
    assert found.value == pytest.approx(known.quadratic(np.array([1.0, 30.0]), 100.0, 7.0), rel=1e-9)


def test_quadratures_of_many_dimensions() -> None:
    """A quadratic of ten weights by its radius; the well near its bottom and at its rim, where it is nbeta L_null."""
    ten = made(f"quadratic({(1.0,) * 10})")
    assert radial(ten, 100.0, 10.0).value == pytest.approx(5 * 100 / 110, rel=1e-9)
    assert radial(made("well(10)"), 1e8, 1.0).value == pytest.approx(5.0, rel=1e-4)
    assert radial(made("well(10)"), 10.0, 0.01).value == pytest.approx(10.0, rel=1e-6)
    four, one = (answer(f"powers(3, {count})", "quadrature", 145.0, 1.0).value for count in (4, 1))
    assert four == pytest.approx(4 * one)
    with pytest.raises(ConfigError, match="for one or two"):
        integrated(ten, 100.0, 10.0, even_axis)
    with pytest.raises(ConfigError, match="for the origin"):
        radial(made("sphere(3)"), 100.0, 10.0)


def test_matrices_by_their_eigenvalues() -> None:
    """|b a|^2 of numbers is the crossing (1, 1); a fine grid agrees; a chain of inputs and outputs is symmetric."""
    one = rank_regression(1, 1, 1, 145.0, 1.0)
    assert one.value == pytest.approx(known.crossing((1, 1), 145.0, 1.0), rel=1e-5)
    coarse, fine = (rank_regression(5, 3, 5, COLD, 1.0, points) for points in (241, 481))
    assert coarse.value == pytest.approx(fine.value, abs=1e-4)
    assert abs(coarse.value - 6.33) < 0.04  # an independent sampler's value and its error
    assert rank_regression(4, 3, 8, COLD, 10.0) == rank_regression(8, 3, 4, COLD, 10.0)
    with pytest.raises(ConfigError, match="three at most"):
        rank_regression(5, 4, 5, COLD, 10.0)


def test_matrices_in_the_limit() -> None:
    """lambda - (m - 1) / (log nbeta + c): at two large nbeta one 1 / log apart, and at multiplicity 1 lambda itself."""
    assert rank_regression(7, 2, 4, 1e12, 1.0).value == pytest.approx(4.0, rel=1e-3)
    near, far = (rank_regression(5, 3, 5, nbeta, 1.0).value for nbeta in (1e6, 1e12))
    spread = 1 / (6.5 - far) - 1 / (6.5 - near)
    assert spread == pytest.approx(math.log(1e6), rel=0.02)


@pytest.mark.parametrize(
    ("formula", "nbeta", "gamma", "exact"),
    [
        ("quadratic((1.0, 10.0, 0.0))", 100.0, 100.0, known.quadratic(np.array([1.0, 10.0, 0.0]), 100.0, 100.0)),
        ("crossing(1, 2)", 145.0, 1.0, 0.2095454),
        ("deep_linear((2, 2, 2), 0)", 100.0, 3.0, rank_regression(2, 2, 2, 100.0, 3.0).value),
        ("deep_linear((4, 3, 8), 0)", 1e3, 10.0, rank_regression(4, 3, 8, 1e3, 10.0).value),
    ],
)
def test_hmc_is_quadrature(formula: str, nbeta: float, gamma: float, exact: float) -> None:
    """Within four standard errors, of which one is at most 3 % of the answer; proposals are accepted as tuned."""
    model = made(formula)
    drawn = hmc.sampled(model, nbeta, gamma, chains=128, draws=150)
    means = nbeta * drawn.excess.mean(axis=1)
    error = means.std(ddof=1) / math.sqrt(len(means))
    assert error < 0.03 * exact
    assert means.mean() == pytest.approx(exact, abs=4 * error)
    assert 0.65 < drawn.acceptance.mean() < 0.95
    halves = [nbeta * half.mean(axis=1) for half in np.array_split(drawn.excess, 2, axis=1)]
    moved = halves[1] - halves[0]
    assert abs(moved.mean()) < 4 * moved.std(ddof=1) / math.sqrt(len(moved))


def test_a_chain_with_a_weak_pull_reaches_the_global_value() -> None:
    """(5, 3, 5) at A = 0, B = I, of local coefficient 7.5: 7.40 at gamma 100; 6.30 at gamma 10, 1.54 from w*."""
    model = made("generic((5, 3, 5), 0)")
    near, far = (hmc.sampled(model, COLD, gamma, chains=32, draws=100) for gamma in (100.0, 10.0))
    assert COLD * near.excess.mean() == pytest.approx(7.40, abs=0.3)  # four standard errors
    assert COLD * far.excess.mean() == pytest.approx(6.30, abs=0.3)
    assert far.distance.mean() == pytest.approx(1.54, abs=0.05)


def test_closed_forms() -> None:
    """Off a minimum the slope counts; least squares has the eigenvalues of 2 x'x / n."""
    steep = of_quadratic(made(f"quadratic({(1.0,) * 10}, 0.1)"), 1e3, 1e3)
    assert steep == pytest.approx(known.quadratic(np.ones(10), 1e3, 1e3, slopes=np.full(10, 0.1)), rel=1e-6)
    model = made("regression(1000, 10)")
    h = np.linalg.eigvalsh(2 * model.data[0].T @ model.data[0] / 1000)
    assert of_quadratic(model, 144.8, 1.0) == pytest.approx(known.quadratic(h, 144.8, 1.0), rel=1e-6)
    with pytest.raises(ConfigError, match="has no closed form"):
        answer("sphere(2)", "closed form", 100.0, 1.0)
    with pytest.raises(ConfigError, match="ask for HMC"):
        answer("deep_linear((3, 3, 3), 1)", "quadrature", 100.0, 1.0)


# --- the committed table ---


@pytest.fixture(scope="module")
def table(root: Path) -> dict[tuple[str, float, float], Target]:
    return {(row.formula, row.nbeta, row.gamma): row for row in read(root / "docs/llc" / TABLE)}


def test_the_table_has_what_is_asked(table: dict[tuple[str, float, float], Target]) -> None:
    assert list(table) == [(formula, nbeta, gamma) for formula, _, nbeta, gamma in ASKED]
    for formula, by, nbeta, gamma in ASKED:
        row, model = table[formula, nbeta, gamma], made(formula)
        assert (row.model, row.by, row.parameters) == (model.name, by, len(model.point))
        assert (row.lambda_global, row.multiplicity) == pytest.approx((model.whole.value, model.local.multiplicity))
        assert row.lambda_local == pytest.approx(model.local.value, nan_ok=True)
        assert row.gap == pytest.approx(row.answer / row.lambda_local - 1, abs=2e-3, nan_ok=True)
        assert row.answer_error <= (0.012 if by == "HMC" and len(model.point) > 10 else 0.03) * abs(row.answer)


def test_the_table_is_of_todays_functions(table: dict[tuple[str, float, float], Target]) -> None:
    cheap = [asked for asked in ASKED if asked[1] != "HMC" and not asked[0].startswith(SLOW)]
    assert len(cheap) > 40
    for row in targets(cheap):
        committed = table[row.formula, row.nbeta, row.gamma]
        assert row.answer == pytest.approx(committed.answer, rel=1e-5)


def test_facts_that_the_table_reproduces(table: dict[tuple[str, float, float], Target]) -> None:
    """Values found by others, to the digits or the errors that they are given with."""
    for (formula, nbeta, gamma), value, within in (
        (("crossing(1, 2)", 1e4, 1.0), 0.236, 5e-4),
        (("quartic(0.001)", 1e4, 0.1), 0.258, 5e-4),
        (("generic((5, 3, 5), 0)", 1e4, 100.0), 7.40, 0.15),
        (("generic((5, 3, 5), 0)", 1e4, 10.0), 6.30, 0.12),
        (("deep_linear((5, 3, 5), 0)", 1e4, 1.0), 6.33, 0.04),
        (("well(10)", 10.0, 0.01), 10.0, 1e-4),
    ):
        assert table[formula, nbeta, gamma].answer == pytest.approx(value, abs=within), formula


def test_no_table_of_targets(tmp_path: Path) -> None:
    (tmp_path / TABLE).write_text("a,b\n1,2\n")
    with pytest.raises(ConfigError, match="is not a table of targets"):
        read(tmp_path / TABLE)
