"""Effects from a table of contrasts: losses in per cent, AUROC as it is, each panel with limits of its own."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from icl_lab.plots import effects, style
from icl_lab.store import StoreError
from tests.plots.readable import check_readable

MODELS = ("lsa1", "lsa1_pe", "twolayer")
ORDERS = {"smallnorm2largenorm": 0.0002, "trained easy2hard, tested easy2hard": -0.085, "hard2easy": 0.0004}
NOISES = {
    "label_noise 0.1 / gd_clean_step": 0.002,
    "random_pairs 0.5 / gd_tuned_step": 0.022,
    "label_noise 0.1 / linear_mmse": 2.01,
    "random_pairs 0.5 / mask_bayes": 0.086,
}


def row(question: str, model: str, name: str, change: float) -> dict[str, Any]:
    """A contrast whose control is .2."""
    half = 0.1 * abs(change) + 1e-4
    found = {"question": question, "contrast": f"{model}: {name}", "kind": "difference", "verdict": "higher", "n": 5}
    found |= {"treated": 0.2 * (1 + change), "control": 0.2}
    found |= {"difference": 0.2 * change, "low": 0.2 * (change - half), "high": 0.2 * (change + half)}
    return found | {"change": change, "change_low": change - half, "change_high": change + half}


def rows(question: str, changes: dict[str, float], **given: Any) -> list[dict[str, Any]]:
    """Of every model, each with a larger change than the one before."""
    return [
        row(question, model, name, change * (1 + number)) | given
        for number, model in enumerate(MODELS)
        for name, change in changes.items()
    ]


def figure(found: list[dict[str, Any]], folder: Path) -> Figure:
    """The figure of a table of one question."""
    pd.DataFrame(found).to_csv(folder / "contrasts.csv", index=False)
    return effects.draw_question(str(found[0]["question"]), effects.read_contrasts(folder / "contrasts.csv"))


def dots(axes: Any) -> dict[str, np.ndarray]:
    """Where each colour's dots are."""
    return {to_hex(line.get_color()): line.get_xdata() for line in axes.lines if line.get_marker() in "os^"}


@pytest.mark.parametrize("changes", [ORDERS, NOISES])
@pytest.mark.parametrize("unit", ["loss", "auroc", None])
def test_figures_can_be_read_at_a_columns_width(changes: dict[str, float], unit: str | None, tmp_path: Path) -> None:
    check_readable(figure(rows("some order", changes, **({"unit": unit} if unit else {})), tmp_path))


def test_models_have_the_colours_of_the_one_table_and_losses_are_per_cent(tmp_path: Path) -> None:
    (axes,) = figure(rows("order", ORDERS), tmp_path).axes
    found = dots(axes)
    for number, (colour, _) in enumerate(style.MODELS[model] for model in MODELS):
        np.testing.assert_allclose(found[colour.lower()], [100 * (1 + number) * change for change in ORDERS.values()])
    assert axes.get_xlabel() == "change, %"


def test_auroc_is_told_in_differences_of_its_own(tmp_path: Path) -> None:
    given = {"unit": "auroc", "change": np.nan, "change_low": np.nan, "change_high": np.nan}
    drawn = figure(rows("attention", {"label_noise 0.1": 0.01, "label_noise 0.5": 0.02}, **given), tmp_path)
    (axes,) = drawn.axes
    np.testing.assert_allclose(dots(axes)[style.MODELS["lsa1"][0].lower()], [0.002, 0.004])
    assert axes.get_xlabel() == "difference of AUROC"
    low, high = axes.get_xlim()
    assert (low < -0.01, high > 0.01, high < 0.03) == (True, True, True)
    said = style.whole_caption(drawn)
    assert "n = 5 paired seeds, 95 % intervals; grey: within .01 of AUROC; 2048 tasks each (the default)" in said


