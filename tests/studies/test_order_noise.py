"""The study's questions, the runs that are planned for them, and its page."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from icl_lab.studies import ledger, page
from icl_lab.studies.contrast import Cells, by_name, results
from icl_lab.studies.order_noise import fill_in, table
from icl_lab.studies.order_noise.measures import CONTRASTS
from icl_lab.studies.order_noise.runs import MODELS, SEEDS, grids
from icl_lab.studies.order_noise.table import NUMBERS, OPTIONAL, PROVENANCE, read_cells
from icl_lab.studies.study import load
from icl_lab.sweeps.collect import row_values
from icl_lab.sweeps.plan import plan, runs_of
from tests.runners.tiny import ROOT

REPORT = ROOT / "report"
PAGE = REPORT / "order_noise.md"
FOLDER = REPORT / "order_noise"


@pytest.fixture(scope="module")
def planned() -> pd.DataFrame:
    """The table of the study before anything is trained."""
    return pd.DataFrame([row_values(row, Path("nowhere")) for row in plan(grids(SEEDS["full"]))])


def test_every_condition_of_every_contrast_is_planned_once_for_each_seed(planned: pd.DataFrame) -> None:
    table = Cells(planned)
    for contrast in CONTRASTS:
        for condition in contrast.conditions:
            assert tuple(table.values(condition).index) == SEEDS["full"], (contrast.name, condition)


def test_every_cell_that_is_planned_is_asked_about(planned: pd.DataFrame) -> None:
    """A run that no contrast looks at would be trained for nothing."""
    asked, table = set(), Cells(planned)
    for contrast in CONTRASTS:
        for condition in contrast.conditions:
            assert condition.column in (*NUMBERS, *OPTIONAL)
            asked |= set(table.values(condition._replace(column="exp")))
    unused = {name.rpartition("_seed")[0] for name in set(planned["exp"]) - asked}
    assert unused == set()


def test_contrasts_have_names_of_their_own_that_begin_with_their_model() -> None:
    names = [(contrast.question, contrast.name) for contrast in CONTRASTS]
    assert len(set(names)) == len(names)
    for contrast in CONTRASTS:
        assert {condition.model for condition in contrast.conditions} == {contrast.name.partition(": ")[0]}


def test_the_study_needs_no_training_twice() -> None:
    rows = plan(grids(SEEDS["full"]))
    assert len(runs_of(rows)) == len(rows) == 675
    assert {row.asked.name for row in rows} == set(MODELS)


@pytest.fixture(scope="module")
def committed() -> pd.DataFrame:
    """The committed table of cells."""
    return read_cells(FOLDER)


@pytest.mark.parametrize("lacking", [[], ["loo_gd_auroc"], ["mask_bayes_auroc", "loo_gd_auroc"]])
def test_columns_that_a_sweep_lacks_have_no_values(
    lacking: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "provenance", lambda runs, names: {})
    monkeypatch.setattr(table, "write_contrasts", lambda folder: None)
    source = pd.read_csv(FOLDER / table.CELLS).assign(mask_bayes_auroc=0.741, loo_gd_auroc=0.614)
    source.drop(columns=lacking).to_csv(tmp_path / "sweep.csv", index=False)
    table.write(tmp_path / "sweep.csv", tmp_path, tmp_path, seeds=(5,))
    found = read_cells(tmp_path)
    assert set(found["seed"]) == {5}
    for name, value in {"mask_bayes_auroc": 0.741, "loo_gd_auroc": 0.614}.items():
        assert found[name].isna().all() if name in lacking else set(found[name]) == {value}


def test_runs_of_claims_are_no_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They stand in the table too, with settings and seeds that cells have; cells are in the order of the plan."""
    monkeypatch.setattr(table, "provenance", lambda runs, names: {})
    monkeypatch.setattr(table, "write_contrasts", lambda folder: None)
    source = pd.read_csv(FOLDER / table.CELLS)
    claims = source[source["model"] == "twolayer"].assign(exp=lambda rows: rows["exp"] + "_with_snapshots")
    pd.concat([claims, source.sample(frac=1, random_state=0)]).to_csv(tmp_path / "sweep.csv", index=False)
    table.write(tmp_path / "sweep.csv", tmp_path, tmp_path, seeds=SEEDS["full"])
    assert list(read_cells(tmp_path)["exp"]) == [row.run.name for row in plan(grids(SEEDS["full"]))]


def test_tables_say_baselines_noises_and_orders_in_words() -> None:
    """No name of a baseline, noise mode or order of the configs stands in the tables below the page."""
    said = fill_in.in_words("lsa1: random_pairs 0.5 / gd_tuned_step")
    assert said == "lsa1: random pairs 0.5 / GD, step tuned to the noise"
    tables = PAGE.read_text().partition("## Where the numbers come from")[2]
    assert [name for name in fill_in.IN_WORDS if name in tables.partition("claims that")[0]] == []


def test_the_page_says_how_predicted_changes_were_met() -> None:
    text, agreed = PAGE.read_text(), pd.read_csv(FOLDER / "agreement.csv")
    effects = agreed[agreed["predicted"].abs() > agreed["margin"]]
    counts = agreed["reading_says"].value_counts()
    assert f"{len(agreed)} comparisons, {counts['as predicted']} as predicted" in text
    assert "if its 90 % interval lies within a quarter of the prediction" in text
    for _, row in effects.iterrows():
        numbers = f"{100 * row['predicted']:+.2f} | {100 * row['change']:+.2f} ["
        assert f"| {fill_in.in_words(row['contrast'])} | {numbers}" in text


