"""The presets of task diversity: decoders, and how they are trained.

`paper` is Raventos et al. 2023 for tiny to large (batch 256, Adam to 1e-3 along a triangle; the learning rate of a size
is the published example's), Hoogland et al. 2024 for hoogland. Carroll et al. 2025 give neither heads nor training of
theirs in the main text: 4 heads and Hoogland's training are our choice.
"""

from __future__ import annotations

from typing import Any

FAMILY: dict[str, Any] = {
    "family": "diversity",
    "input_law": "gaussian",
    "layer_norm": True,
    "num_tasks": 16,
    "eval_every": 1000,
    "log_records": 30,
    "eval_tasks": 1024,
    "headline_tasks": 4096,
    "snapshots": True,
}
REGRESSION = {"block": "regression", "num_heads": 4, "num_layers": 2}


def _gpt2(layers: int, width: int, heads: int, dim: int) -> dict[str, Any]:
    sizes = {"num_layers": layers, "embed_size": width, "num_heads": heads, "mlp_width": 4 * width}
    return FAMILY | sizes | {"dim": dim}


ARCHITECTURE: dict[str, dict[str, Any]] = {
    "tiny": _gpt2(2, 32, 4, 4),
    "small": _gpt2(4, 64, 2, 8),
    "base": _gpt2(8, 128, 2, 8),
    "large": _gpt2(12, 256, 4, 8) | {"snapshots": False},  # 38 MB each
    "hoogland": FAMILY | REGRESSION | {"dim": 4, "embed_size": 64, "mlp_width": 64},
    "carroll": FAMILY | REGRESSION | {"dim": 8, "embed_size": 512, "mlp_width": 512, "attention_output": False},
}

ADAM = {"b1": 0.9, "b2": 0.999, "grad_clip": 0.0, "triangle": True}
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
