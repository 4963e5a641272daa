"""The validation of the LLC estimator in its quick form, its reference sampler, and what wrong estimators give."""

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from icl_lab.analysis.llc import cases as cases
from icl_lab.analysis.llc import known
from icl_lab.analysis.llc import validation as validation
from icl_lab.analysis.llc.cases import hessian_eigenvalues, reference
from icl_lab.analysis.llc.checks import Check, Known, in_nbeta, moving
from icl_lab.analysis.llc.wrong_estimators import Wrong, wrong_estimators
from icl_lab.scripts import llc_validation as command
from tests.doors import Refused, ran, refused

__all__ = ["ran", "refused"]


@pytest.mark.parametrize("section", ["quadratic", "rescaling"])
def test_the_first_case_of_a_section_meets_its_target(section: str) -> None:
    assert [check for check in next(validation.SECTIONS[section]()) if not check.met] == []


@pytest.mark.slow
@pytest.mark.parametrize("section", ["coverage", "crossing", "matrices", "by rank", "to infinite nbeta"])
def test_the_first_case_of_a_slower_section_meets_its_target(section: str) -> None:
    checks = next(validation.SECTIONS[section]())
    assert checks
    assert [check for check in checks if not check.met] == []


def test_hmc_has_the_closed_form_without_a_bias_in_eps() -> None:
    h, nbeta, gamma = np.array([1.0, 10.0, 0.0]), 100.0, 100.0
    drawn = reference(cases.quadratic(h), nbeta, gamma, chains=64, burn_in=60, draws=100)
    means = nbeta * np.asarray(drawn.excess, np.float64).mean(axis=1)
    error = means.std(ddof=1) / math.sqrt(len(means))
    assert error < 0.03
    assert means.mean() == pytest.approx(known.quadratic(h, nbeta, gamma), abs=4 * error)
    assert 0.7 < np.mean(drawn.acceptance) < 0.98  # tuned to .8


def test_targets() -> None:
    exact = Known(2.0, "closed form", within=0.1)
    assert exact.meets(2.1, error=0.05)
    assert not exact.meets(2.1, error=0.03)  # beyond three standard errors
    assert not exact.meets(2.3, error=1.0)
    assert exact._replace(errors=math.inf).meets(1.81)
    assert Known(-30.0, "closed form", within=0.1).meets(-28.0, error=1.0)


def test_the_limit_in_nbeta_is_a_line_in_one_over_log_nbeta() -> None:
    nbetas, rng = (1e2, 1e3, 1e4), np.random.default_rng(1)
    noise = 1e-6 * rng.standard_normal((6, 80))
    still = [0.5 - 0.4 / math.log(nbeta) + noise for nbeta in nbetas]
    means, moved = in_nbeta(nbetas, still)
    assert means == pytest.approx(np.full(6, 0.5), abs=1e-4)
    assert moving(moved) == ""
    drifting = [*still[:2], still[2] + np.linspace(0, 1e-3, 80) * rng.uniform(1, 2, (6, 1))]
    assert moving(in_nbeta(nbetas, drifting)[1]).startswith("not mixed: +")


@pytest.mark.parametrize(("widths", "rank"), [((4, 3, 5), 2), ((3, 4, 2, 3), 1)])
def test_solutions_of_matrices_are_solutions(widths: tuple[int, ...], rank: int) -> None:
    """L = 0 at w*, the target has its rank, and off it the loss is that of NumPy's product."""
    case = cases.deep_linear(widths, rank)
    assert float(case.losses(case.centre, case.tasks)[0]) == 0.0
    assert np.linalg.matrix_rank(case.tasks[0]) == rank
    assert case.null_loss == rank
    moved = float(case.losses(case.centre + np.float32(0.1), case.tasks)[0])
    ends = np.cumsum([a * b for a, b in pairwise(widths)])[:-1]
    parts = np.split(case.centre + 0.1, ends)
    matrices = [part.reshape(b, a) for part, (a, b) in zip(parts, pairwise(widths), strict=True)]
    product = np.linalg.multi_dot(matrices[::-1])
    assert moved == pytest.approx(np.sum((product - case.tasks[0]) ** 2), rel=1e-5)


