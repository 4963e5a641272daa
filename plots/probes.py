"""Scores of linear probes: a panel for each target, over the activations of a row, or over the rows of tokens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.lab.configs.presets import title_of
from icl_lab.plots import style
from icl_lab.store import layout
from icl_lab.store.readers import expecting, read_csv
from icl_lab.store.rundir import read_config

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TRAINED, UNTRAINED, OTHER_CONTEXT, TOKENS, READ_OUT = "trained", "untrained", "other_context", "tokens", "read_out"
LOOKS: dict[str, dict[str, Any]] = {
    TRAINED: {"color": style.TRANSFORMER, "marker": "o", "label": "trained"},
    UNTRAINED: {"color": "#000000", "marker": "s", "linestyle": "--", "label": "untrained"},
    TOKENS: {"color": style.OTHER, "marker": "v", "linestyle": ":", "label": "tokens that the row sees"},
    OTHER_CONTEXT: {"color": style.GREY, "marker": "x", "linestyle": "-.", "label": "target of another context"},
    READ_OUT: {"color": "#0072B2", "marker": "D", "linestyle": "none", "label": "the layer's read-out, not fitted"},
}
NAMES = {
    "w": "the task w",
    "gradient": r"$X^\top y$",
    "least_squares": "least-squares weights",
    "gd": "weights of GD",
    "residual": "residuals under GD",
    "noise_mask": "which pairs are corrupted",
    "y_query": "the query's label",
    "least_squares_prediction": "least squares' prediction",
    "gd_prediction": "GD's prediction",
}
LOWEST = -0.3  # R^2 that is drawn; what lies below is drawn there
COLUMNS = 3  # of panels
MEASURES = {"R2": r"$R^2$", "AUROC": "AUROC"}


@style.styled
def draw_probes(run: Path) -> Path:
    """figs/probes.png, from probes.csv."""
    path, config = run / layout.PROBES, read_config(run)
    words = ("target", "activation", "probe", "measure", "reason")
    table = read_csv(path, ("score", "low", "high", "position", "steps", "contexts"), words, drawn=("score",))
    with expecting(path, "the scores of linear probes"):
        table = table[table["score"].notna()]
        figure = _figure(table)
        text = (
            f"{title_of(config)}, seed {config.data_seed}; {int(table['contexts'].iloc[0])} contexts, cross-validated; "
        )
        text += f"bars: 95 % intervals over contexts; scores below {LOWEST:g} are drawn there; "
        places = sorted(table["position"].astype(int).unique())
        where = f"row {places[0]} of the tokens" if len(places) == 1 else "controls are those of the last activation"
        style.caption(figure, text + where)
    return style.save(figure, run / layout.PROBES_FIGURE, run)


def _figure(table: pd.DataFrame) -> Figure:
    targets = list(dict.fromkeys(table["target"]))
    columns = min(COLUMNS, len(targets))
    rows = -(-len(targets) // columns)
    figure, axes = style.new_figure(rows, columns, width=max(2.7, 4.4 / columns), height=2.3)
    draw = _over_activations if table["position"].nunique() == 1 else _over_rows
    for panel, name in zip(axes.ravel(), targets, strict=False):
        part = table[table["target"] == name]
        draw(panel, part)
        panel.set_title(NAMES.get(name, style.plain(name)), fontsize=9)
        panel.set_ylabel(MEASURES[part["measure"].iloc[0]])
        panel.set_ylim(LOWEST - 0.07, 1.07)
    for panel in axes.ravel()[len(targets) :]:
        panel.set_visible(False)
    style.legend_above(figure)
    return figure


def _over_activations(panel: Axes, table: pd.DataFrame) -> None:
    """The scores at a row, from the first activation to the last."""
    trained = table[table["probe"] == TRAINED]
    order = [*trained["activation"]]
    steps = dict(zip(trained["activation"], trained["steps"], strict=True))
    for name in (OTHER_CONTEXT, TOKENS, UNTRAINED, TRAINED):
        part = table[table["probe"] == name]
        if name == TOKENS:
            part = _beside(part, steps)
        _line(panel, [order.index(at) for at in part["activation"]], part, LOOKS[name])
    read = table[table["probe"] == READ_OUT]
    places = {_layer(at): place for place, at in enumerate(order)}
    read = read[read["activation"].map(_layer).isin([*places])]
    _line(panel, [places[_layer(at)] for at in read["activation"]], read, LOOKS[READ_OUT])
    panel.set_xticks(range(len(order)), [at.removeprefix("blocks.") for at in order], rotation=30, ha="right")
    panel.set_xlim(-0.5, len(order) - 0.5)


def _beside(tokens: pd.DataFrame, steps: dict[str, float]) -> pd.DataFrame:
    """The tokens' scores as if at each activation: of the target of as many steps, where it depends on them."""
    import pandas as pd

    parts = [
        tokens[(tokens["steps"] == count) | (tokens["steps"].isna() & np.isnan(count))].assign(activation=at)
        for at, count in steps.items()
    ]
    return pd.concat(parts) if parts else tokens


def _over_rows(panel: Axes, table: pd.DataFrame) -> None:
    """The scores over the rows of tokens: a line for each activation; controls of the last one."""
    trained = table[table["probe"] == TRAINED]
    order = list(dict.fromkeys(trained["activation"]))
    colours = style.in_order(order)
    last = trained[trained["activation"] == order[-1]]
    for name in (OTHER_CONTEXT, TOKENS, UNTRAINED):
        part = table[(table["probe"] == name) & table["activation"].isin((order[-1], TOKENS))]
        of_last = part["steps"].isin(last["steps"]) | part["steps"].isna()
        look = {**LOOKS[name], "marker": "", "linewidth": 1.0}
        _line(panel, part[of_last]["position"], part[of_last], look)
    for at in order:
        part = trained[trained["activation"] == at]
        _line(panel, part["position"], part, {"color": colours[at], "marker": ".", "label": at})
    panel.set_xlabel("row of the tokens")
    panel.locator_params(axis="x", integer=True)


def _layer(at: str) -> str:
    return at.split(".")[1] if at.startswith("blocks.") else ""


def _line(panel: Axes, places: Any, part: pd.DataFrame, look: dict[str, Any]) -> None:
    """A line of scores with their intervals."""
    scores = part["score"].clip(lower=LOWEST).to_numpy()
    low, high = (part[end].clip(lower=LOWEST).to_numpy() for end in ("low", "high"))
    if len(scores):
        reach = np.maximum([scores - low, high - scores], 0)
        panel.errorbar(
            np.asarray(places, float),
            scores,
            reach,
            markersize=4,
            linewidth=1.2,
            elinewidth=0.8,
            **{name: value for name, value in look.items() if name != "linewidth"},
        )
