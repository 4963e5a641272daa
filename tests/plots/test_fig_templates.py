"""Figures of sweeps: means over seeds as SciPy has them, nothing of different settings in one line, all or no files."""

import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from PIL import Image
from scipy import stats

from icl_lab.plots import choice, style, sweep_lines, sweep_panels
from icl_lab.plots.fig_templates import FIGURES, draw_sweep
from icl_lab.plots.sweep_dots import DOT
from icl_lab.plots.sweep_table import NARROWED, Point, read_sweep
from icl_lab.store import StoreError
from icl_lab.store.outputs import RECORD
from tests import processes
from tests.plots import sweep
from tests.plots.readable import COLUMN, check_readable
from tests.thinned import thinned

NOISY = {"noise_mode": "label_noise", "p": 0.25, "sigma": 0.5}
ORDERINGS = ("smallnorm2largenorm", "random", "hard2easy", "easy2hard")
OF_NO_MODEL = {
    "Bayes over masks": "mask_bayes_auroc",
    "leave-one-out GD error": "loo_gd_auroc",
    "gradient descent": "gd_auroc",
}
PAGE_HEIGHT = 11.0  # inches
FILES = {f"{name}.{suffix}" for name in FIGURES for suffix in ("png", "pdf", "csv")}


def drawn(name: str, rows: list[dict], folder: Path) -> pd.DataFrame:
    """The CSV's rows of one figure of a sweep."""
    found = FIGURES[name](read_sweep(sweep.write(folder / "results.csv", rows)))
    return pd.DataFrame(found.rows)


def caption(name: str, rows: list[dict], folder: Path) -> str:
    """What stands below a figure, in one line."""
    figure = FIGURES[name](read_sweep(sweep.write(folder / "results.csv", rows))).figure
    return style.whole_caption(figure)


def of(shown: pd.DataFrame, series: str, measure: str | None = None) -> pd.DataFrame:
    """The rows of one series, of one of its measures."""
    return shown[(shown["series"] == series) & (measure is None or shown["measure"] == measure)]


def check(shown: pd.DataFrame, rows: list[dict], column: str | pd.Series, along: str, **chosen: Any) -> None:
    """One series against pandas and SciPy: the mean of each x, its 95 % t interval, the seeds."""
    table = pd.DataFrame(rows)
    table["y"] = table[column] if isinstance(column, str) else column
    for name, value in chosen.items():
        table = table[table[name] == value]
    groups = table.groupby(along)["y"]
    expected = groups.agg(["mean", "count"])
    low, high = stats.t.interval(0.95, expected["count"] - 1, expected["mean"], groups.sem())
    if isinstance(column, str) and column == "align_cos":  # on Fisher's scale
        of_z = table.assign(y=np.arctanh(table["y"])).groupby(along)["y"]
        ends = stats.t.interval(0.95, expected["count"] - 1, of_z.mean(), of_z.sem())
        expected["mean"], low, high = np.tanh(of_z.mean()), *map(np.tanh, ends)
    shown = shown.set_index("x").loc[expected.index]
    np.testing.assert_allclose(shown["mean"], expected["mean"], rtol=1e-12)
    np.testing.assert_allclose(shown["low"], low, rtol=1e-9)
    np.testing.assert_allclose(shown["high"], high, rtol=1e-9)
    np.testing.assert_array_equal(shown["n"], expected["count"])
    assert set(shown["seeds"]) == {" ".join(map(str, sorted(table["seed"].unique())))}
    for x, values in shown["values"].items():
        of_seeds = table[table[along] == x].groupby("seed")["y"].mean()
        np.testing.assert_allclose([float(value) for value in values.split()], of_seeds, rtol=1e-6)


# What they show


def test_order_is_the_loss_over_gradient_descents(tmp_path: Path) -> None:
    rows = sweep.grid(("lsa1", "twolayer"), ordering=ORDERINGS)
    shown = drawn("order_sensitivity", rows, tmp_path)
    assert len(shown) == 8
    ratio = pd.DataFrame(rows)["test_loss"] / pd.DataFrame(rows)["test_gd_loss"]
    for model, line in shown.groupby("model"):
        assert list(line["x"]) == ["random", "easy2hard", "hard2easy", "smallnorm2largenorm"]
        check(line, rows, ratio, "ordering", model=model)


def test_noise_is_the_loss_over_p_with_the_baselines(tmp_path: Path) -> None:
    rows = sweep.grid(noise_mode=("label_noise",), p=(0.5, 0.0, 0.25), sigma=(0.5,), placement=("mixed", "noisy_first"))
    shown = drawn("noise_robustness", rows, tmp_path)
    for placement, line in of(shown, "transformer", "test loss").groupby("placement"):
        assert list(line["x"]) == [0.0, 0.25, 0.5]
        check(line, rows, "test_loss", "p", placement=placement)
    noisy = [row for row in rows if row["p"] and row["placement"] == "mixed"]
    for name, column in (
        ("GD, clean step", "test_gd_loss"),
        ("GD, tuned step", "test_gd_tuned_step_loss"),
        ("linear MMSE", "test_linear_mmse_loss"),
        ("Bayes over masks", "test_mask_bayes_loss"),
    ):
        check(of(shown, name, "test loss"), noisy, column, "p")
    assert set(shown["series"]) == {
        "transformer",
        *("GD, clean step", "GD, tuned step"),
        "linear MMSE",
        "Bayes over masks",
    }
    without = [row | dict.fromkeys(("test_linear_mmse_loss", "test_mask_bayes_loss"), np.nan) for row in rows]
    assert set(drawn("noise_robustness", without, tmp_path)["series"]) == {
        *("transformer", "GD, clean step", "GD, tuned step")
    }


