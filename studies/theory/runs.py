"""What is trained for the claims of theory, by question. Rates were tuned on seed 99, which no claim is measured on."""

from __future__ import annotations

from typing import Any

from studies.runs import MANY_SEEDS, Runs

# --- preconditioned gradient descent: one linear layer on inputs of a covariance ---

LAYER: dict[str, Any] = {
    "data.input_distribution": "gaussian",
    "num_pairs": 20,
    "opponents": ("preconditioned_gd",),
    "lr": 0.01,
    "schedule": "cosine",
    "b2": 0.999,
    "grad_clip": 0.0,
    "init_scale": 0.5,
    "batch_size": 1024,
    "steps": 6000,
}
# several layers leave their plateaus from a smaller start, with clipped gradients
DEEPER = {"lr": 0.003, "grad_clip": 1.0, "init_scale": 0.1, "batch_size": 512, "steps": 8000}
RECIPROCAL = {"data.spectrum": "power_law"}
UNIFORM = {"data.input_distribution": "uniform", "data.input_range": 12**0.5}

PRECONDITIONED: dict[str, Runs] = {
    "reciprocal": Runs("lsa1", LAYER | RECIPROCAL, MANY_SEEDS),
    "noisy": Runs("lsa1", LAYER | RECIPROCAL | {"noise_std": 0.5}, MANY_SEEDS),
    "square": Runs("lsa1", LAYER | RECIPROCAL | {"spectrum_exponent": 2.0}, MANY_SEEDS),
    "condition_100": Runs(
        "lsa1", LAYER | {"data.spectrum": "log_spaced", "condition_number": 100.0, "num_pairs": 40}, MANY_SEEDS
    ),
    "uniform": Runs("lsa1", LAYER | RECIPROCAL | UNIFORM, MANY_SEEDS),
    "inverse_tasks": Runs("lsa1", LAYER | RECIPROCAL | {"task_covariance": "inverse"}, MANY_SEEDS),
    "rotated": Runs("lsa1", LAYER | RECIPROCAL | {"data.axes": "rotated"}, MANY_SEEDS),
    "rotated_2_layers": Runs(
        "lsa1", LAYER | RECIPROCAL | {"data.axes": "rotated", "num_layers": 2} | DEEPER, MANY_SEEDS
    ),
    "relu": Runs("lsa1", LAYER | {"teacher": "relu", "opponents": ()}, MANY_SEEDS),
}

RUNS: dict[str, Runs] = {**PRECONDITIONED}
