"""Measures the loss after every layer, and gradient descent's after as many steps on the same tasks.

python -m analysis.layerwise --run DIR [--num_tasks 5000] [--layers L] [--damping .75] [--out FILE]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.analysis.command import Command
from icl_lab.analysis.loaded_run import LoadedRun, load_run
from icl_lab.baselines.gd_curve import DAMPING
from icl_lab.baselines.iterations import descent, normal_equations, power_iteration
from icl_lab.baselines.loss_curves import (
    TRIMMED,
    facts,
    over_tasks,
    path_losses,
    prediction_losses,
    reference_losses,
    summary,
    unstable_share,
)
from icl_lab.families.layerwise.config import UNTRAINED, LayerwiseConfig
from icl_lab.lab import cli
from icl_lab.lab.flag_types import POSITIVE, TASKS, Whole
from icl_lab.src.batch import Batch
from icl_lab.src.checks import finite_results, require, same_shape
from icl_lab.src.layerwise import roll_out
from icl_lab.src.one_step import one_step_size
from icl_lab.src.statistics import ratio_and_error
from icl_lab.store import layout, outputs
from icl_lab.store.atomic import json_bytes, write_json
from icl_lab.store.outputs import out_file

ROLL_OUT_LAYERS = 50
OVERLAP = 0.05  # the roll-out overlaps gradient descent where their ratio is within this of 1 at every step
NOT_COMPUTED = "not computed"
REACHABLE = 400  # steps of descent at 1 / lambda_max that are tried to reach a layer's loss
WRITER = "analysis.layerwise"
LAYERS = Whole(1, 100_000, "a loss of every task is kept after each")
SHOWN = (1, 2, 4, 8, 12, 24, 50)  # layers that are printed, and the last


def is_rolled_out(config: LayerwiseConfig) -> bool:
    """Whether a model is one layer on plain tokens, which is evaluated as applied many times."""
    return config.model.num_layers == 1 and config.model.d_model == 0


def layerwise(
    loaded: LoadedRun, num_tasks: int | None = None, layers: int | None = None, damping: float | None = None
) -> dict[str, Any]:
    """Losses after layers 1 to L; the paired ratio to gradient descent; how many steps of it reach each layer's loss.

    One trained layer is rolled out with `damping`; of a deeper stack the first L layers count. Gradient descent takes
    steps of damping * c*, which for a roll-out is what it is by definition if the layer is one step of c*.
    """
    config = loaded.config
    depth = ROLL_OUT_LAYERS if is_rolled_out(config) else config.model.num_layers
    layers = depth if layers is None else layers
    require(
        is_rolled_out(config) or layers <= depth,
        f"layers is {layers}, but this stack has {depth}; only a single layer with d_model 0 is applied more often",
    )
    require(
        is_rolled_out(config) or damping is None, "damping has no meaning for a stack that is applied as it was trained"
    )
    damping = DAMPING if damping is None else damping
    num_tasks = config.test_tasks if num_tasks is None else num_tasks
    require(num_tasks * layers < 2**28, f"{layers} layers of {num_tasks} tasks give 2^28 losses or more; use fewer")
    c = damping * one_step_size(config.data)
    losses = over_tasks(_losses_of(loaded, layers, damping, c), config.data, config.data_seed, num_tasks)
    tf, gd, zero, to_reach = (losses.pop(name) for name in ("tf", "gd", "zero", "to_reach"))
    tf_summary = summary(tf)
    means = np.array(tf_summary["trimmed_mean"])
    ratios = np.array([paired_ratio(*rows) for rows in zip(tf, gd, strict=True)])
    return {
        "layers": layers,
        **tf_summary,
        "unstable_share": unstable_share(tf, zero),
        "model": config.name,
        "rolled_out": is_rolled_out(config),
        "damping": damping,
        "deep_supervision": config.training.deep_supervision,
        "gd": {"step_size": c, **summary(gd), "unstable_share": unstable_share(gd, zero)},
        "ratio_to_gd": ratios[:, 0].tolist(),
        "ratio_to_gd_se": ratios[:, 1].tolist(),
        "gd_steps_to_reach": steps_to_reach(means, np.array(summary(to_reach)["trimmed_mean"])),
        "verdict": verdict(is_rolled_out(config), ratios[:, 0], means, float(zero.mean())),
        "references": {"zero": summary(zero)} | {name: summary(values) for name, values in losses.items()},
        **facts(config.data, config.data_seed, num_tasks),
    }


def write(loaded: LoadedRun) -> dict[str, Any]:
    """Writes layerwise_metrics.json."""
    curve = layerwise(loaded)
    write_json(loaded.run / layout.LAYERWISE, curve)
    return curve


def _losses_of(loaded: LoadedRun, layers: int, damping: float, c: float) -> Callable[[Batch], dict[str, Array]]:
    """From a batch to the losses [., B] of the model and of all that it is compared with."""
    config, model, params = loaded.config, loaded.model, loaded.params

    def losses_of(batch: Batch) -> dict[str, Array]:
        if is_rolled_out(config):
            predictions = roll_out(model, params, batch, layers, damping)
        else:
            predictions = model.trace(params, batch).layer_predictions[:layers]
        normal, zero = normal_equations(batch), jnp.zeros_like(batch.w)
        safe = 1 / power_iteration(normal.scatter)
        return {
            "tf": prediction_losses(predictions, batch),
            "gd": path_losses(descent(normal, jnp.full_like(safe, c), layers, zero), batch),
            "to_reach": path_losses(descent(normal, safe, REACHABLE, zero), batch),
            **reference_losses(batch, config.data, layers),
        }

    return losses_of


def paired_ratio(tf: np.ndarray, gd: np.ndarray) -> tuple[float, float]:
    """The ratio of the means of losses [tasks] and its standard error, without the tasks on which either diverges most.

    That share is `TRIMMED`, those of the largest sum: where a task in a thousand diverges, a mean is that task's.
    """
    same_shape(tf=tf, gd=gd)
    total = np.nan_to_num(tf.astype(float) + gd, nan=np.inf)
    kept = np.sort(np.argsort(total, kind="stable")[: len(total) - int(TRIMMED * len(total))])
    return ratio_and_error(tf[kept].astype(float), gd[kept].astype(float))


def steps_to_reach(losses: np.ndarray, descending: np.ndarray) -> list[int | None]:
    """The first step (from 1) of descent whose loss is at most each of these; None where none is."""
    reached = descending[None, :] <= losses[:, None]
    return [int(row.argmax()) + 1 if row.any() else None for row in reached]


def verdict(rolled_out: bool, ratios: np.ndarray, losses: np.ndarray, zero: float) -> str:
    """The verdict in words: a roll-out is compared with gradient descent, a stack with predicting zero.

    `not computed` where a number is missing that would decide. One layer alone neither decreases nor does not.
    """
    if rolled_out:
        apart = np.abs(ratios - 1)
        if (apart > OVERLAP).any():
            return "leaves gradient descent"
        return "overlaps gradient descent" if len(apart) and (apart <= OVERLAP).all() else NOT_COMPUTED
    if not len(losses) or not np.isfinite(zero):
        return NOT_COMPUTED
    if not (np.isfinite(losses[-1]) and losses[-1] <= UNTRAINED * zero):
        return "did not train"
    if len(losses) == 1 or not np.isfinite(losses).all():
        return "trained"
    return "trained, decreasing with depth" if (np.diff(losses) < 0).all() else "trained, not decreasing with depth"


def add_flags(parser: cli.Parser) -> None:
    """How many tasks and layers, the roll-out's damping, and where to write."""
    parser.add_argument("--num_tasks", type=TASKS, default=5000, help="tasks")
    parser.add_argument(
        "--layers",
        type=LAYERS,
        help="number of layers (50 if one layer is applied repeatedly, else the depth of the stack)",
    )
    parser.add_argument("--damping", type=POSITIVE, help="damping of a roll-out (.75)")
    parser.add_argument("--out", type=out_file, help=f"file to write ({layout.LAYERWISE} of the run)")


