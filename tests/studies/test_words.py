"""One vocabulary of verdicts: in every table of results, with a legend for the words that a table has."""

from pathlib import Path

import pandas as pd
import pytest

from icl_lab.studies import ledger
from icl_lab.studies.words import DECIDED, MEANINGS, PROVISIONAL, UNDECIDED, VERDICTS, legend, of_few_seeds, words_of
from tests.runners.tiny import ROOT

REPORT = ROOT / "report"
COLUMNS = ("verdict", "reading_says")
TABLES = [
    path
    for path in sorted(REPORT.rglob("*.csv"))
    if set(COLUMNS) & {*path.read_text("utf-8").split("\n")[0].split(",")}
]


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_verdict_in_a_table_of_results_is_a_word_of_the_vocabulary(path: Path) -> None:
    table = pd.read_csv(path)
    for column in COLUMNS:
        assert set(table[column]) <= set(VERDICTS)
    same = table["verdict"] == table["reading_says"]
    assert set(table.loc[~same, "reading_says"]) <= {*DECIDED, UNDECIDED}
    assert table.loc[table["verdict"] == PROVISIONAL, "reading_says"].isin(DECIDED).all()


def test_contrasts_predictions_and_claims_are_among_these_tables() -> None:
    names = {path.name for path in TABLES}
    assert names >= {"claims.csv", "contrasts.csv", "agreement.csv", "effects_placement.csv"}


def test_every_page_of_claims_says_what_the_words_on_it_mean() -> None:
    """Of the committed page, which `test_ledger` makes again."""
    rows, text = pd.read_csv(REPORT / ledger.TABLE), (REPORT / ledger.PAGE).read_text()
    for word in words_of(rows.to_dict("records")):
        assert f"\n| {word} | {MEANINGS[word]} |\n" in text


@pytest.mark.parametrize("word", VERDICTS)
def test_few_seeds_leave_what_decides_nothing_as_it_is(word: str) -> None:
    assert of_few_seeds(word, 8) == word
    assert of_few_seeds(word, 7) == (PROVISIONAL if word in DECIDED else word)


def test_a_legend_has_the_words_that_are_there_in_one_order() -> None:
    assert list(legend(reversed(VERDICTS))) == list(VERDICTS)
    assert legend(["lower", "lower", "not a word"]) == {"lower": MEANINGS["lower"]}
