"""The models on which devinterp is compared with ours: weights, data and settings, which go over in a file NPZ."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.store.atomic import write_npz

SAMPLES = 4096
STEPS = {"lsa1": 2000, "tiny": 20000}  # of the trainings
NET = (4, 3, 5)  # inputs, hidden units and outputs of the linear net: 27 parameters
NOISE = 0.1  # standard deviation of its labels' noise
SCALE = 2.0  # singular values of its two matrices
CHAINS = {"batch_size": 64, "chains": 8, "burn_in": 200, "draws": 400}
SETTINGS = ("eps", "nbeta", "gamma", *CHAINS)  # that an estimate is given


class Reference(NamedTuple):
    """How long the chains are that an estimate is compared with."""

    chains: int
    burn_in: int
    draws: int


class Case(NamedTuple):
    """A model: what it is, its settings, and how many times faster ours should be (warm, cold).

    make(folder) trains it and gives its arrays by the names of the file.
    """

    text: str
    sizes: Mapping[str, float]
    reference: Reference
    targets: tuple[float, float]
    make: Callable[[Path], tuple[dict[str, Any], dict[str, np.ndarray]]]

    @property
    def settings(self) -> dict[str, Any]:
        """eps, nbeta, gamma; batch, chains and draws."""
        return {**self.sizes, **CHAINS}


# --- how each is made: (kind and fields of its model, arrays) ---


def linear_net(folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """y = x A B + noise, x ~ N(0, 1), w* = (A, B) of rank 3: 18 directions are curved and 9 flat, so lambda is 9."""
    draw = np.random.default_rng(0)
    inputs, hidden, outputs = NET
    first = SCALE * np.linalg.qr(draw.normal(size=(inputs, hidden)))[0]
    second = SCALE * np.linalg.qr(draw.normal(size=(outputs, hidden)))[0].T
    x = draw.normal(size=(SAMPLES, inputs))
    y = x @ first @ second + NOISE * draw.normal(size=(SAMPLES, outputs))
    arrays = {"params:net/first": first, "params:net/second": second}
    arrays |= {"data:x": x, "data:y": y, "torch:inputs": x, "torch:targets": y}
    return {"kind": "linear", "model": {}}, arrays


def trained(preset: str, folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A model that the library trains, on tasks like those of its training."""
    from icl_lab.analysis.llc.estimator import fixed_tasks
    from icl_lab.analysis.run import Run
    from icl_lab.lab.guest import as_guest
    from icl_lab.runners import from_python
    from icl_lab.store.params import flattened

    with as_guest():
        run = Run(from_python.train(preset, {"steps": STEPS[preset], "out": folder / preset, "quiet": True}))
    batch = fixed_tasks(run.config, SAMPLES, {})
    model, tokens = IN_PYTORCH[preset](run.config, batch)
    arrays = {f"params:{name}": value for name, value in flattened(run.params).items()}
    arrays |= {f"data:{name}": value for name, value in batch._asdict().items()}
    return model, arrays | {"torch:inputs": tokens, "torch:targets": batch.y_query}


def attention_in_pytorch(config: Any, batch: Any) -> tuple[dict[str, Any], np.ndarray]:
    """What the model in PyTorch has to know of a config, and its tokens."""
    from icl_lab.src.data import tokenise

    fields = {"layer": config.model.layer_names[0], "channel": config.architecture.prediction_channel}
    return {"kind": "attention", "model": fields}, np.asarray(tokenise(batch, config.model))


def decoder_in_pytorch(config: Any, batch: Any) -> tuple[dict[str, Any], np.ndarray]:
    """The same of a decoder."""
    from icl_lab.benchmarks.torch_sgld import fields_of
    from icl_lab.src.sequences import tokenise

    return {"kind": "decoder", "model": fields_of(config.model)}, np.asarray(tokenise(batch))


IN_PYTORCH = {"lsa1": attention_in_pytorch, "tiny": decoder_in_pytorch}

CASES: dict[str, Case] = {
    "linear": Case(
        "linear net, 27 parameters",
        {"eps": 1e-4, "nbeta": 100.0, "gamma": 10.0},
        Reference(32, 1000, 4000),
        (30, 1),
        linear_net,
    ),
    "lsa1": Case(
        "lsa1, 2000 steps",
        {"eps": 3.5e-5, "nbeta": 133.3, "gamma": 1333.0},
        Reference(32, 1000, 4000),
        (30, 1),
        partial(trained, "lsa1"),
    ),
    "tiny": Case(
        "decoder tiny, 20 000 steps",
        {"eps": 3.5e-5, "nbeta": 133.3, "gamma": 667.0},
        Reference(16, 400, 1200),
        (2, 1),
        partial(trained, "tiny"),
    ),
}


# --- the file ---


def write(name: str, path: Path, folder: Path) -> None:
    """Makes a model and writes its file: settings, parameters, and data for both sides, in float32."""
    case = CASES[name]
    model, arrays = case.make(folder)
    settings = json.dumps({"name": name, **model, **case.settings})
    floats = {key: np.asarray(value, np.float32) for key, value in arrays.items()}
    write_npz(path, {"settings": np.array(settings), **floats})


class Ours(NamedTuple):
    """A file's content on our side: settings, losses(params, batch) -> [B], params and data."""

    settings: Mapping[str, Any]
    losses: Callable[[Any, Any], Any]
    params: Any
    data: Any


def read(path: Path) -> Ours:
    """The problem of a file as our estimator takes it."""
    with np.load(path) as file:
        settings = json.loads(str(file["settings"]))
        arrays = {name: file[name] for name in file.files}
    params, data = (
        {name.removeprefix(part): value for name, value in arrays.items() if name.startswith(part)}
        for part in ("params:", "data:")
    )
    return LIBRARY[settings["name"]](settings, params, data)


def linear_losses(params: Mapping[str, Any], batch: Mapping[str, Any]) -> Any:
    """Half the squared error of x A B, summed over the outputs."""
    import jax.numpy as jnp

    return 0.5 * jnp.sum((batch["x"] @ params["net/first"] @ params["net/second"] - batch["y"]) ** 2, axis=1)


def linear(settings: Mapping[str, Any], params: Mapping[str, Any], data: Mapping[str, Any]) -> Ours:
    """The linear net."""
    return Ours(settings, linear_losses, dict(params), dict(data))


def of_preset(settings: Mapping[str, Any], params: Mapping[str, Any], data: Mapping[str, Any]) -> Ours:
    """A model of the library."""
    from icl_lab.families.task import model_of
    from icl_lab.lab.configs.presets import preset, resolve
    from icl_lab.src.batch import Batch
    from icl_lab.store.params import nested

    return Ours(settings, model_of(resolve(preset(settings["name"]))).losses, nested(params), Batch(**data))


LIBRARY = {"linear": linear, "lsa1": of_preset, "tiny": of_preset}