@np.errstate(over="ignore", invalid="ignore")  # non-finite medians are rejected
def measure(run: Path, flags: argparse.Namespace) -> list[dict[str, Any]]:
    """Writes layerwise_metrics.json, and gives a row for some of the layers.

    A roll-out may diverge on some tasks, and their mean with it; `ConfigError` if it does on half of them, at a damping
    that was given.
    """
    place = run / layout.LAYERWISE if flags.out is None else flags.out
    outputs.check([place], WRITER, run)
    metrics = layerwise(load_run(run), flags.num_tasks, flags.layers, flags.damping)
    if flags.damping is not None:
        medians = zip(metrics["median"], metrics["gd"]["median"], strict=True)
        finite_results(
            "damping", flags.damping, [{"tf": transformer, "gd": descent} for transformer, descent in medians]
        )
    outputs.write({place: json_bytes(metrics)}, WRITER, run)
    return [_row(metrics, layer) for layer in range(1, metrics["layers"] + 1) if layer in (*SHOWN, metrics["layers"])]


def _row(metrics: Mapping[str, Any], layer: int) -> dict[str, Any]:
    """What is printed of a layer (from 1)."""
    names = ("mse", "sem", "median", "trimmed_mean", "unstable_share", "ratio_to_gd", "gd_steps_to_reach")
    return {"layer": layer} | {name: metrics[name][layer - 1] for name in names}


COMMAND = Command(
    "layerwise",
    "Measures the loss after every layer, and gradient descent's on the same tasks.",
    measure,
    add_flags,
)

if __name__ == "__main__":
    COMMAND.launch()
