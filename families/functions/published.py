"""Weights in the layout of Garg et al. 2022, read as parameters of our decoder. No JAX is imported.

Theirs is a GPT-2 between two linear maps with biases; inputs and labels take turns in rows of D channels, the label in
the first one. Our decoder has neither of the two biases, and computes the same: that of the read-in is added to each
position's vector, and that of the read-out, b, to the last layer norm's offset, along the read-out's weights w:

    w.(n + b w / |w|^2) = w.n + b
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.families.functions.config import FunctionsConfig
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.src.checks import require
from icl_lab.store.params import Params, nested
from icl_lab.store.readers import StoreError, expecting, read_safetensors

READ_IN, BACKBONE, READ_OUT = "_read_in", "_backbone", "_read_out"
IGNORED = re.compile(r"\.wte\.|\.attn\.(bias|masked_bias)$")  # of GPT-2: a table of words that nobody reads, and masks
HEAD_CHANNELS = 32  # of each head of the published models
# ours -> theirs, of a layer
LAYER = {
    "attention_norm/scale": "ln_1.weight",
    "attention_norm/offset": "ln_1.bias",
    "attention/query_key_value/w": "attn.c_attn.weight",
    "attention/query_key_value/b": "attn.c_attn.bias",
    "attention/output/w": "attn.c_proj.weight",
    "attention/output/b": "attn.c_proj.bias",
    "mlp_norm/scale": "ln_2.weight",
    "mlp_norm/offset": "ln_2.bias",
    "mlp_in/w": "mlp.c_fc.weight",
    "mlp_in/b": "mlp.c_fc.bias",
    "mlp_out/w": "mlp.c_proj.weight",
    "mlp_out/b": "mlp.c_proj.bias",
}


class Published(NamedTuple):
    """Parameters by module and name, and a config of the family with the model that they are of."""

    params: Params
    config: FunctionsConfig


def read(path: str | Path, num_heads: int = 0, **values: Any) -> Published:
    """The weights of a state dict, in a safetensors file or an npz archive.

    num_heads: 32 channels a head if not given, as the published models have. values: further fields of the config, as
    `function="decision_tree"`; fewer `num_pairs` than the weights have positions leave the last positions out.
    `StoreError` for a file that is not there or holds other arrays.
    """
    path = Path(path)
    arrays = _arrays(path)
    with expecting(path, "weights of Garg et al.: a state dict with _read_in, _backbone and _read_out"):
        sizes = _sizes(arrays)
        every = _params(arrays, sizes["num_layers"])
    config = _config(sizes | ({"num_heads": num_heads} if num_heads else {}), values)
    pairs, most = config.data.num_pairs, sizes["num_pairs"]
    require(pairs <= most, f"num_pairs is {pairs}; {path} has positions of {most} pairs")
    every["embed/positions"] = every["embed/positions"][: 2 * pairs]
    return Published(nested({name: np.array(value, np.float32) for name, value in every.items()}), config)


def _sizes(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The fields of a config that the arrays say."""
    width, dim = arrays[f"{READ_IN}.weight"].shape
    layers = 1 + max(int(found[1]) for name in arrays if (found := re.search(r"\.h\.(\d+)\.", name)))
    sizes = {"num_layers": layers, "d_model": width, "num_heads": max(1, width // HEAD_CHANNELS), "dim": dim}
    sizes["mlp_width"] = arrays[f"{BACKBONE}.h.0.mlp.c_fc.weight"].shape[1]
    return sizes | {"num_pairs": len(arrays[f"{BACKBONE}.wpe.weight"]) // 2, "start_dims": 0, "start_points": 0}


def _params(arrays: Mapping[str, np.ndarray], layers: int) -> dict[str, np.ndarray]:
    """Our parameters by module/name."""
    out = arrays[f"{READ_OUT}.weight"][0]
    params = {
        "embed/linear/w": arrays[f"{READ_IN}.weight"].T,
        "embed/positions": arrays[f"{BACKBONE}.wpe.weight"] + arrays[f"{READ_IN}.bias"],
        "read_out/linear/w": out[:, None],
        "read_out/norm/scale": arrays[f"{BACKBONE}.ln_f.weight"],
        "read_out/norm/offset": arrays[f"{BACKBONE}.ln_f.bias"] + arrays[f"{READ_OUT}.bias"] * out / (out @ out),
    }
    for layer in range(layers):
        params |= {f"layer_{layer}/{own}": arrays[f"{BACKBONE}.h.{layer}.{name}"] for own, name in LAYER.items()}
    return params


def _config(sizes: Mapping[str, Any], values: Mapping[str, Any]) -> FunctionsConfig:
    """The paper's preset with these sizes, and with values of the caller's."""
    begun = preset("functions_standard", "paper")
    named = {"function.kind" if name == "function" else name: value for name, value in values.items()}
    set_values(begun, sizes, named)
    config: FunctionsConfig = resolve(begun)
    return replace(config, name="functions_standard")


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a file by their names from _read_in, _backbone or _read_out on."""
    if path.suffix == ".npz":
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                found = {name: np.asarray(archive[name]) for name in archive}
        except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
            raise StoreError(f"{path} is no npz archive of arrays: {error}") from None
    else:
        found = dict(read_safetensors(path)[0])
    parts = re.compile(rf"({READ_IN}|{BACKBONE}|{READ_OUT})\b.*")
    named = {match[0]: value for name, value in found.items() if (match := parts.search(name))}
    return {name: value for name, value in named.items() if not IGNORED.search(name)}
