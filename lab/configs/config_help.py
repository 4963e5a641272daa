"""What `--config.help` lists: each field of a config with its type, the preset's value and its meaning."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

from ml_collections import ConfigDict

from icl_lab.lab.configs.family import Meaning
from icl_lab.lab.configs.keys import OUTSIDE
from icl_lab.lab.configs.presets import resolve
from icl_lab.lab.configs.registry import named
from icl_lab.lab.configs.run import fields_of
from icl_lab.src.config import OPTIMIZERS
from icl_lab.src.registries import ATTENTION_KINDS, INPUT_DISTRIBUTIONS, SCHEDULES

# of the fields that several families have; those of one alone stand with it
MEANINGS: dict[str, Meaning] = {
    "name": Meaning("name of the run, and of its directory where --out is not given"),
    "data_seed": Meaning("seed of tasks and data"),
    "init_seed": Meaning("seed of the initialisation"),
    "eval_every": Meaning("steps between two records of the metrics"),
    "eval_tasks": Meaning("tasks of the evaluation set, measured at every record"),
    "test_tasks": Meaning("tasks of the test set, measured at the end"),
    "snapshots": Meaning("keep the parameters at every record"),
    "log_records": Meaning("further records, at logarithmically spaced steps"),
    "data.dim": Meaning("input dimension, D"),
    "data.num_pairs": Meaning("pairs of a context, N, or of a sequence, K"),
    "data.input_distribution": Meaning("distribution of the inputs", INPUT_DISTRIBUTIONS),
    "data.input_range": Meaning("width of the uniform distribution, standard deviation of the Gaussian one"),
    "data.weight_scale": Meaning("standard deviation of a task's weights"),
    "data.noise_std": Meaning("standard deviation of the labels' noise"),
    "model.attention": Meaning("kind of each layer, the last one repeated", ATTENTION_KINDS),
    "model.num_layers": Meaning("layers"),
    "model.num_heads": Meaning("heads of each layer"),
    "model.key_size": Meaning("size of keys and values, over all heads; 0: that of a token for each head"),
    "model.recurrent": Meaning("all layers share their weights"),
    "model.damping": Meaning("factor of every residual update"),
    "model.activation_clip": Meaning("bound of the activations after each layer; 0: none"),
    "model.bias": Meaning("biases in attention"),
    "model.layer_norm": Meaning("layer normalisation before each layer"),
    "model.mlp_width": Meaning("hidden channels of an MLP; 0: none"),
    "model.init_scale": Meaning("variance scale of the initial weights, over the number of layers"),
    "model.merged": Meaning("attention's parameters are W_K^T W_Q and P W_V, not four factors"),
    "model.first_norm": Meaning("layer norm before the first attention too, where there are layer norms"),
    "model.shared_mlp": Meaning("all layers share one MLP"),
    "model.mlp_bias": Meaning("biases in the MLP"),
    "model.clip_before_mlp": Meaning("activation_clip bounds what attention gives the MLP too"),
    "training.steps": Meaning("training steps"),
    "training.batch_size": Meaning("tasks in a training batch"),
    "training.lr": Meaning("learning rate"),
    "training.b1": Meaning("Adam's decay of the first moment"),
    "training.b2": Meaning("Adam's decay of the second moment"),
    "training.weight_decay": Meaning("decoupled weight decay"),
    "training.grad_clip": Meaning("bound of the gradient's global norm; 0: none"),
    "training.warmup_steps": Meaning("steps over which the learning rate rises from 0"),
    "training.schedule": Meaning("of the learning rate after that", SCHEDULES),
    "training.optimizer": Meaning("what makes a step of a gradient", OPTIMIZERS),
    "training.full_batch": Meaning("every step trains on the first batch"),
    "training.micro_batches": Meaning("parts of a batch, one after another; the memory is that of a part"),
}
TYPES = {bool: "true/false", int: "whole number", float: "number", str: "word", tuple: "words", list: "words"}


def fields(config: ConfigDict, reserved: Sequence[str] = ()) -> Iterator[tuple[str, str, str, str]]:
    """(dotted name, type, value, meaning) of each field of a preset, less those `reserved`."""
    family = named(config.family)
    meanings, resolved = MEANINGS | dict(family.meanings), resolve(config)
    idle = (*OUTSIDE, "preset", *reserved, *_without_meaning(resolved))
    unset, values = _leaves(config.to_dict()), _leaves(fields_of(resolved))
    for name, default in _leaves(fields_of(family.config())).items():
        if name not in idle and name.partition(".")[0] not in idle:
            follows = family.follows.get(name) or family.follows.get(name.partition(".")[0])
            value = follows if unset[name] is None and follows else values[name]
            kind = TYPES[int if default == math.inf else type(default)]
            yield name, kind, in_words(value), str(meanings.get(name, ""))


def _without_meaning(config: Any) -> Iterator[str]:
    """The fields of which, with the values of the others, only the default is valid: sections name theirs."""
    for section in dataclasses.fields(config):
        for name in getattr(getattr(config, section.name), "without_meaning", ()):
            yield f"{section.name}.{name}"


def listing(config: ConfigDict, reserved: Sequence[str] = ()) -> str:
    """The fields as a table in plain text, below a line that says of which model and preset the values are."""
    rows = list(fields(config, reserved))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ["  ".join([*map(str.ljust, row, widths), row[3]]).rstrip() for row in rows]
    return "\n".join([f"fields of {config.name}, preset {config.preset}: --config.NAME=VALUE", *lines])


def _leaves(values: dict[str, Any]) -> dict[str, Any]:
    """Every field's value by its dotted name."""
    sections = {name: value if isinstance(value, dict) else {"": value} for name, value in values.items()}
    return {
        f"{section}.{name}".rstrip("."): value for section, inside in sections.items() for name, value in inside.items()
    }


def in_words(value: Any) -> str:
    """A value as it would be typed."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(value)
    if isinstance(value, float) and float(f"{value:g}") == value:
        return f"{value:g}"
    return str(value)
