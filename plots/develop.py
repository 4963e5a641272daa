"""How a run develops, on one page: loss, LLC, behaviour and structure over log time, its path and a random walk's.

Stages between milestones of the LLC are shaded: blue where one is claimed, grey where none is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.plots import style
from icl_lab.plots.essential_dynamics import NUMBERS, SERIES, draw_plane
from icl_lab.store import layout
from icl_lab.store.readers import expecting, read_csv, read_json

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

HEALTHY = "healthy"
PUBLISHED = "published"
CLAIMED, OTHERWISE = "#cfe3f5", ("#ececec", "#f7f7f7")
# panel -> columns of the table, those that a model has, with their labels
PANELS: Mapping[str, Mapping[str, str]] = {
    "behaviour": {
        "id_icl_1_k_figure": "ICL score, last less first loss",
        "id_squared_prediction": "squared prediction",
        "ood_delta_ridge": "distance to ridge, fresh tasks",
    },
    "structure, over its first value": {
        "weight_norm": "|w|",
        "embedding_smallest_share": "embedding, smallest share",
        "read_out_norm_gamma_mean": "read-out's layer norm, mean scale",
        "attention_entropy": "attention entropy",
    },
}
FIRST = 0.5  # of the first step after 0: where step 0 stands on a logarithmic axis


def draw_development(run: Path) -> Path:
    """figs/develop.png, of what is in analysis/develop/ and of the essential dynamics."""
    facts = read_json(run / layout.DEVELOP)
    with expecting(run / layout.DEVELOP, "the development of a run"):
        health = [f"health_{name}" for name in facts["settings"]]
    table = read_csv(run / layout.DEVELOP_TABLE, ("step", "loss"), health).sort_values("step")
    paths = read_csv(run / layout.ESSENTIAL_DYNAMICS, NUMBERS, ("series",))
    with expecting(run / layout.DEVELOPMENT, "the development of a run"):
        return _draw(run, table, paths, facts)


@style.styled
def _draw(run: Path, table: pd.DataFrame, paths: pd.DataFrame, facts: Mapping[str, Any]) -> Path:
    figure, axes = style.new_figure(3, 2, width=4.6, height=2.2)
    unsaturated = [name for name in facts["settings"] if name != PUBLISHED]
    _loss(axes[0, 0], table, next(iter(facts["settings"])))
    _llc(axes[1, 0], table, unsaturated, "LLC, unsaturated settings")
    _published(axes[1, 1], table, facts)
    for panel, (title, columns) in zip((axes[2, 0], axes[2, 1]), PANELS.items(), strict=True):
        _lines(panel, table, columns, over_first=title.startswith("structure"))
        panel.axison = bool({*columns} & {*table})
        panel.set_title(title if panel.axison else f"{title}: this model has none", fontsize=8)
    for panel in (panel for panel in (axes[0, 0], *axes[1:].ravel()) if panel.axison):
        _over_training(panel, table, facts["stages"])
        if panel.get_legend_handles_labels()[0]:
            panel.legend(fontsize=6)
    _planes(axes[0, 1], paths, facts["dynamics"])
    style.caption(figure, _caption(run, facts))
    return style.save(figure, run / layout.DEVELOP_FIGURE, run)


def _steps(table: pd.DataFrame) -> np.ndarray:
    steps = table["step"].to_numpy(float)
    return np.asarray(np.maximum(steps, FIRST * min(steps[steps > 0], default=1.0)))


def _over_training(panel: Axes, table: pd.DataFrame, stages: Sequence[Mapping[str, Any]]) -> None:
    steps = _steps(table)
    panel.set_xscale("log")
    panel.set_xlim(steps[0], steps[-1])
    panel.set_xlabel("training step")
    for number, stage in enumerate(stages):
        colour = CLAIMED if stage["claimed"] else OTHERWISE[number % 2]
        panel.axvspan(max(stage["start"], steps[0]), stage["end"], color=colour, zorder=0, linewidth=0)


def _loss(panel: Axes, table: pd.DataFrame, setting: str) -> None:
    panel.plot(_steps(table), table[f"loss_{setting}"], color=style.TRANSFORMER, label="loss")
    panel.set_title("loss on the LLC's tasks", fontsize=8)


def _llc(panel: Axes, table: pd.DataFrame, settings: Sequence[str], title: str) -> None:
    """Healthy checkpoints filled, others hollow; the axis is that of the healthy ones."""
    shown: list[float] = []
    for name, colour in zip(settings, (style.TRANSFORMER, style.OTHER, style.DESCENT), strict=False):
        values, low, high = (table[f"{column}_{name}"].to_numpy(float) for column in ("llc", "llc_low", "llc_high"))
        good = (table[f"health_{name}"] == HEALTHY).to_numpy()
        panel.plot(_steps(table), values, color=colour, linewidth=0.6, alpha=0.5)
        panel.errorbar(
            _steps(table)[good], values[good], [(values - low)[good], (high - values)[good]], fmt="o",
            color=colour, markersize=3, linewidth=0.8, label=name,
        )  # fmt: skip
        panel.plot(_steps(table)[~good], values[~good], "o", color=colour, markersize=3, markerfacecolor="white")
        shown += [*low[good], *high[good]]
    if shown:
        span = max(max(shown) - min(shown), 1e-9)
        panel.set_ylim(min(shown) - 0.2 * span, max(shown) + 0.2 * span)
    panel.set_title(title, fontsize=8)


def _published(panel: Axes, table: pd.DataFrame, facts: Mapping[str, Any]) -> None:
    """The published setting with its null, nbeta (L_draw(first) - L(w_t))."""
    if PUBLISHED not in facts["settings"]:
        panel.set_axis_off()
        return
    nbeta = facts["settings"][PUBLISHED]["nbeta"]
    losses = table[f"loss_{PUBLISHED}"]
    null = table[f"llc_{PUBLISHED}"].iloc[0] - nbeta * (losses - losses.iloc[0])
    panel.plot(_steps(table), table[f"llc_{PUBLISHED}"], "o-", color=style.TRANSFORMER, markersize=3, label="LLC")
    panel.plot(_steps(table), null, "--", color="black", linewidth=1, label="nβ (L_draw(first) - L(w))")
    panel.set_title("LLC, published setting", fontsize=8)


def _lines(panel: Axes, table: pd.DataFrame, columns: Mapping[str, str], over_first: bool) -> None:
    for name, label in columns.items():
        if name in table:
            values = table[name].to_numpy(float)
            panel.plot(_steps(table), values / values[0] if over_first else values, label=label)


def _planes(panel: Axes, paths: pd.DataFrame, dynamics: Mapping[str, Any]) -> None:
    """The first plane of the run with its forms, and beside it, moved, that of a random walk."""
    trajectory, walk = (paths[paths["series"] == name] for name in SERIES)
    draw_plane(panel, trajectory, (0, 1), dynamics["forms"][:5])
    panel.plot(walk["pc1_smooth"], walk["pc2_smooth"], color=style.GREY, linestyle="--", linewidth=0.8)
    panel.set_title("PCA of outputs; dashed: a random walk of its steps", fontsize=8)


def _caption(run: Path, facts: Mapping[str, Any]) -> str:
    healthy = ", ".join(f"{name} {good} of {count}" for name, (good, count) in facts["healthy"].items())
    dynamics, null, stages = facts["dynamics"], facts["dynamics"]["null"], facts["stages"]
    claimed = sum(stage["claimed"] for stage in stages)
    forms = "not sought" if dynamics["p_forms"] is None else f"{len(dynamics['forms'])}, of walks {null['forms']:.1f}"
    return (
        f"{run.name}. Stages: {len(stages)}, of which claimed (blue): {claimed}. Healthy checkpoints "
        f"(filled): {healthy}. Variance of the first component {dynamics['explained'][0]:.2f}, of random walks "
        f"{null['explained'][0]:.2f}; forms: {forms}"
    )
