"""Figures of sweeps: means over seeds as SciPy has them, nothing of different settings in one line, all or no files."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy import stats

from plots.fig_templates import FIGURES, draw_sweep
from plots.sweep_figures import panels, settings
from plots.sweep_figures.table import read_sweep
from store import StoreError
from tests.plots import sweep

NOISY = {"noise_mode": "label_noise", "p": 0.25, "sigma": 0.5}
ORDERINGS = ("smallnorm2largenorm", "random", "hard2easy", "easy2hard")
FILES = {f"{name}.{suffix}" for name in FIGURES for suffix in ("png", "pdf", "csv")}


def drawn(name: str, rows: list[dict], folder: Path) -> pd.DataFrame:
    """The CSV's rows of one figure of a sweep."""
    found = FIGURES[name](read_sweep(sweep.write(folder / "results.csv", rows)))
    return pd.DataFrame(found.rows)


def caption(name: str, rows: list[dict], folder: Path) -> str:
    """What stands below a figure, in one line."""
    figure = FIGURES[name](read_sweep(sweep.write(folder / "results.csv", rows))).figure
    return " ".join(figure.get_supxlabel().split())


def check(shown: pd.DataFrame, rows: list[dict], column: str | pd.Series, along: str, **chosen: Any) -> None:
    """One series against pandas and SciPy: the mean of each x, its 95 % t interval, the seeds."""
    table = pd.DataFrame(rows)
    table["y"] = table[column] if isinstance(column, str) else column
    for name, value in chosen.items():
        table = table[table[name] == value]
    groups = table.groupby(along)["y"]
    expected = groups.agg(["mean", "count"])
    low, high = stats.t.interval(0.95, expected["count"] - 1, expected["mean"], groups.sem())
    shown = shown.set_index("x").loc[expected.index]
    np.testing.assert_allclose(shown["mean"], expected["mean"], rtol=1e-12)
    np.testing.assert_allclose(shown["low"], low, rtol=1e-9)
    np.testing.assert_allclose(shown["high"], high, rtol=1e-9)
    np.testing.assert_array_equal(shown["n"], expected["count"])
    assert set(shown["seeds"]) == {" ".join(map(str, sorted(table["seed"].unique())))}


# What they show


def test_order_is_the_loss_over_gradient_descents(tmp_path: Path) -> None:
    rows = sweep.grid(("lsa1", "twolayer"), ordering=ORDERINGS)
    shown = drawn("order_sensitivity", rows, tmp_path)
    assert len(shown) == 8
    ratio = pd.DataFrame(rows)["test_loss"] / pd.DataFrame(rows)["gd_loss"]
    for model, line in shown.groupby("model"):
        assert list(line["x"]) == ["random", "easy2hard", "hard2easy", "smallnorm2largenorm"]
        check(line, rows, ratio, "ordering", model=model)


def test_noise_is_the_loss_over_p_beside_the_comparators(tmp_path: Path) -> None:
    rows = sweep.grid(noise_mode=("label_noise",), p=(0.5, 0.0, 0.25), sigma=(0.5,), placement=("mixed", "noisy_first"))
    shown = drawn("noise_robustness", rows, tmp_path)
    for placement, line in shown[shown["series"] == "transformer"].groupby("placement"):
        assert list(line["x"]) == [0.0, 0.25, 0.5]
        check(line, rows, "test_loss", "p", placement=placement)
    for name, column in (("GD, clean step", "gd_loss"), ("GD, tuned step", "gd_tuned_step_loss")):
        line = shown[shown["series"] == name]
        noisy = [row for row in rows if row["p"] and row["placement"] == "mixed"]
        check(line, noisy, column, "p")
    assert set(shown["series"]) == {
        "transformer",
        *("GD, clean step", "GD, tuned step"),
        "linear MMSE",
        "Bayes over masks",
    }
    without = [row | dict.fromkeys(("linear_mmse_loss", "mask_bayes_loss"), np.nan) for row in rows]
    assert set(drawn("noise_robustness", without, tmp_path)["series"]) == {
        *("transformer", "GD, clean step", "GD, tuned step")
    }


def test_separation_stands_beside_gradient_descents_and_positions(tmp_path: Path) -> None:
    rows = sweep.grid(("lsa1", "twolayer"), **{name: (value,) for name, value in NOISY.items()}) + sweep.grid()
    shown = drawn("attention_separation", rows, tmp_path)
    assert len(shown) == 6
    for model in ("lsa1", "twolayer"):
        for name, column in (
            ("transformer", "auroc"),
            ("gradient descent", "gd_auroc"),
            ("position alone", "auroc_position"),
        ):
            line = shown[(shown["model"] == model) & (shown["series"] == name)].assign(x="label_noise")
            check(line, rows, column, "noise_mode", model=model, noise_mode="label_noise")


