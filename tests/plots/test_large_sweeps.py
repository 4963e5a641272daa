"""Figures of large sweeps: a page at most; what is left out is named with its command, and these draw every row."""

import resource
import shlex
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from icl_lab.plots import choice, style, sweep_lines
from icl_lab.plots.choice import Where
from icl_lab.plots.fig_templates import FIGURES, draw_sweep
from icl_lab.plots.sweep_table import narrowed, read_sweep
from icl_lab.store import StoreError
from tests import processes
from tests.plots import sweep
from tests.plots.readable import check_readable

CLEAN = {"noise_mode": "clean", "p": 0.0, "sigma": 0.0}
PAGE_HEIGHT = 11.0  # inches
LARGE = 100_000  # rows
SECONDS, KIBIBYTES = 60, 2**20  # 30 s of a processor that does nothing else; other work may double them


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of more settings than a page shows: orders, noises, placements, each trained clean or not."""
    rows = sweep.grid(
        ("lsa1", "twolayer"),
        seeds=range(2),
        ordering=("random", "easy2hard", "hard2easy"),
        noise_mode=("label_noise", "random_pairs"),
        p=(0.1, 0.5),
        sigma=(0.5,),
        placement=("mixed", "noisy_first"),
        train=({}, CLEAN),
    )
    return sweep.write(tmp_path_factory.mktemp("large") / "results.csv", rows)


def fitted(name: str, table: pd.DataFrame) -> tuple[Any, list[choice.Left]]:
    """A figure of a table, and what does not fit it."""
    return choice.fitted(FIGURES[name], table, narrowed(name))


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_of_many_settings_fits_a_page(name: str, source: Path) -> None:
    (figure, rows), left = fitted(name, read_sweep(source))
    assert bool(left) == (name != "noise_robustness")  # which is of both noises, twelve panels
    panels = [axes for axes in figure.axes if axes.axison]
    assert 0 < len(panels) <= 12
    assert figure.get_figheight() < PAGE_HEIGHT
    check_readable(figure, width=figure.get_figwidth())
    assert rows
    if figure.get_figwidth() > 4:  # a page's: each panel has the numbers of both of its axes, and their names
        for axes in panels:
            assert axes.get_xlabel()
            assert axes.get_ylabel()
            assert axes.xaxis.get_tick_params()["labelbottom"]


@pytest.mark.parametrize("name", ["order_sensitivity", "alignment_metrics"])
def test_the_named_commands_draw_all_that_is_left_out(name: str, source: Path) -> None:
    """Every row of the table is shown by the figure, or by that of one of the conditions that it names, and so on."""
    whole, waiting, shown = read_sweep(source), [()], list[str]()
    while waiting:
        where = waiting.pop()
        left = fitted(name, read_sweep(source, where))[1]
        last = choice.chosen(whole, where, source)
        for kept, column, values in left:
            waiting += [(*kept, Where(column, value)) for value in values]
            most = {*map(choice.said, last[column].unique())} - {*values}
            assert len(most) == 1
            last = choice.chosen(last, [Where(column, *most)], source)
        shown += list(last["exp"])
    assert sorted(shown) == sorted(whole["exp"])


def test_a_figure_with_its_rest_left_out_is_that_of_its_conditions(source: Path) -> None:
    """Byte for byte the figure that `--where` asks for."""
    (figure, rows), left = fitted("order_sensitivity", read_sweep(source))
    kept = [Where("train_noise_mode", "clean")]
    assert left == [choice.Left((), "train_noise_mode", ("label_noise", "random_pairs"))]
    (asked, same), none = fitted("order_sensitivity", read_sweep(source, kept))
    assert (same, none) == (rows, [])
    assert style.whole_caption(asked) == style.whole_caption(figure)
    assert "(train_noise_mode=clean)" in style.whole_caption(asked)


@pytest.mark.slow
def test_the_command_names_what_is_left_out_and_its_commands_run(source: Path, tmp_path: Path) -> None:
    done = processes.command("plots.fig_templates", "--from", source, "--out", tmp_path / "figs")
    assert (done.returncode, done.stderr) == (0, "")
    named = [line for line in done.stdout.splitlines() if line.startswith("not in ")]
    line = next(line for line in named if line.startswith("not in order_sensitivity") and "label_noise;" in line)
    words = shlex.split(line.partition("; ")[2])
    assert words[:3] == ["python", "-m", "plots.fig_templates"]
    again = processes.command("plots.fig_templates", *words[3:])
    assert (again.returncode, again.stderr) == (0, "")
    folder = tmp_path / "figs" / "train_noise_mode=label_noise"
    drawn = pd.read_csv(folder / "order_sensitivity.csv")
    assert len(drawn)
    assert "clean" not in {*drawn["train_noise_mode"]}


def test_panels_parts_by_a_setting(source: Path) -> None:
    table = read_sweep(source, [Where("train_noise_mode", "clean"), Where("noise_mode", "label_noise")])
    for name in ("order_sensitivity", "alignment_metrics"):
        figure = FIGURES[name](table, apart=["placement"]).figure
        titles = {axes.get_title().replace("lsa1, ", "").replace("twolayer, ", "") for axes in figure.axes}
        assert titles - {""} == {"mixed", "noisy_first"}
        check_readable(figure, width=figure.get_figwidth())


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"panels": "placment"}, "cannot be split into panels by placment, did you mean placement?"),
        ({"where": [Where("train_noise_mod", "clean")]}, "no column train_noise_mod, did you mean train_noise_mode?"),
        ({"where": [Where("p", "0.3")]}, "has no row to draw with p=0.3; its values are 0.1, 0.5"),
    ],
)
def test_wrong_columns_and_values_are_refused(flags: dict[str, Any], sentence: str, source: Path) -> None:
    with pytest.raises(StoreError) as refused:
        draw_sweep(source, source.parent / "none", **flags)
    assert sentence in str(refused.value)
    assert not (source.parent / "none").exists()


def test_two_results_of_a_swept_field_say_how_to_choose(tmp_path: Path) -> None:
    rows = [
        row | {"training.lr": rate, "test_loss": row["test_loss"] * rate} for rate in (1, 2) for row in sweep.grid()
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "swept.csv", index=False)
    with pytest.raises(StoreError, match=r"they differ in training\.lr: --where training\.lr=1 chooses"):
        read_sweep(tmp_path / "swept.csv")
    assert len(read_sweep(tmp_path / "swept.csv", [Where("lr", "2")])) == 5


def test_more_settings_than_a_figure_shows_are_not_compared(monkeypatch: pytest.MonkeyPatch, source: Path) -> None:
    table = read_sweep(source)
    for limit in ("SETTINGS", "KEYS"):
        with monkeypatch.context() as patch:
            patch.setattr(sweep_lines, limit, 10)
            with pytest.raises(choice.TooLarge) as large:
                sweep_lines.lines(table)
        assert {*large.value.settings["train_noise_mode"]} == {"clean", "label_noise", "random_pairs"}
        assert large.value.settings["train_placement"].isna().any()  # of what is trained clean


@pytest.mark.slow
def test_a_hundred_thousand_rows_take_seconds(source: Path, tmp_path: Path) -> None:
    table = pd.read_csv(source)
    copies = -(-LARGE // len(table))
    large = pd.concat([table.assign(seed=table["seed"] + 2 * k) for k in range(copies)], ignore_index=True)
    large.assign(exp=large.index.map("run{}".format)).to_csv(tmp_path / "large.csv", index=False)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = processes.python("-m", "icl_lab.plots.fig_templates", "--from", tmp_path / "large.csv", "--out", tmp_path)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < SECONDS
    assert after.ru_maxrss < max(KIBIBYTES, before.ru_maxrss + 1)