def test_changes_from_gradient_descent_are_paired_by_seed(tmp_path: Path) -> None:
    """What the seeds share cancels: the interval is that of the ratios, far narrower than the losses'."""
    rows = sweep.grid(("lsa1", "twolayer"), noise_mode=("label_noise",), p=(0.0, 0.25, 0.5), sigma=(0.5,))
    shown = drawn("noise_robustness", rows, tmp_path)
    table = pd.DataFrame(rows)
    changes = 100 * (table["test_loss"] / table["test_gd_loss"] - 1)

    def tuned(row: dict) -> float:
        return 100 * (row["test_gd_tuned_step_loss"] / row["test_gd_loss"] - 1)

    for model in ("lsa1", "twolayer"):
        mine = shown[shown["model"] == model]
        check(of(mine, "transformer", "change from GD, %"), rows, changes, "p", model=model)
        noisy = [row | {"change": tuned(row)} for row in rows if row["p"] and row["model"] == model]
        check(of(mine, "GD, tuned step", "change from GD, %"), noisy, "change", "p")
    assert set(of(shown, "linear MMSE")["measure"]) == {"test loss"}


def test_baselines_have_intervals_in_the_figure_too(tmp_path: Path) -> None:
    rows = sweep.grid(noise_mode=("label_noise",), p=(0.25, 0.5), sigma=(0.5,))
    found = FIGURES["noise_robustness"](read_sweep(sweep.write(tmp_path / "results.csv", rows)))
    overview, change = found.figure.axes[:2]
    assert [len(axes.containers) for axes in (overview, change)] == [5, 2]
    for axes, measure in ((overview, "test loss"), (change, "change from GD, %")):
        csv = [row for row in found.rows if row["measure"] == measure]
        bars = [segment[:, 1] for bar in axes.containers for segment in bar.lines[2][0].get_segments()]
        np.testing.assert_allclose(bars, [[row["low"], row["high"]] for row in csv])
        assert (np.diff(bars) > 0).all()


def test_separation_stands_beside_gradient_descents_and_positions(tmp_path: Path) -> None:
    rows = sweep.grid(("lsa1", "twolayer"), **{name: (value,) for name, value in NOISY.items()}) + sweep.grid()
    shown = drawn("attention_separation", rows, tmp_path)
    assert len(shown) == 7
    for model in ("lsa1", "twolayer"):
        for name, column in (("transformer", "auroc"), ("position alone", "auroc_position")):
            line = shown[(shown["model"] == model) & (shown["series"] == name)].assign(x="label_noise")
            check(line, rows, column, "noise_mode", model=model, noise_mode="label_noise")
    for name, column in OF_NO_MODEL.items():
        line = of(shown, name).assign(x="label_noise")
        means = pd.DataFrame(rows).groupby("seed", as_index=False)[column].mean().assign(noise_mode="label_noise")
        check(line, means.to_dict("records"), column, "noise_mode")
        assert line["model"].isna().all()


def rows_of(figure: Figure) -> list[str]:
    """The names of the rows of dots, from the top."""
    return [" ".join(text.get_text().split()) for text in figure.axes[0].get_yticklabels()]


def test_a_model_and_score_is_one_row_for_all_conditions(tmp_path: Path) -> None:
    """Six conditions: the marker says p, the filling how it was trained; what is of no training has three dots."""
    rows = sweep.grid(("lsa1", "twolayer"), noise_mode=("label_noise",), p=(0.1, 0.25, 0.5), train=({}, TRAINED))
    found = FIGURES["attention_separation"](read_sweep(sweep.write(tmp_path / "results.csv", rows)))
    detectors = ["Bayes over masks", "leave-one-out GD error"]
    models = ["gradient descent", "lsa1", "twolayer", "position alone, lsa1", "position alone, twolayer"]
    assert rows_of(found.figure) == [*detectors, *models]
    (panel,) = found.figure.axes
    heights = [bar.lines[0].get_ydata()[0] for bar in panel.containers]
    assert heights == sorted(heights)
    assert len(heights) == 3 * 3 + 4 * 6
    shapes = [bar.lines[0].get_marker() for bar in panel.containers]
    assert shapes[:9] == ["o", "s", "^"] * 3
    assert sorted(shapes[9:15]) == ["^", "^", "o", "o", "s", "s"]
    hollow = [bar.lines[0].get_markerfacecolor() == "white" for bar in panel.containers]
    assert not any(hollow[:9])
    assert hollow[9:15].count(True) == 3
    legend = [text.get_text() for text in found.figure.legends[0].get_texts()]
    assert set(legend) == {"p=0.1", "p=0.25", "p=0.5", "trained clean", "trained with that noise"}


