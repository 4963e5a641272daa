"""Figures are drawn from files alone, without JAX, and show what the files hold."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from icl_lab.plots import heat_maps, run_figures, style, training
from icl_lab.plots.attention_quick import draw_attention
from icl_lab.store import StoreError, layout
from icl_lab.store.atomic import write_csv, write_json, write_npz
from icl_lab.store.metrics import read_metrics
from icl_lab.store.rundir import begin, read_config
from tests.runners.tiny import PAIRS, Workshop, copied

FIGURES = {
    "lsa1": {"loss", "alignment", "weights", "attention_layer0_head0"},
    "twolayer": {"loss", "alignment", "weights", "attention_layer0_head0", "attention_layer1_head0"},
}


def pixels(path: Path) -> np.ndarray:
    """An image as [rows, columns, 3]."""
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def is_a_figure(path: Path) -> bool:
    """Large enough, on white, and with something in several colours on it."""
    image = pixels(path)
    colours, counts = np.unique(image.reshape(-1, 3), axis=0, return_counts=True)
    ink = 1 - counts.max() / counts.sum()
    return min(image.shape[:2]) > 300 and len(colours) > 20 and 0.02 < ink < 0.98 and bool((image[0] == 255).all())


def redrawn(run: Path, to: Path) -> Path:
    """A copy of a run without its figures."""
    out = copied(run, to)
    shutil.rmtree(out / layout.FIGURES)
    return out


@pytest.mark.parametrize("model", ["lsa1", "twolayer"])
def test_the_runs_own_figures_are_figures(model: str, lsa1_run: Path, twolayer_run: Path) -> None:
    run = {"lsa1": lsa1_run, "twolayer": twolayer_run}[model]
    drawn = {path.stem: path for path in (run / layout.FIGURES).iterdir()}
    assert drawn.keys() == FIGURES[model]
    assert all(is_a_figure(path) for path in drawn.values())


def test_the_command_draws_them_again_without_jax(
    lsa1_run: Path, twolayer_run: Path, workshop: Workshop, tmp_path: Path
) -> None:
    one, two = redrawn(lsa1_run, tmp_path / "one"), redrawn(twolayer_run, tmp_path / "two")
    code = (
        "import runpy, sys\n"
        f"sys.argv = ['run_figures', '--run', {str(one)!r}, {str(two)!r}]\n"
        "try:\n    runpy.run_module('plots.run_figures', run_name='__main__')\n"
        "finally:\n    print(*({'jax', 'haiku'} & set(sys.modules)))"
    )
    done = workshop.python("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{one / layout.FIGURES}\n{two / layout.FIGURES}\n\n"
    for run, original in ((one, lsa1_run), (two, twolayer_run)):
        assert {path.stem for path in (run / layout.FIGURES).iterdir()} == FIGURES[original.name]
        for path in (run / layout.FIGURES).iterdir():
            np.testing.assert_array_equal(pixels(path), pixels(original / layout.FIGURES / path.name))


def test_the_attention_command_draws_where_it_is_told(lsa1_run: Path, workshop: Workshop, tmp_path: Path) -> None:
    done = workshop.run("plots.attention_quick", "--run", lsa1_run, "--out", tmp_path / "figs")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{tmp_path / 'figs' / 'attention_layer0_head0.png'}\n"
    assert is_a_figure(tmp_path / "figs" / "attention_layer0_head0.png")


def test_without_attention_one_sentence_says_how_to_get_it(lsa1_run: Path, workshop: Workshop, tmp_path: Path) -> None:
    run = redrawn(lsa1_run, tmp_path / "run")
    shutil.rmtree(run / layout.ATTENTION)
    done = workshop.run("plots.attention_quick", "--run", run)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {run} has no captured attention; run it again with --save_attention\n"
    run_figures.draw_run(run)
    assert {path.stem for path in (run / layout.FIGURES).iterdir()} == {"loss", "alignment", "weights"}


# What they show


def test_the_loss_curve_follows_the_metrics(lsa1_run: Path, tmp_path: Path) -> None:
    run = redrawn(lsa1_run, tmp_path / "run")
    before = pixels(training.draw_loss(run))
    lines = (run / layout.METRICS).read_text().splitlines(keepends=True)
    (run / layout.METRICS).write_text("".join(lines[:-2]))
    assert not np.array_equal(pixels(training.draw_loss(run)), before)


def test_lines_are_the_recorded_numbers(lsa1_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line's data, by its label, read from the figure before it is saved."""
    drawn: list[Figure] = []
    monkeypatch.setattr(style, "save", lambda figure, path, run=None: drawn.append(figure) or path)
    training.draw_loss(lsa1_run)
    training.draw_alignment(lsa1_run)
    rows = np.genfromtxt(lsa1_run / layout.ALIGNMENT_CURVE, delimiter=",", names=True)
    lines = {line.get_label(): line for figure in drawn for axes in figure.axes for line in axes.get_lines()}
    shown = {
        "Trained Transformer": "tf_loss",
        "Gradient descent": "gd_loss",
        "predictions: mean |difference|": "preds_diff",
        "sensitivities: mean ‖difference‖": "model_diff",
    }
    for label, column in shown.items():
        np.testing.assert_array_equal(lines[label].get_xdata(), rows["step"])
        np.testing.assert_array_equal(lines[label].get_ydata(), rows[column])
    cosines = [line for line in lines.values() if np.array_equal(line.get_ydata(), rows["model_cos"])]
    assert len(cosines) == 1
    assert [axes.get_xlabel() for axes in drawn[0].axes] == ["training step"]
    assert "half" in drawn[0].axes[0].get_ylabel()


