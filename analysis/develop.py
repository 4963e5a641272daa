"""How does a model develop? Everything that is measured over a run's checkpoints, on one table and one figure.

python -m analysis.develop --run DIR, of a run trained with --config.snapshots=true

The LLC at the published setting and at unsaturated ones, its stages with their nulls, behaviour, structure and
essential dynamics: analysis/develop/ and figs/develop.png. If it is killed, the same command resumes and
at most one checkpoint is lost. A stage is claimed where the LLC's change differs from its nulls at all unsaturated
settings.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.analysis import developmental_metrics, essential_dynamics
from icl_lab.analysis.command import Command
from icl_lab.analysis.development import nulls
from icl_lab.analysis.development.change_points import change_points_if_noisy
from icl_lab.analysis.development.llc_curve import read_curve
from icl_lab.analysis.development.milestones import LEAST, Stage, fit, milestones, stages, within
from icl_lab.analysis.development.nulls import Change, Row
from icl_lab.analysis.llc.checkpoints import estimate_run, selected
from icl_lab.analysis.llc.settings import SELECTIONS, SETTINGS, TYPES, Settings, selection
from icl_lab.analysis.llc_saturation import has_line, line
from icl_lab.analysis.loaded_run import LoadedRun, load_run
from icl_lab.lab import cli
from icl_lab.lab.flag_types import POSITIVE, SEED, shown
from icl_lab.plots.develop import draw_development
from icl_lab.src.checks import require
from icl_lab.store import layout
from icl_lab.store.atomic import csv_bytes, write_bytes, write_csv, write_json
from icl_lab.store.llc_rows import SAID, is_usable, read_development
from icl_lab.store.metrics import last_step
from icl_lab.store.readers import expecting, read_csv, read_json
from icl_lab.store.rundir import read_config

OF_A_MILESTONE = ("step", "low", "high", "support", "since", "until", "sides")
OF_A_STAGE = ("stage", "start", "end", "type", "claimed")
OF_A_CHANGE = (*OF_A_STAGE, *Change._fields, "differs")  # columns, with or without rows
OF_LLC = ("loss", "llc", "llc_low", "llc_high", "saturation", *SAID, "radius", "norm")
CURVE = 50  # places of the fitted curve, about, in develop.json
VERSION = 5  # of what is measured: another one is measured again
CHAINS = {"chains": 4, "burn_in": 200, "draws": 400, "tasks": 2048}
PARTS = {"eps": POSITIVE, "nbeta": TYPES["nbeta"], "gamma": TYPES["gamma"]}
PUBLISHED = "published"


class Recipe(NamedTuple):
    """What is measured: settings of the LLC by name, checkpoints as in `analysis.llc`, and of the rest.

    The stages are those of the LLC at the first setting, at checkpoints that are usable at all settings but those that
    are `saturated`, where no chain is. walks, smoothing, seed: of the essential dynamics; hessian: with the Hessian's
    trace and top eigenvalue, from so many probes.
    """

    settings: Mapping[str, Settings]
    checkpoints: str = "all"
    saturated: tuple[str, ...] = ("published",)
    walks: int = 100
    smoothing: float = 0.06
    seed: int = 0
    hessian: bool = False
    probes: int = 20


def develop(run: Path, recipe: Recipe) -> dict[str, Any]:
    """Measures a run, which must be locked, and writes analysis/develop/; gives what develop.json has.

    Existing results of the same parameters and recipe are reused. With fewer checkpoints than stages need there are
    none.
    """
    if is_developed(run, recipe):
        return read_development(run)
    rows = {name: list(estimate_run(run, setting, recipe.checkpoints)) for name, setting in recipe.settings.items()}
    loaded = load_run(run)
    measured, _ = developmental_metrics.write(loaded, recipe.hessian, recipe.probes, recipe.seed)
    dynamics = essential_dynamics.write(loaded, recipe.walks, recipe.smoothing, recipe.seed)
    unsaturated = {name: estimates for name, estimates in rows.items() if name not in recipe.saturated}
    usable = nulls.usable_at_all(unsaturated)
    first = next(iter(recipe.settings.values()))
    staged = llc_stages(run, first, usable)
    changes = stage_rows(run, recipe, rows, staged.stages, usable)
    facts = {
        "of": digest(run, recipe),
        "settings": {name: asdict(setting) for name, setting in recipe.settings.items()},
        "lines": {name: line(name, estimates)._asdict() for name, estimates in rows.items() if has_line(estimates)},
        "usable": {name: [sum(map(is_usable, estimates)), len(estimates)] for name, estimates in rows.items()},
        "usable_at_all": usable,
        "milestones": staged.milestones,
        "curve": staged.curve,
        "change_points": staged.change_points,
        "stages": [{name: row[name] for name in OF_A_STAGE} for row in changes[:: len(rows)]],
        "dynamics": dynamics,
    }
    write_csv(run / layout.DEVELOP_TABLE, table(loaded, rows, measured))
    write_bytes(run / layout.DEVELOP_STAGES, csv_bytes(changes, OF_A_CHANGE))
    write_json(run / layout.DEVELOP, facts)
    return facts


def check_stages(run: Path, checkpoints: str) -> None:
    """`ConfigError` if fewer of a run's checkpoints are chosen than stages need."""
    steps = selected(run, last_step(run, read_config(run)), checkpoints)
    require(len(steps) >= LEAST, f"{len(steps)} checkpoints are chosen, and stages need {LEAST} or more")


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
    return {name: asdict(setting) for name, setting in settings.items()}


