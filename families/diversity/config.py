"""Task diversity: decoders trained on sequences of a pool of M tasks, compared with ridge and dMMSE.

`paper` is Raventos et al. 2023 for tiny to large (batch 256, Adam with a triangular schedule to 1e-3; the learning rate
of a size is the published example's), Hoogland et al. 2024 for hoogland. Carroll et al. 2025 give neither the number of
heads nor the training in the main text: 4 heads and Hoogland's training are our choice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from icl_lab.families import own_config
from icl_lab.families.own_config import OwnDataRun, with_file
from icl_lab.lab.configs.earlier_names import first_value
from icl_lab.lab.configs.family import DecoderRun, Family, Flag, Preset, flag_of
from icl_lab.lab.flag_types import INFINITY, Either, Whole
from icl_lab.src.batch import context_shapes
from icl_lab.src.config import check_arrays
from icl_lab.src.data_config import PoolData
from icl_lab.src.decoder_config import DecoderConfig

NOISY_DIM, PAIRS_A_DIM = 32, 2  # of a sequence: its noise variance is D over the first, its length D times the second


@dataclass(frozen=True)
class DiversityConfig(DecoderRun, OwnDataRun):
    """A run of the family: sequences of a pool's tasks, and a decoder."""

    family: ClassVar[str] = "diversity"
    sequences: ClassVar[bool] = True

    name: str = "tiny"
    data: PoolData = PoolData()
    model: DecoderConfig = DecoderConfig()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_arrays(2 * self.data.num_pairs, self.model.d_model, self.model, self.tasks_at_once)

    @classmethod
    def complete(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Unset noise has variance D/32, one signal-to-noise ratio for all dimensions, an unset length is 2 D pairs.

        Raventos et al. 2023, Fig. 6. A data file says D and, where its contexts have one length, that of a sequence.
        """
        if values["data"]["file"]:
            return with_file(values, PoolData, cls.sequences)
        data = dict(values["data"])
        if data["noise_std"] is None:
            data["noise_std"] = (data["dim"] / NOISY_DIM) ** 0.5
        if data["num_pairs"] is None:
            data["num_pairs"] = PAIRS_A_DIM * data["dim"]
        return values | {"data": data}

    def batch_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the evaluation batch, by field; every pair is a query."""
        pairs = self.data.num_pairs
        return context_shapes(self.eval_tasks, pairs, self.data.dim, (pairs,))

    def canonical(self) -> Self:
        """Equivalent runs are of decoders that differ in how they are written down alone."""
        return replace(self, model=self.model.canonical)

    def run_words(self) -> list[str]:
        """The pool and the recipe in words."""
        data, training = self.data, self.training
        return [f"D{data.dim}", f"M{data.num_tasks}", first_value(training, "schedule"), f"steps{training.steps}"]


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


# --- flags and axes ---


DEFAULT = DiversityConfig()
FLAGS = (
    flag_of(DEFAULT, "data.num_tasks", read=Either(INFINITY, math.inf, Whole(1))),
    flag_of(DEFAULT, "data.task_distribution", former=("task_law",)),
    flag_of(
        DEFAULT, "data.dim", text="input dimension, D; by default noise has variance D/32 and a sequence 2 D pairs"
    ),
    flag_of(DEFAULT, "data.num_pairs", text="number of pairs in a sequence, K"),
    flag_of(DEFAULT, "data.noise_std"),
    flag_of(DEFAULT, "training.weight_decay", text="weight decay of the blocks' weight matrices"),
    flag_of(DEFAULT, "training.schedule", text="learning-rate schedule"),
)
CAPACITY = (
    *(
        Flag(key.rpartition(".")[2], key, str, f"sets the config field {key}")
        for key in ("training.batch_size", "training.steps", "training.lr", "model.num_layers", "model.num_heads")
    ),
    flag_of(DEFAULT, "model.d_model", read=str, former=("embed_size",)),
    Flag("mlp_width", "model.mlp_width", str, "sets the config field model.mlp_width"),
)

FAMILY = Family(
    DiversityConfig,
    MODELS,
    flags=(*own_config.FLAGS, *FLAGS),
    axes=(*FLAGS, *CAPACITY),
    follows={"data.noise_std": "", "data.num_pairs": ""},
    batched={"data.num_tasks": math.inf},
    about={
        "tiny": "decoder trained on a pool of M regression tasks: 2 layers of 32 channels",
        "small": "the same: 4 layers of 64 channels",
        "base": "the same: 8 layers of 128 channels",
        "large": "the same: 12 layers of 256 channels",
        "hoogland": "the regression transformer of Hoogland et al.",
        "carroll": "the decoder of Carroll et al., trained on pools of tasks",
    },
)
