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

# --- first or higher order: layers on contexts whose spectrum is exact, queries isotropic ---

EXACT: dict[str, Any] = {
    "data.input_distribution": "gaussian",
    "num_pairs": 20,
    "data.axes": "rotated",
    "exact_covariance": True,
    "query_covariance": "isotropic",
    "schedule": "cosine",
    "b2": 0.999,
    **DEEPER,
    "batch_size": 256,
}


def _exact(condition: float, layers: int, spectrum: str = "log_spaced", seeds: tuple[int, ...] = MANY_SEEDS) -> Runs:
    own = {"data.spectrum": spectrum, "condition_number": condition, "num_layers": layers}
    return Runs("lsa1", EXACT | own, seeds)


HIGHER_ORDER: dict[str, Runs] = {
    "exact_isotropic_1": Runs("lsa1", EXACT | {"num_layers": 1}, MANY_SEEDS),
    **{f"exact_100_{layers}": _exact(100.0, layers) for layers in (1, 2, 3)},
    "exact_10_2": _exact(10.0, 2),
    "exact_1000_2": _exact(1000.0, 2),
    "drawn_100_2": _exact(100.0, 2, "log_uniform"),
    "looped_3": Runs("lsa1", {"num_layers": 3, "recurrent": True}, MANY_SEEDS),
}

RUNS: dict[str, Runs] = {**PRECONDITIONED, **HIGHER_ORDER}
