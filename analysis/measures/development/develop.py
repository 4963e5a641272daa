"""All that is measured of how one run develops: LLC at several settings, stages with their nulls, metrics, dynamics."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from analysis.loaded_run import LoadedRun, load_run
from analysis.measures.development import metrics, nulls, trajectory
from analysis.measures.development.llc_curve import read_curve
from analysis.measures.development.nulls import Change, Row
from analysis.measures.development.stages import LEAST, fit, milestones, stages
from analysis.measures.llc_health import HEALTHY
from analysis.measures.llc_run import estimate_run, selected
from analysis.measures.llc_saturation import line
from analysis.measures.llc_settings import Settings
from src.checks import require
from store import layout
from store.atomic import write_csv, write_json
from store.readers import read_csv, read_json
from store.rundir import read_config

OF_LLC = ("loss", "llc", "llc_low", "llc_high", "saturation", "health", "radius", "norm")
VERSION = 2  # of what is measured: another one is measured again


class Recipe(NamedTuple):
    """What is measured: settings of the LLC by name, checkpoints as in `analysis.llc`, and of the rest.

    The stages are those of the LLC at the first setting. walks, smoothing, seed: of the essential dynamics; hessian:
    with the Hessian's trace and top eigenvalue, from so many probes.
    """

    settings: Mapping[str, Settings]
    checkpoints: str = "all"
    walks: int = 100
    smoothing: float = 0.06
    seed: int = 0
    hessian: bool = False
    probes: int = 20


def develop(run: Path, recipe: Recipe) -> dict[str, Any]:
    """Measures a run, which must be locked, and writes analysis/develop/; gives what develop.json has.

    What is there of the same parameters and recipe is not measured again.
    """
    steps = selected(run, read_config(run).training.steps, recipe.checkpoints)
    require(len(steps) >= LEAST, f"{len(steps)} checkpoints are chosen, and stages need {LEAST} or more")
    if is_developed(run, recipe):
        return dict(read_json(run / layout.DEVELOP))
    rows = {name: list(estimate_run(run, own, recipe.checkpoints)) for name, own in recipe.settings.items()}
    loaded = load_run(run)
    measured, _ = metrics.write(loaded, recipe.hessian, recipe.probes, recipe.seed)
    dynamics = trajectory.write(loaded, recipe.walks, recipe.smoothing, recipe.seed)
    changes = stage_rows(run, recipe, rows, nulls.usable(rows))
    of_any_health = stage_rows(run, recipe, rows, steps)
    facts = {
        "of": digest(run, recipe),
        "settings": {name: asdict(own) for name, own in recipe.settings.items()},
        "lines": {name: line(name, own)._asdict() for name, own in rows.items()},
        "healthy": {name: [sum(row["health"] == HEALTHY for row in own), len(own)] for name, own in rows.items()},
        "stages": _count(changes),
        "claimed": _count(changes, claimed=True),
        "claimed_any_health": _count(of_any_health, claimed=True),
        "dynamics": dynamics,
    }
    write_csv(run / layout.DEVELOP_TABLE, table(loaded, rows, measured))
    write_csv(run / layout.DEVELOP_STAGES, changes)
    write_json(run / layout.DEVELOP, facts)
    return facts


def is_developed(run: Path, recipe: Recipe) -> bool:
    """Whether what `develop` writes is there, of this recipe and the run's snapshots."""
    there = all((run / name).exists() for name in (layout.DEVELOP_TABLE, layout.DEVELOP_STAGES, layout.DEVELOP))
    return there and read_json(run / layout.DEVELOP).get("of") == digest(run, recipe)


def digest(run: Path, recipe: Recipe) -> str:
    """What a measurement depends on: the recipe, and the bytes of the snapshots."""
    said = json.dumps([VERSION, {**recipe._asdict(), "settings": _plain(recipe.settings)}], sort_keys=True)
    with (run / layout.SNAPSHOTS).open("rb") as file:
        return hashlib.sha256(said.encode() + hashlib.file_digest(file, "sha256").digest()).hexdigest()


def _plain(settings: Mapping[str, Settings]) -> dict[str, Any]:
    return {name: asdict(own) for name, own in settings.items()}


def table(
    loaded: LoadedRun, rows: Mapping[str, Sequence[Row]], measured: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """A row for each checkpoint with an LLC: its metrics, the LLC of each setting, and its principal components."""
    by_step = {name: {row["step"]: row for row in own} for name, own in rows.items()}
    scores = read_csv(loaded.run / layout.ESSENTIAL_DYNAMICS, ("step", *trajectory.NAMES), ("series",))
    scores = scores[scores["series"] == trajectory.TRAJECTORY].set_index("step")
    return [
        {**own}
        | {f"{column}_{name}": found[own["step"]][column] for name, found in by_step.items() for column in OF_LLC}
        | {name: float(scores.loc[own["step"], name]) for name in trajectory.NAMES}
        for own in measured
        if all(own["step"] in found for found in by_step.values())
    ]


# --- stages with their nulls ---


def stage_rows(
    run: Path, recipe: Recipe, rows: Mapping[str, Sequence[Row]], checkpoints: Sequence[int]
) -> list[dict[str, Any]]:
    """A row for each stage and setting: changes with their nulls, and whether the stage is claimed.

    The stages are those of the first setting, between those of these checkpoints that are nearest to its milestones.
    """
    said: list[dict[str, Any]] = []
    for number, ends in enumerate(_ends(run, next(iter(recipe.settings.values())), checkpoints)):
        changes = [_change(run, recipe, name, own, ends) for name, own in rows.items()]
        is_claimed = nulls.claimed(changes)
        said += [
            {"stage": number, "start": ends[0], "end": ends[1], "type": _type(changes[0])}
            | one._asdict()
            | {"leaves": one.leaves, "claimed": is_claimed}
            for one in changes
        ]
    return said


def _count(rows: Sequence[Mapping[str, Any]], claimed: bool = False) -> int:
    """How many stages there are, or are claimed."""
    return len({row["stage"] for row in rows if row["claimed"] or not claimed})


def _ends(run: Path, settings: Settings, checkpoints: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The checkpoints that each stage begins and ends at."""
    curve = read_curve(run, settings.name)
    fitted = fit(curve.steps, curve.llc, curve.errors)
    for one in stages(fitted, milestones(fitted), curve.loss):
        start, end = (nulls.nearest(checkpoints, step) for step in (one.start, one.end))
        if start < end:
            yield start, end


def _change(run: Path, recipe: Recipe, name: str, rows: Sequence[Row], ends: tuple[int, int]) -> Change:
    by_step = {row["step"]: row for row in rows}
    start, end = (by_step[step] for step in ends)
    tighter = None
    if end["llc"] < start["llc"]:
        gamma = nulls.raised_gamma(recipe.settings[name].gamma, start, end)
        tighter = next(estimate_run(run, replace(recipe.settings[name], gamma=gamma), str(start["step"])))
    return nulls.change(name, start, end, tighter)


def _type(change: Change) -> str:
    """A where the LLC rises, B where it falls, by two standard errors."""
    if abs(change.delta_llc) <= 2 * change.delta_llc_se:
        return "undecided"
    return "A" if change.delta_llc > 0 else "B"