def test_the_caption_says_what_is_null_by_construction(tmp_path: Path) -> None:
    """Where pairs are sorted by what the others say of them, a position tells and nothing is."""
    pairs, labels = (sweep.grid(noise_mode=(mode,), p=(0.25,)) for mode in ("random_pairs", "label_noise"))
    said = caption("attention_separation", pairs, tmp_path)
    assert "at .5 by construction: any score of one random pair" in said
    assert "two detectors" in said
    assert "GD's |influence|, which is of inputs alone" in caption("attention_separation", labels, tmp_path)
    by_error = sweep.grid(ordering=("easy2hard",), noise_mode=("random_pairs",), p=(0.25,))
    assert "by construction" not in caption("attention_separation", by_error, tmp_path)


@pytest.mark.parametrize("there", [[], ["loo_gd_auroc"]])
def test_a_table_without_detectors_is_drawn_without_them(there: list[str], tmp_path: Path) -> None:
    """Columns that an earlier version did not write, or left empty."""
    table = pd.DataFrame(sweep.grid(**{name: (value,) for name, value in NOISY.items()}))
    lacking = {"mask_bayes_auroc", "loo_gd_auroc"} - {*there}
    table.drop(columns=list(lacking)).to_csv(tmp_path / "earlier.csv", index=False)
    table.assign(**dict.fromkeys(lacking, np.nan)).to_csv(tmp_path / "empty.csv", index=False)
    for name in ("earlier.csv", "empty.csv"):
        found = FIGURES["attention_separation"](read_sweep(tmp_path / name))
        expected = ["leave-one-out GD error"] * len(there) + ["gradient descent", "lsa1", "position alone"]
        assert rows_of(found.figure) == expected
        assert ("detectors" in style.whole_caption(found.figure)) == bool(there)
        check_readable(found.figure)
    table.assign(loo_gd_auroc="high").to_csv(tmp_path / "words.csv", index=False)
    with pytest.raises(StoreError, match=r"words\.csv has words in loo_gd_auroc"):
        read_sweep(tmp_path / "words.csv")


def test_intervals_of_two_seeds_end_where_the_possible_does(tmp_path: Path) -> None:
    """0.5 ± 12.7 * 0.1: the t interval of .4 and .6 goes from -.77 to 1.77."""
    rows = [sweep.row(seed=seed, **NOISY) | {"auroc": 0.4 + 0.2 * seed, "align_cos": 0.99} for seed in range(2)]
    table = read_sweep(sweep.write(tmp_path / "results.csv", rows))
    found = FIGURES["attention_separation"](table)
    (panel,) = found.figure.axes
    assert panel.get_xlim() == (0.0, 1.0)
    bars = [segment[:, 0] for bar in panel.containers for segment in bar.lines[2][0].get_segments()]
    assert sum(np.allclose(bar, [0, 1]) for bar in bars) == 1
    csv = next(row for row in found.rows if row["series"] == "transformer")
    assert (csv["low"], csv["high"]) == (0.0, 1.0)


def test_alignment_and_scales_are_of_every_condition(tmp_path: Path) -> None:
    rows = sweep.grid(ordering=ORDERINGS)
    shown = drawn("alignment_metrics", rows, tmp_path)
    for column in ("align_cos", "align_l2"):
        line = shown[shown["measure"] == column]
        check(line.assign(x=line["ordering"]), rows, column, "ordering")
    shown = drawn("ood_curve", rows, tmp_path)
    for name, prefix in (("transformer", ""), ("gradient descent", "gd_")):
        for alpha in (1.0, 1.5, 2.0, 3.0):
            line = of(shown[shown["x"] == alpha], name, "MSE")
            check(line.assign(x=line["ordering"]), rows, f"{prefix}ood_alpha{alpha:g}", "ordering")
    for alpha in (1.0, 1.5, 2.0, 3.0):
        line = of(shown[shown["x"] == alpha], "transformer", "MSE / GD's MSE")
        ratio = pd.DataFrame(rows)[f"ood_alpha{alpha:g}"] / pd.DataFrame(rows)[f"gd_ood_alpha{alpha:g}"]
        check(line.assign(x=line["ordering"]), rows, ratio, "ordering")


# What stands in one line

TRAINED = {"noise_mode": "clean", "p": 0.0, "sigma": 0.0}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """How many numbers of the transformer each figure shows of three seeds of one setting."""
    folder, rows = tmp_path_factory.mktemp("alone"), [sweep.row(seed=seed, **NOISY) for seed in range(3)]
    return {name: len(of(drawn(name, rows, folder), "transformer")) for name in FIGURES}


