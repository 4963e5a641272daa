"""The curves of the figures of task diversity: of one run, or of a seed, to {(panel, series): (x, y)}.

M goes along x, infinity at its right end; over the seeds curves become means with intervals
(`studies.curve_rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis import paths
from icl_lab.analysis.development import trajectory_pca
from icl_lab.store.metrics import read_metrics
from icl_lab.studies.curve_rows import ABOVE, BELOW, Curve, Series
from icl_lab.studies.task_diversity import measures

TF, RIDGE, DMMSE, SMOOTHED = "Trained Transformer", "Ridge", "dMMSE", "Smoothed dMMSE"
FROM_RIDGE, FROM_DMMSE = "Δ to ridge, fresh tasks", "Δ to dMMSE, tasks of the pool"
NAMES = {"tf": TF, "dmmse": DMMSE, "ridge": RIDGE}
WHERE = {"id": "tasks of the pool", "ood": "fresh tasks"}
EXACT = tuple(2**power for power in range(16))
SMOOTHED_TASKS = tuple(2**power for power in range(0, 13, 2))
FALLEN = 0.95  # of the first loss: what never falls so low goes straight to dMMSE
TURNS = {
    "t_crit: least loss on fresh tasks": measures.critical_step,
    "t*: nearest to ridge": measures.nearest_to_ridge,
}
LIGHT = 1.0  # checkpoints: the width of the Gaussian that smooths trajectories, for the eye alone


def tasks_in_words(run: Path) -> str:
    """M as a series is called."""
    tasks = measures.tasks_of(run)
    return f"M = {tasks:g}" if np.isfinite(tasks) else "M = ∞"


def losses(run: Path, name: str) -> Series:
    """Losses at the end, of the transformer and of the exact predictors, against M."""
    headline, tasks = measures.test_set_of(run), [measures.tasks_of(run)]
    return {
        (f"loss on {where}", series): (tasks, [headline[f"{prefix}_{who}_loss"]])
        for prefix, where in WHERE.items()
        for who, series in NAMES.items()
        if f"{prefix}_{who}_loss" in headline
    }


def deltas(labels: Mapping[str, str]) -> Callable[[Path, str], Series]:
    """Delta to ridge on fresh tasks, to dMMSE on the pool's, against M; a series, with this label, for each runs' name.

    And how far the exact predictors are from each other, for the pools of the first of these.
    """
    first = next(iter(labels))

    def curves(run: Path, name: str) -> Series:
        headline, tasks, series = measures.test_set_of(run), [measures.tasks_of(run)], labels[name]
        lines = {(FROM_RIDGE, series): (tasks, [headline["ood_delta_ridge"]])}
        if "id_apart" in headline:
            lines[FROM_DMMSE, series] = (tasks, [headline["id_delta_dmmse"]])
        if "id_apart" in headline and name == first:
            lines |= {
                (FROM_RIDGE, DMMSE): (tasks, [headline["ood_apart"]]),
                (FROM_DMMSE, RIDGE): (tasks, [headline["id_apart"]]),
            }
        return lines

    return curves


def over_training(panel: str, name: str) -> Callable[[Path, str], Series]:
    """A recorded value over training, a series for each M."""

    def curves(run: Path, _: str) -> Series:
        steps, values = measures.history(run, "step"), measures.history(run, name)
        return {(panel, tasks_in_words(run)): (steps[1:], values[1:])}  # a logarithmic axis has no step 0

    return curves


def over_training_and_ridge(panel: str, tasks: float) -> Callable[[Path, str], Series]:
    """The loss on fresh tasks over training, a series for each M, and ridge's on the test set of the runs of one M."""
    losses_of = over_training(panel, "eval_ood_loss")

    def curves(run: Path, name: str) -> Series:
        loss_curves = dict(losses_of(run, name))
        if measures.tasks_of(run) == tasks:
            steps = loss_curves[panel, tasks_in_words(run)][0]
            loss_curves[panel, RIDGE] = (steps, np.full(len(steps), measures.test_set_of(run)["ood_ridge_loss"]))
        return loss_curves

    return curves


def by_recipe(recipes: Mapping[str, str], shown: Sequence[float]) -> Callable[[Path, str], Series]:
    """The loss on fresh tasks over training, a panel for each of these M, a series for each runs' name."""

    def curves(run: Path, name: str) -> Series:
        if measures.tasks_of(run) not in shown:
            return {}
        steps, values = measures.history(run, "step"), measures.history(run, "eval_ood_loss")
        return {(tasks_in_words(run), recipes[name]): (steps[1:], values[1:])}

    return curves


