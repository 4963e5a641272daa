"""Finds settings (eps, nbeta, gamma) at which the LLC of a run can be trusted.

python -m analysis.llc_calibrate --run DIR --steps early,middle,last

Writes analysis/llc_calibration.csv and .json, and figs/llc_calibration.png: heat maps of the LLC, saturation, trend and
acceptance. The cell to use is printed with its reason and what its estimates measure, or why no cell is usable, and
whether the order of the checkpoints depends on the setting. What is known before any chain is drawn is said first:
cells whose chains would be too short go to SGHMC, or are left out with the steps that they need; checkpoints that do no
better than the null predictor are left out.
"""

from __future__ import annotations

import argparse
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.analysis.command import Command
from icl_lab.analysis.llc.checkpoints import checkpoints
from icl_lab.analysis.llc.estimate import how_of
from icl_lab.analysis.llc.estimator import Estimator
from icl_lab.analysis.llc.loss import measured_losses
from icl_lab.analysis.llc.prediction import relaxed
from icl_lab.analysis.llc.settings import FLAGS, STEP, Settings, add_flag, help_of
from icl_lab.analysis.llc.spectrum import Spectrum
from icl_lab.analysis.llc.verdict import RELAXED
from icl_lab.families.shared_arrays import shared_with
from icl_lab.lab import cli
from icl_lab.lab.flag_types import POSITIVE, shown
from icl_lab.lab.progress import along
from icl_lab.plots.heat_maps import draw_calibration
from icl_lab.src.checks import require
from icl_lab.src.model import Params
from icl_lab.src.precision import use_highest_precision
from icl_lab.store import layout, rundir
from icl_lab.store.atomic import write_csv, write_json
from icl_lab.store.llc_rows import BETWEEN, is_usable
from icl_lab.store.metrics import last_step

WORDS = {"early": 0.1, "middle": 0.5, "last": 1.0}  # of the training's steps: the nearest checkpoint
FRACTIONS = (0.05, 0.2)  # of 1 / (nbeta h_max + gamma): step sizes where none are given
NBETAS, PULLS = (10.0, 133.3, 1000.0), (0.01, 0.1, 1.0, 10.0, 100.0)  # gamma / nbeta where no gamma is given
GRID = ("eps", "nbeta", "gamma")  # settings that the grid is of
SHORT = {"chains": 4, "burn_in": 150, "draws": 300}  # of a cell, where no other number is given
MOMENTUM = "sghmc"  # where chains of SGLD are too short


class Cell(NamedTuple):
    """A point of the grid, and the sampler of its chains."""

    eps: float
    nbeta: float
    gamma: float
    sampler: str = "sgld"


class Advice(NamedTuple):
    """The cell to use, or None, with the reason; whether the order of the checkpoints depends on the setting.

    left_out: a sentence for each checkpoint and each pull that was left out.
    """

    cell: Cell | None
    reason: str
    order: str
    left_out: tuple[str, ...] = ()


class Point(NamedTuple):
    """A checkpoint: its parameters, its spectrum, and its loss."""

    step: int
    params: Params
    spectrum: Spectrum
    loss: float


def calibrate(
    run: Path,
    words: Sequence[str],
    settings: Settings,
    eps: Sequence[float],
    nbetas: Sequence[float],
    gammas: Sequence[float],
) -> Advice:
    """Estimates every cell at every chosen checkpoint; writes llc_calibration.csv and .json."""
    use_highest_precision()
    config = rundir.read_config(run)
    estimator = Estimator(config, settings, shared_with(config, run))
    chosen = chosen_checkpoints(run, last_step(run, config), words)
    every = [point_of(estimator, step, params) for step, params in chosen]
    points = [point for point in every if point.loss < estimator.null_loss]
    told = [
        f"step {point.step} is left out: its loss {point.loss:.4g} is not below the null predictor's "
        f"{estimator.null_loss:.4g}, so it has learnt nothing that an LLC could describe"
        for point in every
        if not point.loss < estimator.null_loss
    ]
    require(bool(points), "; ".join(told) or "no checkpoint is chosen")
    cells, short = feasible(grid(eps, nbetas, gammas, max(point.spectrum.h_max for point in points)), settings, points)
    rows: list[dict[str, Any]] = []
    for cell, point in along(product(cells, points), len(cells) * len(points), "estimates"):
        own = estimator.with_settings(replace(settings, **cell._asdict()))
        rows.append(own(point.step, point.params, point.spectrum)[0])
    advice = (advise(rows) if rows else NOTHING)._replace(left_out=(*told, *short))
    write_csv(run / layout.LLC_CALIBRATION, rows)
    facts = advice._asdict() | {
        "cell": advice.cell and advice.cell._asdict(),
        "top_eigenvalues": {point.step: point.spectrum.h_max for point in points},
    }
    write_json(run / layout.LLC_ADVICE, facts)
    return advice


