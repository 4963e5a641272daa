"""Over the share of noisy pairs, and over the scale of the inputs: all models' losses, and each one's over GD's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from icl_lab.plots import style, sweep_lines, sweep_panels
from icl_lab.plots.sweep_lines import Line
from icl_lab.plots.sweep_panels import DESCENT, INK, MODEL, Drawn, Looks, Panel
from icl_lab.plots.sweep_table import ALPHAS, BASELINES, TASKS, Point, Series, points, records

if TYPE_CHECKING:
    import pandas as pd

FEW = 8  # shares whose numbers stand below an axis
HEIGHT, WIDTH = 0.95, 1.1  # inches of a panel
NUDGE = 0.012  # of an axis, between lines that may coincide
LEAST_CHANGE = 1.0  # least span, in per cent, on either side of 0, so that small differences look small
LEAST_RATIO = 0.02  # the same of ratios, around 1
LOSS, CHANGE = "test loss", "change from GD, %"  # measures, which are also the axes' labels
SCALES = {LOSS: "nonnegative", CHANGE: "linear"}  # of their intervals
ERROR, RATIO = "MSE", "MSE / GD's MSE"
GREEN: dict[str, Any] = {"color": style.DESCENT, "linewidth": 1.0}
COMPARED: dict[str, dict[str, Any]] = {
    "test_gd_loss": GREEN | {"linestyle": "-", "marker": "."},
    "test_gd_tuned_step_loss": GREEN | {"linestyle": "--", "marker": "x"},
    "test_linear_mmse_loss": {"color": INK, "linestyle": "-.", "marker": "+"},
    "test_mask_bayes_loss": {"color": INK, "linestyle": ":", "marker": "1"},
}


@style.compact
def draw_noise(table: pd.DataFrame, apart: Sequence[str] = ()) -> Drawn:
    """Over the share of noisy pairs: the test loss and the baselines', and each model's change from GD (clean step).

    Baselines know more and more of the noise. Changes are on the same contexts, paired by seed; the tuned
    step's are shown too.
    """
    noisy = set(zip(*table.loc[table["noisy"], ["model", "ordering"]].T.to_numpy(), strict=True))
    domain = table[[place in noisy for place in zip(table["model"], table["ordering"], strict=True)]]
    done = domain[domain["done"]]
    lines = [line for line in sweep_lines.lines(done, along="p") if line.rows["noisy"].any()]
    if not lines:
        return sweep_panels.nothing_noisy(table)
    used = done[done.index.isin({index for line in lines for index in line.rows.index})]
    figure, drawn = sweep_panels.pairs(lines, [*apart, "noise_mode", "sigma"], HEIGHT)
    looks, series = Looks(lines), []
    looks.explain_models()
    for panel in drawn:
        series += list(_noise_panel(panel, looks, float(used["p"].max())))
        if used["p"].nunique() <= FEW:
            shown = sweep_panels.ticks(used["p"], WIDTH)
            panel.axes.set_xticks(shown, [f"{p:g}" for p in shown])
        panel.axes.set_xlabel("share of noisy pairs p" if panel.labelled else "")
    looks.explain_conditions()
    for column, name in BASELINES.items():
        if used[column].notna().any():
            looks.explain(name, **COMPARED[column])
    more = ["changes are paired by seed", *_without(used)]
    text = sweep_panels.described(lines, series, used, table, TASKS["test_loss"], *more)
    style.finish(figure, looks.handles, text)
    return Drawn(figure, records(series))


def _without(used: pd.DataFrame) -> list[str]:
    """What the caption says of baselines that a noise mode does not have, where no line is drawn."""
    noisy = used[used["noisy"]]
    missing = {name: noisy.loc[noisy[column].isna(), "noise_mode"].unique() for column, name in BASELINES.items()}
    return [f"no value of {name} for {', '.join(modes)}" for name, modes in missing.items() if len(modes)]


def _noise_panel(panel: Panel, looks: Looks, span: float) -> Iterator[Series]:
    """All models' losses and the baselines', or one model's changes and the tuned step's."""
    overview = panel.model is None
    measure = LOSS if overview else CHANGE
    values = _as_they_are if overview else _changes
    for number, (name, line) in enumerate(panel.lines):
        means = sorted(points(line.rows, line.rows["p"], values(line.rows, "test_loss"), SCALES[measure]))
        if means:
            x = [point.x + _shift(number, panel) * span for point in means]
            thin = {"linewidth": 0.6, "markersize": 2.5} if overview else {}
            sweep_panels.error_bars(panel.axes, x, means, **looks.of(line.settings["model"], name) | thin)
            yield Series(MODEL, measure, line.settings, means)
    for column in BASELINES if overview else ["test_gd_tuned_step_loss"]:
        yield from _baseline(panel, measure, column, values)
    panel.axes.set_ylabel(measure)
    if not overview:
        panel.axes.axhline(0, **GREEN)
        panel.axes.set_ylim(sweep_panels.widen(panel.axes.get_ylim(), 0.0, LEAST_CHANGE))


def _as_they_are(rows: pd.DataFrame, column: str) -> pd.Series:
    return rows[column]


def _changes(rows: pd.DataFrame, column: str) -> pd.Series:
    return (100 * (rows[column] / rows["test_gd_loss"] - 1)).where(rows["test_gd_loss"] > 0)


def _shift(number: int, panel: Panel) -> float:
    return NUDGE * (number - (len(panel.lines) - 1) / 2)


def _baseline(panel: Panel, measure: str, column: str, values: Any) -> Iterator[Series]:
    """What does not depend on the model: one line for all the panel's, which are of the same tasks."""
    common, rows = sweep_lines.pooled([line for _, line in panel.lines])
    means: list[Point] = sorted(points(rows, rows["p"], values(rows, column), SCALES[measure]))
    if means:
        sweep_panels.error_bars(panel.axes, [point.x for point in means], means, **COMPARED[column], zorder=3)
        yield Series(BASELINES[column], measure, common, means)


