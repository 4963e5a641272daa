"""Measures how a model develops over its checkpoints: LLC, stages, behaviour, structure.

python -m analysis.develop --run DIR, of a run trained with --config.snapshots=true

The LLC at the published setting and at unsaturated ones, its stages with their nulls, behaviour, structure and
essential dynamics: analysis/develop/ and figs/develop.png. If it is killed, the same command resumes and
at most one checkpoint is lost. A stage is claimed where the LLC's change differs from its nulls at all unsaturated
settings: from none, from that of the curvature and, where asked for, from that of the loss in runs of other seeds
(--also) and from none between branches whose learning rate falls to 0 (--anneal).
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import numpy as np

from icl_lab.analysis import developmental_metrics, essential_dynamics
from icl_lab.analysis.command import Command
from icl_lab.analysis.development import nulls
from icl_lab.analysis.development.annealed import annealed
from icl_lab.analysis.development.change_points import change_points_if_noisy
from icl_lab.analysis.development.found_stages import Found, found_stages, largest_change
from icl_lab.analysis.development.llc_curve import check_seeds, check_training, read_curve
from icl_lab.analysis.development.milestones import LEAST, fit, milestones, within
from icl_lab.analysis.development.nulls import Change, Estimates, Row
from icl_lab.analysis.development.of_loss import FEWEST as FEWEST_OF_LOSS
from icl_lab.analysis.development.of_loss import OfLoss
from icl_lab.analysis.development.of_loss import fit as fit_of_loss
from icl_lab.analysis.llc.checkpoints import checkpoints, estimate_run, selected
from icl_lab.analysis.llc.estimator import Estimator
from icl_lab.analysis.llc.settings import SELECTIONS, SETTINGS, TYPES, Settings, help_of, selection
from icl_lab.analysis.llc.traces import chain_llcs, chain_means
from icl_lab.analysis.llc_saturation import has_line, line
from icl_lab.analysis.loaded_run import LoadedRun, load_run
from icl_lab.families.shared_arrays import shared_with
from icl_lab.lab import cli
from icl_lab.lab.command_end import typed
from icl_lab.lab.flag_types import POSITIVE, SEED, Number, shown
from icl_lab.plots.develop import draw_development
from icl_lab.src.checks import require
from icl_lab.src.model import Params
from icl_lab.store import layout
from icl_lab.store.atomic import csv_bytes, write_bytes, write_csv, write_json
from icl_lab.store.llc_rows import SAID, is_sampled, is_usable, read_development
from icl_lab.store.metrics import last_step
from icl_lab.store.outputs import in_path
from icl_lab.store.readers import StoreError, expecting, read_csv, read_json
from icl_lab.store.rundir import read_config

OF_A_MILESTONE = ("step", "low", "high", "support", "since", "until", "sides")
OF_A_STAGE = ("stage", "start", "end", "type", "claimed")
OF_A_CHANGE = (*OF_A_STAGE, *Change._fields, "differs")  # columns, with or without rows
OF_LLC = ("loss", "llc", "llc_low", "llc_high", "saturation", *SAID, "radius", "norm")
CURVE = 50  # places of the fitted curve, about, in develop.json
VERSION = 6  # of what is measured: another one is measured again
CHAINS = {"chains": 16, "burn_in": 200, "draws": 400, "tasks": 2048}
PARTS = {"eps": POSITIVE, "nbeta": TYPES["nbeta"], "gamma": TYPES["gamma"]}
PUBLISHED = "published"
SHARE = Number(0, 10, why="a longer branch is another training")


class Recipe(NamedTuple):
    """What is measured: settings of the LLC by name, checkpoints as in `analysis.llc`, and of the rest.

    The stages are those of the LLC at the first setting, at checkpoints that are sampled at all settings but those
    that are `saturated`. anneal: branches from both ends of each stage, so long as a share of the steps
    so far; 0: none. walks, smoothing, seed: of the essential dynamics; hessian: with the Hessian's trace and top
    eigenvalue, from so many probes.
    """

    settings: Mapping[str, Settings]
    checkpoints: str = "all"
    saturated: tuple[str, ...] = ("published",)
    walks: int = 100
    smoothing: float = 0.06
    seed: int = 0
    hessian: bool = False
    probes: int = 20
    anneal: float = 0.0

    @property
    def unsaturated(self) -> Mapping[str, Settings]:
        """The settings that stages are claimed at."""
        return {name: setting for name, setting in self.settings.items() if name not in self.saturated}


def develop(run: Path, recipe: Recipe, others: Sequence[Path] = ()) -> dict[str, Any]:
    """Measures a run, which must be locked, and writes analysis/develop/; gives what develop.json has.

    others: runs of other seeds that are developed at the same settings. Existing results of the same
    parameters and recipe are reused. With fewer checkpoints than stages need there are none.
    """
    if is_developed(run, recipe, others):
        return read_development(run)
    rows = {name: list(estimate_run(run, setting, recipe.checkpoints)) for name, setting in recipe.settings.items()}
    loaded = load_run(run)
    measured, _ = developmental_metrics.write(loaded, recipe.hessian, recipe.probes, recipe.seed)
    dynamics = essential_dynamics.write(loaded, recipe.walks, recipe.smoothing, recipe.seed)
    sampled = nulls.sampled_at_all({name: rows[name] for name in recipe.unsaturated})
    estimates = {name: _estimates(run, recipe.settings[name], own) for name, own in rows.items()}
    first = next(iter(estimates.values()))
    found = found_stages(first._replace(sampled=np.isin(first.steps, sampled)))
    of_loss = {name: fit_of_loss(*known) for name, known in known_elsewhere(recipe, others).items()}
    tested = Tested(loaded, recipe, estimates, of_loss)
    changes = stage_rows(tested, found)
    facts = {
        "of": digest(run, recipe, others),
        "settings": {name: asdict(setting) for name, setting in recipe.settings.items()},
        "lines": {name: line(name, own)._asdict() for name, own in rows.items() if has_line(own)},
        "usable": {name: [sum(map(is_usable, own)), len(own)] for name, own in rows.items()},
        "sampled_at_all": sampled,
        "estimates": {
            name: {field: values.tolist() for field, values in own._asdict().items()} for name, own in estimates.items()
        },
        "stages": [{name: row[name] for name in OF_A_STAGE} for row in changes[:: len(rows)]],
        "largest_changes": tested.largest(),
        "dynamics": dynamics,
    } | _curve_facts(run, next(iter(recipe.settings.values())), found, sampled)
    write_csv(run / layout.DEVELOP_TABLE, table(loaded, rows, measured))
    write_bytes(run / layout.DEVELOP_STAGES, csv_bytes(changes, OF_A_CHANGE))
    write_json(run / layout.DEVELOP, facts)
    return facts


def check_stages(run: Path, checkpoints: str) -> None:
    """`ConfigError` if fewer of a run's checkpoints are chosen than stages need."""
    steps = selected(run, last_step(run, read_config(run)), checkpoints)
    require(len(steps) >= LEAST, f"{len(steps)} checkpoints are chosen, but stages need {LEAST} or more")


