"""The presets: one table of what is trained, how. `docs/contract.md` shows the same table.

`paper` follows the published code of von Oswald et al. 2023; where paper and code disagree, the published curves follow
the code (inputs U(-1/2, 1/2), loss with the 1/2, an initial *variance* of .002/K over fan-in). `default` is the same
for lsa1; for twolayer it starts from larger weights on smaller batches, which ends the plateau at .41 early.
"""

from __future__ import annotations

from typing import Any

from ml_collections import ConfigDict

from configs import diversity, linreg
from src.config import RunConfig, to_dict

PRESETS = ("default", "paper")
SECTIONS = ("training", "model", "data")  # where a preset's values stand, or else at the top

# Rows of (deepest stack it holds for, values); the first row that fits is used.
Rows = tuple[tuple[float, dict[str, Any]], ...]

ANY_DEPTH = float("inf")

PAPER_CONCATENATED: Rows = (
    (2, {"lr": 1e-3, "grad_clip": 1e-3, "activation_clip": 0.0}),
    (3, {"lr": 1e-3, "grad_clip": 10.0, "activation_clip": 0.0}),
    (ANY_DEPTH, {"lr": 5e-4, "grad_clip": 10.0, "activation_clip": 10.0}),
)
PAPER_INTERLEAVED: Rows = (
    (3, {"lr": 1e-3, "grad_clip": 10.0, "activation_clip": 0.0}),
    (ANY_DEPTH, {"lr": 5e-4, "grad_clip": 10.0, "activation_clip": 10.0}),
)

LSA1: dict[str, tuple[dict[str, Any], Rows]] = {
    name: ({"b1": 0.9, "b2": 0.98, "batch_size": 2048, "init_scale": 0.002, "steps": 5000}, PAPER_CONCATENATED)
    for name in PRESETS
}

PAPER_SINE: Rows = ((ANY_DEPTH, {"grad_clip": 100.0, "activation_clip": 0.0}),)
SINE = {"lr": 3e-4, "b1": 0.9, "b2": 0.98, "batch_size": 2048, "steps": 50_000}
SMALL_SINE = {"b1": 0.9, "b2": 0.98, "batch_size": 256, "steps": 20_000}

# model -> preset -> (values for any depth, values by depth)
TABLE: dict[str, dict[str, tuple[dict[str, Any], Rows]]] = {
    "lsa1": LSA1,
    "lsa1_pe": LSA1,
    "twolayer": {
        "default": ({"b1": 0.9, "b2": 0.98, "batch_size": 512, "init_scale": 0.5, "steps": 5000}, PAPER_INTERLEAVED),
        "paper": ({"b1": 0.9, "b2": 0.98, "batch_size": 2048, "init_scale": 0.02, "steps": 10_000}, PAPER_INTERLEAVED),
    },
    "sine": {"default": ({"lr": 1e-3, **SMALL_SINE}, PAPER_SINE), "paper": (SINE, PAPER_SINE)},
    "sine_control": {"default": ({"lr": 3e-3, **SMALL_SINE}, PAPER_SINE), "paper": (SINE, PAPER_SINE)},
}

SINES: dict[str, Any] = {"family": "sine", "dim": 1, "input_range": 10.0, "embed_size": 40, "mlp_width": 160}
CONTROLS = {"sine": "sine_control"}  # model -> its control

ARCHITECTURE: dict[str, dict[str, Any]] = {
    "lsa1": {"tokens": "concatenated", "attention": ("linear",), "num_layers": 1, "pos_enc_size": 0},
    "lsa1_pe": {"tokens": "concatenated", "attention": ("linear",), "num_layers": 1, "pos_enc_size": 20},
    "twolayer": {
        "tokens": "interleaved",
        "attention": ("softmax", "linear"),
        "num_layers": 2,
        "pos_enc_size": 10,
    },
    "sine": SINES | {"num_layers": 1, "key_size": 40},
    "sine_control": SINES | {"num_layers": 1, "step_size": 0.01},
}

ARCHITECTURE |= linreg.ARCHITECTURE | diversity.ARCHITECTURE
TABLE |= {
    model: {name: (values, ((ANY_DEPTH, {}),)) for name, values in presets.items()}
    for model, presets in (linreg.TRAINING | diversity.TRAINING).items()
}

STEPS_OF_UNSHARED_LAYERS = 50_000  # lsa1 beyond one layer, unless the layers share their weights


def preset(model: str, name: str = "default", num_layers: int | None = None, recurrent: bool = False) -> ConfigDict:
    """The preset of a model at a depth, as a locked `ConfigDict` that `configs.overrides.resolve` turns into a run.

    Its train and eval contexts are None throughout: what is not set there is taken from `base`. So are a sequence's
    noise and length in the family diversity: without a value of their own they follow the dimension.
    """
    architecture = ARCHITECTURE[model]
    depth = architecture["num_layers"] if num_layers is None else num_layers
    values, rows = TABLE[model][name]
    values = values | next(row for deepest, row in rows if depth <= deepest)
    if TABLE[model] is LSA1 and depth > 1 and not recurrent:
        values = values | {"steps": STEPS_OF_UNSHARED_LAYERS}

    config = to_dict(RunConfig(name=model, preset=name))
    for key, value in (architecture | {"num_layers": depth, "recurrent": recurrent} | values).items():
        next(part for part in (*(config[name] for name in SECTIONS), config) if key in part)[key] = value
    config["base"]["difficulty"] = None
    if config["family"] == "diversity":
        config["data"]["noise_std"] = config["data"]["num_pairs"] = None
    for context in ("train", "eval"):
        config[context] = dict.fromkeys(config[context])
    return ConfigDict(config).lock()