def test_a_rescaled_unit_has_the_curvature_that_its_value_is_compared_with() -> None:
    case = cases.relu_unit(4.0)
    assert hessian_eigenvalues(case)[-1] == pytest.approx(2 * case.null_loss * (16 + 1 / 16), rel=1e-4)


@pytest.fixture(scope="module")
def wrong() -> dict[str, Wrong]:
    return {row.estimator: row for row in wrong_estimators()}


@pytest.mark.slow
def test_wrong_estimators_give_what_they_have_to(wrong: dict[str, Wrong]) -> None:
    for row in wrong.values():
        half = (row.high - row.low) / 2
        assert abs(row.estimate - row.expected) <= max(2 * half, 0.02 * abs(row.expected)), row


@pytest.mark.slow
def test_wrong_estimators_are_wrong(wrong: dict[str, Wrong]) -> None:
    right = wrong["a chain, paired, nbeta of the data"]
    assert right.low < right.right < right.high
    unpaired = wrong["new batches each time, unpaired"]
    assert unpaired.high - unpaired.low > 2 * (right.high - right.low)
    for row in wrong.values():
        if row not in (right, unpaired):
            assert not row.low <= row.right <= row.high, row
    assert wrong["a saturated setting"].reasons.startswith("saturated")


def test_the_tables_and_who_may_replace_them(tmp_path: Path, refused: Refused) -> None:
    check = Check("quadratic", "h = 1", 0.5, "closed form", 0.03, 0.51, 0.5, 0.52, True, "", 0.5, 1e-4, 100.0)
    missed = check._replace(case="h = 2", met=False, reasons="not mixed: R-hat is 1.3")
    row = Wrong("no nbeta", 5.0, 0.05, 0.051, 0.05, 0.052, "no chain", "it falls as 1 / nbeta")
    command.write(tmp_path, [check, missed], [row])
    page = (tmp_path / command.PAGE).read_text()
    assert "| quadratic | h = 1 | 0.5 | 0.5 (closed form) | 0.51 [0.5, 0.52] | +2.0% | 3% |" in page
    assert "| not mixed: R-hat is 1.3 | **missed** |" in page
    assert "| no nbeta | 5 | 0.05 | 0.051 [0.05, 0.052] | no chain | it falls as 1 / nbeta |" in page
    command.write(tmp_path, [check], [row])  # its own files
    (tmp_path / command.TABLE).write_text("mine")
    said = refused("scripts.llc_validation", "--quick", "--out", tmp_path)
    assert "validation.csv was not written by scripts.llc_validation, or has been changed since" in said


def test_the_committed_tables_are_of_todays_cases(root: Path) -> None:
    """All targets of the full validation, each golden value and ten further shapes among them."""
    import pandas as pd

    table = pd.read_csv(root / "docs/llc" / command.TABLE)
    assert set(table["section"]) == {*validation.SECTIONS, "matrices, HMC", "matrices, SGLD", "matrices, lambda"} - {
        "matrices"
    }
    shapes = [cases.deep_linear(shape.widths, shape.rank).name for shape in validation.GOLDEN + validation.FURTHER]
    assert len(set(shapes)) == 19
    assert set(table[table["section"] == "matrices, SGLD"]["case"]) == set(shapes)
    for case, section in table[table["section"] == "matrices, lambda"].groupby("case"):
        widths, rank = str(case).strip("(").split("), rank ")
        exact = known.deep_linear([int(width) for width in widths.split(",")], int(rank)).value
        assert section["known"].item() == pytest.approx(exact), case
        assert abs(section["estimate"].item() / exact - 1) <= 0.1, case
