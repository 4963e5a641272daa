"""The fields of a config as `--config.help` lists them: name, type, the preset's value, and what it means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ml_collections import ConfigDict

from configs.meaning import without_meaning
from configs.overrides import AUTO, DEFAULTS, resolve
from src.config import (
    ATTENTION_KINDS,
    BLOCKS,
    DIFFICULTIES,
    EMBEDDED,
    INPUT_LAWS,
    NOISE_MODES,
    ORDERINGS,
    PLACEMENTS,
    TASK_LAWS,
    TOKENS,
    to_dict,
)

CONTEXTS = {"base": "both contexts", "train": "training contexts", "eval": "evaluation contexts"}
OF_A_CONTEXT = {
    "ordering": f"order of the pairs in {{}}: {', '.join(ORDERINGS)}",
    "difficulty": f"what easy2hard and hard2easy sort {{}} by: {', '.join(DIFFICULTIES)}",
    "noise_mode": f"how pairs of {{}} are corrupted: {', '.join(NOISE_MODES)}",
    "noise_p": "share of pairs hit in {}",
    "noise_sigma": "standard deviation of label noise in {}",
    "noise_placement": f"where corrupted pairs stand in {{}}: {', '.join(PLACEMENTS)}",
}
MEANINGS: dict[str, str] = {
    "name": "name of the run, and of its directory where --out is not given",
    "family": "kind of experiment; it comes with the model",
    "data_seed": "seed of tasks and data",
    "init_seed": "seed of the initialisation",
    "eval_every": "steps between two records of the metrics",
    "eval_tasks": "tasks of the evaluation set, measured at every record",
    "headline_tasks": "tasks of the test set, measured at the end",
    "step_size_tasks": "clean tasks by which gradient descent's step size is chosen",
    "snapshots": "keep the parameters at every record",
    "log_records": "further records, at logarithmically spaced steps",
    "data.dim": "input dimension, D",
    "data.num_pairs": "pairs of a context, N, or of a sequence, K",
    "data.input_law": f"distribution of the inputs: {', '.join(INPUT_LAWS)}",
    "data.input_range": "width of the uniform distribution, standard deviation of the Gaussian one",
    "data.weight_scale": "standard deviation of a task's weights",
    "data.noise_std": "standard deviation of the labels' noise",
    "data.num_distractors": "labels of a context replaced by N(0, 1)",
    "data.num_queries": "queries asked of each context",
    "data.amplitude_low": "smallest amplitude of a sine",
    "data.amplitude_high": "largest amplitude of a sine",
    "data.num_tasks": "tasks in the pool, M; 0 draws a fresh one for each sequence",
    "data.task_law": f"distribution of the tasks: {', '.join(TASK_LAWS)}",
    "model.tokens": f"what a token holds: {', '.join(TOKENS)}",
    "model.attention": f"kind of each layer, the last one repeated: {', '.join(ATTENTION_KINDS)}",
    "model.num_layers": "layers",
    "model.num_heads": "heads of each layer",
    "model.key_size": "size of keys and values, over all heads; 0: that of a token for each head",
    "model.recurrent": "all layers share their weights",
    "model.damping": "factor of every residual update",
    "model.activation_clip": "bound of the activations after each layer; 0: none",
    "model.pos_enc_size": "channels of the sinusoidal code concatenated to each token",
    "model.bias": "biases in attention",
    "model.layer_norm": "layer normalisation before each layer",
    "model.mlp_width": "hidden channels of an MLP; 0: none",
    "model.init_scale": "variance scale of the initial weights, over the number of layers",
    "model.embed_size": "channels of an embedded token; 0: not embedded",
    "model.embedded": f"what embedding and MLP take: {', '.join(EMBEDDED)}",
    "model.step_size": "step of gradient descent in the layers' place, which makes the model the control; 0: layers",
    "model.block": f"kind of a decoder's block: {', '.join(BLOCKS)}",
    "model.attention_output": "a matrix after the heads",
    "model.doubled_residual": "a block's input is added to its output once more",
    "training.steps": "training steps",
    "training.batch_size": "tasks in a training batch",
    "training.lr": "learning rate",
    "training.b1": "Adam's decay of the first moment",
    "training.b2": "Adam's decay of the second moment",
    "training.weight_decay": "AdamW's weight decay",
    "training.grad_clip": "bound of the gradient's global norm; 0: none",
    "training.warmup_steps": "steps over which the learning rate rises from 0",
    "training.cosine": "the learning rate falls along a cosine to 0 at the end",
    "training.deep_supervision": "the loss is the mean over the predictions after every layer",
    "training.full_batch": "every step trains on the first batch",
    "training.triangle": "the learning rate rises to the middle of the training and falls to 0 at its end",
    **{
        f"{context}.{field}": text.format(words)
        for context, words in CONTEXTS.items()
        for field, text in OF_A_CONTEXT.items()
    },
}
TYPES = {bool: "true/false", int: "whole number", float: "number", str: "word", tuple: "words"}


def fields(config: ConfigDict, reserved: Sequence[str] = ()) -> Iterator[tuple[str, str, str, str]]:
    """(dotted name, type, value, meaning) of each field that means something for a preset's family, less `reserved`."""
    resolved = resolve(config)
    idle = (*without_meaning(resolved), "preset", *reserved)
    unset, values = _leaves(config.to_dict()), _leaves(to_dict(resolved))
    for name, default in _leaves(DEFAULTS).items():
        if name not in idle and name.partition(".")[0] not in idle:
            value = values[name] if unset[name] is not None else _unset(name, values[name])
            yield name, TYPES[type(default)], _in_words(value), MEANINGS[name]


def listing(config: ConfigDict, reserved: Sequence[str] = ()) -> str:
    """The fields as a table in plain text, below a line that says of which model and preset the values are."""
    rows = list(fields(config, reserved))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ["  ".join([*map(str.ljust, row, widths), row[3]]) for row in rows]
    return "\n".join([f"fields of {config.name}, preset {config.preset}: --config.NAME=VALUE", *lines])


def _leaves(values: dict[str, Any]) -> dict[str, Any]:
    """Every field's value by its dotted name."""
    sections = {name: value if isinstance(value, dict) else {"": value} for name, value in values.items()}
    return {
        f"{section}.{name}".rstrip("."): value for section, inside in sections.items() for name, value in inside.items()
    }


def _unset(name: str, value: Any) -> Any:
    """What stands for a value that follows others: a context's that of `base`, a difficulty the noise mode."""
    section = name.partition(".")[0]
    if section in ("train", "eval"):
        return "as base"
    return AUTO if section == "base" else value


def _in_words(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(value)
    if isinstance(value, float) and float(f"{value:g}") == value:
        return f"{value:g}"
    return str(value)
