"""The validation of the LLC estimator in its quick form, its traps, and what wrong estimators give."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from icl_lab.analysis.llc.settings import Settings
from icl_lab.analysis.llc.validation import cases as cases
from icl_lab.analysis.llc.validation import known
from icl_lab.analysis.llc.validation import sections as validation
from icl_lab.analysis.llc.validation.cases import chain_means, estimate, hessian_eigenvalues
from icl_lab.analysis.llc.validation.checks import (
    Answers,
    Found,
    Steps,
    judged,
    known_answer,
    meets,
    near_lambda,
    with_verdict,
)
from icl_lab.analysis.llc.validation.limits import in_nbeta, moving
from icl_lab.analysis.llc.validation.models import made
from icl_lab.analysis.llc.validation.quadrature import Answer
from icl_lab.analysis.llc.validation.targets import ASKED, read
from icl_lab.analysis.llc.validation.traps import TRAPS, traps
from icl_lab.analysis.llc.validation.wrong_estimators import Wrong, wrong_estimators
from icl_lab.scripts import llc_validation as command
from icl_lab.src.checks import ConfigError
from tests.doors import Refused, ran, refused
from tests.verdicts.values import NOT_FINITE

__all__ = ["ran", "refused"]

STEPS = Steps(1e-4, 100.0, 10.0, 4)


@pytest.fixture(scope="module")
def answers(root: Path) -> Answers:
    return {(row.formula, row.nbeta, row.gamma): row for row in read(root / "docs/llc/targets.csv")}


@pytest.mark.parametrize("section", ["quadratic", "rescaling"])
def test_the_first_case_of_a_section_meets_its_target(section: str, answers: Answers) -> None:
    assert [check for check in next(validation.SECTIONS[section](answers)) if not check.met] == []


@pytest.mark.slow
@pytest.mark.parametrize("section", sorted({*validation.SECTIONS} - {"quadratic", "rescaling", "traps"}))
def test_the_first_case_of_a_slower_section_meets_its_target(section: str, answers: Answers) -> None:
    checks = next(validation.SECTIONS[section](answers))
    assert checks
    assert [check for check in checks if not check.met] == []


@pytest.mark.slow
def test_a_rule_gets_no_trap_wrong(answers: Answers) -> None:
    """Each of the cases has one of the verdicts that are right for it, and where that is a number the right one."""
    checks = [check for (check,) in traps(answers)]
    assert len(checks) == len(TRAPS)
    assert [check for check in checks if not check.met] == []


def test_what_is_validated_has_answers(answers: Answers) -> None:
    """Every formula that a section asks for is in the table of targets, and so is every trap's."""
    asked = {(formula, nbeta, gamma) for formula, _, nbeta, gamma in ASKED}
    assert {(trap.formula, trap.steps.nbeta, trap.steps.gamma) for trap in TRAPS} <= asked
    shapes = validation.MATRICES + validation.FURTHER
    assert {(shape.formula, validation.COLD, shape.gamma) for shape in shapes} <= asked
    assert len({shape.formula for shape in shapes}) == len(shapes)
    with pytest.raises(ConfigError, match="the targets have no sphere"):
        known_answer(answers, "sphere(3)", 1.0, 1.0)


def test_hmc_has_the_closed_form_without_a_bias_in_eps() -> None:
    h, nbeta, gamma = np.array([1.0, 10.0, 0.0]), 100.0, 100.0
    settings = Settings(1e-4, nbeta, gamma, data="full", sampler="hmc", chains=64, burn_in=60, draws=100)
    row, traces = estimate(cases.quadratic(h), settings)
    means = chain_means(traces, settings)
    error = means.std(ddof=1) / math.sqrt(len(means))
    assert error < 0.03
    assert row["llc"] == pytest.approx(known.quadratic(h, nbeta, gamma), abs=4 * error)
    assert 0.7 < row["acceptance"] < 0.98  # tuned to .8


def test_targets() -> None:
    exact = Answer(2.0, 0.0)
    assert meets(2.1, 0.05, exact, within=0.1)
    assert not meets(2.1, 0.03, exact, within=0.1)  # beyond three standard errors
    assert meets(2.1, 0.03, exact._replace(error=0.02), within=0.1)  # of both together
    assert not meets(2.3, 1.0, exact, within=0.1)
    assert meets(-28.0, 1.0, Answer(-30.0, 0.0), within=0.1)


@pytest.mark.parametrize("value", NOT_FINITE)
def test_no_target_is_met_by_what_is_not_computed(value: float) -> None:
    exact, model = Answer(2.0, 0.0), made("quadratic((1.0, 1.0, 1.0, 1.0))")
    assert meets(2.0, 0.1, exact, within=0.1)
    assert not meets(value, 0.1, exact, within=0.1)
    assert not meets(2.0, value, exact, within=0.1)
    assert not meets(2.0, 0.1, Answer(value, 0.0), within=0.1)
    assert judged("", model, STEPS, Found(np.array([2.0, 2.0]), "LLC", ""), exact).met
    assert not judged("", model, STEPS, Found(np.array([2.0, value]), "LLC", ""), exact).met
    assert moving(value).startswith("not mixed")