@pytest.mark.slow
def test_losses_of_different_units_have_axes_of_their_own(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = (
        "--steps 40 --eval_every 20 --batch_size 16 --config.eval_tasks=32 --config.test_tasks=50 --num_layers 1 "
        "--num_heads 2 --config.d_model=8 --config.mlp_width=16 --config.dim=4 --config.num_pairs=6"
    ).split()
    run = workshop.finished("diversity_drawn", "runners.run_task_diversity", "--num_tasks", 4, sizes=sizes)
    drawn: list[Figure] = []
    monkeypatch.setattr(style, "save", lambda figure, path, run=None: drawn.append(figure) or path)
    training.draw_loss(run)
    records = read_metrics(run)
    fields = [{"train_loss", "eval_loss"}, {"eval_id_loss", "eval_ood_loss"}]
    for axes, names, unit in zip(drawn[0].axes, fields, ("half MSE", "squared error / D"), strict=True):
        shown = {tuple(line.get_ydata()) for line in axes.get_lines()}
        assert shown == {tuple(record[name] for record in records) for name in names}
        assert unit in axes.get_ylabel()


def test_legends_cover_no_axes(lsa1_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr(style, "save", lambda figure, path, run=None: drawn.append(figure) or path)
    training.draw_loss(lsa1_run)
    training.draw_alignment(lsa1_run)
    for figure in drawn:
        figure.draw_without_rendering()
        (legend,) = figure.legends
        box = legend.get_window_extent()
        assert not any(axes.get_window_extent().overlaps(box) for axes in figure.axes)
        assert all(axes.get_legend() is None for axes in figure.axes)
        assert (box.x0 > 0, box.x1 < figure.bbox.x1) == (True, True)


def test_captions_say_why_maps_and_weights_differ_in_sign_and_scale(
    lsa1_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The map's diagonal is beta times the mean of |x|^2, as the label's channel hardly counts."""
    drawn: list[Figure] = []
    monkeypatch.setattr(style, "save", lambda figure, path, run=None: drawn.append(figure) or path)
    heat_maps.draw_weights(lsa1_run)
    draw_attention(lsa1_run, tmp_path)
    said = [style.whole_caption(figure) for figure in drawn]
    beta = float(said[0].rpartition(": ")[2])
    stored = np.load(lsa1_run / layout.WEIGHTS)
    np.testing.assert_allclose(beta * stored["rescaled_kq"], stored["kq"], atol=2e-3 * abs(beta))
    assert "raw scores" in said[1]
    assert "weights.png divides them out" in said[1]


def images(figure: Figure) -> list[np.ndarray]:
    """The matrices in a figure."""
    return [np.asarray(image.get_array()) for axes in figure.axes for image in axes.get_images()]


def test_the_weights_figure_shows_the_trained_products_and_the_construction(
    lsa1_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr(style, "save", lambda figure, path, run=None: drawn.append(figure) or path)
    heat_maps.draw_weights(lsa1_run)
    stored = np.load(lsa1_run / layout.WEIGHTS)
    names = ("rescaled_kq", "rescaled_pv", "construction_kq", "construction_pv")
    for found, name in zip(images(drawn[0]), names, strict=True):
        np.testing.assert_array_equal(found, stored[name][0, 0])


@pytest.mark.parametrize("task", [0, 3])
def test_the_attention_figure_shows_a_context_and_mean_sizes(
    task: int, twolayer_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[Figure, Path]] = []
    monkeypatch.setattr(style, "save", lambda figure, path, run=None: drawn.append((figure, path)) or path)
    draw_attention(twolayer_run, tmp_path, task)
    assert [path.name for _, path in drawn] == ["attention_layer0_head0.png", "attention_layer1_head0.png"]
    for layer, (figure, _) in enumerate(drawn):
        maps = np.load(twolayer_run / f"attn/layer{layer}.npz")["data"][:, 0]
        one, mean = images(figure)
        np.testing.assert_array_equal(one, maps[task])
        np.testing.assert_allclose(mean, np.abs(maps).mean(axis=0), rtol=1e-6)
        assert mean[-1].min() > 0  # the query's row is seen
        labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
        assert labels == [f"{part}{pair}" for pair in range(1, PAIRS + 1) for part in "xy"] + ["query"]


def test_a_context_that_was_not_captured_is_one_sentence(lsa1_run: Path, workshop: Workshop) -> None:
    done = workshop.run("plots.attention_quick", "--run", lsa1_run, "--task", "16")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: task is 16; {lsa1_run} has the attention of 16 contexts, from 0 on\n"


def test_every_head_has_its_figure(lsa1_run: Path, tmp_path: Path) -> None:
    run = redrawn(lsa1_run, tmp_path / "run")
    config = read_config(run)
    begin(run, replace(config, model=replace(config.model, num_heads=2)))
    summary = {"tasks": 4, "layers": [{"layer": 0, "kind": "linear", "heads": [{"head": 0}, {"head": 1}]}]}
    write_json(run / layout.ATTENTION_SUMMARY, summary)
    maps = np.arange(4 * 2 * (PAIRS + 1) * PAIRS, dtype=np.float32).reshape(4, 2, PAIRS + 1, PAIRS)
    write_npz(layout.attention_layer(run, 0), {"data": maps})
    paths = draw_attention(run, tmp_path / "figs")
    assert [path.name for path in paths] == ["attention_layer0_head0.png", "attention_layer0_head1.png"]
    assert not np.array_equal(*(pixels(path) for path in paths))


def test_channels_are_named_and_of_many_a_few() -> None:
    _, axes = style.new_figure()
    names = heat_maps.channel_names(10, 51)
    assert names[:11] == [*(f"x{i}" for i in range(1, 11)), "y"]
    assert names[11:] == [f"p{i}" for i in range(1, 41)]
    assert heat_maps.channel_names(2, 4, own_label=False) == ["x1", "x2", "p1", "p2"]
    panel = axes[0, 0]
    heat_maps.name_places(panel, names, names[:5])
    shown = [label.get_text() for label in panel.get_xticklabels()]
    assert len(shown) <= heat_maps.MOST_NAMES
    assert (shown[0], shown[-1]) == ("x1", "p40")
    for place, text in zip(panel.get_xticks(), shown, strict=True):
        assert names[int(place)] == text
    assert [label.get_text() for label in panel.get_yticklabels()] == names[:5]


@pytest.mark.parametrize(("symmetric", "limits"), [(True, (-3.0, 3.0)), (False, (0.0, 3.0))])
def test_colours_are_symmetric_about_0_for_signed_maps(symmetric: bool, limits: tuple[float, float]) -> None:
    figure, axes = style.new_figure()
    heat_maps.heat_map(axes[0, 0], np.array([[1.0, -3.0], [0.5, 2.0]]), "title", symmetric)
    assert axes[0, 0].get_images()[0].get_clim() == limits
    assert len(figure.axes) == 2


def test_a_map_of_zeros_has_colours_too() -> None:
    _, axes = style.new_figure()
    heat_maps.heat_map(axes[0, 0], np.zeros((2, 2)), "title")
    assert axes[0, 0].get_images()[0].get_clim() == (-1.0, 1.0)


def test_the_style_does_not_leak() -> None:
    from matplotlib import rcParams

    before = dict(rcParams)
    seen = style.styled(lambda: rcParams["font.size"])()
    assert seen == style.RC["font.size"] != before["font.size"]
    assert dict(rcParams) == before


# What cannot be drawn


def test_a_curve_of_another_schema_is_refused(lsa1_run: Path, tmp_path: Path) -> None:
    run = redrawn(lsa1_run, tmp_path / "run")
    write_csv(run / layout.ALIGNMENT_CURVE, [{"step": 0, "accuracy": 0.5}])
    with pytest.raises(StoreError, match=r"alignment\.csv.*no column preds_diff"):
        training.draw_alignment(run)
    write_npz(run / layout.WEIGHTS, {"kq": np.zeros((1, 1, 2, 2))})
    with pytest.raises(StoreError, match=r"weights\.npz"):
        heat_maps.draw_weights(run)
    (run / layout.METRICS).write_text("")
    with pytest.raises(StoreError, match=r"metrics\.jsonl is not the metrics of a run"):
        training.draw_loss(run)
    assert not (run / layout.FIGURES).exists()


def test_metrics_of_another_schema_are_refused(lsa1_run: Path, tmp_path: Path) -> None:
    run = redrawn(lsa1_run, tmp_path / "run")
    (run / layout.METRICS).write_text('{"step": 0, "accuracy": 0.5}\n')
    with pytest.raises(StoreError, match=r"metrics\.jsonl"):
        training.draw_loss(run)