@pytest.mark.parametrize(
    "given",
    [
        {"sigma": 1.0},
        {"noise_mode": "random_pairs"},
        {"placement": "noisy_first"},
        {"ordering": "easy2hard"},
        {"model": "twolayer"},
        {"train": TRAINED},
        {"train": {"p": 0.5}},
        *(
            pytest.param({"train": setting}, marks=pytest.mark.slow)
            for setting in ({"sigma": 0.125}, {"placement": "clean_first"}, {"ordering": "easy2hard"})
        ),
    ],
)
@pytest.mark.parametrize("name", FIGURES)
def test_cells_of_other_settings_are_another_line(
    name: str, given: dict[str, Any], alone: dict[str, int], tmp_path: Path
) -> None:
    rows = [sweep.row(seed=seed, **NOISY | other) for other in ({}, given) for seed in range(3)]
    shown = drawn(name, rows, tmp_path)
    assert len(of(shown, "transformer")) == 2 * alone[name]
    assert set(shown["n"]) == {3}


@pytest.mark.parametrize("column", ["steps", "results_version", "train_difficulty", "eval_difficulty"])
def test_cells_of_other_columns_are_another_line(column: str, tmp_path: Path) -> None:
    rows = sweep.grid(ordering=("easy2hard",), **{name: (value,) for name, value in NOISY.items()})
    other = [row | {column: "gd_error" if "difficulty" in column else 7} for row in rows]
    shown = drawn("alignment_metrics", rows + other, tmp_path)
    assert len(shown) == 4
    assert shown.groupby("measure")[settings_column(column)].nunique().tolist() == [2, 2]


def settings_column(column: str) -> str:
    """The name of a column of a sweep in the CSV of a figure."""
    return "difficulty" if column == "eval_difficulty" else column


def test_a_clean_cell_is_the_start_of_every_kind_of_noise(tmp_path: Path) -> None:
    noisy = sweep.grid(noise_mode=("label_noise", "random_pairs"), p=(0.25, 0.5), sigma=(0.5, 1.0))
    shown = drawn("noise_robustness", noisy + sweep.grid(), tmp_path)
    lines = of(shown, "transformer", "test loss").groupby(["noise_mode", "sigma"], dropna=False, sort=False)
    assert [key for key, _ in lines] == [
        ("label_noise", 0.5),
        ("label_noise", 1.0),
        ("random_pairs", pytest.approx(np.nan, nan_ok=True)),
    ]
    for _, line in lines:
        assert list(line["x"]) == [0.0, 0.25, 0.5]
        assert set(line["n"]) == {5}


def test_cells_that_mean_the_same_count_once(tmp_path: Path) -> None:
    """p = 0 under every placement and sigma is one trained cell of each seed, not several."""
    rows = sweep.grid(noise_mode=("label_noise",), p=(0.0, 0.5), sigma=(0.5, 1.0), placement=("mixed", "noisy_first"))
    shown = drawn("noise_robustness", rows, tmp_path)
    assert set(shown["n"]) == {5}
    assert len(of(shown, "transformer", "test loss")) == 8
    assert len(drawn("ood_curve", rows, tmp_path)) == 3 * 4 * 5


def test_training_as_evaluated_and_training_clean_are_two_lines_from_one_point(tmp_path: Path) -> None:
    grid = {"noise_mode": "label_noise", "sigma": 0.5}
    same = [sweep.row(seed=seed, p=p, **grid) for p in (0.0, 0.25, 0.5) for seed in range(3)]
    clean = [sweep.row(seed=seed, p=p, train=TRAINED, **grid) for p in (0.25, 0.5) for seed in range(3)]
    shown = drawn("noise_robustness", same + clean, tmp_path)
    lines = {key: list(line["x"]) for key, line in of(shown, "transformer", "test loss").groupby("train_noise_mode")}
    assert lines == {sweep_lines.EVALUATED: [0.0, 0.25, 0.5], "clean": [0.0, 0.25, 0.5]}
    alone = drawn("noise_robustness", same[:3] + clean, tmp_path)
    assert set(alone.loc[alone["series"] == "transformer", "train_noise_mode"]) == {"clean"}


def test_labels_say_what_differs_and_the_caption_the_rest(tmp_path: Path) -> None:
    rows = sweep.grid(noise_mode=("label_noise",), p=(0.25, 0.5), sigma=(0.5,), placement=("mixed", "noisy_first"))
    table = read_sweep(sweep.write(tmp_path / "results.csv", rows))
    figure = FIGURES["noise_robustness"](table).figure
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts[:3] == ["lsa1", "mixed", "noisy_first"]
    assert figure.axes[0].get_title() == "lsa1"
    said = style.whole_caption(figure)
    assert said == (
        "n = 5 seeds (0-4); means, 95 % intervals; 10000 tasks each (the default); changes are paired by seed; "
        "label_noise, sigma=0.5, trained and tested in random order, trained with the same noise, 5000 steps, "
        "results version 2; 20 of 20 planned rows are done"
    )


def test_nothing_clean_is_said_to_be_noisy_and_no_shared_order_is_that_order(tmp_path: Path) -> None:
    clean = sweep.grid() + sweep.grid(train=({"ordering": "easy2hard"},))
    table = read_sweep(sweep.write(tmp_path / "results.csv", clean))
    found = FIGURES["ood_curve"](table).figure
    texts = [text.get_text() for text in found.legends[0].get_texts()]
    assert texts == ["lsa1", "trained random", "trained easy2hard", "gradient descent"]
    assert "trained and tested clean, random order" in style.whole_caption(found)
    said = caption("ood_curve", sweep.grid(ordering=ORDERINGS), tmp_path)
    assert "trained and tested clean, trained in the same order" in said
    both = sweep.grid() + sweep.grid(**{name: (value,) for name, value in NOISY.items()})
    assert "trained as evaluated" not in caption("ood_curve", both, tmp_path)
    assert "trained with the same noise" in caption("ood_curve", both, tmp_path)


