"""Lines over an axis: the evaluation ordering, the share of noisy pairs, the scale of the inputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from plots import style
from plots.sweep_figures import panels, settings
from plots.sweep_figures.panels import DESCENT, MODEL, Drawn, Legend, Panel
from plots.sweep_figures.points import Point, Series, points, records
from plots.sweep_figures.settings import ORDERED
from plots.sweep_figures.table import ALPHAS, COMPARATORS

if TYPE_CHECKING:
    import pandas as pd

LEAST_RATIO = 0.02  # that an axis of ratios shows on either side of 1: what hardly differs must look so
SHIFT = 0.1  # between lines that share places on an axis of words
NUDGE = 0.01  # of an axis of numbers, between lines that may coincide
DASHED = {"linestyle": "--", "marker": ""}
THIN = dict(zip(COMPARATORS, (("-", "."), ("--", "x"), ("-.", "+"), (":", "1")), strict=True))  # and a marker


@panels.compact
def draw_order(table: pd.DataFrame) -> Drawn:
    """Test loss over GD's on the same tasks, by evaluation ordering; clean and each kind of noise in panels apart."""
    ratio = (table["test_loss"] / table["gd_loss"]).where(table["gd_loss"] > 0)
    used = table[table["done"] & ratio.notna()]
    if used.empty:
        return panels.nothing("no cell is done", len(table))
    lines = settings.lines(used, along="ordering")
    present = set(used["ordering"])
    orderings = [name for name in ORDERED if name in present] + sorted(present - set(ORDERED))
    figure, drawn = panels.grid(lines, ["noise_mode"], 1.8)
    series, legend = [], Legend()
    for panel in drawn:
        for number, (name, line) in enumerate(panel.lines):
            found = sorted(points(line.rows, line.rows["ordering"], ratio), key=lambda point: orderings.index(point.x))
            shift = SHIFT * (number - (len(panel.lines) - 1) / 2)
            x = [orderings.index(point.x) + shift for point in found]
            legend.add(name, panels.error_bars(panel.axes, x, found, **legend.look(name)))
            series.append(Series(MODEL, line.settings, found))
        one = panel.axes.axhline(1, color=style.GREY, linestyle="--", linewidth=1)
        legend.add(f"{DESCENT} (clean step)", one)
        panel.axes.margins(y=0.15)
        low, high = panel.axes.get_ylim()
        panel.axes.set_ylim(min(low, 1 - LEAST_RATIO), max(high, 1 + LEAST_RATIO))
        panel.axes.set_xlim(-0.5, len(orderings) - 0.5)
        names = [style.plain(name) for name in orderings]
        panel.axes.set_xticks(range(len(names)), names, rotation=30, ha="right", rotation_mode="anchor")
    figure.supylabel("test loss / GD's loss", fontsize=8)
    panels.finish(figure, legend, panels.described(lines, series, used, len(table)))
    return Drawn(figure, records(series))


@panels.compact
def draw_noise(table: pd.DataFrame) -> Drawn:
    """Test loss over the share of noisy pairs, beside comparators that know more and more of the noise."""
    noisy = set(zip(*table.loc[table["noisy"], ["model", "ordering"]].T.to_numpy(), strict=True))
    domain = table[[place in noisy for place in zip(table["model"], table["ordering"], strict=True)]]
    done = domain[domain["done"]]
    lines = [line for line in settings.lines(done, along="p") if line.rows["noisy"].any()]
    if not lines:
        return panels.nothing_noisy(table)
    used = done[done.index.isin({index for line in lines for index in line.rows.index})]
    figure, drawn = panels.grid(lines, ["noise_mode", "sigma"], 2.0, sharey="row")
    series, legend = [], Legend()
    for panel in drawn:
        for number, (name, line) in enumerate(panel.lines):
            found = sorted(points(line.rows, line.rows["p"], line.rows["test_loss"]))
            shift = NUDGE * used["p"].max() * (number - (len(panel.lines) - 1) / 2)
            x = [point.x + shift for point in found]
            legend.add(name, panels.error_bars(panel.axes, x, found, **legend.look(name)))
            series.append(Series(MODEL, line.settings, found))
        series += _comparators(panel, legend)
        panel.axes.set_xticks(sorted(set(used["p"])))
        panel.axes.set_xlabel("share of noisy pairs p" if panel.lowest else "")
    figure.supylabel("test loss (half MSE)", fontsize=8)
    planned = int((~domain["done"]).sum()) + len(used)
    panels.finish(figure, legend, panels.described(lines, series, used, planned))
    return Drawn(figure, records(series))


def _comparators(panel: Panel, legend: Legend) -> Iterator[Series]:
    """Thin lines of what does not depend on the model: one for all the panel's lines, which are of the same tasks."""
    import pandas as pd

    rows = pd.concat([line.rows for _, line in panel.lines])
    rows = rows[~rows.index.duplicated()]
    first, *others = (line.settings for _, line in panel.lines)
    common = {name: value if all(value == line[name] for line in others) else None for name, value in first.items()}
    for column, name in COMPARATORS.items():
        found: list[Point] = sorted(points(rows, rows["p"], rows[column]))
        if found:
            means = [point.mean for point in found]
            linestyle, marker = THIN[column]
            how = {"color": "#404040", "linewidth": 0.8, "linestyle": linestyle, "marker": marker, "zorder": 3}
            legend.add(name, panel.axes.plot([point.x for point in found], means, **how)[0])
            yield Series(name, common, found)


@panels.compact
def draw_ood(table: pd.DataFrame) -> Drawn:
    """MSE on inputs scaled by alpha, whose labels follow: the transformer, and GD under the same settings in dashes."""
    scales = [f"ood_alpha{alpha}" for alpha in ALPHAS]
    used = table[table["done"] & table[scales].notna().any(axis=1)]
    if used.empty:
        return panels.nothing("no cell is done", len(table))
    lines = settings.lines(used)
    figure, drawn = panels.grid(lines, [], 2.0, sharey=True)
    series, legend = [], Legend()
    for panel in drawn:
        for name, line in panel.lines:
            look = legend.look(name) | {"linestyle": "-"}
            for owner, prefix, how in ((MODEL, "", look), (DESCENT, "gd_", look | DASHED)):
                found = [
                    point
                    for alpha, scale in zip(ALPHAS, scales, strict=True)
                    for point in points(line.rows, float(alpha), line.rows[prefix + scale])
                ]
                bars = panels.error_bars(panel.axes, [point.x for point in found], found, **how)
                if owner == MODEL:
                    legend.add(name, bars)
                series.append(Series(owner, line.settings, found))
        panel.axes.set_yscale("log")
        panel.axes.set_xticks([float(alpha) for alpha in ALPHAS], ALPHAS)
        panel.axes.set_xlabel("scale alpha of the inputs" if panel.lowest else "")
    legend.add(f"{DESCENT} in the same colours", drawn[0].axes.plot([], [], color=style.GREY, **DASHED)[0])
    figure.supylabel("MSE", fontsize=8)
    panels.finish(figure, legend, panels.described(lines, series, used, len(table)))
    return Drawn(figure, records(series))
