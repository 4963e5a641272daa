"""Functions before and after the context, for one fixed sine: of a run, and of a transformer and its control."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl_lab.lab.configs.presets import title_of
from icl_lab.plots import style
from icl_lab.store import layout
from icl_lab.store.readers import expecting, read_csv, read_json
from icl_lab.store.rundir import read_config

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

FUNCTIONS = ("before", "after")
LINES = {"before": "--", "after": "-"}


@style.styled
def draw_functions(run: Path) -> Path:
    """sine_functions.png: a run's functions before and after the context, the sine, and the pairs it is asked by."""
    config = read_config(run)
    table = read_csv(run / layout.SINE_FUNCTIONS, ("x", "target", *FUNCTIONS))
    colour = style.DESCENT if config.model.step_size > 0 else style.TRANSFORMER
    about = read_json(run / layout.SINE_FUNCTIONS_FACTS)
    figure, axes = style.new_figure()
    with expecting(run / layout.SINE_FUNCTIONS_FACTS, "what a run says of its functions"):
        _sine(axes[0, 0], table, about)
        text = f"{title_of(config)}, seed {config.data_seed}, {_in_words(about)}"
    for name in FUNCTIONS:
        axes[0, 0].plot(table["x"], table[name], LINES[name], color=colour, label=f"{name} the context")
    style.legend_above(figure)
    style.caption(figure, text)
    return style.save(figure, layout.figure(run, "sine_functions"), run)


@style.styled
def draw_comparison(run: Path, control: str) -> Path:
    """sine_comparison.png: the functions of a transformer and of its control on the same sine."""
    colours = {"tf": style.TRANSFORMER, "control": style.DESCENT}
    labels = {"tf": "transformer", "control": "one step of gradient descent"}
    columns = [f"{who}_{name}" for who in colours for name in FUNCTIONS]
    table = read_csv(run / layout.SINE_COMPARISON_FUNCTIONS, ("x", "target", *columns))
    about = read_json(run / layout.SINE_COMPARISON)
    figure, axes = style.new_figure(columns=2, width=3.6, sharex=True, sharey=True)
    with expecting(run / layout.SINE_COMPARISON, "a comparison of sines"):
        for name, panel in zip(FUNCTIONS, axes[0], strict=True):
            _sine(panel, table, about, pairs=name == "after")
            panel.set_title(f"{name} the context", fontsize=9)
            for who, colour in colours.items():
                style_of = "--" if who == "control" else "-"
                panel.plot(table["x"], table[f"{who}_{name}"], style_of, color=colour, label=labels[who])
        text = f"{run.name} and {control}, {_in_words(about)}"
    axes[0, 1].set_ylabel("")
    figure.legend(*axes[0, 1].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    style.caption(figure, text)
    return style.save(figure, layout.figure(run, "sine_comparison"), run)


def _sine(panel: Axes, table: pd.DataFrame, about: Mapping[str, Any], pairs: bool = True) -> None:
    """The sine itself, and the pairs of the context."""
    panel.plot(table["x"], table["target"], color=style.GREY, linewidth=1, label="the sine")
    if pairs:
        panel.plot(about["context_x"], about["context_y"], "o", color=style.OTHER, markersize=4, label="context")
    panel.set_xlabel("x")
    panel.set_ylabel("f(x)")


def _in_words(about: Mapping[str, Any]) -> str:
    return f"{about['amplitude']:g} sin(x + {about['phase']:.3f}), {len(about['context_x'])} pairs"
