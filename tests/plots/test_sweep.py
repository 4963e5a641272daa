"""A sweep's table by its columns: means and intervals as SciPy has them, no two settings in a point, a page at most."""

import re
import shlex
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy import stats

from icl_lab.plots import choice, over_column, sweep
from icl_lab.plots.choice import Where
from icl_lab.plots.sweep import draw_columns
from icl_lab.plots.sweep_columns import Asked
from icl_lab.store import StoreError
from icl_lab.store.outputs import RECORD
from tests import processes
from tests.plots.readable import check_readable

RATES, LAYERS = (1e-4, 1e-3, 1e-2), (1, 2, 3)
LR, DEPTH = "training.lr", "model.num_layers"


def grid(seeds: int = 4, **lists: Any) -> pd.DataFrame:
    """A table of a sweep that never ran, of these columns: lognormal losses that fall with what is swept."""
    columns = lists or {LR: RATES, DEPTH: LAYERS}
    rng, rows = np.random.default_rng(0), []
    for number, (seed, *values) in enumerate(product(range(seeds), *columns.values())):
        row = dict(zip(columns, values, strict=True))
        loss = np.exp(rng.normal(scale=0.2)) / (1 + number % 7)
        row |= {"exp": f"run{number}", "model": row.get("model", "lsa1"), "seed": seed, "status": "done"}
        rows.append(row | {"results_version": 5, "test_loss": loss})
    return pd.DataFrame(rows)


def written(folder: Path, table: pd.DataFrame) -> Path:
    """The table as a sweep writes it."""
    table.to_csv(folder / "table.csv", index=False)
    return folder / "table.csv"


def shown(source: Path, asked: Asked, where: tuple[Where, ...] = ()) -> pd.DataFrame:
    """The rows of the figure's CSV."""
    (_, rows), _ = sweep.draw(*sweep.read_columns(source, asked, where))
    return pd.DataFrame(rows)


# What is drawn


def test_points_are_means_over_seeds_with_t_intervals(tmp_path: Path) -> None:
    """Some losses vary so much that the interval would begin below 0: there it ends."""
    table = grid()
    drawn = shown(written(tmp_path, table), Asked("lr", "test_loss", "num_layers"))
    assert len(drawn) == len(RATES) * len(LAYERS)
    for row in drawn.to_dict("records"):
        values = table.loc[(table[LR] == row["x"]) & (table[DEPTH] == row[DEPTH]), "test_loss"]
        low, high = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
        assert row["series"] == f"num_layers={row[DEPTH]}"
        np.testing.assert_allclose([row["mean"], row["low"], row["high"]], [values.mean(), max(low, 0), high])
        assert (row["n"], row["seeds"]) == (4, "0 1 2 3")
        np.testing.assert_allclose([float(value) for value in row["values"].split()], values, rtol=1e-6)
    assert 0 < (drawn["low"] == 0).sum() < len(drawn)


def test_a_column_of_truth_values_is_a_share_with_its_exact_interval(tmp_path: Path) -> None:
    table = grid(seeds=6, **{LR: RATES})
    table["trained"] = table["seed"] < 4
    drawn = shown(written(tmp_path, table), Asked("lr", "trained"))
    exact = stats.binomtest(4, 6).proportion_ci(0.95, "exact")
    np.testing.assert_allclose(drawn["mean"], 4 / 6)
    np.testing.assert_allclose(drawn[["low", "high"]], [[exact.low, exact.high]] * 3)