def test_a_change_has_the_interval_of_the_equivalence_test_and_n(committed: pd.DataFrame) -> None:
    """The 90 % interval of the mean relative change over seeds."""
    key = ("order in training", "twolayer: trained easy2hard, tested random")
    row = by_name(results(committed, CONTRASTS))[key]
    low, high = (100 * row[f"equivalence_{end}"] for end in ("low", "high"))
    said = fill_in.fill_in(FOLDER)["change"](*key)
    assert said == f"{(low + high) / 2:+.2f} % [{low:+.2f}, {high:+.2f}; n = {row['n']}]"
    assert said in PAGE.read_text()


def test_what_the_page_says_of_many_contrasts_holds_of_each(committed: pd.DataFrame) -> None:
    """No order in training helps in random order; a Bayesian has less than half the loss; steps shrink under noise."""
    rows = by_name(results(committed, CONTRASTS))
    trained = [
        row for (asked, name), row in rows.items() if asked == "order in training" and name.endswith("tested random")
    ]
    assert len(trained) == 9
    assert {row["reading_says"] for row in trained} <= {"higher", "no effect", "undecided"}
    bayes = rows["noise at evaluation", "lsa1: label_noise 0.25 / mask_bayes"]
    assert bayes["control"] < bayes["treated"] / 2
    steps = [
        row
        for (asked, name), row in rows.items()
        if asked == "the step a model takes" and name.endswith("against trained clean")
    ]
    assert {row["reading_says"] for row in steps} == {"lower"}
    exact = [row for (asked, name), row in rows.items() if asked == "order at evaluation" and "lsa1: " in name]
    assert {row["largest_change"] for row in exact} == {0.0}
    scores = fill_in.fill_in(FOLDER)["largest"]
    ends = {name: float(scores(f"noise and the size of {name}")) for name in ("attention", "influence", "contribution")}
    assert max(ends.values()) < 0.01


def test_the_contrasts_are_those_of_the_committed_table(committed: pd.DataFrame) -> None:
    stored = pd.read_csv(FOLDER / "contrasts.csv")
    found = pd.DataFrame(results(committed, CONTRASTS))
    assert list(stored["contrast"]) == list(found["contrast"])
    for name in ("verdict", "reading_says"):
        assert list(stored[name]) == list(found[name])
    for name in ("treated", "control", "change", "p", "p_equivalence"):
        np.testing.assert_allclose(stored[name], found[name].astype(float), rtol=1e-6, atol=1e-12)


def test_all_that_was_planned_is_done_with_every_seed(committed: pd.DataFrame) -> None:
    planned = {row.run.name for row in plan(grids(SEEDS["full"]))}
    assert set(committed["exp"]) == planned
    assert set(committed["seed"]) == set(SEEDS["full"])


def test_a_page_of_two_seeds_says_what_they_do_not_show(tmp_path: Path) -> None:
    """In one of them, of which a condition is on the plateau, no contrast with it is measured."""
    folder = tmp_path / "order_noise_quick"
    folder.mkdir()
    table = pd.read_csv(FOLDER / "cells.csv")
    table[table["seed"].isin(SEEDS["quick"])].to_csv(folder / "cells.csv", index=False)
    (folder / PROVENANCE).write_bytes((FOLDER / PROVENANCE).read_bytes())
    rows = results(read_cells(folder), CONTRASTS)
    assert {row["n"] for row in rows} == {2}
    assert 0.9 * len(CONTRASTS) < len(rows) < len(CONTRASTS)
    made = page.render(load("order_noise"), "quick", ledger.rows_in(tmp_path, [load("order_noise")]), tmp_path)
    assert "; n = 2]" in made
    assert "nan" not in made


def test_every_picture_of_the_page_is_there() -> None:
    page = PAGE.read_text()
    pictures = [part.partition(")")[0] for part in page.split("](")[1:] if ".png" in part.partition(")")[0]]
    assert len(pictures) >= 5
    for name in pictures:
        for suffix in (".png", ".csv"):
            assert (REPORT / name).with_suffix(suffix).stat().st_size > 500


def test_a_model_trained_on_noise_is_compared_with_a_baseline_seed_by_seed() -> None:
    """By hand from the cells: the geometric mean of the seeds' ratios."""
    cells = pd.read_csv(FOLDER / "cells.csv")
    of_lsa1 = cells[
        (cells["model"] == "lsa1") & (cells["train_p"] == 0.25) & (cells["eval_p"] == 0.25) & cells["trained"]
    ]
    on_it = of_lsa1[(of_lsa1["train_noise_mode"] == "label_noise") & (of_lsa1["eval_noise_mode"] == "label_noise")]
    plain = (on_it["train_placement"] == "mixed") & (on_it["eval_placement"] == "mixed")
    plain &= (on_it["train_ordering"] == "random") & (on_it["eval_ordering"] == "random")
    ratios = on_it[plain]["test_loss"] / on_it[plain]["linear_mmse_loss"]
    said = fill_in.fill_in(FOLDER)["trained_on_noise"]
    mean, _, rest = said("lsa1", "label_noise", "linear_mmse").partition(" ")
    assert float(mean) == pytest.approx(np.exp(np.log(ratios).mean()), abs=0.0006)
    assert rest.endswith(f"; n = {len(ratios)}]")
    assert said("lsa1", "label_noise", "gd_tuned_step").startswith("1.001")