def test_an_interval_of_auroc_is_cut_at_what_a_difference_can_be(tmp_path: Path) -> None:
    wide = rows("attention", {"a": 0.1}, unit="auroc", n=2, low=-1.4, high=0.3)
    drawn = figure(wide, tmp_path)
    (axes,) = drawn.axes
    ends = np.concatenate([bar[:, 0] for lines in axes.collections for bar in lines.get_segments()])
    np.testing.assert_allclose(sorted(set(ends)), [-1, 0.3])
    assert sum(line.get_marker() == "<" for line in axes.lines) == len(MODELS)
    assert style.CUT in style.whole_caption(drawn)


def test_a_question_of_both_units_has_a_panel_for_each(tmp_path: Path) -> None:
    both = rows("attention", {"a": 0.001}, unit="auroc") + rows("attention", {"a": 0.001}, unit="loss")
    assert [axes.get_xlabel() for axes in figure(both, tmp_path).axes] == ["difference of AUROC", "change, %"]


def test_limits_hold_what_is_there_and_the_margin_and_are_not_symmetric(tmp_path: Path) -> None:
    near, far = figure(rows("noise", NOISES), tmp_path).axes
    assert near.get_xscale() == "linear"
    assert far.get_xscale() == "symlog"
    assert [text.get_text() for text in far.get_xticklabels()] == ["\N{MINUS SIGN}1", "0", "1", "10", "100"]
    for axes, most in ((near, 100 * 3 * 0.022 * 1.1), (far, 100 * 3 * 2.01 * 1.1)):
        low, high = axes.get_xlim()
        assert -1.5 < low < -1
        assert most < high < 1.5 * most
    assert [text.get_text() for text in near.get_yticklabels()] == [
        "label_noise 0.1 /\ngd_clean_step",
        "random_pairs 0.5 /\ngd_tuned_step",
    ]


GRID = {
    f"{noise} {p} / {name}": change
    for noise in ("label_noise", "random_pairs")
    for p, change in ((0.1, 0.002), (0.5, 0.02))
    for name in ("gd_clean_step", "gd_tuned_step")
}


def test_what_rows_would_repeat_is_a_panels_title(tmp_path: Path) -> None:
    """A whole grid of noises and baselines: two panels in a row that share rows and limits."""
    drawn = figure(rows("noise", GRID), tmp_path)
    left, right = drawn.axes
    assert [axes.get_title() for axes in drawn.axes] == ["/ gd_clean_step", "/ gd_tuned_step"]
    names = ["label_noise 0.1", "label_noise 0.5", "random_pairs 0.1", "random_pairs 0.5"]
    assert [text.get_text() for text in left.get_yticklabels()] == names
    assert left.get_xlim() == right.get_xlim()
    of_model = {axes: dots(axes)[style.MODELS["twolayer"][0].lower()] for axes in drawn.axes}
    for axes in drawn.axes:
        np.testing.assert_allclose(of_model[axes], [0.6, 6, 0.6, 6])
    check_readable(drawn)
    assert all(axes.xaxis.get_tick_params()["labelbottom"] for axes in drawn.axes)
    several = {**GRID, **{name.replace("tuned", "other"): change for name, change in GRID.items()}}
    several |= {name.partition(" /")[0] + " / linear_mmse": 2 * change for name, change in GRID.items()}
    figure_of_four = figure(rows("noise", several), tmp_path)
    upper = figure_of_four.axes[0]
    assert upper.xaxis.get_tick_params()["labelbottom"]  # its numbers stand there, their unit below its column
    assert upper.get_xlabel() == ""
    assert len([axes for axes in figure_of_four.axes if axes.axison]) == 4
    check_readable(figure_of_four)
    whole = len(figure(rows("noise", dict(list(GRID.items())[1:])), tmp_path).axes)
    assert whole == 1  # one is missing, so that the names are no grid


def test_a_question_of_many_conditions_fits_a_page(tmp_path: Path) -> None:
    many = {
        f"{noise} {p} / {name}": change
        for noise in ("label_noise", "random_pairs")
        for p in (0.1, 0.25, 0.5)
        for name, change in (
            ("a", 0.01),
            ("b", 0.02),
            ("c, against d", 0.01),
            ("linear_mmse", 1.0),
            ("mask_bayes", 2.0),
        )
    }
    drawn = figure(rows("noise at evaluation", many), tmp_path)
    assert drawn.get_figheight() < 9
    check_readable(drawn)