def known_elsewhere(recipe: Recipe, others: Sequence[Path]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """By unsaturated setting: losses and LLCs of the sampled checkpoints of other runs; none without others.

    `StoreError` for a run that is not developed at a setting, or if together they have too few sampled checkpoints.
    """
    found = {}
    for name, setting in recipe.unsaturated.items() if others else ():
        own = [_developed_at(other, setting) for other in others]
        losses, llcs = (np.concatenate(parts) for parts in zip(*own, strict=True))
        if len(losses) < FEWEST_OF_LOSS:
            raise StoreError(
                f"the runs of --also have {len(losses)} sampled checkpoints at the setting {name}, and a fit of the "
                f"LLC to the loss needs {FEWEST_OF_LOSS}: run {typed('analysis.develop')} on more runs or checkpoints"
            )
        found[name] = losses, llcs
    return found


def _developed_at(run: Path, setting: Settings) -> tuple[np.ndarray, np.ndarray]:
    """Losses and LLCs of a developed run's sampled checkpoints at a setting; `StoreError` if it has none of that."""
    if not (run / layout.DEVELOP).exists():
        raise StoreError(
            f"{run} has no results of analysis.develop; run {typed('analysis.develop')} --run {quote(str(run))} first"
        )
    facts = read_development(run)
    with expecting(run / layout.DEVELOP, "the development of a run"):
        for name, fields in facts["settings"].items():
            if fields == asdict(setting):
                own = facts["estimates"][name]
                sampled = np.array(own["sampled"], bool)
                return np.array(own["losses"], float)[sampled], np.array(own["llc"], float).mean(axis=1)[sampled]
    raise StoreError(
        f"{run} was analysed at other settings; run {typed('analysis.develop')} --run {quote(str(run))} again, with "
        "the --settings and chains that are given here"
    )


def check_others(run: Path, recipe: Recipe, others: Sequence[Path]) -> None:
    """`ConfigError` or `StoreError` unless these are runs of the same training with other seeds, and developed."""
    check_seeds([run, *others])
    for other in others:
        check_training(other, run)
    known_elsewhere(recipe, others)


def is_developed(run: Path, recipe: Recipe, others: Sequence[Path] = ()) -> bool:
    """Whether what `develop` writes is there, of this recipe, the run's snapshots and the others' LLCs."""
    there = all((run / name).exists() for name in (layout.DEVELOP_TABLE, layout.DEVELOP_STAGES, layout.DEVELOP))
    return there and read_json(run / layout.DEVELOP).get("of") == digest(run, recipe, others)


def digest(run: Path, recipe: Recipe, others: Sequence[Path] = ()) -> str:
    """What a measurement depends on: the recipe, the bytes of the snapshots, and the LLCs of other runs."""
    known = [[other.name, read_development(other).get("estimates")] for other in others]
    said = json.dumps([VERSION, {**recipe._asdict(), "settings": _plain(recipe.settings)}, *known], sort_keys=True)
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


def _estimates(run: Path, setting: Settings, rows: Sequence[Row]) -> Estimates:
    return nulls.estimates_of(rows, [chain_llcs(run, setting, row["step"]) for row in rows])


def _curve_facts(run: Path, setting: Settings, found: Found | None, sampled: Sequence[int]) -> dict[str, Any]:
    """The milestones of the LLC, each with whether the loss alone has one, its change points and its fitted curve.

    The curve is at places evenly spaced in log step; without a fit it has none, and there are no milestones.
    """
    if found is None:
        return {"milestones": [], "change_points": [], "curve": {"step": [], "llc": [], "llc_se": []}}
    fitted, curve = found.fit, read_curve(run, setting.name)
    alone = milestones(fit(fitted.steps, curve.loss_alone[np.isin(curve.steps, sampled)], fitted.errors))
    kinks = change_points_if_noisy(fitted.steps, fitted.llc, fitted.noise)
    errors = np.sqrt(np.clip(np.diag(fitted.covariance), 0, None))
    columns = {"step": np.expm1(fitted.grid), "llc": fitted.mean, "llc_se": errors}
    shown = slice(None, None, len(fitted.grid) // CURVE)
    return {
        "milestones": [
            {name: getattr(one, name) for name in OF_A_MILESTONE} | {"loss_has_one": within(one, alone) is not None}
            for one in found.milestones
        ],
        "change_points": [point._asdict() for point in kinks.points] if kinks else [],
        "curve": {name: column[shown].tolist() for name, column in columns.items()},
    }


class Tested:
    """Changes between checkpoints of a run, at each setting, with their nulls; branches are trained where asked for."""

    def __init__(
        self,
        loaded: LoadedRun,
        recipe: Recipe,
        estimates: Mapping[str, Estimates],
        of_loss: Mapping[str, OfLoss],
    ):
        self.recipe, self.estimates, self.of_loss = recipe, estimates, of_loss
        self.branches = Branches(loaded, recipe) if recipe.anneal else None

    def change(self, name: str, start: int, end: int) -> Change:
        """The change at a setting between two places."""
        own, between = self.estimates[name], None
        if self.branches is not None and name in self.recipe.unsaturated:
            between = self.branches(name, int(own.steps[start])), self.branches(name, int(own.steps[end]))
        return nulls.change(name, own, start, end, self.of_loss.get(name), between)

    def largest(self) -> dict[str, dict[str, Any]]:
        """By unsaturated setting: the largest change, with its ends and whether it differs; none of too few."""
        found = {}
        for name in self.recipe.unsaturated:
            own = self.estimates[name]
            if (ends := largest_change(own)) is not None:
                one = self.change(name, *ends)
                steps = {side: int(own.steps[place]) for side, place in zip(("start", "end"), ends, strict=True)}
                found[name] = steps | one._asdict() | {"differs": one.differs}
        return found


def stage_rows(tested: Tested, found: Found | None) -> list[dict[str, Any]]:
    """A row for each stage and setting: changes with their nulls, and whether the stage is claimed."""
    said: list[dict[str, Any]] = []
    steps = next(iter(tested.estimates.values())).steps
    for number, (stage, start, end) in enumerate(found.stages if found else []):
        changes = [tested.change(name, start, end) for name in tested.estimates]
        is_claimed = nulls.claimed([one for one in changes if one.setting in tested.recipe.unsaturated])
        place = {"stage": number, "start": int(steps[start]), "end": int(steps[end]), "type": stage.type}
        said += [place | one._asdict() | {"differs": one.differs, "claimed": is_claimed} for one in changes]
    return said


class Branches:
    """The LLC of each chain at the end of a branch from a checkpoint; each is trained and estimated once."""

    def __init__(self, loaded: LoadedRun, recipe: Recipe):
        self.loaded, self.recipe = loaded, recipe
        self.shared = shared_with(loaded.config, loaded.run)
        self.params: dict[int, Params] = {}
        self.estimators: dict[str, Estimator] = {}
        self.known: dict[tuple[str, int], np.ndarray] = {}

    def __call__(self, name: str, step: int) -> np.ndarray:
        """At a setting and step; empty where its chains did not sample."""
        if (name, step) not in self.known:
            row, traces = self._estimator(name)(step, self._params(step))
            llcs = chain_means(traces["excess"].astype(np.float64), self.recipe.settings[name])
            self.known[name, step] = llcs if is_sampled(row) else llcs[:0]
        return self.known[name, step]

    def _estimator(self, name: str) -> Estimator:
        setting = self.recipe.settings[name]
        if name not in self.estimators:
            self.estimators[name] = Estimator(self.loaded.config, setting, self.shared)
        return self.estimators[name]

    def _params(self, step: int) -> Params:
        if step not in self.params:
            config = self.loaded.config
            ((_, params),) = checkpoints(self.loaded.run, config.training.steps, str(step))
            self.params[step] = annealed(config, self.shared, params, step, self.recipe.anneal)
        return self.params[step]


def measure(run: Path, flags: argparse.Namespace) -> dict[str, Any]:
    """Measures all of it, and draws the figure."""
    check_stages(run, flags.checkpoints)
    recipe = Recipe(settings_of(flags), flags.checkpoints, seed=flags.seed, hessian=flags.hessian, anneal=flags.anneal)
    check_others(run, recipe, flags.also)
    facts = develop(run, recipe, flags.also)
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
            f"{shown(word)} is not a setting, NAME=EPS:NBETA:GAMMA, as in tight=3.5e-5:133:2000"
        )
    return name, {part: kind(text) for (part, kind), text in zip(PARTS.items(), parts, strict=True)}


def _line(line: Mapping[str, Any] | None) -> str:
    if line is None:
        return "no linear fit of the LLC to the loss: chains diverge at all but two or fewer checkpoints"
    return (
        f"slope / -nbeta {line['slope_over_minus_nbeta']:.2f}, correlation with the loss {line['correlation']:.2f}, "
        f"{line['usable']} of {line['checkpoints']} checkpoints usable"
    )


def _add(parser: cli.Parser) -> None:
    parser.add_argument(
        "--checkpoints",
        type=selection,
        default="all",
        metavar="WHICH",
        help=f"checkpoints to use: {SELECTIONS} (default: all)",
    )
    cli.add_list(
        parser,
        "--settings",
        _setting,
        (),
        "LLC settings that do not saturate, as NAME=EPS:NBETA:GAMMA (default: those named default and tight)",
    )
    cli.add_list(
        parser,
        "--also",
        in_path,
        (),
        "runs with other seeds, with LLCs at these settings; adds the null hypothesis that the LLC follows the loss",
    )
    parser.add_argument(
        "--anneal",
        type=SHARE,
        default=0.0,
        help="also continue training from both ends of each stage, with the learning rate decaying to 0 over this "
        "fraction of the steps so far (default: 0, not at all)",
    )
    parser.add_argument("--hessian", action="store_true", help="also compute the Hessian's trace and top eigenvalue")
    parser.add_argument("--seed", type=SEED, default=0, help="seed of the random walks and probes")
    for name, value in CHAINS.items():
        parser.add_argument(f"--{name}", type=TYPES[name], default=value, help=f"for the LLC: {help_of(name, value)}")


def _check(flags: argparse.Namespace) -> None:
    require(flags.checkpoints != "last", "checkpoints is 'last'; a development needs six checkpoints or more")
    require(
        flags.chains >= nulls.FEWEST,
        f"chains is {flags.chains}; at least {nulls.FEWEST} are needed, as half of them find where stages begin and "
        "end, and the other half test them",
    )
    settings_of(flags)


COMMAND = Command(
    "develop",
    "Measures how a model develops: LLC, stages tested against null hypotheses, behaviour, structure, essential "
    "dynamics.",
    measure,
    _add,
    _check,
)

if __name__ == "__main__":
    COMMAND.launch()
