"""Task diversity: decoders trained on sequences of a pool of M tasks, compared with ridge and dMMSE.

`paper` is Raventos et al. 2023 for tiny to large (batch 256, Adam with a triangular schedule to 1e-3; the learning rate
of a size is the published example's), Hoogland et al. 2024 for hoogland. Carroll et al. 2025 give neither the number of
heads nor the training in the main text: 4 heads and Hoogland's training are our choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from icl_lab.lab.configs import columns
from icl_lab.lab.configs.earlier_names import first_value
from icl_lab.lab.configs.family import (
    Columns,
    Criterion,
    Curve,
    Family,
    Flag,
    Meaning,
    NamedLoss,
    Panel,
    Preset,
    Results,
    Summary,
    layers_seconds,
)
from icl_lab.lab.configs.run import RunConfig
from icl_lab.lab.flag_types import INFINITY, Either, Whole
from icl_lab.src import loss_conventions
from icl_lab.src.config import BLOCKS, DecoderConfig, check_arrays
from icl_lab.src.data_config import PoolData
from icl_lab.src.registries import POSTERIOR_MEANS, SCHEDULES, TASK_DISTRIBUTIONS

NOISY_DIM, PAIRS_A_DIM = 32, 2  # of a sequence: its noise variance is D over the first, its length D times the second
IN_CONTEXT = 0.5  # of what exact inference gains from the context: see `gain`


@dataclass(frozen=True)
class DiversityConfig(RunConfig):
    """A run of the family: sequences of a pool's tasks, and a decoder."""

    family: ClassVar[str] = "diversity"

    name: str = "tiny"
    data: PoolData = PoolData()
    model: DecoderConfig = DecoderConfig()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_arrays(2 * self.data.num_pairs, self.model.d_model, self.model, self.tasks_at_once)


COMMON: dict[str, Any] = {
    "input_distribution": "gaussian",
    "layer_norm": True,
    "num_tasks": 16,
    "eval_every": 1000,
    "log_records": 30,
    "eval_tasks": 1024,
    "test_tasks": 4096,
    "snapshots": True,
}
REGRESSION = {"block": "regression", "num_heads": 4, "num_layers": 2}


def _gpt2(layers: int, width: int, heads: int, dim: int) -> dict[str, Any]:
    sizes = {"num_layers": layers, "d_model": width, "num_heads": heads, "mlp_width": 4 * width}
    return COMMON | sizes | {"dim": dim}


ARCHITECTURE: dict[str, dict[str, Any]] = {
    "tiny": _gpt2(2, 32, 4, 4),
    "small": _gpt2(4, 64, 2, 8),
    "base": _gpt2(8, 128, 2, 8),
    "large": _gpt2(12, 256, 4, 8) | {"snapshots": False},  # 38 MB each
    "hoogland": COMMON | REGRESSION | {"dim": 4, "d_model": 64, "mlp_width": 64},
    "carroll": COMMON | REGRESSION | {"dim": 8, "d_model": 512, "mlp_width": 512, "attention_output": False},
}

ADAM = {"b1": 0.9, "b2": 0.999, "grad_clip": 0.0, "schedule": "linear_up_down"}
PAPER = ADAM | {"lr": 1e-3, "batch_size": 256, "steps": 500_000}
HOOGLAND = ADAM | {"lr": 3e-3, "batch_size": 256, "steps": 500_000}

# model -> preset -> values of the training
TRAINING: dict[str, dict[str, dict[str, Any]]] = {
    "tiny": {"default": ADAM | {"lr": 3e-3, "batch_size": 64, "steps": 20_000}, "paper": PAPER},
    "small": {"default": PAPER | {"steps": 50_000}, "paper": PAPER | {"batch_size": 512}},
    "base": {"default": PAPER | {"steps": 50_000}, "paper": PAPER},
    "large": {"default": PAPER | {"steps": 50_000}, "paper": PAPER},
    "hoogland": {"default": HOOGLAND | {"batch_size": 64, "steps": 50_000}, "paper": HOOGLAND},
    "carroll": {"default": HOOGLAND | {"lr": 1e-3, "steps": 50_000}, "paper": HOOGLAND | {"lr": 1e-3}},
}
MODELS = {
    model: {name: Preset(ARCHITECTURE[model] | values) for name, values in presets.items()}
    for model, presets in TRAINING.items()
}


def complete(values: dict[str, Any]) -> dict[str, Any]:
    """Unset noise has variance D/32, one signal-to-noise ratio for all dimensions, an unset length is 2 D pairs.

    Raventos et al. 2023, Fig. 6.
    """
    data = dict(values["data"])
    if data["noise_std"] is None:
        data["noise_std"] = (data["dim"] / NOISY_DIM) ** 0.5
    if data["num_pairs"] is None:
        data["num_pairs"] = PAIRS_A_DIM * data["dim"]
    return values | {"data": data}


# --- flags and axes ---


