"""Which stacks the compiled C++ computes, and for which it is worth it. Imports no JAX."""

from __future__ import annotations

from typing import Any

from icl_lab.src.config import Architecture

KINDS = ("linear", "softmax")  # of attention
VECTOR = 64  # bytes of a vector, of any processor
LARGEST_BLOCK = (
    4 * 1024 * 1024
)  # bytes of a block that auto takes: about the largest that benchmarks/performance.md has
MOST_CHANNELS_ALONE = 24  # of a single layer that auto takes: wider ones XLA multiplies as fast on one thread
FEWEST_TASKS = 64  # of a batch that auto takes: a block has up to 16, of which all must be filled


def impossible(architecture: Architecture[Any], training: Any) -> str:
    """Why a stack's training has XLA alone; "" where the C++ computes its losses and gradients."""
    model = architecture.model
    others = [kind for kind in model.attention if kind not in KINDS]
    found = {
        "attention has biases": model.bias,
        "there are layer norms": model.layer_norm,
        "layers have MLPs": model.mlp_width > 0,
        "tokens are embedded": getattr(model, "d_model", 0) > 0,
        "the loss is a mean over layers": getattr(training, "deep_supervision", False),
        f"the attention {', '.join(others)} is a plugin's": bool(others),
    }
    return next((reason for reason, holds in found.items() if holds), "")


def slower(architecture: Architecture[Any], training: Any) -> str:
    """Why `auto` leaves a stack to XLA, though the C++ computes it; "" where it is at least 1.2 times as fast."""
    size, tasks = block_bytes(architecture) // 1024, training.batch_size // training.micro_batches
    width, largest, most = architecture.width, LARGEST_BLOCK // 1024, MOST_CHANNELS_ALONE
    if size > largest:
        return f"a block of its tasks takes {size} KiB; the C++ was measured to be faster only up to {largest} KiB"
    if architecture.model.num_layers == 1 and width > most:
        return f"one layer of {width} channels is as fast with XLA; the C++ is faster only up to {most} channels"
    if tasks < FEWEST_TASKS:
        return f"a batch has {tasks} tasks, fewer than {FEWEST_TASKS}"
    return ""


def block_bytes(architecture: Architecture[Any]) -> int:
    """What a block of tasks takes on the widest processor: activations of all layers, and sums of gradients."""
    model, rows, width = architecture.model, architecture.num_rows, architecture.width
    pairs = max(rows * (rows - architecture.num_queries), width**2)
    layers, heads = model.num_layers, model.num_heads
    tokens = (layers + 1) * rows * width
    of_heads = layers * heads * (2 * rows * width + pairs)
    gradients = 3 * rows * width + pairs
    sums = 2 * (1 if model.recurrent else layers) * heads * width**2
    return VECTOR * int(tokens + of_heads + gradients + sums)
