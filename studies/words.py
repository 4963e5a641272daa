"""The words of verdicts, the same for claims, contrasts, predictions and conjectures, and what each means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

REPRODUCED, AS_PREDICTED, CONTRADICTED, NO_EFFECT = "reproduced", "as predicted", "contradicted", "no effect"
HIGHER, LOWER = "higher", "lower"  # a contrast's difference has a direction
TWO_KINDS, UNDECIDED, UNINFORMATIVE = "two kinds", "undecided", "uninformative"
PROVISIONAL, OTHER_SCALE, NOT_RUN = "provisional", "not at the paper's scale", "not run"

# in the order of tables: a legend for those that a table has
MEANINGS = {
    REPRODUCED: "the interval over seeds lies inside the range of a paper's claim",
    AS_PREDICTED: "the interval lies inside the range that a theory gives, or that we expected ourselves",
    CONTRADICTED: "the interval lies wholly outside the range",
    NO_EFFECT: "the interval lies inside the range that was fixed in advance as no effect",
    HIGHER: "a contrast's treated are above its control: a paired t test at 5 % after Holm's correction",
    LOWER: "a contrast's treated are below its control, by the same test",
    TWO_KINDS: "runs fall into two groups; their mean describes neither, so the runs in each are counted",
    UNDECIDED: "the interval lies across an edge of the range, or a number that is needed cannot be computed",
    UNINFORMATIVE: "something else would pass too: the rival's interval overlaps the range, or the rival cannot be "
    "distinguished from the model, or untrained networks lie in the range",
    PROVISIONAL: "the numbers give a verdict, but from fewer than 8 seeds",
    OTHER_SCALE: "the numbers give a verdict, but from smaller models, less data or shorter training than the paper's",
    NOT_RUN: "its runs have not been trained",
}
VERDICTS = tuple(MEANINGS)
HOLDS = (REPRODUCED, AS_PREDICTED)  # the claim is true as far as the numbers say
DECIDED = (*HOLDS, CONTRADICTED, NO_EFFECT, HIGHER, LOWER, TWO_KINDS)  # what too few seeds make provisional

MAIN_SEEDS = 8  # below which a verdict is provisional: at n = 3 a quarter of studies see one of two kinds alone


def of_few_seeds(verdict: str, n: int) -> str:
    """A verdict that numbers of n seeds give, provisional below 8."""
    return PROVISIONAL if verdict in DECIDED and n < MAIN_SEEDS else verdict


def words_of(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """The words in a table's columns of verdicts, and of what the numbers say."""
    return {str(row[column]) for row in rows for column in ("verdict", "reading_says")}


def legend(verdicts: Iterable[str]) -> dict[str, str]:
    """The meanings of the verdicts that a table has, in the order of all."""
    there = set(verdicts)
    return {word: meaning for word, meaning in MEANINGS.items() if word in there}