FLAGS = (
    Flag(
        "num_tasks",
        "data.num_tasks",
        Either(INFINITY, math.inf, Whole(1)),
        "tasks in the pool, M; inf draws a fresh one for each sequence",
    ),
    Flag(
        "task_distribution",
        "data.task_distribution",
        str,
        "distribution of the tasks",
        TASK_DISTRIBUTIONS,
        former=("task_law",),
    ),
    Flag("dim", "data.dim", int, "dimension; noise variance D/32 and 2 D pairs follow it"),
    Flag("num_pairs", "data.num_pairs", int, "pairs of a sequence, K"),
    Flag("noise_std", "data.noise_std", float, "standard deviation of the labels' noise"),
    Flag("weight_decay", "training.weight_decay", float, "weight decay of the blocks' kernels"),
    Flag("schedule", "training.schedule", str, "of the learning rate", SCHEDULES),
)
CAPACITY = (
    *(
        Flag(key.rpartition(".")[2], key, str, f"{key} of the config")
        for key in ("training.batch_size", "training.steps", "training.lr", "model.num_layers", "model.num_heads")
    ),
    Flag("d_model", "model.d_model", str, "channels of a row", former=("embed_size",)),
    Flag("mlp_width", "model.mlp_width", str, "model.mlp_width of the config"),
)


def run_words(config: DiversityConfig) -> list[str]:
    """The pool and the recipe in words."""
    data, training = config.data, config.training
    return [f"D{data.dim}", f"M{data.num_tasks}", first_value(training, "schedule"), f"steps{training.steps}"]


# --- columns of a table; a column keeps the name that its field had first ---

ASKED: dict[str, Callable[[DiversityConfig], Any]] = {
    "num_tasks": lambda config: config.data.num_tasks,
    "task_law": lambda config: config.data.task_distribution,
    "dim": lambda config: config.data.dim,
    "num_pairs": lambda config: config.data.num_pairs,
    "noise_std": lambda config: config.data.noise_std,
    "num_layers": lambda config: config.model.num_layers,
    "num_heads": lambda config: config.model.num_heads,
    "embed_size": lambda config: config.model.d_model,
    "mlp_width": lambda config: config.model.mlp_width,
    "batch_size": lambda config: config.training.batch_size,
    "steps": lambda config: config.training.steps,
    "lr": lambda config: config.training.lr,
    "weight_decay": lambda config: config.training.weight_decay,
    "schedule": lambda config: config.training.schedule,
}
HEADLINE = tuple(
    f"{prefix}_{name}"
    for prefix in ("id", "ood")
    for name in (
        *(f"{who}_loss{se}" for who in ("tf", "ridge", "dmmse", "laplace") for se in ("", "_se")),
        *(f"delta_{who}{se}" for who in ("ridge", "dmmse", "laplace") for se in ("", "_se")),
        "apart",
    )
)


def further_means(config: DiversityConfig | None) -> dict[str, Callable[[Results], Any]]:
    """The columns of the posterior mean of a config's tasks, or of all there are; those of laplace all tables have."""
    distributions = POSTERIOR_MEANS if config is None else [config.data.task_distribution]
    further = [name for name in distributions if name in POSTERIOR_MEANS and name != "laplace"]
    named = [f"{prefix}_{text}" for prefix in ("id", "ood") for text in ("{}_loss", "delta_{}")]
    names = [f"{text.format(name)}{se}" for text in named for name in further for se in ("", "_se")]
    return {f"test_{name}": _on_test_set(name) for name in names}


def _not_defined(results: Results) -> str | None:
    headline, before, after = results["headline"], "id_", "_loss_reason"
    names = [key for key in headline if key.startswith(before) and key.endswith(after)]
    return "; ".join(f"{key[len(before) : -len(after)]}: {headline[key]}" for key in names) or None


def _on_test_set(name: str) -> Callable[[Results], Any]:
    return lambda results: results["headline"].get(name)


MEASURED: dict[str, Callable[[Results], Any]] = {
    "verdict": _on_test_set("verdict"),
    "trained": columns.trained,
    "not_defined": _not_defined,
    **{f"test_{name}": _on_test_set(name) for name in HEADLINE},
}
MEANINGS_OF_COLUMNS = {
    "*_se": columns.MEANINGS["*_se"],
    "num_tasks": "tasks in the pool, M; inf: a fresh one for each sequence",
    "task_law": "distribution of the tasks",
    "dim": "input dimension, D",
    "num_pairs": "pairs of a sequence, K",
    "noise_std": "standard deviation of the labels' noise",
    "num_heads": "heads of each layer",
    "embed_size": "channels of a row",
    "mlp_width": "hidden channels of an MLP",
    "batch_size": "sequences in a training batch",
    "lr": "learning rate",
    "weight_decay": "decoupled weight decay",
    "schedule": "of the learning rate",
    "verdict": "dmmse, ridge or between",
    "test_id_*_loss": "error on tasks of the pool (`tf`: the model): mean squared, noiseless labels, over D",
    "test_ood_*_loss": "error on fresh tasks (`tf`: the model): mean squared, noiseless labels, over D",
    "test_id_delta_*": "mean squared difference of predictions from this predictor's on tasks of the pool, over D",
    "test_ood_delta_*": "mean squared difference of predictions from this predictor's on fresh tasks, over D",
    "*_apart": "mean squared difference of ridge's predictions from dMMSE's, over D",
}