def test_alignment_and_scales_are_of_every_condition(tmp_path: Path) -> None:
    rows = sweep.grid(ordering=ORDERINGS)
    shown = drawn("alignment_metrics", rows, tmp_path)
    for column in ("align_cos", "align_l2"):
        line = shown[shown["series"] == column]
        check(line.assign(x=line["ordering"]), rows, column, "ordering")
    shown = drawn("ood_curve", rows, tmp_path)
    for name, prefix in (("transformer", ""), ("gradient descent", "gd_")):
        for alpha in (1.0, 1.5, 2.0, 3.0):
            line = shown[(shown["series"] == name) & (shown["x"] == alpha)]
            check(line.assign(x=line["ordering"]), rows, f"{prefix}ood_alpha{alpha:g}", "ordering")


# What stands in one line

TRAINED = {"noise_mode": "clean", "p": 0.0, "sigma": 0.0}


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
        {"train": {"sigma": 0.125}},
        {"train": {"placement": "clean_first"}},
        {"train": {"ordering": "easy2hard"}},
    ],
)
@pytest.mark.parametrize("name", FIGURES)
def test_cells_of_other_settings_are_another_line(name: str, given: dict[str, Any], tmp_path: Path) -> None:
    rows = [sweep.row(seed=seed, **NOISY | other) for other in ({}, given) for seed in range(3)]
    shown = drawn(name, rows, tmp_path)
    alone = drawn(name, rows[:3], tmp_path)
    mine = ["transformer", "align_cos", "align_l2"]
    assert len(shown[shown["series"].isin(mine)]) == 2 * len(alone[alone["series"].isin(mine)])
    assert set(shown["n"]) == {3}


@pytest.mark.parametrize("column", ["steps", "results_version", "train_difficulty", "eval_difficulty"])
def test_cells_of_other_columns_are_another_line(column: str, tmp_path: Path) -> None:
    rows = sweep.grid(ordering=("easy2hard",), **{name: (value,) for name, value in NOISY.items()})
    other = [row | {column: "gd_error" if "difficulty" in column else 7} for row in rows]
    shown = drawn("alignment_metrics", rows + other, tmp_path)
    assert len(shown) == 4
    assert shown.groupby("series")[settings_column(column)].nunique().tolist() == [2, 2]


def settings_column(column: str) -> str:
    """The name of a column of a sweep in the CSV of a figure."""
    return "difficulty" if column == "eval_difficulty" else column


def test_a_clean_cell_is_the_start_of_every_kind_of_noise(tmp_path: Path) -> None:
    noisy = sweep.grid(noise_mode=("label_noise", "random_pairs"), p=(0.25, 0.5), sigma=(0.5, 1.0))
    shown = drawn("noise_robustness", noisy + sweep.grid(), tmp_path)
    lines = shown[shown["series"] == "transformer"].groupby(["noise_mode", "sigma"], dropna=False, sort=False)
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
    assert len(shown[shown["series"] == "transformer"]) == 8
    assert len(drawn("ood_curve", rows, tmp_path)) == 2 * 4 * 5


def test_training_as_evaluated_and_training_clean_are_two_lines_from_one_point(tmp_path: Path) -> None:
    grid = {"noise_mode": "label_noise", "sigma": 0.5}
    same = [sweep.row(seed=seed, p=p, **grid) for p in (0.0, 0.25, 0.5) for seed in range(3)]
    clean = [sweep.row(seed=seed, p=p, train=TRAINED, **grid) for p in (0.25, 0.5) for seed in range(3)]
    shown = drawn("noise_robustness", same + clean, tmp_path)
    lines = {key: list(line["x"]) for key, line in shown[shown["series"] == "transformer"].groupby("train_noise_mode")}
    assert lines == {settings.EVALUATED: [0.0, 0.25, 0.5], "clean": [0.0, 0.25, 0.5]}
    alone = drawn("noise_robustness", same[:3] + clean, tmp_path)
    assert set(alone.loc[alone["series"] == "transformer", "train_noise_mode"]) == {"clean"}


def test_labels_say_what_differs_and_the_caption_the_rest(tmp_path: Path) -> None:
    rows = sweep.grid(noise_mode=("label_noise",), p=(0.25, 0.5), sigma=(0.5,), placement=("mixed", "noisy_first"))
    table = read_sweep(sweep.write(tmp_path / "results.csv", rows))
    figure = FIGURES["noise_robustness"](table).figure
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts[:2] == ["mixed", "noisy_first"]
    assert figure.axes[0].get_title() == "lsa1"
    said = " ".join(figure.get_supxlabel().split())
    assert said.startswith("seeds 0-4; 20 of 20 planned cells; means with 95 % t intervals over seeds; ")
    assert said.endswith("trained as evaluated, label_noise, sigma=0.5, random order, 5000 steps, results version 2")


