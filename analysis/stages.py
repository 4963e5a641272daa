"""Finds stages of a training in its local learning coefficients, and in its loss alone.

python -m analysis.stages --run DIR [--also DIR,DIR,...], of a run with analysis/llc.csv

Writes analysis/stages.csv and .json, and figs/stages.png. Every milestone is reported with its support, its
interval, and whether the loss alone has it: where chains are saturated the LLC is a decreasing line in the loss.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.analysis.command import Command
from icl_lab.analysis.development.change_points import change_points_if_noisy
from icl_lab.analysis.development.llc_curve import LlcCurve, check_seeds, read_curve, read_like
from icl_lab.analysis.development.milestones import (
    BOUND,
    DRAWS,
    Fit,
    Milestone,
    Stage,
    Z,
    fit,
    milestones,
    of_seeds,
    stages,
    within,
)
from icl_lab.lab import cli
from icl_lab.lab.flag_types import POSITIVE, SEED, Number, Whole
from icl_lab.plots.stages import draw_stages
from icl_lab.store import layout
from icl_lab.store.atomic import write_csv, write_json
from icl_lab.store.outputs import in_path

LLC, LOSS_ALONE = "LLC", "loss alone"
LENGTH = Number(1e-3, 1e3, why="a training is shorter than 22 in log step")


class Rule(NamedTuple):
    """How milestones are found: the arguments of `fit` and `milestones`, and the seed of the draws."""

    bound: float
    z: float
    length: float | None
    draws: int
    seed: int


class Development(NamedTuple):
    """A fitted curve with its milestones and stages."""

    fit: Fit
    milestones: list[Milestone]
    stages: list[Stage]


def write(
    run: Path, others: Sequence[Path], setting: str | None, usable_only: bool, rule: Rule
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Writes stages.csv and .json, and gives their contents. Nothing is written if the runs cannot be compared."""
    first = read_curve(run, setting, usable_only)
    curves = [first, *(read_like(other, first, usable_only) for other in others)]
    check_seeds([run, *others])
    development, alone = _development(first, first.llc, rule), _development(first, first.loss_alone, rule)
    seeds = [development, *(_development(curve, curve.llc, rule) for curve in curves[1:])]
    facts = {
        "setting": first.setting,
        "settings": {name: _plain(value) for name, value in first.settings.items()},
        "usable_only": usable_only,
        "checkpoints": _checkpoints(first),
        "diverged": first.diverged,
        "rule": rule._asdict(),
        "curve": _curve(development.fit),
        "milestones": [_milestone(one, first, alone, seeds) for one in development.milestones],
        "change_points": _change_points(first, development.fit),
        "loss_alone": {"curve": _curve(alone.fit), "milestones": [_fields(one) for one in alone.milestones]},
        "seeds": [_seed(curve, one) for curve, one in zip(curves[1:], seeds[1:], strict=True)],
    }
    table = [_row(LLC, curve, stage) for curve, one in zip(curves, seeds, strict=True) for stage in one.stages]
    table += [_row(LOSS_ALONE, first, stage) for stage in alone.stages]
    write_csv(run / layout.STAGES, table)
    write_json(run / layout.STAGES_FACTS, facts)
    return facts, table


def _development(curve: LlcCurve, values: np.ndarray, rule: Rule) -> Development:
    """The milestones of values at a curve's checkpoints, with the standard errors of its LLC, whatever they are of."""
    fitted = fit(curve.steps, values, curve.errors, rule.length)
    rng = np.random.default_rng(rule.seed)
    curve_milestones = milestones(fitted, rule.bound, rule.z, rule.draws, rng)
    return Development(fitted, curve_milestones, stages(fitted, curve_milestones, curve.loss, rule.z))


# --- as they are written ---


def _checkpoints(curve: LlcCurve) -> dict[str, list[Any]]:
    """What was fitted, as columns."""
    columns = ("steps", "llc", "errors", "loss", "loss_alone", "usable")
    return {name: getattr(curve, name).tolist() for name in columns}


def _curve(fitted: Fit) -> dict[str, Any]:
    """A fit: its numbers, and the curve on its grid."""
    numbers = {name: getattr(fitted, name) for name in ("height", "length", "jitter", "evidence", "has_shape")}
    errors, sloped = (np.sqrt(np.clip(np.diag(of), 0, None)) for of in (fitted.covariance, fitted.slope_covariance))
    columns = {
        "step": np.expm1(fitted.grid),
        "llc": fitted.mean,
        "llc_se": errors,
        "slope": fitted.slope,
        "slope_se": sloped,
    }
    return numbers | {name: values.tolist() for name, values in columns.items()}


def _fields(milestone: Milestone) -> dict[str, Any]:
    kept = {name: value for name, value in milestone._asdict().items() if name != "place"}
    return kept | {"basin": np.expm1(milestone.basin).tolist()}