def point_of(estimator: Estimator, step: int, params: Params) -> Point:
    """A checkpoint with what is known of it before any chain."""
    taken = estimator.problem(params).split
    losses = measured_losses(taken.form, taken.fixed, taken.vector, estimator.tasks)
    return Point(step, params, estimator.spectrum(params), float(np.mean(np.asarray(losses, np.float64))))


def grid(eps: Sequence[float], nbetas: Sequence[float], gammas: Sequence[float], top: float) -> list[Cell]:
    """The cells. Without eps, fractions of the bound of the largest eigenvalue; without gamma, multiples of nbeta."""
    cells = []
    for nbeta in nbetas or NBETAS:
        for gamma in gammas or [nbeta * pull for pull in PULLS]:
            sizes = eps or [fraction / (nbeta * max(top, 0.0) + gamma) for fraction in FRACTIONS]
            cells += [Cell(size, nbeta, gamma) for size in sizes]
    return cells


def feasible(cells: Sequence[Cell], settings: Settings, points: Sequence[Point]) -> tuple[list[Cell], list[str]]:
    """The cells whose chains are long enough by a quadratic loss, with the sampler for it; a sentence for each other.

    A setting of another sampler than SGLD is taken as it is.
    """
    kept, told = [], []
    for cell in cells:
        samplers = [settings.sampler] if settings.sampler != "sgld" else ["sgld", MOMENTUM]
        fitting = [cell._replace(sampler=name) for name in samplers if _is_long_enough(cell, name, settings, points)]
        if fitting:
            kept.append(fitting[0])
        else:
            steps = 2 * settings.friction / (cell.eps * cell.gamma)
            told.append(
                f"eps {cell.eps:.3g}, nbeta {cell.nbeta:.4g}, gamma {cell.gamma:.4g} is left out: a flat direction "
                f"forgets w* in {math.ceil(steps)} steps of SGHMC, and chains have {settings.burn_in * settings.thin} "
                "before their draws"
            )
    return kept, told


def _is_long_enough(cell: Cell, sampler: str, settings: Settings, points: Sequence[Point]) -> bool:
    own = replace(settings, **cell._replace(sampler=sampler)._asdict())
    how = how_of(own)
    if how is None or sampler == "hmc":
        return True
    numbers = own.nbeta, own.gamma, how, own.burn_in * own.thin, own.draws * own.thin
    return all(
        own.nbeta * point.spectrum.h_min + own.gamma <= 0 or relaxed(point.spectrum, *numbers) >= RELAXED
        for point in points
    )


def chosen_checkpoints(run: Path, last: int, words: Sequence[str]) -> Iterable[tuple[int, Params]]:
    """The checkpoints of these words (early, middle, last) and steps."""
    if list(words) == ["last"]:
        return list(checkpoints(run, last, "last"))
    known = [step for step, _ in checkpoints(run, last, "all")]
    wanted = {nearest(known, WORDS[word] * last) if word in WORDS else int(word) for word in words}
    return list(checkpoints(run, last, ",".join(map(str, sorted(wanted)))))


def nearest(steps: Sequence[int], to: float) -> int:
    """The step nearest to a number; of two the earlier."""
    return min(steps, key=lambda step: (abs(step - to), step))


# --- what the grid says ---


NOTHING = Advice(
    None, "the chains of every cell are too short: raise burn_in and draws, or thin", "no cell has an estimate"
)


def advise(rows: Sequence[Mapping[str, Any]]) -> Advice:
    """Of the usable cells the one of the weakest pull gamma / nbeta, and of these the one of the narrowest
    intervals.
    """
    require(bool(rows), "the grid is empty; it needs at least one cell")
    cells = by_cell(rows)
    steps = {row["step"] for row in rows}
    usable = {
        cell: cell_rows
        for cell, cell_rows in cells.items()
        if {row["step"] for row in cell_rows if is_usable(row)} == steps
    }
    order = order_of_checkpoints(cells, usable)
    if not usable:
        return Advice(None, why_none(cells), order)
    weakest = min(cell.gamma / cell.nbeta for cell in usable)
    best = min((cell for cell in usable if cell.gamma / cell.nbeta == weakest), key=lambda cell: width(usable[cell]))
    measured = ", ".join(f"{row['verdict']} at step {row['step']}" for row in usable[best])
    return Advice(
        best,
        f"eps {best.eps:.3g}, nbeta {best.nbeta:.4g}, gamma {best.gamma:.4g}, sampler {best.sampler}: "
        f"{len(usable)} of {len(cells)} cells are usable at every checkpoint, and this one has the weakest pull (gamma "
        f"/ nbeta {weakest:.3g}) and, at that pull, the narrowest intervals (±{100 * width(usable[best]):.0f} % of "
        f"the LLC); it measures: {measured}",
        order,
    )


