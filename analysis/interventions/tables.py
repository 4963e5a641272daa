"""The tables of interventions: a row for each site, with a mean over pairs of contexts and its interval.

Restored share of patching: with the gap g = m(source) - m(base) of a pair's metric and d = m(patched) - m(base), the
ratio mean(d) / mean(g); of the prediction, whose gaps have both signs, the slope sum(d g) / sum(g^2). 1: the site
carries all of the difference; 0: none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from icl_lab.analysis.activations import fitting, shapes_of
from icl_lab.analysis.interventions import programs
from icl_lab.analysis.interventions.metrics import Function, Metric, asked, check_metric, metric_of
from icl_lab.analysis.interventions.pairs import Pairs, check_position
from icl_lab.analysis.run import Run
from icl_lab.lab.guest import as_guest
from icl_lab.src.activations import HEAD, POSITION
from icl_lab.src.patching import ABLATIONS, Site
from icl_lab.src.statistics import mean_and_interval, ratio_and_error

if TYPE_CHECKING:
    import pandas as pd

# table -> the activations that an intervention replaces in a layer, and what sites it has beside layers
PATCHED: Mapping[str, tuple[tuple[str, ...], str]] = {
    HEAD: (("attn.result",), HEAD),
    POSITION: (("resid_post",), POSITION),
}
ABLATED: Mapping[str, tuple[tuple[str, ...], str | None]] = {
    HEAD: (("attn.result",), HEAD),
    "mlp": (("mlp_out",), None),
    "block": (("attn_out", "mlp_out"), None),
}
INTO_CORRUPTED, INTO_CLEAN = "clean into corrupted", "corrupted into clean"
ROUNDING = 1e-5  # of a metric: a gap that is smaller is float32's

PATCHING_COLUMNS = (
    *("table", "direction", "metric", "layer", "head", "position"),
    *("share", "low", "high", "estimate", "n", "reason"),
)
ABLATION_COLUMNS = ("table", "ablation", "metric", "layer", "head", "change", "low", "high", "estimate", "n")


class Watched(NamedTuple):
    """A run's model on contexts: what the programs take, and which query is asked."""

    model: Any
    params: Any
    shapes: Mapping[str, Any]
    query: int

    def names(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """The addresses of these activations in all layers; those that the model has."""
        ends = tuple(f".{part}" for part in parts)
        return tuple(at for at in self.shapes if at.startswith("blocks.") and at.endswith(ends))

    @property
    def layers(self) -> int:
        """How many there are."""
        return len(self.names(("resid_post",)))

    def sites(self, names: tuple[str, ...], axis: str | None) -> Site:
        """All sites of a table."""
        count = self.shapes[names[0]].shape[1] if axis else 0  # heads and positions stand behind contexts
        return programs.sites_of(self.layers, axis, count)

    def predict(self, batch: Any) -> np.ndarray:
        """The predictions [B] of the query that is asked."""
        return asked(programs.predict(self.model, self.params, batch), self.query)

    def slopes(self, metric: Metric, batch: Any) -> np.ndarray:
        """The metric's derivatives by all predictions: 0 but for the query that is asked."""
        whole: np.ndarray = np.zeros_like(programs.predict(self.model, self.params, batch))
        whole[(slice(None), self.query) if whole.ndim > 1 else slice(None)] = metric.slopes(self.predict(batch))
        return whole


def watched(run: Run, batch: Any, query: int) -> Watched:
    """The model of a run on contexts; `ConfigError` for a query that they do not have."""
    shapes = shapes_of(run.model, run.params, batch)
    check_position(run, query)
    return Watched(run.model, run.params, shapes, query)


# --- patching ---


def patching_table(run: Run, pairs: Pairs, metric: str | Function = "prediction", position: int = -1) -> pd.DataFrame:
    """Clean activations in corrupted contexts and back: a row for each head and each position of each layer's stream.

    metric: `interventions.metrics`, of the prediction of query number `position` (of a decoder, the last pair's if not
    given). share, low, high: the restored share and its 95 % interval, null with a reason where the gap lies within its
    error; estimate: the share to first order. `ConfigError` for a metric or position that there is not.
    """
    import pandas as pd

    check_metric(metric)
    with as_guest():
        look = watched(run, pairs.clean, position)
        measured = metric_of(metric, run, pairs.clean, position)
        directions = {INTO_CORRUPTED: (pairs.corrupted, pairs.clean), INTO_CLEAN: (pairs.clean, pairs.corrupted)}
        rows = [
            row
            for table in PATCHED
            for direction, (base, source) in directions.items()
            for row in _patched(look, measured, base, source, table, direction)
        ]
    return pd.DataFrame(rows, columns=list(PATCHING_COLUMNS)).astype({"head": "Int64", "position": "Int64"})


def _patched(
    look: Watched, metric: Metric, base: Any, source: Any, table: str, direction: str
) -> Iterator[dict[str, Any]]:
    parts, axis = PATCHED[table]
    names = look.names(parts)
    sites = look.sites(names, axis)
    args = (look.model, look.params, base, source)
    before = metric.values(look.predict(base))
    gap = metric.values(look.predict(source)) - before
    moved = metric.values(asked(programs.patched(*args, sites, names), look.query, 2)) - before
    found = programs.estimated_patches(*args, look.slopes(metric, base), names)
    first_order = np.stack([np.asarray(found[at], np.float64) for at in names])  # [layers, B, heads or positions]
    scale = float(np.abs(before).max() + np.abs(gap).max())
    for number, site in enumerate(_rows_of(sites)):
        near = first_order[site["layer"], :, site[axis]]
        share = share_of(moved[number], near, gap, metric.signed, scale)
        yield {"table": table, "direction": direction, "metric": metric.name, **site, **share, "n": len(gap)}


def share_of(moved: np.ndarray, near: np.ndarray, gap: np.ndarray, signed: bool, scale: float) -> dict[str, Any]:
    """The restored share of gaps [B] by moves [B], its interval, and the estimate's; null with a reason.

    scale: the metric's size, of which a smaller gap is rounding.
    """
    none: dict[str, Any] = dict.fromkeys(("share", "low", "high", "estimate"))
    if np.abs(gap).max() <= ROUNDING * scale:
        return none | {"reason": "the corruption does not change the metric"}
    weight = gap if signed else np.ones_like(gap)
    mean, half = (float(each) for each in mean_and_interval(gap * weight))
    if abs(mean) <= half:
        return none | {"reason": f"the gap lies within its error, {mean:.3g} ± {half:.3g}"}
    share, error = ratio_and_error(moved * weight, gap * weight)
    reach = abs(error) * t_of(len(gap))
    estimate, _ = ratio_and_error(near * weight, gap * weight)
    return {"share": share, "low": share - reach, "high": share + reach, "estimate": estimate, "reason": ""}


def t_of(count: int) -> float:
    """The factor of a standard error in a 95 % interval over so many values."""
    from scipy.special import stdtrit

    return float(stdtrit(count - 1, 0.975))


# --- ablation ---


def ablation_table(run: Run, batch: Any, metric: str | Function = "prediction", position: int = -1) -> pd.DataFrame:
    """What goes wrong without a head, an MLP or a block (attention and MLP): a row for each, and each way to ablate.

    change: the mean change of the metric over contexts with its 95 % interval, of the prediction the mean squared
    change; estimate: the change to first order, which a squared change has not.
    """
    import pandas as pd

    check_metric(metric)
    with as_guest():
        contexts = fitting(run, batch)
        look = watched(run, contexts, position)
        measured = metric_of(metric, run, contexts, position)
        tables = {table: look.names(parts) for table, (parts, _) in ABLATED.items()}
        rows = [
            row
            for table, names in tables.items()
            for how in ABLATIONS
            if names
            for row in _ablated(look, measured, contexts, table, names, how)
        ]
    return pd.DataFrame(rows, columns=list(ABLATION_COLUMNS)).astype({"head": "Int64"})


def _ablated(
    look: Watched, metric: Metric, batch: Any, table: str, names: tuple[str, ...], how: str
) -> Iterator[dict[str, Any]]:
    sites = look.sites(names, ABLATED[table][1])
    whole = metric.values(look.predict(batch))
    moved = metric.values(asked(programs.without(look.model, look.params, batch, sites, names, how), look.query, 2))
    change = (moved - whole) ** 2 if metric.signed else moved - whole
    found = programs.estimated_ablations(look.model, look.params, batch, look.slopes(metric, batch), names, how)
    for number, site in enumerate(_rows_of(sites)):
        mean, half = (float(each) for each in mean_and_interval(change[number]))
        near = None if metric.signed else _estimate(found, site)
        row = {"table": table, "ablation": how, "metric": metric.name, "layer": site["layer"], "head": site[HEAD]}
        yield row | {"change": mean, "low": mean - half, "high": mean + half, "estimate": near, "n": len(whole)}


def _estimate(found: Mapping[str, Any], site: Mapping[str, Any]) -> float:
    """The mean change to first order of what stands in a layer, of one head where the site has one."""
    prefix, head = f"blocks.{site['layer']}.", site[HEAD]
    parts = [np.asarray(each, np.float64) for at, each in found.items() if at.startswith(prefix)]
    return float(sum((each if head is None else each[:, head]).sum() / len(each) for each in parts))


def _rows_of(sites: Site) -> Iterator[dict[str, Any]]:
    """Layer, head and position of each site, None where it has none."""
    count = len(np.asarray(sites.layer))
    columns = [[None] * count if each is None else np.asarray(each).tolist() for each in sites]
    for layer, head, position in zip(*columns, strict=True):
        yield {"layer": layer, HEAD: head, POSITION: position}