def _milestone(
    milestone: Milestone, curve: LlcCurve, alone: Development, seeds: Sequence[Development]
) -> dict[str, Any]:
    """A milestone, whether the loss alone has one within its interval, and what other seeds say of it.

    usable: of the checkpoints on either side of it, both.
    """
    after = int(np.clip(np.searchsorted(curve.steps, milestone.step), 1, len(curve.steps) - 1))
    of_loss = within(milestone, alone.milestones)
    return _fields(milestone) | {
        "usable": bool(curve.usable[after - 1 : after + 1].all()),
        "loss_has_one": of_loss is not None,
        "loss_step": None if of_loss is None else of_loss.step,
        "seeds": of_seeds(milestone, [one.milestones for one in seeds])._asdict() if len(seeds) > 1 else None,
    }


def _change_points(curve: LlcCurve, fitted: Fit) -> dict[str, Any]:
    """Change points with the noise of the fit, as they are written."""
    segmentation = change_points_if_noisy(curve.steps, curve.llc, fitted.noise)
    if segmentation is None:
        return {"points": [], "bic": []}
    return {
        "points": [point._asdict() for point in segmentation.points],
        "values": segmentation.values.tolist(),
        "bic": segmentation.bic.tolist(),
    }


def _seed(curve: LlcCurve, development: Development) -> dict[str, Any]:
    """Another seed's run: its curve and its own milestones."""
    return {
        "run": str(curve.run),
        "data_seed": curve.seeds[0],
        "init_seed": curve.seeds[1],
        "setting": curve.setting,
        "curve": _curve(development.fit),
        "milestones": [_fields(one) for one in development.milestones],
    }


def _row(series: str, curve: LlcCurve, stage: Stage) -> dict[str, Any]:
    return {"series": series, "data_seed": curve.seeds[0], "init_seed": curve.seeds[1], **stage._asdict()}


def _plain(value: Any) -> Any:
    """A value of a table as JSON has it."""
    return value.item() if isinstance(value, np.generic) else value


def measure(run: Path, flags: argparse.Namespace) -> Iterator[Mapping[str, Any]]:
    """Fits the curve, writes its milestones and stages, and draws them; prints both."""
    rule = Rule(flags.bound, flags.z, flags.length, flags.draws, flags.seed)
    facts, table = write(run, flags.also, flags.setting, flags.usable, rule)
    draw_stages(run)
    usable = facts["checkpoints"]["usable"]
    yield {"setting": facts["setting"], "checkpoints": len(usable), "usable": sum(usable)}
    for one in facts["milestones"]:
        yield _shown(one)
    if not facts["milestones"]:
        yield {"milestones": "none: " + ("no plateau" if facts["curve"]["has_shape"] else "a line and noise")}
    stages = [row for row in table if row["series"] == LLC][: len(facts["milestones"]) + 1]
    yield from ({"stage": number + 1, **_stage(row)} for number, row in enumerate(stages))
    yield {"change_points": ", ".join(f"{point['step']:g}" for point in facts["change_points"]["points"]) or "none"}


def _shown(milestone: Mapping[str, Any]) -> dict[str, Any]:
    """What is printed of a milestone."""
    numbers = {name: milestone[name] for name in ("low", "high", "support", "sides")}
    words = {name: "yes" if milestone[name] else "no" for name in ("loss_has_one", "usable")}
    over = milestone["seeds"]
    return (
        {"milestone": milestone["step"]}
        | numbers
        | words
        | ({"seeds": f"{over['having']} of {over['seeds']}"} if over else {})
    )


def _stage(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("end", "type", "delta_loss", "delta_llc", "delta_llc_se")}


def _add(parser: cli.Parser) -> None:
    cli.add_list(parser, "--also", in_path, [], "further runs of the same training with other seeds")
    parser.add_argument(
        "--setting", help="setting in llc.csv, by the first characters of its name (default: the only one)"
    )
    parser.add_argument("--usable", action="store_true", help="leave out checkpoints that are not usable")
    cli.add_former_names(parser, "usable", ["healthy"])
    parser.add_argument(
        "--bound",
        type=POSITIVE,
        default=BOUND,
        help="largest slope on a plateau, per log step, as a fraction of the curve's height",
    )
    parser.add_argument("--z", type=POSITIVE, default=Z, help="standard errors that a change must exceed")
    parser.add_argument(
        "--length", type=LENGTH, help="length scale of the fit in log step (default: maximum likelihood)"
    )
    parser.add_argument(
        "--draws",
        type=Whole(1, 100_000, "all of them are in memory"),
        default=DRAWS,
        help="draws of the curve, for the milestones' intervals",
    )
    parser.add_argument("--seed", type=SEED, default=0, help="seed of the draws")


COMMAND = Command(
    "stages", "Finds milestones and stages of a training in its local learning coefficients.", measure, _add
)

if __name__ == "__main__":
    COMMAND.launch()