def by_cell(rows: Sequence[Mapping[str, Any]]) -> dict[Cell, list[Mapping[str, Any]]]:
    """The rows of each cell, by step."""
    cells: dict[Cell, list[Mapping[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: row["step"]):
        cells.setdefault(Cell(row["eps"], row["nbeta"], row["gamma"], row["sampler"]), []).append(row)
    return cells


def width(rows: Sequence[Mapping[str, Any]]) -> float:
    """The mean half width of the intervals over the mean |LLC|."""
    halves = [0.5 * (row["llc_high"] - row["llc_low"]) for row in rows]
    return float(np.mean(halves) / np.mean([abs(row["llc"]) for row in rows]))


def why_none(cells: Mapping[Cell, Sequence[Mapping[str, Any]]]) -> str:
    """Why no cell is usable at every checkpoint: the reasons with their counts, and where w* is no minimum."""
    kinds = Counter(
        word
        for cell_rows in cells.values()
        for row in cell_rows
        for word in dict.fromkeys(reason.partition(":")[0] for reason in row["reasons"].split(BETWEEN))
    )
    kinds.pop("", None)
    counts = ", ".join(f"{kind} ({count})" for kind, count in kinds.most_common())
    total = sum(len(cell_rows) for cell_rows in cells.values())
    below = sorted({row["step"] for cell_rows in cells.values() for row in cell_rows if row["llc_high"] < 0})
    no_minimum = (
        f"; at step {', '.join(map(str, below))} chains go below L(w*): w* is no local minimum there, as before the "
        "learning rate has decayed"
        if below
        else ""
    )
    return f"no cell of {len(cells)} is usable at every checkpoint; of {total} estimates: {counts}{no_minimum}"


def order_of_checkpoints(cells: Mapping[Cell, Sequence[Mapping[str, Any]]], usable: Mapping[Cell, Any]) -> str:
    """Whether the order of the checkpoints by LLC depends on the setting, in a sentence."""
    orders = {cell: order for cell, cell_rows in cells.items() if (order := _order(cell_rows))}
    if len(next(iter(cells.values()))) < 2:
        return "one checkpoint has no order"
    counts = Counter(orders.values()).most_common()
    listed = ", ".join(f"{order} in {count}" for order, count in counts)
    usable_orders = Counter(order for cell, order in orders.items() if cell in usable)
    if not counts:
        return "no cell has an estimate at every checkpoint, so they have no order"
    if len(counts) == 1:
        return f"the order of the checkpoints is the same in all {len(orders)} cells with an estimate: {listed}"
    trusted = {0: "none is usable", 1: "the same in all usable ones"}.get(
        len(usable_orders), "and differs between usable ones"
    )
    return f"the order of the checkpoints depends on the setting: steps {listed} of {len(orders)} cells; {trusted}"


def _order(rows: Sequence[Mapping[str, Any]]) -> str:
    """The steps from the largest LLC to the least; "" where one has none."""
    if not all(np.isfinite(row["llc"]) for row in rows):
        return ""
    return " > ".join(str(row["step"]) for row in sorted(rows, key=lambda row: -row["llc"]))


def measure(run: Path, flags: argparse.Namespace) -> dict[str, Any]:
    """Estimates the grid, and draws it."""
    advice = calibrate(run, flags.steps, _settings(flags), *(getattr(flags, name) for name in GRID))
    if advice.order != NOTHING.order:
        draw_calibration(run)
    told = {"left_out": BETWEEN.join(advice.left_out)} if advice.left_out else {}
    return told | {"recommended": advice.reason if advice.cell else "none: " + advice.reason, "order": advice.order}


def _settings(flags: argparse.Namespace) -> Settings:
    given = {name: getattr(flags, name) for name in FLAGS if name not in GRID}
    return Settings(**SHORT | {name: value for name, value in given.items() if value is not None})


def _add(parser: cli.Parser) -> None:
    parser.needs("blackjax", when=lambda flags: flags.sampler == "hmc")
    cli.add_list(parser, "--steps", _checkpoint, [*WORDS], f"checkpoints: {', '.join(WORDS)} or steps")
    defaults = {
        "eps": "fractions of the stability bound",
        "nbeta": "10, 133.3, 1000",
        "gamma": ".01, .1, 1, 10, 100 x nbeta",
    }
    for name, text in defaults.items():
        cli.add_list(parser, f"--{name}", POSITIVE, (), f"{FLAGS[name]} (default: {text})")
    for name in FLAGS:
        if name not in GRID:
            add_flag(parser, name, help_of(name, SHORT.get(name)))


def _checkpoint(text: str) -> str:
    """One of the words, or a step in figures."""
    if text in WORDS or re.match(r"[-+.\d]", text):
        return text if text in WORDS else str(STEP(text))
    raise argparse.ArgumentTypeError(f"{shown(text)} is not a step or one of {', '.join(WORDS)}")


def _check(flags: argparse.Namespace) -> None:
    _settings(flags)


COMMAND = Command(
    "llc_calibrate", "Finds settings for the local learning coefficient that can be trusted.", measure, _add, _check
)

if __name__ == "__main__":
    COMMAND.launch()
