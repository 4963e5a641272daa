"""Checks a compiled object by known answers; `runners.check_native` does in a process of its own.

NumPy knows the answers, in float64: losses of small stacks, derivatives by differences, random words, and where nan
must appear. XLA compiles next to nothing, for it would take longer than the C++.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from icl_lab.src.batch import Batch
from icl_lab.src.config import Architecture, ModelConfig
from icl_lab.src.native.library import Library, open_library
from icl_lab.src.native.stack import by_matrices
from icl_lab.src.prng import DOMAIN_BITS, PARITY, ROTATIONS, ROUNDS_OF_FOUR

TOLERANCE = 1e-4  # of the largest entry: float32's rounding, and that of differences
STEP = 1e-5  # of differences
STACKS = (
    ModelConfig(num_layers=2, damping=0.5, num_heads=2),
    ModelConfig(num_layers=2, attention=("softmax", "linear"), activation_clip=1.1),
)
TASKS, PAIRS, DIM = 131, 5, 3  # a group of 128 and a part of another
WORDS = 10_001


def fault_of(path: Path) -> str:
    """What is wrong with an object; "" if nothing is."""
    with np.errstate(over="ignore"):  # words wrap around
        return next(_faults(open_library(path, "checked")), "")


def _faults(library: Library) -> Iterator[str]:
    draw = np.random.default_rng(0)
    shapes = ((TASKS, PAIRS, DIM), (TASKS, PAIRS), (TASKS, DIM), (TASKS,), (TASKS, DIM))
    arrays: Any = (draw.normal(size=shape).astype(np.float32) for shape in shapes)
    batch = Batch(*arrays)
    for model in STACKS:
        architecture = Architecture(model, DIM, PAIRS)
        shape = (2, model.num_layers, model.num_heads, DIM + 1, DIM + 1)
        scores, values = draw.normal(size=shape).astype(np.float32) / 4
        computed = by_matrices(architecture, library)
        losses, mean, gradients = computed(scores, values, batch)
        if not _apart(losses, losses_of(model, scores, values, batch)) < TOLERANCE:
            yield f"losses of {model.attention[0]} attention are not NumPy's"
        if not _apart(mean, np.mean(losses)) < TOLERANCE:
            yield "the mean is not that of the losses"
        direction = draw.normal(size=shape)
        ahead, behind = (
            losses_of(model, scores + sign * STEP * direction[0], values + sign * STEP * direction[1], batch).mean()
            for sign in (1, -1)
        )
        slope = sum(np.sum(np.float64(each) * way) for each, way in zip(gradients, direction, strict=True))
        if not abs(slope - (ahead - behind) / (2 * STEP)) < TOLERANCE * np.abs(slope):
            yield f"the gradient of {model.attention[0]} attention is not that of its losses"
        x: Any = np.array(batch.x)
        x[7, 0, 0] = np.nan
        losses, mean, gradients = computed(scores, values, batch._replace(x=x))
        if not np.isnan(mean) or np.flatnonzero(np.isnan(losses)).tolist() != [7] or not np.isnan(gradients[0]).any():
            yield "a nan in a task does not reach its loss and the gradient"
    key = np.array([5, 1 << 31], np.uint32)
    words = words_of(key, WORDS)
    units = ((words >> 9) | np.uint32(0x3F800000)).view(np.float32) - 1
    for function, wanted in (("icl_bits", words), ("icl_units", units)):
        like = jax.ShapeDtypeStruct((WORDS,), wanted.dtype)
        if not np.array_equal(jax.ffi.ffi_call(library.named(function), like)(key), wanted):
            yield "random numbers are not those of the cipher"


def losses_of(model: ModelConfig, scores: np.ndarray, values: np.ndarray, batch: Batch) -> np.ndarray:
    """Losses [B] of a stack on concatenated tokens, in float64."""
    context = np.concatenate([batch.x, np.asarray(batch.y)[:, :, None]], axis=2)
    query = np.concatenate([batch.x_query, np.zeros((len(context), 1))], axis=1)
    tokens = np.concatenate([context, query[:, None]], axis=1).astype(np.float64)
    for layer, (into, out) in enumerate(zip(scores.astype(np.float64), values.astype(np.float64), strict=True)):
        seen, update = tokens[:, :-1], np.zeros_like(tokens)
        for head in range(len(into)):
            weights = tokens @ into[head] @ seen.swapaxes(1, 2)
            if model.kind(layer) == "softmax":
                weights = np.exp(weights / np.sqrt(tokens.shape[2]))
                weights /= weights.sum(axis=2, keepdims=True)
            update += weights @ seen @ out[head]
        tokens = tokens + model.damping * update
        if model.activation_clip > 0:
            tokens = np.clip(tokens, -model.activation_clip, model.activation_clip)
    return 0.5 * (-tokens[:, -1, -1] - batch.y_query) ** 2


def words_of(key: np.ndarray, size: int) -> np.ndarray:
    """The first `size` random words of a key: those of `src.prng`, by NumPy."""
    blocks = np.arange((size + 1) // 2, dtype=np.uint32)
    schedule = [key[0], key[1], key[0] ^ key[1] ^ np.uint32(PARITY)]
    a, b = np.uint32(DOMAIN_BITS) + schedule[0] + 0 * blocks, blocks + schedule[1]
    for four in range(ROUNDS_OF_FOUR):
        for rotation in ROTATIONS[four % 2]:
            a = a + b
            b = ((b << np.uint32(rotation)) | (b >> np.uint32(32 - rotation))) ^ a
        a = a + schedule[(four + 1) % 3]
        b = b + schedule[(four + 2) % 3] + np.uint32(four + 1)
    return np.concatenate([a, b])[:size]


def _apart(ours: Any, theirs: Any) -> float:
    return float(np.abs(np.asarray(ours) - theirs).max() / np.abs(theirs).max())