def test_a_panel_holds_no_more_lines_than_can_be_told_apart(tmp_path: Path) -> None:
    rows = sweep.grid(
        noise_mode=("label_noise",), p=(0.1, 0.25, 0.5), sigma=(0.5, 1.0), placement=("mixed", "noisy_first")
    )
    table = read_sweep(sweep.write(tmp_path / "results.csv", rows))
    _, found = panels.grid(settings.lines(table), [], 2.0)
    assert [len(panel.lines) for panel in found] == [4, 4, 4]


# Seeds and cells


def test_failed_cells_are_planned_and_not_used(tmp_path: Path) -> None:
    rows = sweep.grid(("lsa1",), ordering=("random", "easy2hard"))
    rows[3] = sweep.row("lsa1", 3, "failed", ordering="random")
    rows[9] = sweep.row("lsa1", 4, "planned", ordering="easy2hard")
    shown = drawn("order_sensitivity", rows, tmp_path)
    assert list(shown["n"]) == [4, 4]
    assert list(shown["seeds"]) == ["0 1 2 4", "0 1 2 3"]
    assert caption("order_sensitivity", rows, tmp_path).startswith("seeds 0-4; 8 of 10 planned cells; means with")


def test_one_seed_has_no_interval_and_the_caption_says_so(tmp_path: Path) -> None:
    rows = sweep.grid(seeds=(3,), ordering=ORDERINGS)
    shown = drawn("alignment_metrics", rows, tmp_path)
    assert shown[["low", "high"]].isna().all(axis=None)
    assert caption("alignment_metrics", rows, tmp_path).startswith(
        "seed 3; 4 of 4 planned cells; one seed, so no intervals"
    )
    rows += [sweep.row(seed=7, ordering="random")]
    said = caption("alignment_metrics", rows, tmp_path)
    assert said.startswith(
        "seeds 3, 7; 5 of 5 planned cells; means with 95 % t intervals over seeds, but for points of"
    )


@pytest.mark.parametrize("name", ["noise_robustness", "attention_separation"])
def test_a_sweep_without_noise_has_nothing_to_show_of_it(name: str, tmp_path: Path) -> None:
    found = FIGURES[name](read_sweep(sweep.write(tmp_path / "results.csv", sweep.grid())))
    assert found.rows == []
    assert [text.get_text() for text in found.figure.axes[0].texts] == ["nothing to show: no noisy cells"]
    assert found.figure.get_supxlabel() == "0 of 5 planned cells"


def test_a_sweep_of_which_nothing_is_done_is_drawn_too(tmp_path: Path) -> None:
    rows = [sweep.row(seed=seed, status="planned", **NOISY) for seed in range(2)]
    paths = draw_sweep(sweep.write(tmp_path / "results.csv", rows), tmp_path / "figs")
    assert {path.name for path in paths} == FILES
    for name in FIGURES:
        assert pd.read_csv(tmp_path / "figs" / f"{name}.csv").empty


def test_two_results_of_one_cell_are_refused(tmp_path: Path) -> None:
    rows = sweep.grid()
    rows.append(rows[2] | {"exp": "again", "test_loss": 0.5})
    with pytest.raises(StoreError, match=r"results\.csv has two results of one setting and seed 2: .* and again"):
        read_sweep(sweep.write(tmp_path / "results.csv", rows))


# The command


def command(*words: object) -> subprocess.CompletedProcess[str]:
    """The command as a user types it, with warnings as errors."""
    line = [sys.executable, "-W", "error", "-m", "plots.fig_templates", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, cwd=Path(__file__).parents[2])


def test_the_command_draws_five_figures_in_three_forms(tmp_path: Path) -> None:
    rows = sweep.grid(("lsa1", "twolayer"), noise_mode=("label_noise", "random_pairs"), p=(0.0, 0.25), sigma=(0.5,))
    source, out = sweep.write(tmp_path / "results.csv", rows), tmp_path / "figs"
    done = command("--from", source, "--out", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert {path.name for path in out.iterdir()} == FILES
    assert {Path(line).name for line in done.stdout.splitlines()} == FILES
    for name in FIGURES:
        image = np.asarray(Image.open(out / f"{name}.png").convert("RGB"))
        assert image.std() > 5
        assert (image[0] == 255).all()
        assert image.shape[1] in (495, 1034, 1035)  # a column or a page, at 150 dots an inch
        assert (out / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        shown = pd.DataFrame(FIGURES[name](read_sweep(source)).rows)
        written = pd.read_csv(out / f"{name}.csv")
        assert list(written) == list(shown)
        for column in ("model", "series", "x", "n", "seeds"):
            np.testing.assert_array_equal(written[column], shown[column])
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
    done = command("--from", tmp_path / "empty.csv", "--out", tmp_path / "figs")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {tmp_path}/empty.csv cannot be read")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "figs").exists()


def test_a_figure_that_fails_leaves_all_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(table: pd.DataFrame) -> panels.Drawn:
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
