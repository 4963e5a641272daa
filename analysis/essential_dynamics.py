"""Finds turning points of a training in the principal components of its outputs.

python -m analysis.essential_dynamics --run DIR, of a run trained with --config.snapshots=true

Writes analysis/essential_dynamics.csv and .json, and figs/essential_dynamics.png. Every share of variance and
every form is compared with random walks of the run's own steps: what these show too is no evidence about the model.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import jax
import numpy as np

from icl_lab.analysis.command import Command
from icl_lab.analysis.development.forms import COMPONENTS, FEWEST, LEAST, PLANES, Dynamics, Form, dynamics, null
from icl_lab.analysis.loaded_run import LoadedRun, load_run
from icl_lab.lab import cli
from icl_lab.lab.flag_types import SEED, Number, Whole
from icl_lab.plots.develop import draw_dynamics
from icl_lab.store import layout
from icl_lab.store.atomic import write_csv, write_json
from icl_lab.store.readers import StoreError

NAMES = tuple(f"pc{number + 1}" for number in range(COMPONENTS))
TRAJECTORY, WALK = "trajectory", "random walk"
SMOOTHING = 0.06
SMOOTHINGS = Number(0.0, 1.0, open_high=True)
WALKS = Whole(1, 10_000, "a p-value has then four digits, and each walk takes as long as the run")

_predict = jax.jit(lambda model, params, batch: model.predict(params, batch), static_argnums=0)


def outputs(loaded: LoadedRun) -> tuple[list[int], np.ndarray]:
    """The steps [T] of a run's snapshots, and its predictions [T, P] at each on the evaluation set.

    `StoreError` for a run of fewer than five snapshots, or whose outputs do not move or are not finite.
    """
    snapshots = [(step, np.ravel(_predict(then.model, then.params, then.batch))) for step, then in loaded.checkpoints()]
    if len(snapshots) < LEAST:
        raise StoreError(
            f"{loaded.run} has {len(snapshots)} snapshots; a trajectory needs {LEAST}, and finding its turning "
            f"points (forms) needs {FEWEST}: train it with more records"
        )
    rows = np.stack([row for _, row in snapshots])
    if not np.isfinite(rows).all() or not np.ptp(rows, axis=0).any():
        what = "the same at all snapshots" if np.isfinite(rows).all() else "not all finite"
        raise StoreError(f"the outputs of {loaded.run} are {what}, so that no component of them can be computed")
    return [step for step, _ in snapshots], rows


def write(loaded: LoadedRun, draws: int, smoothing: float, seed: int) -> dict[str, Any]:
    """Writes essential_dynamics.csv and .json, and gives the latter's content.

    Each form's p is the share of random walks whose strongest form is as strong, and p_forms of those with as many;
    null below fifty checkpoints, where no forms are sought.
    """
    steps, rows = outputs(loaded)
    run_dynamics = dynamics(rows, smoothing)
    at_random = null(rows, draws, np.random.default_rng(seed), smoothing)
    table = [*_rows(TRAJECTORY, steps, run_dynamics), *_rows(WALK, steps, at_random.example)]
    facts = {
        "checkpoints": len(steps),
        "smoothing": smoothing,
        "seed": seed,
        "explained": run_dynamics.explained.tolist(),
        "explained_rank": (at_random.explained < run_dynamics.explained).mean(axis=0).tolist(),
        "cosines": (6 / (np.pi * np.arange(1, COMPONENTS + 1)) ** 2).tolist(),
        "forms": [_form(form, steps, _share(at_random.strongest, form.strength)) for form in run_dynamics.forms],
        "p_forms": _share(at_random.forms, len(run_dynamics.forms)) if len(steps) >= FEWEST else None,
        "null": {
            "walks": draws,
            "explained": at_random.explained.mean(axis=0).tolist(),
            "explained_low": np.quantile(at_random.explained, 0.025, axis=0).tolist(),
            "explained_high": np.quantile(at_random.explained, 0.975, axis=0).tolist(),
            "forms": float(at_random.forms.mean()),
            "strongest": np.quantile(at_random.strongest, [0.5, 0.95]).tolist(),
            "example": [
                _form(form, steps, _share(at_random.strongest, form.strength)) for form in at_random.example.forms
            ],
        },
    }
    write_csv(loaded.run / layout.ESSENTIAL_DYNAMICS, table)
    write_json(loaded.run / layout.ESSENTIAL_DYNAMICS_FACTS, facts)
    return facts


def _share(at_random: np.ndarray, value: float) -> float:
    """The p-value of a Monte Carlo test, (1 + how many are as large) / (1 + how many there are).

    What cannot be compared counts as large.
    """
    return float((1 + np.sum(~(at_random < value))) / (1 + len(at_random)))


def _form(form: Form, steps: list[int], p: float) -> dict[str, Any]:
    """A form as stored; its point has no number in a component that no plane of it has."""
    point = [None if np.isnan(value) else float(value) for value in form.point]
    return form._asdict() | {"step": steps[form.checkpoint], "point": point, "p": p}


def _rows(series: str, steps: list[int], series_dynamics: Dynamics) -> list[dict[str, Any]]:
    """The scores of each checkpoint and, after smoothing, the curvature of each plane."""
    smooth = {f"{name}_smooth": series_dynamics.scores[:, number] for number, name in enumerate(NAMES)}
    raw = {name: series_dynamics.raw[:, number] for number, name in enumerate(NAMES)}
    curved = {
        f"curvature_{NAMES[x]}_{NAMES[y]}": curve
        for (x, y), curve in zip(PLANES, series_dynamics.curvatures, strict=True)
    }
    columns = raw | smooth | curved
    return [
        {"series": series, "step": step} | {name: float(values[t]) for name, values in columns.items()}
        for t, step in enumerate(steps)
    ]


def measure(run: Path, flags: argparse.Namespace) -> dict[str, Any]:
    """Measures the trajectory and its null, and draws both."""
    facts = write(load_run(run), flags.walks, flags.smoothing, flags.seed)
    draw_dynamics(run)
    shares = zip(facts["explained"], facts["null"]["explained"], strict=True)
    strongest, few = facts["forms"][:1], facts["p_forms"] is None
    forms = f"{len(facts['forms'])} (walks {facts['null']['forms']:.1f})"
    return {
        "checkpoints": facts["checkpoints"],
        "variance explained": ", ".join(f"{share:.3f} (walks {walk:.3f})" for share, walk in shares),
        "forms": f"not sought below {FEWEST} checkpoints" if few else f"{forms}, p = {facts['p_forms']:.3g}",
        "strongest form": "".join(f"step {one['step']}, p = {one['p']:.3g}" for one in strongest) or "none",
    }


def _add(parser: cli.Parser) -> None:
    parser.add_argument("--walks", type=WALKS, default=100, help="number of random walks, the null distribution")
    parser.add_argument(
        "--smoothing",
        type=SMOOTHINGS,
        default=SMOOTHING,
        help="width of the smoothing at the last checkpoint, as a fraction of all checkpoints",
    )
    parser.add_argument("--seed", type=SEED, default=0, help="seed of the random walks")


COMMAND = Command(
    "essential_dynamics",
    "Finds turning points of a training in the principal components of its outputs; compares them with random walks.",
    measure,
    _add,
)

if __name__ == "__main__":
    COMMAND.launch()
