"""Loss per layer compared with loss per step of gradient descent.

python -m plots.compare_depth --gd gd_metrics.json --layerwise layerwise_metrics.json [MORE] --out DIR
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from icl_lab.lab import cli
from icl_lab.plots import style
from icl_lab.src.loss_conventions import TRIMMED_MEAN
from icl_lab.src.words import printable
from icl_lab.store import layout, outputs
from icl_lab.store.atomic import csv_bytes
from icl_lab.store.outputs import in_path, out_folder
from icl_lab.store.readers import StoreError, expecting, is_count, is_number, read_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "compare_gd_vs_transformer"
HALF_WIDTH = 1.96  # standard errors of a 95 % interval of a mean over many tasks
# statistic -> (where it stands in a file, its standard error, in words)
STATISTICS = {
    "mse": ("mse", "sem", "mean"),
    "trimmed_mean": ("trimmed_mean", "trimmed_sem", TRIMMED_MEAN),
    "median": ("median", None, "median"),
}
REFERENCES = {
    "ridge": "Ridge (Bayes)",
    "conjugate_gradients": "Conjugate gradients",
    "newton_schulz": "Newton-Schulz",
    "zero": "Zero",
}
TASK_FIELDS = ("dim", "num_pairs", "noise_std")
MARKERS = ("+", "x", "1", "2", "3", "4")
COLUMNS = ("series", "x", "loss", "low", "high", "statistic")


class Series(NamedTuple):
    """A curve: its label, losses [T] after 1 to T steps or layers, and half widths of their intervals."""

    label: str
    loss: np.ndarray
    half: np.ndarray


def read_losses(path: Path, count: str) -> dict[str, Any]:
    """A file of losses whose number of points stands in `count`; `StoreError` if it is none."""
    values = read_json(path)
    with expecting(path, f"a file of losses with {count}, mse and sem"):
        if not (is_count(values[count]) and 0 < values[count] == len(values["mse"]) == len(values["sem"])):
            raise ValueError
        return values


def series(label: str, values: dict[str, Any], statistic: str) -> Series:
    """A curve from what JSON holds of it."""
    loss, error, _ = STATISTICS[statistic]
    losses = _numbers(values[loss])
    half = HALF_WIDTH * _numbers(values[error]) if error else np.full(len(losses), np.nan)
    if len(half) != len(losses):
        raise ValueError
    return Series(label, losses, half)


def _held_by_all(statistic: str, curves: Sequence[dict[str, Any]]) -> str:
    """The statistic of a figure: the mean if a curve does not hold the one asked for, with its standard error."""
    loss, error, _ = STATISTICS[statistic]
    held = all(loss in values and (error is None or error in values) for values in curves)
    return statistic if held else "mse"


def _numbers(values: Sequence[Any]) -> np.ndarray:
    """Numbers from JSON as an array; null, a non-finite value, becomes nan."""
    if not all(value is None or is_number(value) for value in values):
        raise ValueError
    return np.array([np.nan if value is None else value for value in values], float)


@style.styled
def figure_of(gd: Series, layers: Sequence[Series], references: Sequence[Series], text: str, log: bool) -> Figure:
    """Gradient descent as a green line, transformers as purple plus signs, references in grey."""
    figure, axes = style.new_figure(width=5.2, height=3.6)
    panel = axes[0, 0]
    _line(panel, gd, style.DESCENT, "-")
    for number, curve in enumerate(layers):
        x, colour = np.arange(1, len(curve.loss) + 1), style.TRANSFORMER
        marker = {"marker": MARKERS[number % len(MARKERS)], "linestyle": "none", "markersize": 6, "elinewidth": 1}
        half = np.nan_to_num(curve.half)
        panel.errorbar(x, curve.loss, half, color=colour, label=style.plain(curve.label), **marker)
    for reference, dashes in zip(references, ("--", ":", "-.", (0, (1, 4))), strict=False):
        if len(reference.loss) == 1:
            panel.axhline(reference.loss[0], color=style.GREY, linestyle=dashes, linewidth=1.2, label=reference.label)
        else:
            _line(panel, reference, style.GREY, dashes)
    panel.locator_params(axis="x", integer=True)
    panel.set_xlabel("GD Steps / Transformer Layers")
    panel.set_ylabel("Loss")
    panel.set_yscale("log" if log else "linear")
    if not log:
        panel.set_ylim(bottom=0)
    drawn = dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))
    order = [label for label, *_ in (gd, *layers, *references)]
    style.legend_above(figure, {label: drawn[style.plain(label)] for label in order})
    style.caption(figure, text)
    return figure


def _line(panel: Axes, curve: Series, colour: str, dashes: Any) -> None:
    x = np.arange(1, len(curve.loss) + 1)
    panel.plot(x, curve.loss, color=colour, linestyle=dashes, label=curve.label)
    panel.fill_between(x, curve.loss - curve.half, curve.loss + curve.half, color=colour, alpha=0.2, linewidth=0)


def rows(curves: Sequence[Series], statistic: str) -> list[dict[str, Any]]:
    """What is drawn, as the rows of a table, each with its statistic."""
    return [
        dict(zip(COLUMNS, (label, x + 1, loss[x], loss[x] - half[x], loss[x] + half[x], statistic), strict=True))
        for label, loss, half in curves
        for x in range(len(loss))
    ]


def compare(
    gd_file: Path,
    layerwise_files: Sequence[Path],
    out: Path,
    references: Sequence[str] = (),
    statistic: str = "trimmed_mean",
    log: bool = False,
) -> list[Path]:
    """The figure as .png and .pdf, and as .csv what it shows; all is read and drawn before the first is written."""
    values = read_losses(gd_file, "steps")
    curves = [read_losses(path, "layers") for path in layerwise_files]
    for path, file in zip(layerwise_files, curves, strict=True):
        if _task_fields(values) and _task_fields(file) and _task_fields(file) != _task_fields(values):
            raise StoreError(
                f"{path} is about other tasks than {gd_file}: {_task_fields(file)}, not {_task_fields(values)}"
            )
    with expecting(gd_file, "a file of losses with these references"):
        referred = {REFERENCES[name]: values["references"][name] for name in references}
        statistic = _held_by_all(statistic, [values, *curves, *referred.values()])
        others = [series(label, losses, statistic) for label, losses in referred.items()]
    with expecting(gd_file, "a file of losses with steps, mse and sem"):
        gd = series("Gradient descent", values, statistic)
    layers = []
    for path, file in zip(layerwise_files, curves, strict=True):
        with expecting(path, "a file of losses with layers, mse and sem"):
            which = f", {_what(file)}" if len(curves) > 1 else ""
            layers.append(series(f"Trained Transformer{which}", file, statistic))
    for path, curve in zip((gd_file, *layerwise_files), (gd, *layers), strict=True):
        if np.isnan(curve.loss).all():
            raise StoreError(f"{path} has nothing to draw: no loss is a finite number")
    figure = figure_of(gd, layers, others, _caption(values, statistic), log)
    files = {out / f"{NAME}.{suffix}": style.rendered(figure, suffix) for suffix in ("png", "pdf")}
    files[out / f"{NAME}.csv"] = csv_bytes(rows([gd, *layers, *others], STATISTICS[statistic][2]), COLUMNS)
    return outputs.write(files, "plots.compare_depth")


def draw_layerwise(run: Path) -> Path:
    """layerwise.png: a run's losses after every layer, and gradient descent's on the same tasks."""
    values = read_losses(run / layout.LAYERWISE, "layers")
    with expecting(run / layout.LAYERWISE, "the losses of a run's layers"):
        shown = {
            "Trained Transformer": values,
            "Gradient descent": values["gd"],
            REFERENCES["ridge"]: values["references"]["ridge"],
        }
        statistic = _held_by_all("trimmed_mean", [*shown.values()])
        layers, gd, ridge = (series(label, losses, statistic) for label, losses in shown.items())
    figure = figure_of(gd, [layers], [ridge], _caption(values, statistic), False)
    return style.save(figure, layout.figure(run, "layerwise"), run)


def _task_fields(values: dict[str, Any]) -> dict[str, Any]:
    """What a file says of its tasks, as far as losses depend on it."""
    data = values.get("data", {})
    return {name: data[name] for name in TASK_FIELDS if name in data} if isinstance(data, dict) else {}


def _what(values: dict[str, Any]) -> str:
    supervised = ", deep supervision" if values.get("deep_supervision") else ""
    seed = f", seed {values['seed']}" if "seed" in values else ""
    return f"{values.get('model', 'model')}, {values['layers']} layers{supervised}{seed}"


def _caption(values: dict[str, Any], statistic: str) -> str:
    fields = ", ".join(f"{name} {value}" for name, value in _task_fields(values).items())
    tasks = f" of {values['num_tasks']} tasks" if "num_tasks" in values else ""
    return f"Mean squared error, noise included: {STATISTICS[statistic][2]}{tasks}; bands and bars: 95 %. {fields}"


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("plots.compare_depth", "Draws loss per layer and loss per step of gradient descent.")
    built.add_argument("--gd", type=in_path, required=True, help="gd_metrics.json")
    cli.add_list(built, "--layerwise", in_path, [], "layerwise_metrics.json of one or several runs")
    built.add_argument("--out", type=out_folder, required=True, help="folder of the figure")
    cli.add_list(built, "--references", str, [], f"further curves: {', '.join(REFERENCES)}")
    built.add_argument("--statistic", choices=STATISTICS, default="trimmed_mean", help="statistic over tasks")
    built.add_argument("--log", action="store_true", help="logarithmic loss axis")
    return built


def main(argv: list[str]) -> None:
    """The command line."""
    flags = parser().parse(argv)
    if not flags.layerwise:
        raise cli.UsageError("no layers to draw: give --layerwise layerwise_metrics.json")
    for name in flags.references:
        if name not in REFERENCES:
            raise cli.UsageError(f"references has {name!r}; each must be one of {', '.join(REFERENCES)}")
    for path in compare(flags.gd, flags.layerwise, flags.out, flags.references, flags.statistic, flags.log):
        print(printable(path))


if __name__ == "__main__":
    cli.launch(main)