def capacity(tasks: float) -> Callable[[Path, str], Series]:
    """Delta to ridge on fresh tasks, and the loss on the pool's, against width; a series for each weight decay."""

    def curves(run: Path, name: str) -> Series:
        if measures.tasks_of(run) != tasks:
            return {}
        decay, width = measures.config_of(run).training.weight_decay, [measures.config_of(run).model.d_model]
        series = f"weight decay {decay:g}" if decay else "no weight decay"
        headline = measures.test_set_of(run)
        values = {FROM_RIDGE: "ood_delta_ridge", "loss on tasks of the pool": "id_tf_loss"}
        return {(panel, series): (width, [headline[key]]) for panel, key in values.items()}

    return curves


def critical_steps(run: Path, name: str) -> Series:
    """t_crit and t* against M; of infinite M there is no turn.

    A least value at the last record says that the turn is later, if there is one; at the first, that it never fell.
    """
    tasks = measures.tasks_of(run)
    if not np.isfinite(tasks):
        return {}
    first, *_, last = measures.history(run, "step")[1:]  # a logarithmic axis has no step 0
    curves = {}
    for series, turn in TURNS.items():
        step = turn(run)
        censored = BELOW if step < first else ABOVE if step == last else ""
        curves["", series] = Curve([tasks], [max(step, first)], [censored])
    return curves


def deflection(run: Path, name: str) -> Series:
    """The least loss on fresh tasks over training and, where it is below the first, how far the end lies above it."""
    tasks, first = [measures.tasks_of(run)], measures.history(run, "eval_ood_loss")[0]
    curves = {("least over training", TF): (tasks, [measures.least_loss(run)])}
    if measures.least_loss(run) < FALLEN * first:
        curves["end less minimum", TF] = (tasks, [measures.rise(run)])
    return curves


def errors_by_position(*shown: float) -> Callable[[Path, str], Series]:
    """The error of each prediction on fresh tasks at the end of training, by how many pairs it has seen, of these M."""

    def curves(run: Path, name: str) -> Series:
        if measures.tasks_of(run) not in shown:
            return {}
        seen = np.arange(measures.config_of(run).data.num_pairs)
        panel = f"{tasks_in_words(run)}, fresh tasks"
        last = read_metrics(run, [])[-1]["eval_ood_errors"]
        return {(panel, TF): (seen, last)} | {
            (panel, NAMES[who]): (seen, values) for who, values in measures.reference_errors(run).items()
        }

    return curves


def halfway(run: Path, name: str) -> Series:
    """Where the loss halfway between two tasks of the pool lies, against M: 0 at ridge's, 1 at dMMSE's."""
    tasks = measures.tasks_of(run)
    if not 2 <= tasks < np.inf:
        return {}
    place = paths.share_of_dmmse(measures.paths_of(run))
    return {("", series): ([tasks], [value]) for series, value in ((TF, place), (RIDGE, 0.0), (DMMSE, 1.0))}


def lines(*shown: float) -> Callable[[Sequence[Path], str], Series]:
    """How far losses on the lines from a seed's runs to one of infinitely many tasks and other data exceed the chord.

    A panel for each of these M.
    """

    def curves(runs: Sequence[Path], name: str) -> Series:
        other, seed_runs = _twin(runs)
        excess = {
            tasks_in_words(run): paths.above_chord(measures.losses_on_line(run, other))
            for run in seed_runs
            if measures.tasks_of(run) in shown
        }
        return {(panel, TF): (np.linspace(0, 1, len(values)), values) for panel, values in excess.items()}

    return curves


def barriers(runs: Sequence[Path], name: str) -> Series:
    """The heights of these lines' barriers, and how far the ends are apart, against M."""
    other, seed_runs = _twin(runs)
    tasks = [measures.tasks_of(run) for run in seed_runs]
    return {
        ("loss barrier", "to a model of infinitely many tasks"): (
            tasks,
            [measures.barrier(run, other) for run in seed_runs],
        ),
        ("distance of weights / norm", "to a model of infinitely many tasks"): (
            tasks,
            [measures.weights_apart(run, other) for run in seed_runs],
        ),
    }


def _twin(runs: Sequence[Path]) -> tuple[Path, list[Path]]:
    """The run whose data are another seed's, and the others."""
    (other,) = (run for run in runs if measures.config_of(run).data_seed != measures.config_of(run).init_seed)
    return other, [run for run in runs if run != other]


def exact_losses(dim: int, tasks: Sequence[int]) -> Callable[[int, str], Series]:
    """Losses of the exact predictors against M."""

    def curves(seed: int, name: str) -> Series:
        return {
            (f"loss on {where}, D = {dim}", NAMES[who]): (
                tasks,
                [measures.exact(dim, m, f"{prefix}_{who}")(seed) for m in tasks],
            )
            for prefix, where in WHERE.items()
            for who in ("dmmse", "ridge")
        }

    return curves


