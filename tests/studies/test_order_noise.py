"""The study's questions, the runs that are planned for them, and its page."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from icl_lab.studies import page
from icl_lab.studies.contrast import Cells, by_name, results
from icl_lab.studies.order_noise import table
from icl_lab.studies.order_noise.findings import FINDINGS
from icl_lab.studies.order_noise.findings.wording import in_percent
from icl_lab.studies.order_noise.measures import CONTRASTS
from icl_lab.studies.order_noise.page import LEADING, UNSUPPORTED, VERDICT
from icl_lab.studies.order_noise.page import values as values_of
from icl_lab.studies.order_noise.runs import MODELS, SEEDS, grids
from icl_lab.studies.order_noise.table import NUMBERS, OPTIONAL, PROVENANCE, read_cells
from icl_lab.studies.study import load
from icl_lab.studies.template import with_digits_of_interval
from icl_lab.studies.words import MEANINGS
from icl_lab.sweeps.collect import row_values
from icl_lab.sweeps.plan import plan, runs_of
from tests.runners.tiny import ROOT

REPORT = ROOT / "report"
PAGE = REPORT / "order_noise.md"
TEMPLATE = ROOT / "studies/order_noise/page.md.j2"
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


def test_the_page_is_made_from_the_committed_table() -> None:
    """To the character: every number on it comes from there, and every claim on it holds."""
    assert page.render(load("order_noise"), "full", REPORT) == PAGE.read_text()


def test_the_page_says_how_many_seeds_reach_the_targets_and_how_predicted_changes_were_met() -> None:
    text, agreed = PAGE.read_text(), pd.read_csv(FOLDER / "agreement.csv")
    effects = agreed[agreed["predicted"].abs() > agreed["margin"]]
    counts = effects["reading_says"].value_counts()
    met = counts["as predicted"]
    assert f"of {len(effects)} predicted changes {met} are as predicted" in text
    assert "if its 90 % interval lies within a quarter of the prediction" in text
    missed = effects[effects["reading_says"] == "contradicted"]
    assert len(missed) == counts["contradicted"]
    for _, row in missed.iterrows():
        assert f"{100 * row['predicted']:+.2f} % predicted, {100 * row['change']:+.2f} % measured" in text
    claims = pd.read_csv(REPORT / "claims.csv").set_index("claim")
    for name in ("steps_loss_easy2hard", "steps_read_smallnorm2largenorm"):
        row = claims.loc[name]
        values = np.array(json.loads(row["values"]))
        inside = int(((row["low"] <= values) & (values <= row["high"])).sum())
        order = {"easy2hard": "easy first", "smallnorm2largenorm": "small norms first"}[name.split("_")[2]]
        mean, *_ = with_digits_of_interval(*row[["mean", "mean_low", "mean_high"]])
        assert f"{inside} of {len(values)} {order} ({mean} [" in text


def test_findings_have_one_level_of_intervals_and_n(committed: pd.DataFrame) -> None:
    """The 90 % interval of the mean relative change, which the equivalence test uses."""
    row = by_name(results(committed, CONTRASTS))["order in training", "twolayer: trained easy2hard, tested random"]
    low, high = (100 * row[f"equivalence_{end}"] for end in ("low", "high"))
    assert f"[{low:+.2f}, {high:+.2f}; n = {row['n']}]" in in_percent(row)
    findings = PAGE.read_text().partition("## Five findings")[2].partition("\n## ")[0]
    assert in_percent(row) in findings
    assert findings.strip().startswith("In brackets: 90 % intervals")
    assert "\n## Further findings" in PAGE.read_text().partition("## How it was measured")[2]


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


def test_every_finding_is_on_the_page_and_every_finding_on_the_page_is_one() -> None:
    """Those at its top and those that are not supported have places of their own, the others are a list."""
    template, values = TEMPLATE.read_text(), values_of(FOLDER)
    listed = [*LEADING, *UNSUPPORTED, *values["other_findings"]]
    assert sorted(listed) == sorted(FINDINGS)
    assert {name for name in FINDINGS if f'finding("{name}")' in template} == set(UNSUPPORTED)
    assert template.count("finding(") == len(UNSUPPORTED) + 1
    for name in LEADING:
        assert values["finding"](name) in values["findings"]


@pytest.mark.parametrize(
    ("column", "value", "factor", "claim"),
    [
        ("eval_ordering", "easy2hard", 1.02, "order_lsa1"),
        ("eval_ordering", "random", 1.2, "sanity"),
    ],
)
def test_a_finding_that_the_numbers_do_not_bear_out_is_marked_on_the_page(
    column: str, value: str, factor: float, claim: str, tmp_path: Path
) -> None:
    table = pd.read_csv(FOLDER / "cells.csv")
    table.loc[(table["model"] == "lsa1") & (table[column] == value), ["test_loss", "loss_ratio"]] *= factor
    table.to_csv(tmp_path / "cells.csv", index=False)
    (tmp_path / "provenance.json").write_bytes((FOLDER / "provenance.json").read_bytes())
    marked = "**Not shown by these runs:** "
    finding = values_of(tmp_path)["finding"]
    assert finding(claim).startswith(marked)
    assert not finding("curriculum_twolayer").startswith(marked)


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
    made = page.render(load("order_noise"), "quick", tmp_path)
    assert "with seeds 5, 6;" in made
    assert made.count("Not shown by these runs") > 5
    assert "exactly none" in made
    assert "nan" not in made.replace("nance", "")


def test_the_page_says_once_that_its_contrasts_are_provisional_and_what_its_words_mean() -> None:
    """Five seeds: no contrast is decided; tables have what the numbers say, under a column that says so."""
    text, contrasts = PAGE.read_text(), pd.read_csv(FOLDER / "contrasts.csv")
    assert set(contrasts["verdict"]) == {"provisional", "undecided"}
    assert text.count("every verdict on them is provisional") == 1
    for word in {*contrasts["verdict"], *contrasts["reading_says"]}:
        assert f"\n| {word} | {MEANINGS[word]} |\n" in text
    tables = [line for line in text.splitlines() if line.startswith("| contrast |")]
    assert len(tables) > 10
    assert all(line.endswith(f"| {VERDICT} |") for line in tables)


def test_every_picture_of_the_page_is_there() -> None:
    page = PAGE.read_text()
    pictures = [part.partition(")")[0] for part in page.split("](")[1:] if ".png" in part.partition(")")[0]]
    assert len(pictures) >= 5
    for name in pictures:
        for suffix in (".png", ".csv"):
            assert (REPORT / name).with_suffix(suffix).stat().st_size > 500