@pytest.mark.parametrize(
    ("name", "column", "count"),
    [
        ("ood_curve", "test_tasks", 10000),
        ("ood_curve", "headline_tasks", 10000),  # as earlier versions called it
        ("alignment_metrics", "eval_tasks", 2048),
    ],
)
def test_captions_count_the_tasks_behind_each_number(name: str, column: str, count: int, tmp_path: Path) -> None:
    rows = sweep.grid()
    assert f"{count} tasks each (the default)" in caption(name, rows, tmp_path)
    pd.DataFrame(rows).assign(**{column: 64}).to_csv(tmp_path / "told.csv", index=False)
    said = style.whole_caption(FIGURES[name](read_sweep(tmp_path / "told.csv")).figure)
    assert "n = 5 seeds (0-4); means, 95 % intervals; 64 tasks each;" in said
    pd.DataFrame(rows).assign(**{column: "many"}).to_csv(tmp_path / "words.csv", index=False)
    with pytest.raises(StoreError, match=rf"words\.csv has words in {column.replace('headline', 'test')}"):
        read_sweep(tmp_path / "words.csv")


def test_a_panel_holds_no_more_lines_than_can_be_told_apart(tmp_path: Path) -> None:
    rows = sweep.grid(
        noise_mode=("label_noise",), p=(0.1, 0.25, 0.5), sigma=(0.5, 1.0), placement=("mixed", "noisy_first")
    )
    table = read_sweep(sweep.write(tmp_path / "results.csv", rows))
    _, found = sweep_panels.stack(sweep_lines.lines(table), [], 1.0)
    assert [len(panel.lines) for panel in found] == [4, 4, 4]
    _, found = sweep_panels.pairs(sweep_lines.lines(table), [], 1.0)
    assert [(panel.model, len(panel.lines)) for panel in found] == [(None, 4), ("lsa1", 4)] * 3
    assert [panel.labelled for panel in found] == [False] * 4 + [True] * 2


# Seeds and cells


def test_failed_cells_are_planned_and_not_used(tmp_path: Path) -> None:
    rows = sweep.grid(("lsa1",), ordering=("random", "easy2hard"))
    rows[3] = sweep.row("lsa1", 3, "failed", ordering="random")
    rows[9] = sweep.row("lsa1", 4, "planned", ordering="easy2hard")
    shown = drawn("order_sensitivity", rows, tmp_path)
    assert list(shown["n"]) == [4, 4]
    assert list(shown["seeds"]) == ["0 1 2 4", "0 1 2 3"]
    assert caption("order_sensitivity", rows, tmp_path).startswith(
        "n = 5 seeds (0-4), at some points 4; means, 95 % intervals; 10000 tasks each (the default); "
    )
    assert caption("order_sensitivity", rows, tmp_path).endswith("; 8 of 10 planned rows are done")


def test_captions_count_what_the_sweep_counts_and_say_what_is_shown_of_it(tmp_path: Path) -> None:
    """Also of rows that a figure has no use for: an order without noise, and a row that is not done."""
    rows = sweep.grid(**{name: (value,) for name, value in NOISY.items()}) + sweep.grid(ordering=("easy2hard",))
    rows += [sweep.row("lsa1", 9, "planned")]
    for name in ("noise_robustness", "attention_separation"):
        assert caption(name, rows, tmp_path).endswith("; 10 of 11 planned rows are done, 5 of them shown")
    for name in ("order_sensitivity", "alignment_metrics", "ood_curve"):
        assert caption(name, rows, tmp_path).endswith("; 10 of 11 planned rows are done")


def test_a_baseline_that_a_mode_lacks_is_left_out_and_the_caption_says_so(tmp_path: Path) -> None:
    lacking = {"test_linear_mmse_loss": np.nan, "test_mask_bayes_loss": np.nan}
    rows = sweep.grid(noise_mode=("label_noise", "sign_flips"), p=(0.25, 0.5), sigma=(0.5,))
    rows = [row | lacking if row["noise_mode"] == "sign_flips" else row for row in rows]
    said = caption("noise_robustness", rows, tmp_path)
    assert "no value of linear MMSE for sign_flips; no value of Bayes over masks for sign_flips" in said
    shown = drawn("noise_robustness", rows, tmp_path)
    of_modes = shown[shown["series"] == "linear MMSE"]
    assert set(of_modes["noise_mode"]) == {"label_noise"}
    assert "no value of" not in caption("noise_robustness", rows[:10], tmp_path)