def exact_gap(*dims: int) -> Callable[[int, str], Series]:
    """How much less dMMSE loses on its pool's tasks than ridge, against M: what there is to gain by memorising."""

    def curves(seed: int, name: str) -> Series:
        return {
            ("", f"D = {dim}"): (
                EXACT,
                [measures.gain(dim, m, seed) for m in EXACT],
            )
            for dim in dims
        }

    return curves


def gap_by_dimension(dims: Sequence[int], tasks: Sequence[int]) -> Callable[[int, str], Series]:
    """Delta between dMMSE and ridge on fresh tasks against D, for these M."""

    def curves(seed: int, name: str) -> Series:
        return {
            ("", f"M = {m}"): (dims, [measures.exact(dim, m, "ood_apart", measures.FEWER)(seed) for dim in dims])
            for m in tasks
        }

    return curves


def smoothing(dim: int, tasks: Sequence[int]) -> Callable[[int, str], Series]:
    """The best smoothing of dMMSE against M, and the losses on fresh tasks with it and without."""

    def curves(seed: int, name: str) -> Series:
        best = [measures.best_smoothed(dim, m, seed) for m in tasks]
        panel = f"loss on fresh tasks, D = {dim}"
        return {
            (panel, DMMSE): (tasks, [measures.exact(dim, m, "ood_dmmse")(seed) for m in tasks]),
            (panel, SMOOTHED): (tasks, [optimum["loss"] for optimum in best]),
            (panel, RIDGE): (tasks, [measures.exact(dim, m, "ood_ridge")(seed) for m in tasks]),
            ("best smoothing", SMOOTHED): (tasks, [optimum["best"] for optimum in best]),
        }

    return curves


def explained(runs: Sequence[Path], name: str) -> Series:
    """The share of variance of each component of the joint PCA, and of random walks of as many checkpoints."""
    shares = measures.joint_pca(tuple(runs)).explained
    null = measures.null_of(tuple(runs), len(shares))
    ranks = np.arange(1, len(shares) + 1)
    return {("", "trained models"): (ranks, shares), ("", "random walks"): (ranks, null)}


def plane(runs: Sequence[Path]) -> list[dict[str, Any]]:
    """Rows of the first seed's joint trajectory PCA: checkpoints of all M; the exact predictors are put in after."""
    of_seed = first_seed(runs)
    joint = measures.joint_pca(tuple(of_seed))
    rows, start = [], 0
    for run in of_seed:
        steps, series = measures.trajectory(run)[0], tasks_in_words(run)
        scores = trajectory_pca.smooth(joint.scores[start : start + len(steps)], LIGHT)
        start += len(steps)
        for x, y in ((0, 1), (2, 3)):
            panel = f"components {x + 1} and {y + 1}"
            rows += [_row(panel, series, step, *score[[x, y]]) for step, score in zip(steps, scores, strict=True)]
            for who, values in measures.predictors_on_root(run).items():
                if who == "dmmse" or not np.isfinite(measures.tasks_of(run)):
                    along, up = trajectory_pca.project(joint, values)[[x, y]]
                    rows.append(_row(panel, series if who == "dmmse" else RIDGE, 0, along, up, kind="point"))
    return sorted(rows, key=lambda row: row["panel"])


def phase_portrait(runs: Sequence[Path]) -> list[dict[str, Any]]:
    """Rows of Delta to ridge on fresh tasks against Delta to dMMSE on the pool's, over training; means over seeds."""
    rows = []
    for tasks in sorted({measures.tasks_of(run) for run in runs} - {measures.INFINITE}):
        of_seeds = [run for run in runs if measures.tasks_of(run) == tasks]
        x, y = (
            np.mean([measures.history(run, name) for run in of_seeds], axis=0)
            for name in ("eval_id_delta_dmmse", "eval_ood_delta_ridge")
        )
        steps, series = measures.history(of_seeds[0], "step"), tasks_in_words(of_seeds[0])
        rows += [_row("", series, *point) for point in zip(steps, x, y, strict=True)]
        end = np.mean([measures.test_set_of(run)["ood_apart"] for run in of_seeds])
        rows.append(_row("", series, 0, 0.0, float(end), kind="point"))
    return rows


def first_seed(runs: Sequence[Path]) -> list[Path]:
    """The runs of the first seed among these."""
    first = min(measures.config_of(run).init_seed for run in runs)
    return [run for run in runs if measures.config_of(run).init_seed == first]


def _row(panel: str, series: str, step: float, x: float, y: float, kind: str = "path") -> dict[str, Any]:
    return {"panel": panel, "series": series, "step": int(step), "x": float(x), "y": float(y), "kind": kind}