def test_changes_without_the_seeds_that_have_not_trained_are_hollow(tmp_path: Path) -> None:
    found = rows("order", ORDERS)
    for number, one in enumerate(found):
        one |= {"n_all": 5, "n": 4 if number == 1 else 5}
    drawn = figure(found, tmp_path)
    (axes,) = drawn.axes
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    np.testing.assert_allclose([line.get_xdata()[0] for line in hollow], [-8.5])
    assert "hollow: without seeds that have not trained" in style.whole_caption(drawn)
    assert "hollow" not in style.whole_caption(figure(rows("order", ORDERS), tmp_path))


def test_a_wide_axis_has_numbers_between_its_decades(tmp_path: Path) -> None:
    drawn = figure(rows("order", {"easy2hard": 0.035, "hard2easy": -0.03}), tmp_path)
    (axes,) = drawn.axes
    shown = [text.get_text().replace("\N{MINUS SIGN}", "-") for text in axes.get_xticklabels()]
    assert shown == ["-10", "-5", "-2", "-1", "0", "1", "2", "5", "10"]
    check_readable(drawn)


def test_numbers_have_room_beside_long_names(tmp_path: Path) -> None:
    changes = {"trained smallnorm2largenorm, tested smallnorm2largenorm": -0.028, "trained easy2hard": 0.034}
    drawn = figure(rows("order in training", changes), tmp_path)
    (axes,) = drawn.axes
    shown = [text.get_text().replace("\N{MINUS SIGN}", "-") for text in axes.get_xticklabels()]
    assert shown == [
        "-10",
        "-3",
        "-1",
        "0",
        "1",
        "3",
        "10",
    ]  # without those at 2 and 5, which short names leave room for
    check_readable(drawn)


def test_the_files_hold_the_rows_and_their_unit(tmp_path: Path) -> None:
    found = rows("order at evaluation", ORDERS) + rows("noise x order", NOISES)
    pd.DataFrame(found).to_csv(tmp_path / "contrasts.csv", index=False)
    paths = effects.draw_effects(tmp_path / "contrasts.csv", tmp_path / "figs")
    names = ("effects_order_at_evaluation", "effects_noise_x_order")
    assert {path.name for path in paths} == {f"{name}.{suffix}" for name in names for suffix in ("png", "pdf", "csv")}
    written = pd.read_csv(tmp_path / "figs/effects_order_at_evaluation.csv")
    assert set(written["unit"]) == {"loss"}
    expected = pd.DataFrame(found[: len(written)])
    for column in effects.NUMBERS:
        np.testing.assert_allclose(written[column], expected[column])
    assert list(written["contrast"]) == list(expected["contrast"])


def test_the_caption_counts_tasks_as_the_table_does(tmp_path: Path) -> None:
    assert "10000 tasks each (the default)" in style.whole_caption(figure(rows("q", ORDERS), tmp_path))
    said = style.whole_caption(figure(rows("q", ORDERS, tasks=64), tmp_path))
    assert said.endswith("; 64 tasks each")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"unit": "metres"}, "has a unit that is none of loss, step, auroc"),
        ({"tasks": "many"}, "has words in tasks"),
        ({"n_all": "many"}, "has words in n_all"),
        ({"difference": "large"}, "its column difference does not hold numbers"),
        ({"question": "/"}, "has a question without a name"),
    ],
)
def test_a_table_that_cannot_be_drawn_leaves_no_files(given: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    pd.DataFrame(rows("q", ORDERS) + [row("q", "lsa1", "b", 0.1) | given]).to_csv(tmp_path / "c.csv", index=False)
    if {"unit", "tasks", "n_all"} & {*given}:
        pd.DataFrame([row("q", "lsa1", "b", 0.1) | given]).to_csv(tmp_path / "c.csv", index=False)
    with pytest.raises(StoreError, match=r"c\.csv .*" + sentence):
        effects.draw_effects(tmp_path / "c.csv", tmp_path / "figs")
    assert not (tmp_path / "figs").exists()