def test_one_seed_has_no_interval_and_the_caption_says_so(tmp_path: Path) -> None:
    rows = sweep.grid(seeds=(3,), ordering=ORDERINGS)
    shown = drawn("alignment_metrics", rows, tmp_path)
    assert shown[["low", "high"]].isna().all(axis=None)
    assert caption("alignment_metrics", rows, tmp_path).startswith(
        "seed 3; one seed, so no intervals; 2048 tasks each (the default); "
    )
    rows += [sweep.row(seed=7, ordering="random")]
    said = caption("alignment_metrics", rows, tmp_path)
    assert said.startswith(
        "n = 2 seeds (3, 7); means, 95 % intervals, but for points of a single seed; 2048 tasks each (the default); "
    )


@pytest.mark.parametrize("name", ["noise_robustness", "attention_separation"])
def test_a_sweep_without_noise_has_nothing_to_show_of_it(name: str, tmp_path: Path) -> None:
    found = FIGURES[name](read_sweep(sweep.write(tmp_path / "results.csv", sweep.grid())))
    assert found.rows == []
    assert [text.get_text() for text in found.figure.axes[0].texts] == ["nothing to show: no noisy runs"]
    assert style.whole_caption(found.figure) == "5 of 5 planned rows are done, 0 of them shown"


def test_a_sweep_of_which_nothing_is_done_has_nothing_to_draw(tmp_path: Path) -> None:
    rows = [sweep.row(seed=seed, status="planned", **NOISY) for seed in range(2)]
    with pytest.raises(StoreError, match=r"results\.csv has nothing to draw: none of its 2 rows is done"):
        draw_sweep(sweep.write(tmp_path / "results.csv", rows), tmp_path / "figs")
    assert not (tmp_path / "figs").exists()


def test_two_results_of_one_cell_are_refused(tmp_path: Path) -> None:
    rows = sweep.grid()
    rows.append(rows[2] | {"exp": "again", "test_loss": 0.5})
    with pytest.raises(StoreError, match=r"results\.csv has two results of one setting and seed 2: .* and again"):
        read_sweep(sweep.write(tmp_path / "results.csv", rows))


# How they look

TABLES: dict[str, list[dict]] = {
    "orders": sweep.grid(("lsa1", "lsa1_pe", "twolayer"), ordering=ORDERINGS)
    + sweep.grid(("lsa1", "lsa1_pe", "twolayer"), train=tuple({"ordering": name} for name in ORDERINGS)),
    "noises": sweep.grid(
        ("lsa1", "lsa1_pe", "twolayer"),
        noise_mode=("label_noise", "random_pairs"),
        p=(0.0, 0.05, 0.5),
        sigma=(0.5,),
        train=({}, TRAINED),
    ),
    "many settings": sweep.grid(
        noise_mode=("label_noise",), p=(0.1, 0.5), sigma=(0.5, 1.0), placement=("clean_first", "noisy_first")
    ),
    "one seed": sweep.grid(("twolayer",), seeds=(3,), noise_mode=("random_pairs",), p=(0.25,)),
    "another model": sweep.grid(("lsa1", "mine"), noise_mode=("label_noise",), p=(0.0, 0.25), sigma=(0.5,)),
    "nothing": [sweep.row(status="planned", **NOISY)],
}


Pictured = Callable[[str, str], Figure]


@pytest.fixture(scope="module")
def pictured(tmp_path_factory: pytest.TempPathFactory) -> Pictured:
    """A figure of a table, drawn once. Read only."""
    folder = tmp_path_factory.mktemp("pictured")

    @cache
    def figure(name: str, table: str) -> Figure:
        source = read_sweep(sweep.write(folder / "results.csv", TABLES[table]))
        return choice.fitted(FIGURES[name], source, NARROWED)[0].figure

    return figure


@pytest.mark.parametrize("table", thinned(TABLES, 3))
@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_can_be_read_at_a_columns_width(name: str, table: str, pictured: Pictured) -> None:
    """A column's, or that of two; no higher than a page."""
    figure = pictured(name, table)
    check_readable(figure, width=COLUMN * (1 + (figure.get_figwidth() > COLUMN)))
    assert figure.get_figheight() < PAGE_HEIGHT
    assert len([axes for axes in figure.axes if axes.axison]) <= choice.PANELS


def colours(axes: Any) -> set[str]:
    """Of everything with an error bar."""
    return {to_hex(bar.lines[0].get_color()).upper() for bar in axes.containers}


def test_models_have_the_colours_of_the_one_table(pictured: Pictured) -> None:
    models = {name: colour.upper() for name, (colour, _) in style.MODELS.items()}
    for name in ("order_sensitivity", "noise_robustness", "ood_curve"):
        seen = set()
        for axes in (axes for axes in pictured(name, "noises").axes if axes.axison):
            model = re.split(r",|\n", axes.get_title())[0]
            expected = set(models.values()) if model == "all models" else {models[model]}
            assert colours(axes) & set(models.values()) == expected
            seen |= {model} - {"all models"}
        assert seen == set(models)
    for name in ("alignment_metrics", "attention_separation"):
        for axes in pictured(name, "noises").axes:
            assert colours(axes) >= set(models.values())
    assert style.DESCENT.upper() not in models.values()


def test_models_that_are_not_in_the_table_differ_from_those_that_are() -> None:
    looks = style.model_looks(["mine", "lsa1", "another", "mine"])
    assert list(looks) == ["mine", "lsa1", "another"]
    assert looks["lsa1"] == style.MODELS["lsa1"]
    assert len({colour for colour, _ in [*looks.values(), *style.MODELS.values()]}) == 5


