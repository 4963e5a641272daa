"""What a run of one linear layer says of the solution that it found (`src.solutions`); without JAX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icl_lab.families.regression.config import RegressionConfig

# solution -> what it is, and what to do
WORDS = {
    "gradient descent": "one step of gradient descent",
    "swapped": "one step of gradient descent, with inputs and labels swapped",
    "mixed": "a mixed minimum, part of it with inputs and labels swapped; another --seed may find gradient "
    "descent, and so may two heads (--config.num_heads=2)",
    "plateau": "a plateau: it learns {rank} of {dim} directions; more --steps, or another --seed",
    "moving": "none of the stationary points; more --steps, or batches that are larger",
}

GRADIENT_DESCENT = ("gradient descent", "swapped")  # solutions that are it
DIAGONAL = ("uniform", "gaussian")  # inputs whose mixed point lies along a diagonal, where it is sought


def reason_against(config: RegressionConfig) -> str:
    """Why the closed forms do not hold for a run; "" where they do."""
    model, data = config.model, config.data
    reasons = {
        f"it has {model.num_layers} layers": model.num_layers > 1,
        f"its attention is {model.kind(0)}": model.kind(0) != "linear",
        f"its tokens are {model.tokens}": model.tokens != "concatenated",
        "it has positional encodings": model.pos_enc_size > 0,
        "it has biases": model.bias,
        "it has layer norm": model.layer_norm and model.first_norm,
        "it has an MLP": model.mlp_width > 0,
        "its activations are clipped": model.activation_clip > 0,
        "its contexts come from a file": bool(data.file),
        f"its inputs are {data.input_distribution}": data.input_distribution not in DIAGONAL,
        "its inputs or tasks are not isotropic": not (data.equal_inputs and data.equal_tasks),
        f"its tasks are {data.task_distribution}": data.task_distribution != "gaussian",
        "its labels are noisy": data.noise_std > 0 or data.num_distractors > 0 or config.train.hit_rate > 0,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def in_words(values: Mapping[str, Any], config: RegressionConfig) -> str:
    """The line of a run's summary."""
    words = WORDS[values["solution"]].format(rank=values["rank"], dim=config.data.dim)
    return f"solution: {words}"
