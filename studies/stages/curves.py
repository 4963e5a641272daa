"""The curves of the figures of how models develop: of one run to {(panel, series): (x, y)}, over its checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from icl_lab.analysis.essential_dynamics import TRAJECTORY, WALK
from icl_lab.store import layout
from icl_lab.store.readers import read_csv
from icl_lab.store.rundir import read_config
from icl_lab.studies.curve_rows import Row, Series
from icl_lab.studies.stages import measured, measures
from icl_lab.studies.stages.measures import facts, late_llc, table, usable
from icl_lab.studies.stages.published import LLC as PAPERS_LLC
from icl_lab.studies.task_diversity.measures import gain

Curves = Callable[[Path, str], Series]
PAPERS = "Hoogland et al., five seeds"
SMOOTHED = "LLC, default, smoothed"
PLACES = ("step", "pc1_smooth", "pc2_smooth")
NULL = "nβ (loss of the first draws - loss)"


def from_one(steps: ArrayLike) -> np.ndarray:
    """Steps counted from one, so that the first has a place on a logarithmic axis."""
    return np.asarray(steps, float) + 1


def llc(labels: Mapping[str, str], *settings: str) -> Curves:
    """The LLC at these settings, a panel each, of usable checkpoints alone; a series for each runs' name."""

    def curves(run: Path, name: str) -> Series:
        shown = [setting for setting in settings if setting in facts(run)["settings"]]
        rows = {setting: usable(run, setting) for setting in shown}
        return {
            (f"LLC, {setting}", labels[name]): (from_one(good["step"]), good[f"llc_{setting}"].to_numpy(float))
            for setting, good in rows.items()
        }

    return curves


def beside_curvature(labels: Mapping[str, str]) -> Curves:
    """The LLC of sampled checkpoints and its quadratic prediction there, a panel for each runs' name."""

    def curves(run: Path, name: str) -> Series:
        own = measured.estimates(run)
        steps = from_one(own.steps)
        return {
            (labels[name], "LLC"): (steps, own.llc.mean(axis=1)),
            (labels[name], "quadratic prediction"): (steps, own.predicted),
        }

    return curves


def smoothed(labels: Mapping[str, str]) -> Curves:
    """The Gaussian process through the usable LLCs of the first setting, whose plateaus are the milestones."""

    def curves(run: Path, name: str) -> Series:
        curve = facts(run)["curve"]
        return {(SMOOTHED, labels[name]): (from_one(curve["step"]), curve["llc"])} if curve["step"] else {}

    return curves


def together(*parts: Curves) -> Curves:
    """Several of these in one figure, a panel below the other."""

    def curves(run: Path, name: str) -> Series:
        return {place: curve for part in parts for place, curve in part(run, name).items()}

    return curves


def published(labels: Mapping[str, str]) -> Curves:
    """The LLC at the published setting at all checkpoints, and its null, an affine function of the loss."""

    def curves(run: Path, name: str) -> Series:
        rows = table(run)
        values, losses = (rows[column].to_numpy(float) for column in ("llc_published", "loss_published"))
        steps = from_one(rows["step"])
        nbeta = facts(run)["settings"]["published"]["nbeta"]
        return {
            (labels[name], "LLC"): (steps, values),
            (labels[name], NULL): (steps, values[0] - nbeta * (losses - losses[0])),
        }

    return curves


def beside_the_papers(labels: Mapping[str, str]) -> Curves:
    """The LLC at the published setting at all checkpoints, beside the paper's: the middle of its range over seeds."""
    steps, ranges = np.array([*PAPERS_LLC]), np.array([*PAPERS_LLC.values()], float)

    def curves(run: Path, name: str) -> Series:
        rows = table(run)
        return {
            ("LLC, published", labels[name]): (from_one(rows["step"]), rows["llc_published"].to_numpy(float)),
            ("LLC, published", PAPERS): (from_one(steps), ranges.mean(axis=1)),
        }

    return curves