def table(
    loaded: LoadedRun, rows: Mapping[str, Sequence[Row]], measured: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """A row for each checkpoint with an LLC: its metrics, the LLC of each setting, and its principal components."""
    by_step = {name: {row["step"]: row for row in estimates} for name, estimates in rows.items()}
    scores = read_csv(loaded.run / layout.ESSENTIAL_DYNAMICS, ("step", *essential_dynamics.NAMES), ("series",))
    scores = scores[scores["series"] == essential_dynamics.TRAJECTORY].set_index("step")
    return [
        {**metric_row}
        | {
            f"{column}_{name}": estimates[metric_row["step"]][column]
            for name, estimates in by_step.items()
            for column in OF_LLC
        }
        | {name: float(scores.loc[metric_row["step"], name]) for name in essential_dynamics.NAMES}
        for metric_row in measured
        if all(metric_row["step"] in estimates for estimates in by_step.values())
    ]


# --- stages with their nulls ---


class LlcStages(NamedTuple):
    """Of an LLC over training: its milestones, each with whether the loss alone has one, and its change points, as
    rows; the stages between milestones; and the fitted curve, step, llc and its standard error.
    """

    milestones: list[dict[str, Any]]
    change_points: list[dict[str, Any]]
    stages: list[Stage]
    curve: dict[str, list[float]]


def llc_stages(run: Path, settings: Settings, usable: Sequence[int]) -> LlcStages:
    """The stages of the LLC over these checkpoints: none without a milestone, or with fewer than a fit takes.

    The curve is at places evenly spaced in log step; without a fit it has none.
    """
    if len(usable) < LEAST:
        return LlcStages([], [], [], {"step": [], "llc": [], "llc_se": []})
    curve = read_curve(run, settings.name)
    chosen = np.isin(curve.steps, usable)
    steps, llc, errors, loss = (values[chosen] for values in (curve.steps, curve.llc, curve.errors, curve.loss))
    fitted = fit(steps, llc, errors)
    llc_milestones, alone = milestones(fitted), milestones(fit(steps, curve.loss_alone[chosen], errors))
    rows = [
        {name: getattr(one, name) for name in OF_A_MILESTONE} | {"loss_has_one": within(one, alone) is not None}
        for one in llc_milestones
    ]
    kinks = change_points_if_noisy(steps, llc, fitted.noise)
    shown = slice(None, None, len(fitted.grid) // CURVE)
    errors = np.sqrt(np.clip(np.diag(fitted.covariance), 0, None))
    columns = {"step": np.expm1(fitted.grid), "llc": fitted.mean, "llc_se": errors}
    return LlcStages(
        rows,
        [point._asdict() for point in kinks.points] if kinks else [],
        stages(fitted, llc_milestones, loss) if llc_milestones else [],
        {name: column[shown].tolist() for name, column in columns.items()},
    )


def stage_rows(
    run: Path, recipe: Recipe, rows: Mapping[str, Sequence[Row]], llc_stages: Sequence[Stage], usable: Sequence[int]
) -> list[dict[str, Any]]:
    """A row for each stage and setting: changes with their nulls, and whether the stage is claimed.

    A stage begins and ends at the usable checkpoints that are nearest to its milestones.
    """
    said: list[dict[str, Any]] = []
    for number, stage in enumerate(llc_stages):
        start, end = (nulls.nearest(usable, step) for step in (stage.start, stage.end))
        if start == end:
            continue
        changes = [_change(run, recipe, name, estimates, start, end) for name, estimates in rows.items()]
        is_claimed = nulls.claimed([one for one in changes if one.setting not in recipe.saturated])
        place = {"stage": number, "start": start, "end": end, "type": stage.type}
        said += [place | one._asdict() | {"differs": one.differs, "claimed": is_claimed} for one in changes]
    return said


def _change(run: Path, recipe: Recipe, name: str, rows: Sequence[Row], first: int, last: int) -> Change:
    by_step = {row["step"]: row for row in rows}
    start, end = by_step[first], by_step[last]
    rescaled = None
    growth = end["norm"] / start["norm"] if start["norm"] else math.nan
    if name not in recipe.saturated and nulls.norm_null_applies(start, end) and 0 < growth < math.inf:
        setting = rescaled_settings(recipe.settings[name], float(growth))
        rescaled = next(estimate_run(run, setting, str(first)))
    return nulls.change(name, start, end, rescaled)


def rescaled_settings(settings: Settings, growth: float) -> Settings:
    """The settings of the same radius relative to weights `growth` times as large; eps gamma is kept."""
    eps = None if settings.eps is None else settings.eps / growth**2
    return replace(settings, gamma=settings.gamma * growth**2, eps=eps)


def measure(run: Path, flags: argparse.Namespace) -> dict[str, Any]:
    """Measures all of it, and draws the figure."""
    check_stages(run, flags.checkpoints)
    facts = develop(run, Recipe(settings_of(flags), flags.checkpoints, seed=flags.seed, hessian=flags.hessian))
    draw_development(run)
    with expecting(run / layout.DEVELOP, "the development of a run"):  # it may be of an earlier command
        return _summary(facts)


def _summary(facts: Mapping[str, Any]) -> dict[str, Any]:
    lines = {f"LLC, {name}": _line(facts["lines"].get(name)) for name in facts["settings"]}
    explained = zip(facts["dynamics"]["explained"], facts["dynamics"]["null"]["explained"], strict=True)
    stages = facts["stages"]
    count = sum(stage["claimed"] for stage in stages)
    return {
        **lines,
        "variance explained": ", ".join(f"{share:.3f} (walks {walk:.3f})" for share, walk in explained),
        "stages": f"{len(stages)}, of which {count} differ from their nulls at all unsaturated settings",
    }


def settings_of(flags: argparse.Namespace) -> dict[str, Settings]:
    """The settings of the flags by name, the published one last; `ConfigError` for invalid values."""
    chains = {name: getattr(flags, name) for name in CHAINS}
    unsaturated = dict(flags.settings) or {name: SETTINGS[name] for name in ("default", "tight")}
    return {
        name: Settings(**values, **chains) for name, values in (unsaturated | {PUBLISHED: SETTINGS[PUBLISHED]}).items()
    }


def _setting(word: str) -> tuple[str, dict[str, Any]]:
    """NAME=EPS:NBETA:GAMMA."""
    name, _, values = word.partition("=")
    parts = values.split(":")
    if not (name.isidentifier() and name != PUBLISHED and len(parts) == len(PARTS)):
        raise argparse.ArgumentTypeError(
            f"{shown(word)} is no setting, NAME=EPS:NBETA:GAMMA, as in tight=3.5e-5:133:2000"
        )
    return name, {part: kind(text) for (part, kind), text in zip(PARTS.items(), parts, strict=True)}


def _line(line: Mapping[str, Any] | None) -> str:
    if line is None:
        return "no line in the loss: chains diverge at all checkpoints but two or fewer"
    return (
        f"slope / -nbeta {line['slope_over_minus_nbeta']:.2f}, correlation with the loss {line['correlation']:.2f}, "
        f"{line['usable']} of {line['checkpoints']} checkpoints usable"
    )


def _add(parser: cli.Parser) -> None:
    parser.add_argument(
        "--checkpoints", type=selection, default="all", metavar="WHICH", help=f"which: {SELECTIONS} (default: all)"
    )
    cli.add_list(
        parser, "--settings", _setting, (), "unsaturated settings, NAME=EPS:NBETA:GAMMA (default: default and tight)"
    )
    parser.add_argument("--hessian", action="store_true", help="also the Hessian's trace and top eigenvalue")
    parser.add_argument("--seed", type=SEED, default=0, help="of random walks and probes")
    for name, value in CHAINS.items():
        parser.add_argument(
            f"--{name}", type=TYPES[name], default=value, help=f"of the LLC's chains (default: {value})"
        )


def _check(flags: argparse.Namespace) -> None:
    require(flags.checkpoints != "last", "checkpoints is 'last'; a development needs six checkpoints or more")
    settings_of(flags)


COMMAND = Command(
    "develop",
    "Measures how a model develops: LLC, stages with their nulls, behaviour, structure, essential dynamics.",
    measure,
    _add,
    _check,
)

if __name__ == "__main__":
    COMMAND.launch()