def plateau(*ratios: float) -> list[dict]:
    """Five seeds in each of two orders; of the second, as many as there are ratios to GD have not trained."""
    rows = sweep.grid(("twolayer",), ordering=("random", "hard2easy"))
    for row, ratio in zip(rows[7:], ratios, strict=False):
        row |= {"test_loss": ratio * row["test_gd_loss"], "trained": "false"}
    return rows


def seeds(axes: Any, hollow: bool) -> np.ndarray:
    """Where the small dots of seeds are."""
    small = [line for line in axes.lines if line.get_markersize() == DOT["markersize"]]
    found = [line.get_xydata() for line in small if (line.get_markerfacecolor() == "white") == hollow]
    return np.concatenate([*found, np.empty((0, 2))])


def test_a_seed_that_has_not_trained_is_hollow_above_a_broken_axis_and_in_no_mean(tmp_path: Path) -> None:
    rows = plateau(1.8, 1.9)
    found = FIGURES["order_sensitivity"](read_sweep(sweep.write(tmp_path / "results.csv", rows)))
    (axes,) = found.figure.axes
    table = pd.DataFrame(rows)
    ratios, trained = table["test_loss"] / table["test_gd_loss"], table["trained"] == "true"
    np.testing.assert_allclose(np.sort(seeds(axes, False)[:, 1]), np.sort(ratios[trained]), rtol=1e-12)
    hollow = seeds(axes, True)
    assert len(hollow) == 2
    assert hollow[0, 0] != hollow[1, 0]
    (label,) = (text.get_text() for text in axes.get_yticklabels() if text.get_position()[1] == hollow[0, 1])
    assert label == "1.8\N{EN DASH}1.9"
    assert ratios[trained].max() < hollow[0, 1] < axes.get_ylim()[1] < 1.5
    said = style.whole_caption(found.figure)
    assert (
        "hollow: seeds not trained (cosine with GD below 0.6, gain below 0.9 of one step's, or no verdict), in no"
        in said
    )
    assert "mean; there n = 3" in said
    shown = pd.DataFrame(found.rows)
    means = of(shown, "transformer").set_index("x")["mean"]
    for order, expected in ratios[trained].groupby(table["ordering"]).mean().items():
        assert means[order] == pytest.approx(expected, rel=1e-12)
    (stuck,) = of(shown, "not trained").to_dict("records")
    assert (stuck["x"], stuck["n"], stuck["seeds"], stuck["values"]) == ("hard2easy", 2, "2 3", "1.8 1.9")
    assert np.isnan(stuck["mean"])
    check_readable(found.figure)


def test_a_seed_that_has_not_trained_that_fits_is_where_its_value_is(tmp_path: Path) -> None:
    rows = plateau(0.99)
    figure = FIGURES["order_sensitivity"](read_sweep(sweep.write(tmp_path / "results.csv", rows))).figure
    np.testing.assert_allclose(seeds(figure.axes[0], True)[:, 1], [0.99])
    assert "there n = 4" in style.whole_caption(figure)
    check_readable(figure)


def test_where_no_seed_has_trained_all_are_hollow_at_their_values(tmp_path: Path) -> None:
    rows = [row | {"test_loss": 4.8 * row["test_gd_loss"], "trained": ""} for row in sweep.grid()]
    found = FIGURES["order_sensitivity"](read_sweep(sweep.write(tmp_path / "results.csv", rows)))
    (axes,) = found.figure.axes
    np.testing.assert_allclose(seeds(axes, True)[:, 1], [4.8] * 5)
    assert axes.get_ylim()[1] > 4.8
    assert not axes.containers
    assert {row["series"] for row in found.rows} == {"not trained"}
    assert "in no mean; there n = 0" in style.whole_caption(found.figure)
    check_readable(found.figure)


def test_orderings_are_not_joined_by_lines(tmp_path: Path) -> None:
    table = read_sweep(sweep.write(tmp_path / "results.csv", TABLES["orders"]))
    for axes in FIGURES["order_sensitivity"](table).figure.axes:
        drawn = [bar.lines[0] for bar in axes.containers]
        assert {line.get_linestyle() for line in drawn} == {"None"}
        assert {len(line.get_xdata()) for line in drawn} == {1}
        assert len(drawn) == 7  # each cell once: in random order trained in four, in the others trained in theirs


# The command