def test_a_verdict_that_is_wrong_or_a_number_that_is_far_misses_a_trap() -> None:
    model, answer = made("quadratic((1.0, 1.0, 1.0, 1.0))"), Answer(2.0, 0.0)
    near, far = (judged("", model, STEPS, Found(np.array([at, at]), "LLC", ""), answer) for at in (2.02, 2.2))
    assert with_verdict(near, "LLC").met
    assert not with_verdict(near, "undecided").met
    assert not with_verdict(far, "LLC").met
    assert with_verdict(far._replace(verdict="none"), "none").met  # there is no number where the verdict is that


def test_of_lambda_a_tenth_is_asked_where_the_answer_allows_it() -> None:
    model = made("deep_linear((7, 3, 5), 2)")  # 11.5, of multiplicity 1
    assert near_lambda(model, Answer(11.4, 0.1), 11.0) == "met"
    assert near_lambda(model, Answer(11.4, 0.1), 10.3) == "missed"
    assert near_lambda(model, Answer(10.8, 0.1), 10.3) == "not asked: gap -6%"
    assert near_lambda(made("deep_linear((5, 3, 5), 0)"), Answer(6.2, 0.1), 1.0) == "not asked: multiplicity 2"
    assert near_lambda(made("saddle()"), Answer(-23.0, 0.1), 1.0) == "not asked: no lambda"
    far = Found(np.array([10.2, 10.3, 10.4, 10.3]), "LLC", "")
    assert not judged("", model, STEPS, far, Answer(11.0, 1.0), within=0.1).met  # near its answer, not near lambda


def test_the_limit_in_nbeta_is_a_line_in_one_over_log_nbeta() -> None:
    nbetas, rng = (1e2, 1e3, 1e4), np.random.default_rng(1)
    noise = 1e-6 * rng.standard_normal((6, 80))
    still = [0.5 - 0.4 / math.log(nbeta) + noise for nbeta in nbetas]
    means, moved = in_nbeta(nbetas, still)
    assert means == pytest.approx(np.full(6, 0.5), abs=1e-4)
    assert moving(moved) == ""
    drifting = [*still[:2], still[2] + np.linspace(0, 1e-3, 80) * rng.uniform(1, 2, (6, 1))]
    assert moving(in_nbeta(nbetas, drifting)[1]).startswith("not mixed: +")


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
    assert unpaired.high - unpaired.low > 2 * (right.high - right.low)  # 2.5 times, by the closed forms
    for row in wrong.values():
        if row not in (right, unpaired):
            assert not row.low <= row.right <= row.high, row
    assert wrong["a saturated setting"].reasons.startswith("saturated")


def test_the_tables_and_who_may_replace_them(tmp_path: Path, refused: Refused) -> None:
    check = judged(
        "quadratic",
        made("quadratic((1.0,))"),
        STEPS,
        Found(np.full(4, 0.51), "LLC", ""),
        Answer(0.5, 0.0, "closed form"),
    )
    missed = check._replace(case="h = 2", met=False, verdict="none", reasons="not mixed: R-hat is 1.3")
    row = Wrong("no nbeta", 5.0, 0.05, 0.051, 0.05, 0.052, "no chain", "it falls as 1 / nbeta")
    command.write(tmp_path, [check, missed], [row])
    page = (tmp_path / command.PAGE).read_text()
    assert "| quadratic | quadratic, h = 1 (1 times) | 0.5 | 0.5 (closed form) | +0.0% | 0.51 [0.51, 0.51] |" in page
    assert "| **missed** | none: not mixed: R-hat is 1.3 | sgld; 100, 10, 0.0001, 4, 1.6e+04 |" in page
    assert "| no nbeta | 5 | 0.05 | 0.051 [0.05, 0.052] | no chain | it falls as 1 / nbeta |" in page
    command.write(tmp_path, [check], [row])  # its own files
    (tmp_path / command.TABLE).write_text("mine")
    said = refused("scripts.llc_validation", "--quick", "--out", tmp_path)
    assert "validation.csv was not written by scripts.llc_validation, or has been changed since" in said


# --- the committed table ---


@pytest.fixture(scope="module")
def table(root: Path) -> pd.DataFrame:
    """All targets of the full validation."""
    return pd.read_csv(root / "docs/llc" / command.TABLE, keep_default_na=False, na_values=[""])


def test_the_committed_table_is_of_todays_cases(table: pd.DataFrame, answers: Answers) -> None:
    shapes = {"matrices": validation.MATRICES, "further matrices": validation.FURTHER}
    for section, expected in shapes.items():
        rows = table[table["section"] == section]
        assert list(rows["case"]) == [made(shape.formula).name for shape in expected]
        for shape, row in zip(expected, rows.itertuples(), strict=True):
            target = answers[shape.formula, validation.COLD, shape.gamma]
            assert row.answer == pytest.approx(target.answer)
            assert row.coefficient == pytest.approx(target.lambda_local)
            assert row.gap == pytest.approx(target.answer / target.lambda_local - 1)
            assert abs(row.estimate / row.answer - 1) <= 0.05, row
    assert {*validation.SECTIONS} <= {*table["section"]}
    assert set(table["sampler"]) == {"sgld", "rmsprop", "sghmc", "hmc"}


def test_twelve_further_shapes_are_near_lambda_too(table: pd.DataFrame) -> None:
    rows = table[(table["section"] == "further matrices") & (table["of_lambda"] == "met")]
    assert rows["case"].nunique() >= 12
    assert ((rows["estimate"] / rows["coefficient"] - 1).abs() <= 0.1).all()
