"""Trains five seeds of the main experiment together, and compares each with gradient descent.

python -m scripts.demo_seeds --seeds 0,1,2,3,4
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis.compare import table
from icl_lab.lab import cli, compile_cache
from icl_lab.lab.configs.presets import preset, resolve
from icl_lab.lab.configs.run import RunConfig
from icl_lab.lab.executors.signals import RESUME_HINT, catch_signals
from icl_lab.lab.flag_types import COUNT, SEEDS
from icl_lab.lab.native.kernel import Kernel
from icl_lab.runners import kernel, resume
from icl_lab.runners.command import print_notices, report_divergence, report_stop
from icl_lab.runners.locks import locked_runs
from icl_lab.runners.resume import Persistence
from icl_lab.src.statistics import mean_and_interval
from icl_lab.store import layout, rundir
from icl_lab.store.metrics import read_summary
from icl_lab.store.outputs import out_folder
from icl_lab.store.readers import expecting

WIDTH = 5  # runs that train together

# column -> (value from a run's summary, acceptance range as text, test of it)
COLUMNS: dict[str, tuple[Callable[[dict[str, Any]], float], str, Callable[[float], bool]]] = {
    "eta/N": (lambda s: s["alignment"]["eta"], ".606 ± .015", lambda v: abs(v - 0.606) <= 0.015),
    "GD loss": (lambda s: s["headline"]["gd_loss_averaged"], ".2062 ± .001", lambda v: abs(v - 0.2062) <= 0.001),
    "TF/GD": (lambda s: s["headline"]["loss_ratio"], "[.997, 1.01]", lambda v: 0.997 <= v <= 1.01),
    "cosine": (lambda s: s["alignment"]["model_cos"], ">= .998", lambda v: v >= 0.998),
    "|pred diff|": (lambda s: s["alignment"]["preds_diff"], "<= .025", lambda v: v <= 0.025),
    "sampled z": (
        lambda s: (s["headline"]["gd_loss"] - 0.20623) / s["headline"]["gd_loss_se"],
        "within ± 3",
        lambda v: abs(v) <= 3,
    ),
}


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("scripts.demo_seeds", "Trains lsa1 with several seeds and compares each with gradient descent.")
    cli.add_list(built, "--seeds", SEEDS, range(5), "seeds of data and initialisation")
    built.add_argument("--steps", type=COUNT, default=5000, help="training steps")
    built.add_argument("--out", type=out_folder, default="runs/demo_seeds", help="folder of the run directories")
    built.add_argument("--overwrite", action="store_true", help="retrain runs that exist")
    resume.add_flags(built)
    kernel.add_flag(built)
    cli.add_quiet(built)
    return built


def main(argv: list[str]) -> int:
    """The command line."""
    flags = parser().parse(argv)
    if len(flags.seeds) < 2 or len(set(flags.seeds)) < len(flags.seeds):
        raise cli.UsageError("seeds must be at least two different ones, or there is no spread to show")
    default = resolve(preset("lsa1"))
    training = replace(default.training, steps=flags.steps)
    configs = [replace(default, data_seed=seed, init_seed=seed, training=training) for seed in flags.seeds]
    runs = [rundir.choose(c, str(flags.out / f"seed_{c.data_seed}"), flags.overwrite) for c in configs]
    pairs = list(zip(runs, configs, strict=True))
    saving, chosen = resume.from_flags(flags), kernel.chosen(flags.kernel, pairs, flags.overwrite)
    with locked_runs(pairs, flags.overwrite, WIDTH, saving.strict_resume, below=flags.out) as finished:
        if stopped_by := _train(pairs, flags.quiet, saving, chosen):
            return report_stop(runs, stopped_by)
    diverged = [run for run in runs if rundir.read_status(run) == "diverged"]
    for run in diverged:
        report_divergence(run, run.name)
    ended = 1 if diverged else _report(runs)
    print_notices(runs, finished)
    return ended


def _train(pairs: list[tuple[Path, RunConfig]], quiet: bool, saving: Persistence, chosen: Kernel) -> int:
    """Trains the unfinished runs; returns the number of the signal that stopped it, or 0."""
    from icl_lab.lab.progress import ConsoleLogger
    from icl_lab.runners.loop import Run, run_pack  # imports JAX

    compile_cache.enable()
    runs = [Run(run, config) for run, config in pairs]
    packs = [runs[first : first + WIDTH] for first in range(0, len(runs), WIDTH)]
    with ConsoleLogger(quiet) as logger, catch_signals(RESUME_HINT) as signals:
        train = partial(run_pack, logger=logger, width=WIDTH, signals=signals, persistence=saving, kernel=chosen)
        ended = (train(pack) for pack in packs)
        stopped = "stopped" in ended
    return signals.received[0] if stopped else 0


def _report(runs: list[Path]) -> int:
    """Prints a row per seed, and the mean with its 95 % interval; returns 0 if all numbers are in range."""
    values = np.array([_numbers(run) for run in runs])
    mean, half_width = mean_and_interval(values)
    rows: dict[str, Any] = {run.name: row for run, row in zip(runs, values.tolist(), strict=True)}
    rows |= {"mean": mean.tolist(), "± 95 %": half_width.tolist()}
    rows["must be"] = [text for _, text, _ in COLUMNS.values()]
    print("\n" + table(list(COLUMNS), rows))
    missed = [
        f"{name} of {run.name}"
        for (name, (_, _, holds)), column in zip(COLUMNS.items(), values.T, strict=True)
        for run, value in zip(runs, column, strict=True)
        if not holds(value)
    ]
    seconds = max(_seconds(run) for run in runs)
    print(
        f"run_seconds of the pack {seconds:.1f}; GD loss is averaged over w and the query in closed form, sampled z is"
    )
    print("the sampled loss's distance from .2062 in standard errors; 10000 tasks a seed, transformer and GD paired")
    print("every number is where it must be" if not missed else f"missed: {', '.join(missed)}")
    return 1 if missed else 0


def _numbers(run: Path) -> list[float]:
    summary = read_summary(run)
    with expecting(run / layout.SUMMARY, "a run's summary"):
        return [float(read(summary)) for read, _, _ in COLUMNS.values()]


def _seconds(run: Path) -> float:
    meta = rundir.read_meta(run)
    with expecting(run / layout.META, "a run's meta.json"):
        return float(meta["run_seconds"])


if __name__ == "__main__":
    cli.launch(main)