def metrics(columns: Mapping[str, str], labels: Mapping[str, str]) -> Curves:
    """Metrics over training, a panel each; a series for each runs' name."""

    def curves(run: Path, name: str) -> Series:
        rows = measures.metrics(run)
        steps = from_one(rows["step"])
        return {
            (panel, labels[name]): (steps, rows[column].to_numpy(float))
            for column, panel in columns.items()
            if column in rows
        }

    return curves


def by_length(columns: Mapping[str, str]) -> Curves:
    """Metrics against the share of the schedule, a series for each of its lengths."""

    def curves(run: Path, name: str) -> Series:
        rows, steps = table(run), read_config(run).training.steps
        share = rows["step"].to_numpy(float) / steps
        return {(panel, f"{steps} steps"): (share, rows[column].to_numpy(float)) for column, panel in columns.items()}

    return curves


def llc_of_tasks(*settings: str) -> Curves:
    """The LLC of usable checkpoints in the last third of training, and what memorising the pool gains, against M."""

    def curves(run: Path, name: str) -> Series:
        config = read_config(run)
        tasks = config.data.num_tasks
        late = {(f"LLC, {setting}", "last third"): late_llc(setting)(run) for setting in settings}
        gained = gain(config.data.dim, int(tasks), config.init_seed) if np.isfinite(tasks) else 0.0
        values = late | {("ridge's loss less dMMSE's", "exact"): gained}
        return {place: ([tasks], [value]) for place, value in values.items() if np.isfinite(value)}

    return curves


def over_training_by_tasks(setting: str) -> Curves:
    """The LLC of usable checkpoints, and the distance to ridge of all, over training; a series for each M."""

    def curves(run: Path, name: str) -> Series:
        good, rows, tasks = usable(run, setting), measures.metrics(run), read_config(run).data.num_tasks
        label = f"M = {tasks:.0f}" if np.isfinite(tasks) else "M = ∞"
        return {
            (f"LLC, {setting}", label): (from_one(good["step"]), good[f"llc_{setting}"].to_numpy(float)),
            ("distance to ridge", label): (from_one(rows["step"]), rows["id_delta_ridge"].to_numpy(float)),
        }

    return curves


def components(labels: Mapping[str, str]) -> Curves:
    """Shares of the variance of trajectory PCA, of the run and of random walks of its steps."""

    def curves(run: Path, name: str) -> Series:
        dynamics = facts(run)["dynamics"]
        numbers = np.arange(1, len(dynamics["explained"]) + 1).astype(float)
        return {
            (labels[name], "run"): (numbers, dynamics["explained"]),
            (labels[name], "random walks of its steps"): (numbers, dynamics["null"]["explained"]),
            (labels[name], "6 / (π² k²)"): (numbers, dynamics["cosines"]),
        }

    return curves


def plane(runs: Sequence[Path]) -> list[Row]:
    """The smoothed trajectory of the first seed in its first plane, above a random walk of its steps; forms as points.

    Rows of panel, series, step, x, y and kind. A form is a bend in two of three planes, not always in this one.
    """
    run = min(runs, key=lambda each: int(read_config(each).init_seed))
    paths, dynamics = read_csv(run / layout.ESSENTIAL_DYNAMICS, PLACES, ("series",)), facts(run)["dynamics"]
    rows = []
    for series, forms in ((TRAJECTORY, dynamics["forms"]), (WALK, dynamics["null"]["example"])):
        path = paths.loc[paths["series"] == series, [*PLACES]].to_numpy(float)
        kinds = [("path", place) for place in path] + [("point", path[form["checkpoint"]]) for form in forms]
        rows += [
            {
                "panel": f"{series}, forms: {len(forms)}",
                "series": series,
                "step": int(step),
                "x": x,
                "y": y,
                "kind": kind,
            }
            for kind, (step, x, y) in kinds
        ]
    return rows