def test_rows_that_are_not_done_or_lack_a_value_are_left_out(tmp_path: Path) -> None:
    table = grid(**{LR: RATES})
    table.loc[table["seed"] == 3, "status"] = "diverged"
    table.loc[table["seed"] == 2, LR] = np.nan
    drawn = shown(written(tmp_path, table), Asked("lr", "test_loss"))
    assert set(drawn["seeds"]) == {"0 1"}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ([Where("lr", "1e-3")], {(1e-3, 1), (1e-3, 2), (1e-3, 3)}),
        ([Where(DEPTH, "3,1"), Where("lr", "0.01")], {(1e-2, 1), (1e-2, 3)}),
    ],
)
def test_where_chooses_rows_by_values(where: list[Where], expected: set, tmp_path: Path) -> None:
    drawn = shown(written(tmp_path, grid()), Asked("num_layers", "test_loss", "lr"), tuple(where))
    assert {(row[LR], row["x"]) for row in drawn.to_dict("records")} == expected


def test_where_compares_words_truth_and_empty_fields(tmp_path: Path) -> None:
    """A list of words has commas itself; only what is no value is several values."""
    words = pd.DataFrame({"a": ["x,y", "x", "", "y"], "b": [True, False, True, True], "c": [1, np.nan, 2.0, 2.5]})
    words["d"] = ["0", "0.0", "auto", "1,2"]  # numbers among words
    for condition, rows in {
        **{"a=x,y": [0], "a=x": [1], "a=y,x": [1, 3], "a=": [2], "b=true": [0, 2, 3], "b=False": [1]},
        **{"c=2": [2], "c=2.50": [3], "c=": [1], "c=1,2": [0, 2]},
        **{"d=0": [0, 1], "d=0.0": [0, 1], "d=auto": [2], "d=1,2": [3], "d=0,auto": [0, 1, 2]},
    }.items():
        found = choice.chosen(words, [choice.condition(condition)], tmp_path)
        assert list(found.index) == rows, condition


# Axes


@pytest.mark.parametrize(
    ("values", "spacing"),
    [
        ([1e-4, 1e-3, 1e-2], "log"),
        ([1, 2, 4, 8], "log"),
        ([1, 2, 3, 4], "linear"),
        ([*range(1, 21)], "linear"),
        ([0.0, 1e-3, 1.0], "linear"),
        ([-1.0, 1.0, 100.0], "linear"),
        (["random", "easy2hard"], "words"),
        ([1.0, 16.0, np.inf], "words"),
        ([True, False], "words"),
    ],
)
def test_an_axis_is_as_its_values_lie(values: list, spacing: str) -> None:
    assert over_column.axis_of(pd.Series(values)).spacing == spacing


def test_losses_over_decades_have_a_logarithmic_axis_and_others_not(tmp_path: Path) -> None:
    table = grid(**{LR: RATES})
    for factor, scale in ((1.0, "linear"), (100.0, "log")):
        wide = table.assign(test_loss=np.where(table[LR] == 1e-4, factor, 1.0) * (1 + table["seed"] / 10))
        read = sweep.read_columns(written(tmp_path, wide), Asked("lr", "test_loss"))
        figure = sweep.draw(*read)[0].figure
        assert [axes.get_yscale() for axes in figure.axes] == [scale]
        assert [axes.get_xscale() for axes in figure.axes] == ["log"]


WORDS = ("random", "smallnorm2largenorm", "easy2hard", "hard2easy")
FIGURES: dict[str, tuple[dict[str, Any], Asked]] = {
    "rates by depth": ({LR: RATES, DEPTH: LAYERS}, Asked("lr", "test_loss", "num_layers")),
    "words": ({"ordering": WORDS, DEPTH: LAYERS}, Asked("ordering", "test_loss", "", "num_layers")),
    "a page": ({LR: RATES, DEPTH: range(3), "heads": range(14)}, Asked("lr", "test_loss", "num_layers", "heads")),
    "many numbers": ({LR: np.geomspace(1e-4, 1, 30)}, Asked("lr", "test_loss")),
    "models": ({DEPTH: (1, 2, 4), "model": ("lsa1", "mine")}, Asked("num_layers", "test_loss", "model")),
}