# --- the plateau ---


def gain(config: DiversityConfig, summary: Summary) -> float | None:
    """What a model gains from the context, relative to the exact predictor with the smaller gain.

        (l_1 - l) / min_r (l_r1 - l_r)

    l is the id loss over all positions, l_1 that of the first prediction, which has seen no pair, capped at the loss of
    predicting zero. dMMSE and the model start at the loss of the pool's mean task, ridge at that of zero. So a
    predictor that ignores the context has gain 0 whatever it knows of the pool: on 1024 sequences of the presets -.1
    to .1 for the mean of pools of 2 to 1024 tasks, whose loss is .42 to 1 of zero's. dMMSE and ridge have 1 or more
    (losses .07 and .40 of zero's for M = 2, .35 and .38 for M = 1024), one best step of gradient descent .5 to .8. In a
    pool of one task there is nothing to infer, dMMSE is the mean task, and the gain is measured from the loss of
    predicting zero.
    """
    gained, possible = gains(config, summary)
    return gained / possible if possible and not math.isnan(gained) else None


def gains(config: DiversityConfig, summary: Summary) -> tuple[float, float | None]:
    """A model's gain, and the smaller gain of the exact predictors; None where there is no such predictor."""
    headline, errors = summary["headline"], [_number(error) for error in summary.get("eval_id_errors", [math.nan])]
    zero, loss = _number(headline["id_zero_loss"]), sum(errors) / len(errors)
    start = zero if config.data.num_tasks == 1 else min(errors[0], zero)
    names = {name for name in headline if name.startswith("id_") and name.endswith("_loss")}
    exact = {name: _number(headline[name]) for name in names - {"id_tf_loss", "id_zero_loss"}}
    possible = [(start if name == "id_dmmse_loss" else zero) - value for name, value in exact.items()]
    return start - loss, min((value for value in possible if math.isfinite(value)), default=None)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


# --- the family ---


def batch_shapes(config: DiversityConfig) -> Mapping[str, tuple[int, ...]]:
    """The shapes of the evaluation batch, by field; every pair is a query."""
    tasks, pairs, dim = config.eval_tasks, config.data.num_pairs, config.data.dim
    shapes: dict[str, tuple[int, ...]] = {"x": (tasks, pairs, dim), "y": (tasks, pairs), "w": (tasks, dim)}
    return shapes | {"x_query": (tasks, pairs, dim), "y_query": (tasks, pairs)}


POOL = "its pool's tasks"

FAMILY = Family(
    name="diversity",
    config=DiversityConfig,
    models=MODELS,
    loss_convention=loss_conventions.LOSS_AND_MSE,
    test_loss=NamedLoss("test_id_loss", columns.at("headline", "id_tf_loss")),
    columns=Columns(ASKED, MEASURED, further=further_means, meanings=MEANINGS_OF_COLUMNS),
    panels=(
        Panel(
            "loss (half MSE, noise included)",
            (Curve("train_loss", "train batch", "train"), Curve("eval_loss", POOL, "model")),
        ),
        Panel(
            "squared error / D (no noise)",
            (Curve("eval_id_loss", POOL, "model"), Curve("eval_ood_loss", "fresh tasks", "other")),
        ),
    ),
    batch_shapes=batch_shapes,
    flags=FLAGS,
    axes=(*FLAGS, *CAPACITY),
    meanings={
        "data.num_tasks": Meaning("tasks in the pool, M; inf draws a fresh one for each sequence"),
        "data.task_distribution": Meaning("distribution of the tasks", TASK_DISTRIBUTIONS),
        "model.block": Meaning("kind of a decoder's block", BLOCKS),
        "model.d_model": Meaning("channels of a row"),
        "model.attention_output": Meaning("a matrix after the heads"),
        "model.doubled_residual": Meaning("a block's input is added to its output once more"),
    },
    follows={"data.noise_std": "", "data.num_pairs": ""},
    complete=complete,
    batched={"data.num_tasks": math.inf},
    run_words=run_words,
    criteria=(Criterion("gain from the context over that of the exact predictor", gain, IN_CONTEXT, at_least=True),),
    task_seconds=lambda config: layers_seconds(
        2 * config.data.num_pairs,
        2 * config.model.d_model + config.model.mlp_width,
        config.model.num_layers,
    ),
    analyses=("task_diversity",),
    modules=("icl_lab.families.diversity.task", "icl_lab.runners.diversity"),
)