def test_the_command_draws_five_figures_in_three_forms(tmp_path: Path) -> None:
    rows = sweep.grid(("lsa1", "twolayer"), noise_mode=("label_noise",), p=(0.0, 0.25), sigma=(0.5,))
    source, out = sweep.write(tmp_path / "results.csv", rows), tmp_path / "figs"
    done = processes.command("plots.fig_templates", "--from", source, "--out", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert {path.name for path in out.iterdir()} == FILES | {RECORD}
    assert {Path(line).name for line in done.stdout.splitlines()} == FILES
    for name in FIGURES:
        image = np.asarray(Image.open(out / f"{name}.png").convert("RGB"))
        assert image.std() > 5
        assert (image[0] == 255).all()
        assert image.shape[1] == 660  # a column of 3.3 inches at 200 dots an inch
        assert (out / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        shown = pd.DataFrame(FIGURES[name](read_sweep(source)).rows)
        written = pd.read_csv(out / f"{name}.csv")
        assert list(written) == list(shown)
        for column in ("model", "series", "measure", "x", "n", "seeds"):
            assert list(written[column].fillna("all")) == list(shown[column].fillna("all"))
        for column in ("mean", "low", "high"):
            np.testing.assert_allclose(written[column], shown[column], rtol=1e-14)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    draw_sweep(source, out)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def replaced(column: str, value: object) -> list[dict]:
    """A sweep with another value in one cell."""
    rows = sweep.grid()
    rows[1] |= {column: value}
    return rows


WRONG = {
    "old": (
        pd.DataFrame(sweep.grid())[sweep.FIRST],
        "has no column status, results_version, eval_difficulty, train_ordering",
    ),
    "other": (pd.DataFrame({"alpha": [1], "test_mse": [0.5]}), "has no column exp, model, ordering"),
    "no rows": (pd.DataFrame(sweep.grid())[:0], "has no rows"),
    "words": (pd.DataFrame(replaced("test_loss", "low")), "its column test_loss does not hold numbers"),
    "infinite": (pd.DataFrame(replaced("align_l2", np.inf)), "its column align_l2 does not hold numbers"),
    "share": (pd.DataFrame(replaced("p", 25)), "values of p that are not between 0 and 1"),
    "done without": (pd.DataFrame(replaced("test_loss", np.nan)), "rows that are done and have no test_loss"),
    "no seed": (pd.DataFrame(replaced("seed", np.nan)), "rows that are done and have no seed"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_table_that_cannot_be_drawn_leaves_earlier_figures(case: str, tmp_path: Path) -> None:
    out = tmp_path / "figs"
    out.mkdir()
    (out / "order_sensitivity.png").write_bytes(b"of yesterday")
    table, sentence = WRONG[case]
    table.to_csv(tmp_path / "results.csv", index=False)
    with pytest.raises(StoreError, match=r"results\.csv") as refused:
        draw_sweep(tmp_path / "results.csv", out)
    assert sentence in str(refused.value)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == {"order_sensitivity.png": b"of yesterday"}


def test_what_is_no_table_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "bytes.csv").write_bytes(bytes(range(256)))
    for name, sentence in (
        ("missing.csv", "does not exist"),
        ("", "is a folder"),
        ("empty.csv", ""),
        ("bytes.csv", ""),
    ):
        with pytest.raises(StoreError, match=f"{name or tmp_path.name}.* {sentence}"):
            draw_sweep(tmp_path / name, tmp_path / "figs")
    done = processes.command("plots.fig_templates", "--from", tmp_path / "empty.csv", "--out", tmp_path / "figs")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {tmp_path}/empty.csv cannot be read")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "figs").exists()


def test_a_figure_that_fails_leaves_all_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(table: pd.DataFrame, apart: Sequence[str] = ()) -> sweep_panels.Drawn:
        raise MemoryError

    source = sweep.write(tmp_path / "results.csv", sweep.grid())
    monkeypatch.setitem(FIGURES, "ood_curve", fail)
    with pytest.raises(MemoryError):
        draw_sweep(source, tmp_path / "figs")
    assert not (tmp_path / "figs").exists()


def test_names_from_the_table_are_shown_as_they_are(tmp_path: Path) -> None:
    rows = sweep.grid(("$x$", "a\x1b[31mb"), ordering=("random", "$y_$"))
    draw_sweep(sweep.write(tmp_path / "results.csv", rows), tmp_path / "figs")
    table = read_sweep(tmp_path / "results.csv")
    titles = [axes.get_title() for axes in FIGURES["order_sensitivity"](table).figure.axes]
    assert titles == [r"\$x\$", r"a\x1b[31mb"]


@pytest.mark.parametrize(("number", "style", "bands"), [(200, "-", 1), (200, "", 0), (40, "-", 0)])
def test_a_line_through_many_points_has_a_band_and_few_markers(number: int, style: str, bands: int) -> None:
    """Of places without a line between them, such as words, each keeps its bar."""
    axes = Figure().subplots()
    x = list(np.linspace(0.0, 1.0, number))
    line = [Point(place, place, place - 0.25, place + 0.5, (0, 1), (place, place)) for place in x]
    sweep_panels.error_bars(axes, x, line, color="black", marker="o", linestyle=style)
    found = [each for each in axes.collections if isinstance(each, PolyCollection)]
    assert len(found) == bands
    assert len(axes.containers) == 1 - bands  # bars, each with its own marker
    if bands:
        edges = {tuple(np.round(corner, 9)) for corner in found[0].get_paths()[0].vertices}
        assert edges >= {tuple(np.round((place, place + end), 9)) for place in x for end in (-0.25, 0.5)}
        assert len(x[:: axes.lines[0].get_markevery()]) == sweep_panels.MARKED
        np.testing.assert_array_equal(axes.lines[0].get_ydata(), x)