@style.compact
def draw_ood(table: pd.DataFrame, apart: Sequence[str] = ()) -> Drawn:
    """On inputs scaled by alpha, whose labels follow: MSE of the transformer, and over GD's under the same settings."""
    used = table[table["done"] & table[[f"ood_alpha{alpha}" for alpha in ALPHAS]].notna().any(axis=1)]
    if used.empty:
        return sweep_panels.nothing("no run is done", table)
    lines = sweep_lines.lines(used)
    figure, drawn = sweep_panels.pairs(lines, apart, HEIGHT)
    looks, series = Looks(lines), []
    looks.explain_models()
    for panel in drawn:
        series += list(_ood_panel(panel, looks))
        panel.axes.set_xticks([float(alpha) for alpha in ALPHAS], ALPHAS)
        panel.axes.set_xlabel("scale alpha of the inputs" if panel.labelled else "")
    looks.explain_conditions()
    looks.explain(DESCENT, **GREEN, linestyle="--")
    text = sweep_panels.described(lines, series, used, table, TASKS["ood"], "ratios are paired by seed")
    style.finish(figure, looks.handles, text)
    return Drawn(figure, records(series))


def _ood_panel(panel: Panel, looks: Looks) -> Iterator[Series]:
    """All models' errors and gradient descent's, or one model's over gradient descent's."""
    overview, span = panel.model is None, float(ALPHAS[-1]) - float(ALPHAS[0])
    for number, (name, line) in enumerate(panel.lines):
        if overview:
            means = _by_scale(line, lambda rows, alpha: rows[f"ood_alpha{alpha}"])
            descent = _by_scale(line, lambda rows, alpha: rows[f"gd_ood_alpha{alpha}"])
            if descent:
                how = GREEN | {"linestyle": "--", "zorder": 3}
                sweep_panels.error_bars(panel.axes, [point.x for point in descent], descent, **how)
                yield Series(DESCENT, ERROR, line.settings, descent)
        else:
            means = _by_scale(line, _over_descent)
        if means:
            thin = {"linewidth": 0.6, "markersize": 2.5} if overview else {}
            x = [point.x + (0 if overview else 2 * _shift(number, panel) * span) for point in means]
            sweep_panels.error_bars(panel.axes, x, means, **looks.of(line.settings["model"], name) | thin)
            yield Series(MODEL, ERROR if overview else RATIO, line.settings, means)
    panel.axes.set_ylabel(ERROR if overview else RATIO)
    if overview:
        panel.axes.set_yscale("log")
    else:
        panel.axes.axhline(1, **GREEN, linestyle="--")
        panel.axes.set_ylim(sweep_panels.widen(panel.axes.get_ylim(), 1.0, LEAST_RATIO))


def _over_descent(rows: pd.DataFrame, alpha: str) -> pd.Series:
    error, descent = rows[f"ood_alpha{alpha}"], rows[f"gd_ood_alpha{alpha}"]
    return (error / descent).where(descent > 0)


def _by_scale(line: Line, values: Any) -> list[Point]:
    columns = {alpha: values(line.rows, alpha) for alpha in ALPHAS}
    return [point for alpha, y in columns.items() for point in points(line.rows, float(alpha), y, "nonnegative")]
