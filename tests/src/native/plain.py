"""The kernel without XLA, compiled for tests in float32 or float64, and what NumPy makes of the same stack."""

import ctypes
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.lab.native.build import SOURCE
from icl_lab.lab.native.compilers import compilers
from icl_lab.src.config import TOKENS, Architecture
from icl_lab.src.data import positional_encoding

HERE = Path(__file__).parent
FLAGS = ("-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-pthread", "-ffp-contract=fast")


def compiled(made: Path, *flags: str) -> Path:
    """Compiles the tests' program or object, with warnings as errors."""
    command = next(compilers()).command
    line = [*command, *FLAGS, *flags, f"-I{SOURCE}", str(HERE / "plain.cpp"), "-o", str(made)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return made


class Contexts(NamedTuple):
    """x [B, N, D], y [B, N], x_query [B, Q, D], y_query [B, Q]."""

    x: np.ndarray
    y: np.ndarray
    x_query: np.ndarray
    y_query: np.ndarray


def contexts(architecture: Architecture[Any], tasks: int, seed: int, scale: float = 1.0) -> Contexts:
    """Normal numbers."""
    draw, queries = np.random.default_rng(seed), architecture.num_queries
    pairs, dim = architecture.num_pairs, architecture.dim
    shapes = ((tasks, pairs, dim), (tasks, pairs), (tasks, queries, dim), (tasks, queries))
    return Contexts(*(scale * draw.normal(size=shape) for shape in shapes))


def matrices(architecture: Architecture[Any], seed: int, size: float = 0.5) -> np.ndarray:
    """A and V [2, layers, H, W, W], normal, of this norm a column."""
    model, width = architecture.model, architecture.width
    shape = (2, 1 if model.recurrent else model.num_layers, model.num_heads, width, width)
    return size / np.sqrt(width) * np.random.default_rng(seed).normal(size=shape)


class Plain:
    """An object of `plain.cpp`."""

    def __init__(self, path: Path):
        self.object = ctypes.CDLL(str(path))
        self.object.plain_block_vectors.restype = ctypes.c_long
        self.real: Any = {4: np.float32, 8: np.float64}[self.object.plain_real_bytes()]

    def block_vectors(self, architecture: Architecture[Any]) -> int:
        """What a block of tasks takes."""
        return int(self.object.plain_block_vectors(_sizes(architecture).ctypes))

    def __call__(
        self, architecture: Architecture[Any], weights: np.ndarray, batch: Contexts, helpers: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Losses [B] and the gradients of their mean, of the shape of the matrices."""
        model, tasks = architecture.model, len(batch.y)
        key_size = model.key_size // model.num_heads or architecture.width
        numbers = np.array([1 / np.sqrt(key_size), model.damping, model.activation_clip])
        soft = np.array([model.kind(layer) == "softmax" for layer in range(model.num_layers)], np.int64)
        encodings = positional_encoding(architecture.num_rows, architecture.pos_enc_size)
        given = [np.ascontiguousarray(part, self.real) for part in (*weights, *batch, encodings)]
        losses, gradients = np.empty(tasks, self.real), np.empty(weights.shape, self.real)
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (*given, losses, gradients)]
        sizes = _sizes(architecture)
        self.object.plain_stack(
            sizes.ctypes, numbers.ctypes, soft.ctypes, ctypes.c_long(tasks), ctypes.c_long(helpers), *pointers
        )
        return losses, gradients


def _sizes(architecture: Architecture[Any]) -> np.ndarray:
    model = architecture.model
    tokens = list(TOKENS).index(getattr(model, "tokens", "concatenated"))
    return np.array(
        [
            *(architecture.num_pairs, architecture.dim, architecture.num_queries, architecture.pos_enc_size),
            *(model.num_layers, model.num_heads, model.recurrent, tokens, architecture.prediction_channel),
        ],
        np.int64,
    )


def in_numpy(architecture: Architecture[Any], weights: np.ndarray, batch: Contexts) -> tuple[np.ndarray, float]:
    """Losses [B] in float64, and how near the clip an activation comes (infinite without one)."""
    model, queries = architecture.model, architecture.num_queries
    tokens, near = _tokens(architecture, batch), np.inf
    scores, values = (np.repeat(part, model.num_layers, axis=0) if model.recurrent else part for part in weights)
    for layer in range(model.num_layers):
        seen, update = tokens[:, :-queries], np.zeros_like(tokens)
        for into, out in zip(scores[layer], values[layer], strict=True):
            attended = np.einsum("brw,wu,bnu->brn", tokens, into, seen, optimize=True)
            if model.kind(layer) == "softmax":
                attended = attended / np.sqrt(model.key_size // model.num_heads or architecture.width)
                attended = np.exp(attended - attended.max(axis=2, keepdims=True))
                attended = attended / attended.sum(axis=2, keepdims=True)
            update += attended @ seen @ out
        tokens = tokens + model.damping * update
        if (bound := model.activation_clip) > 0:
            near = min(near, float(np.abs(np.abs(tokens) - bound).min()))
            tokens = np.clip(tokens, -bound, bound)
    predictions = -tokens[:, -queries:, architecture.prediction_channel]
    return (0.5 * (predictions - batch.y_query) ** 2).mean(axis=1), near


def _tokens(architecture: Architecture[Any], batch: Contexts) -> np.ndarray:
    tasks, pairs, dim = batch.x.shape
    kind = getattr(architecture.model, "tokens", "concatenated")
    tokens = np.zeros((tasks, architecture.num_rows, architecture.width))
    label = architecture.data_width - 1
    if kind == "concatenated":
        tokens[:, :pairs, :dim], tokens[:, :pairs, label] = batch.x, batch.y
    else:
        tokens[:, 0 : 2 * pairs : 2, :dim], tokens[:, 1 : 2 * pairs : 2, label] = batch.x, batch.y
    tokens[:, -architecture.num_queries :, :dim] = batch.x_query
    tokens[:, :, architecture.data_width :] = positional_encoding(architecture.num_rows, architecture.pos_enc_size)
    return tokens
