"""Predicts the local learning coefficient from the Hessian, without a chain.

python -m analysis.curvature --run DIR --nbetas 133.3,1000 --gammas 67,667

No chain is drawn. For each nbeta and gamma the quadratic prediction of the LLC is printed in its parts
(docs/llc/reference.md), with the share of directions that gamma holds (gamma > nbeta h), which says how the number
comes about and judges nothing. Writes analysis/curvature.csv.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis.command import Command
from icl_lab.analysis.llc.checkpoints import checkpoints
from icl_lab.analysis.llc.estimate import how_of
from icl_lab.analysis.llc.estimator import Estimator
from icl_lab.analysis.llc.prediction import EXACT, predict
from icl_lab.analysis.llc.settings import SELECTIONS, Settings, add_flag, help_of, selection
from icl_lab.analysis.llc.spectrum import Spectrum
from icl_lab.families.shared_arrays import shared_with
from icl_lab.lab import cli
from icl_lab.lab.flag_types import POSITIVE
from icl_lab.src.precision import use_highest_precision
from icl_lab.store import layout, rundir
from icl_lab.store.atomic import write_csv
from icl_lab.store.metrics import last_step

SHOWN = 5  # largest eigenvalues
OF_CHAINS = ("tasks", "mask", "batch_size")  # settings that a prediction depends on
DEFAULT = Settings()


def measure(run: Path, flags: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The rows of every selected checkpoint: its spectrum, then its prediction at each nbeta and gamma."""
    use_highest_precision()
    settings, config = _settings(flags), rundir.read_config(run)
    estimator = Estimator(config, settings, shared_with(config, run))
    table = []
    for step, params in checkpoints(run, last_step(run, config), flags.checkpoints):
        spectrum = estimator.spectrum(params)
        yield {"step": step, **summary(spectrum)}
        for nbeta in flags.nbetas or [DEFAULT.nbeta]:
            for gamma in flags.gammas or [DEFAULT.gamma]:
                row = prediction_row(spectrum, settings, nbeta, gamma, flags.eps is not None)
                table.append({"step": step, **summary(spectrum), **row})
                yield {"step": step, **row}
    write_csv(run / layout.CURVATURE, table)


def summary(spectrum: Spectrum) -> dict[str, Any]:
    """The largest eigenvalues, the smallest, the trace with its standard error, and the slope |grad L(w*)|."""
    trace, error = spectrum.total(lambda nodes: np.sum(nodes.weight * nodes.h))
    top = spectrum.top[:SHOWN]
    eigenvalues = {f"h_{place}": top[place - 1] if place <= len(top) else math.nan for place in range(1, SHOWN + 1)}
    ends = {"h_min": spectrum.h_min, "trace": trace, "trace_error": error, "slope": spectrum.slope}
    return {**eigenvalues, **ends, "parameters": spectrum.parameters, "samples": spectrum.samples or "all"}


def prediction_row(
    spectrum: Spectrum, settings: Settings, nbeta: float, gamma: float, with_steps: bool
) -> dict[str, Any]:
    """The prediction at one nbeta and gamma; of the posterior itself unless a step size is given."""
    found = predict(spectrum, nbeta, gamma, how_of(settings) if with_steps else EXACT)
    held, _ = spectrum.total(lambda nodes: np.sum(nodes.weight[nbeta * nodes.h < gamma]))
    parts = {
        "curvature": found.curvature,
        "step_part": found.step,
        "noise_part": found.noise,
        "slope_part": found.slope,
    }
    whole = {"predicted": found.total, "predicted_error": found.error}
    said = {"held_by_gamma": held / spectrum.parameters, "note": "saddle" if math.isnan(found.curvature) else "none"}
    return {"nbeta": nbeta, "gamma": gamma, **whole, **parts, **said}


def _settings(flags: argparse.Namespace) -> Settings:
    given = {name: getattr(flags, name) for name in OF_CHAINS if getattr(flags, name) is not None}
    return Settings(**given) if flags.eps is None else Settings(**given, eps=flags.eps)


def _add(parser: cli.Parser) -> None:
    text = f"checkpoints to use: {SELECTIONS} (default: last)"
    parser.add_argument("--checkpoints", type=selection, default="last", metavar="WHICH", help=text)
    cli.add_list(parser, "--nbetas", POSITIVE, (), f"n beta (default: {DEFAULT.nbeta:g})")
    cli.add_list(parser, "--gammas", POSITIVE, (), f"strengths of the pull towards w* (default: {DEFAULT.gamma:g})")
    for name in OF_CHAINS:
        add_flag(parser, name, help_of(name))
    parser.add_argument(
        "--eps",
        type=POSITIVE,
        help="step size of the chains; adds to the prediction what step size and minibatches contribute",
    )


def _check(flags: argparse.Namespace) -> None:
    _settings(flags)


COMMAND = Command(
    "curvature", "Predicts the local learning coefficient from the Hessian, without a chain.", measure, _add, _check
)

if __name__ == "__main__":
    COMMAND.launch()
