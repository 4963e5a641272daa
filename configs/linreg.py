"""The presets of the depth curve, and its sweeps as command lines.

python -m configs.linreg depth prints the runner's flags for each run of a sweep, one run a line.
"""

from __future__ import annotations

from typing import Any

import cli

DATA: dict[str, Any] = {
    "family": "layerwise",
    "dim": 20,
    "num_pairs": 20,
    "num_queries": 20,
    "input_law": "gaussian",
    "noise_std": 0.05,
    "headline_tasks": 5000,
}
STACK = {"num_layers": 4, "num_heads": 4, "attention": ("softmax",), "layer_norm": True, "init_scale": 1.0}

ARCHITECTURE: dict[str, dict[str, Any]] = {
    "lsa": DATA | {"num_layers": 1},
    "linear": DATA | {"num_layers": 4},
    "softmax": DATA | STACK | {"embed_size": 128, "key_size": 128, "mlp_width": 512},
}

LINEAR = {"b2": 0.98, "init_scale": 0.002, "cosine": True}
# What of a layer reads the query's own label gets no gradient while that label is 0, as it is in one application. In a
# roll-out it is not, so those weights must begin small: at .002 the loss after 50 layers ends 10 % above descent's.
LSA = LINEAR | {"init_scale": 2e-4, "lr": 1e-3, "grad_clip": 1e-3}
SOFTMAX = {"b2": 0.98, "lr": 1e-4, "weight_decay": 0.01, "grad_clip": 1.0, "warmup_steps": 2000, "batch_size": 64}

# model -> preset -> values of the training, at any depth
TRAINING: dict[str, dict[str, dict[str, Any]]] = {
    "lsa": {
        "default": LSA | {"batch_size": 512, "steps": 3000},
        "paper": LSA | {"batch_size": 2048, "steps": 5000},
    },
    "linear": {
        "default": LINEAR | {"lr": 1e-3, "grad_clip": 1.0, "batch_size": 256, "steps": 10_000},
        "paper": LINEAR | {"lr": 5e-4, "grad_clip": 1.0, "batch_size": 2048, "steps": 50_000},
    },
    "softmax": {
        "default": SOFTMAX | {"lr": 3e-4, "steps": 20_000},
        "paper": SOFTMAX | {"steps": 50_000},
    },
}

# sweep -> (the flag that differs between its runs, its values)
SWEEPS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "depth": ("--num_layers", (2, 4, 8, 12, 24)),
    "noise": ("--config.noise_std", (0.0, 0.02, 0.05, 0.1)),
    "context": ("--config.num_pairs", (10, 20, 40)),
}


def main(argv: list[str]) -> None:
    """Prints a sweep's flags, one run a line."""
    parser = cli.Parser("configs.linreg", "Prints the runner's flags for each run of a sweep, one run a line.")
    parser.add_argument("sweep", choices=SWEEPS, help="what differs between the runs")
    flag, values = SWEEPS[parser.parse(argv).sweep]
    for value in values:
        print(f"{flag}={value}")


if __name__ == "__main__":
    cli.launch(main)
