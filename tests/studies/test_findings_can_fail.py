"""Each finding of the order and noise study fails on a table whose numbers do not bear it out."""

from collections.abc import Callable
from typing import NamedTuple

import pandas as pd
import pytest

from icl_lab.studies.contrast import by_name, results
from icl_lab.studies.order_noise.findings import FINDINGS
from icl_lab.studies.order_noise.measures import CONTRASTS
from icl_lab.studies.order_noise.table import read_cells
from tests.studies.test_order_noise import FOLDER

LOSSES = ["test_loss", "test_loss_ratio"]


class Change(NamedTuple):
    """Rows of the table, columns in them, what is made of these (0 times a word is none), and what then must fail."""

    rows: Callable[[pd.DataFrame], pd.Series]
    columns: list[str]
    factor: float
    shift: float | str
    findings: set[str]


def noisy(table: pd.DataFrame, context: str) -> pd.Series:
    return table[f"{context}_noise_mode"] != "clean"


def ordered(table: pd.DataFrame, context: str) -> pd.Series:
    return table[f"{context}_ordering"] != "random"


def placed(table: pd.DataFrame, context: str) -> pd.Series:
    return noisy(table, context) & (table[f"{context}_placement"] != "mixed")


def of(model: str) -> Callable[[pd.DataFrame], pd.Series]:
    return lambda table: table["model"] == model


CHANGES = {
    "lsa1 worse in other orders": Change(
        lambda t: of("lsa1")(t) & ordered(t, "eval"), LOSSES, 1.001, 0, {"order_lsa1"}
    ),
    "lsa1_pe worse in other orders": Change(
        lambda t: of("lsa1_pe")(t) & ordered(t, "eval") & ~ordered(t, "train"), LOSSES, 1.02, 0, {"order_lsa1_pe"}
    ),
    "twolayer worse in other orders": Change(
        lambda t: of("twolayer")(t) & ordered(t, "eval") & ~ordered(t, "train"),
        LOSSES,
        1.2,
        0,
        {"order_twolayer", "order_times_noise", "order_alone"},
    ),
    "linear layers worse trained in other orders": Change(
        lambda t: ~of("twolayer")(t) & ordered(t, "train"), LOSSES, 1.02, 0, {"curriculum_linear"}
    ),
    "twolayer learns no order": Change(
        lambda t: of("twolayer")(t) & ordered(t, "train") & ordered(t, "eval"),
        LOSSES,
        1.15,
        0,
        {"curriculum_twolayer", "learns_the_order"},
    ),
    "curricula help": Change(
        lambda t: ordered(t, "train") & ~ordered(t, "eval"), LOSSES, 0.8, 0, {"unsupported_curriculum"}
    ),
    "lsa1 is not gradient descent": Change(of("lsa1"), LOSSES, 1.02, 0, {"sanity"}),
    "a clean run that has not trained": Change(
        lambda t: of("lsa1")(t) & ~noisy(t, "train") & ~ordered(t, "train") & (t["seed"] == t["seed"].min()),
        ["trained"],
        0,
        "false",
        {"plateau"},
    ),
    "lsa1 worse than gradient descent on noise": Change(
        lambda t: of("lsa1")(t) & ~noisy(t, "train") & noisy(t, "eval"),
        LOSSES,
        1.03,
        0,
        {"noise_is_gd", "noise_does_not_grow", "noise_like_descent"},
    ),
    "most noise costs least": Change(
        lambda t: noisy(t, "eval") & (t["eval_p"] == 0.5), LOSSES, 0.5, 0, {"noise_growth"}
    ),
    "no better than the Bayesian": Change(
        lambda t: noisy(t, "eval"), ["test_mask_bayes_loss"], 3, 0, {"far_from_bayes"}
    ),
    "steps that do not move": Change(
        lambda t: noisy(t, "train"), ["eval_slope"], 0, 1, {"noise_training", "shorter_steps"}
    ),
    "trained on noise lsa1 is worse than gradient descent": Change(
        lambda t: of("lsa1")(t) & noisy(t, "train") & noisy(t, "eval"),
        LOSSES,
        1.03,
        0,
        {"noise_training_loss"},
    ),
    "training on noise does not pay": Change(
        lambda t: noisy(t, "train") & noisy(t, "eval"), LOSSES, 1.05, 0, {"noise_training_pays"}
    ),
    "training on noise pays when clean": Change(
        lambda t: noisy(t, "train") & ~noisy(t, "eval"), LOSSES, 0.9, 0, {"noise_training_cost"}
    ),
    "influence separates": Change(
        lambda t: of("twolayer")(t) & noisy(t, "eval"),
        ["auroc"],
        1,
        0.15,
        {"attention", "position_artefact", "unsupported_attention", "no_detection"},
    ),
    "influence separates once trained on noise": Change(
        lambda t: noisy(t, "train"), ["auroc"], 1, 0.02, {"attention_after_training"}
    ),
    "the copying layer separates": Change(
        lambda t: of("twolayer")(t), ["auroc_first_abs_contribution"], 1, 0.05, {"copying_layer"}
    ),
    "placement at evaluation matters": Change(
        lambda t: of("twolayer")(t) & ~noisy(t, "train") & placed(t, "eval"), LOSSES, 1.02, 0, {"placement_evaluation"}
    ),
    "placement in training matters to lsa1_pe": Change(
        lambda t: of("lsa1_pe")(t) & placed(t, "train"), LOSSES, 1.02, 0, {"placement_trained"}
    ),
}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return read_cells(FOLDER)


def failing(table: pd.DataFrame) -> set[str]:
    rows = by_name(results(table, CONTRASTS))
    return {name for name, finding in FINDINGS.items() if not finding(rows, table)[1]}


def test_they_hold_on_the_table(table: pd.DataFrame) -> None:
    assert failing(table) == set()


@pytest.mark.parametrize("name", CHANGES)
def test_they_fail_on_one_that_does_not_bear_them_out(table: pd.DataFrame, name: str) -> None:
    change = CHANGES[name]
    rows = change.rows(table)
    assert rows.any()
    changed = table.copy()
    changed.loc[rows, change.columns] = change.factor * table.loc[rows, change.columns] + change.shift
    assert change.findings <= failing(changed)


def test_no_finding_is_left_out() -> None:
    assert set().union(*(change.findings for change in CHANGES.values())) == set(FINDINGS)