@pytest.mark.parametrize("name", FIGURES)
def test_every_panel_is_labelled_and_can_be_read(name: str, tmp_path: Path) -> None:
    lists, asked = FIGURES[name]
    read, asked = sweep.read_columns(written(tmp_path, grid(2, **lists)), asked)
    (figure, _), _ = sweep.draw(read, asked)
    check_readable(figure, width=None)
    assert figure.get_figheight() < 11  # inches, of a page
    panels = [axes for axes in figure.axes if axes.axison]
    assert len(panels) == (1 if not asked.panels else min(12, len(lists.get(asked.panels, LAYERS))))
    for axes in panels:
        assert (axes.get_xlabel(), axes.get_ylabel()) == (choice.short(asked.x), "test_loss")
        for axis in (axes.xaxis, axes.yaxis):
            assert any(label.get_visible() and label.get_text() for label in axis.get_ticklabels())
    legend_top = min((legend.get_window_extent().y0 for legend in figure.legends), default=np.inf)
    assert all(axes.get_window_extent().y1 < legend_top for axes in panels)


# What does not fit


def test_what_does_not_fit_is_named_with_commands_that_draw_it(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    """Of three panels of three lines, where two of two fit."""
    monkeypatch.setattr(choice, "PANELS", 2)
    monkeypatch.setattr(sweep, "LINES", 2)
    source = written(tmp_path, grid(1, **{LR: RATES[:1], DEPTH: LAYERS, "heads": LAYERS}))
    waiting = [["--from", str(source), *"--x lr --y test_loss --hue num_layers --panels heads".split()]]
    waiting[0] += ["--out", str(tmp_path / "figs")]
    drawn, lines = set(), 0
    while waiting:
        sweep.main(waiting.pop())
        said = capsys.readouterr().out.splitlines()
        rows = pd.read_csv(next(line for line in said if line.endswith(".csv"))).to_dict("records")
        assert len({row["heads"] for row in rows}) <= choice.PANELS
        assert len({row[DEPTH] for row in rows}) <= sweep.LINES
        drawn |= {(row["x"], row[DEPTH], row["heads"]) for row in rows}
        for line in said[3:]:
            assert re.match(r"not in test_loss_over_lr: (heads|model.num_layers)=[\d,]+; python -m plots\.sweep ", line)
            waiting.append(shlex.split(line.partition("; ")[2])[3:])
            lines += 1
    assert drawn == {*product(RATES[:1], LAYERS, LAYERS)}
    assert lines == 1 + 1 + 1 + 1  # of panels and of lines, and of those commands' lines and panels


def test_a_column_of_a_thousand_values_has_a_dozen_commands(tmp_path: Path) -> None:
    source = written(tmp_path, grid(1, **{LR: RATES[:1], "heads": range(1000)}))
    _, left = draw_columns(source, tmp_path / "figs", Asked("lr", "test_loss", "heads"))
    assert len(left) == choice.NAMED + 1
    assert "further times heads, the last 999; --where heads=VALUE draws one of them" in left[-1]


# What is refused


def mixed(column: str, values: tuple[Any, ...]) -> pd.DataFrame:
    return grid(**{LR: RATES, column: values})


WRONG: dict[str, tuple[pd.DataFrame, Asked, str]] = {
    "x": (grid(), Asked("learning", "test_loss"), "has no column learning"),
    "near": (grid(), Asked("lr", "test_los"), "has no column test_los, did you mean test_loss?"),
    "short": (grid(), Asked("num_layer", "test_loss"), "has no column num_layer, did you mean num_layers?"),
    "two": (
        mixed("data.lr", (1, 2)),
        Asked("lr", "test_loss"),
        "has several columns lr: name one of training.lr, data.lr",
    ),
    "words": (grid(), Asked("lr", "model"), "has words in model, which cannot be drawn along y; numbers are in test_l"),
    "twice": (grid(), Asked("lr", "test_loss", "lr"), "must be different columns"),
    "seed": (grid().drop(columns="seed"), Asked("lr", "test_loss"), "has no numeric column seed"),
    "undone": (grid().assign(status="planned"), Asked("lr", "test_loss"), "has nothing to draw: no row is done with"),
    "mixed": (
        grid(),
        Asked("lr", "test_loss"),
        "has several rows for one point of the figure, which differ in model.num_layers (1, 2, 3); "
        "--where model.num_layers=1 chooses, --hue or",
    ),
    "of plain names": (mixed("batch_size", (8, 16)), Asked("lr", "test_loss"), "which differ in batch_size (8, 16)"),
    "versions": (mixed("results_version", (4, 5)), Asked("lr", "test_loss"), "which differ in results_version (4, 5)"),
    "repeated": (mixed("note", (1, 2)), Asked("lr", "test_loss"), "has two results of one setting, training.lr=0.0001"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_table_that_cannot_be_drawn_is_refused_in_a_sentence(case: str, tmp_path: Path) -> None:
    table, asked, sentence = WRONG[case]
    if case == "versions":
        table["results_version"] = [4, 5] * (len(table) // 2)
    with pytest.raises(StoreError, match=r"table\.csv|must be different") as refused:
        draw_columns(written(tmp_path, table), tmp_path / "figs", asked)
    assert sentence in str(refused.value)
    assert not (tmp_path / "figs").exists()


def test_a_setting_that_no_seed_shares_is_seen(tmp_path: Path) -> None:
    """Seeds 0 and 1 at one batch size, 2 and 3 at another: no seed has two results, and the mean would be of both."""
    table = grid(**{LR: RATES})
    table["training.batch_size"] = np.where(table["seed"] < 2, 64, 128)
    with pytest.raises(StoreError, match=r"differ in training\.batch_size \(64, 128\)"):
        draw_columns(written(tmp_path, table), tmp_path / "figs", Asked("lr", "test_loss"))


def test_a_field_that_follows_the_swept_one_mixes_nothing(tmp_path: Path) -> None:
    table = grid(**{DEPTH: LAYERS})
    table[LR] = np.where(table[DEPTH] > 2, 5e-4, 1e-3)
    assert len(shown(written(tmp_path, table), Asked("num_layers", "test_loss"))) == len(LAYERS)


@pytest.mark.parametrize(
    ("conditions", "sentence"),
    [
        (["num_layers=7"], "no row to draw with num_layers=7; its values are 1, 2, 3"),
        (["num_layers=1,7"], "no row to draw with num_layers=7; its values are 1, 2, 3"),
        (["num_layer=1"], "has no column num_layer, did you mean num_layers?"),
        (["num_layers"], "'num_layers' is not COLUMN=VALUE"),
        (["num_layers=two"], "no row to draw with num_layers=two"),
    ],
)
def test_a_wrong_condition_is_one_sentence(conditions: list[str], sentence: str, tmp_path: Path) -> None:
    words = ["--from", written(tmp_path, grid()), "--x", "lr", "--y", "test_loss", "--where", *conditions]
    done = processes.command("plots.sweep", *words, "--out", tmp_path / "figs")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert sentence in done.stderr
    assert not (tmp_path / "figs").exists()


def test_the_command_draws_three_files_the_same_again(tmp_path: Path) -> None:
    source, out = written(tmp_path, grid()), tmp_path / "figs"
    words = ["--from", source, *"--x lr --y test_loss --hue num_layers".split(), "--out", out]
    done = processes.command("plots.sweep", *words)
    names = {f"test_loss_over_lr.{suffix}" for suffix in ("png", "pdf", "csv")}
    assert (done.returncode, done.stderr) == (0, "")
    assert {Path(line).name for line in done.stdout.splitlines()} == names
    assert {path.name for path in out.iterdir()} == names | {RECORD}
    image = np.asarray(Image.open(out / "test_loss_over_lr.png").convert("RGB"))
    assert (image[0] == 255).all()
    assert image.std() > 5
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    draw_columns(source, out, Asked("lr", "test_loss", "num_layers"))
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
