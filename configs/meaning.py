"""Which fields of a config have no meaning for a family of experiments: setting them is refused, not ignored."""

from __future__ import annotations

from typing import Any

from cli import UsageError
from src.checks import require
from src.config import RunConfig, to_dict

OF_SINES = ("data.amplitude_low", "data.amplitude_high", "model.embedded", "model.step_size")  # alone
OF_SEQUENCES = (
    *("data.num_tasks", "data.task_law", "model.block", "model.attention_output", "model.doubled_residual"),
)

# family -> fields, or sections of them, that nothing of it reads
WITHOUT_MEANING: dict[str, tuple[str, ...]] = {
    "regression": (
        *("data.num_queries", *OF_SINES),
        *("model.embed_size", "training.deep_supervision", *OF_SEQUENCES),
    ),
    "layerwise": (
        *("base", "train", "eval", "step_size_tasks"),
        *("data.num_distractors", "model.tokens", "model.pos_enc_size", *OF_SINES, *OF_SEQUENCES),
    ),
    "sine": (
        *("base", "train", "eval", "step_size_tasks"),
        *("data.input_law", "data.weight_scale", "data.noise_std", "data.num_distractors", "data.num_queries"),
        *("model.tokens", "model.pos_enc_size", "training.deep_supervision", *OF_SEQUENCES),
    ),
    "diversity": (
        *("base", "train", "eval", "step_size_tasks", *OF_SINES),
        *("data.num_distractors", "data.num_queries", "model.tokens", "model.attention", "model.key_size"),
        *("model.recurrent", "model.damping", "model.activation_clip", "model.pos_enc_size", "model.bias"),
        *("model.init_scale", "training.deep_supervision", "training.full_batch"),
    ),
}
# and for a control of sines, which has a step of gradient descent for layers
OF_LAYERS = (
    *("model.attention", "model.num_layers", "model.num_heads", "model.key_size", "model.recurrent", "model.damping"),
    *("model.activation_clip", "model.bias", "model.layer_norm", "model.init_scale"),
)


def without_meaning(config: RunConfig) -> tuple[str, ...]:
    """The fields, and sections of them, that nothing of the config's family reads."""
    return (*WITHOUT_MEANING.get(config.family, ()), *OF_LAYERS * _is_control(config))


def _is_control(config: RunConfig) -> bool:
    return config.family == "sine" and config.model.step_size > 0


def refuse_without_meaning(config: RunConfig) -> None:
    """`UsageError` where a field that has no meaning for the config's family differs from its default."""
    values, defaults = to_dict(config), to_dict(RunConfig())
    kind = "a control" if _is_control(config) else f"the family {config.family}"
    for name in without_meaning(config):
        found, default = _at(values, name), _at(defaults, name)
        differing = [field for field in found if found[field] != default[field]]
        if differing:
            field = differing[0]
            raise UsageError(f"{field} is {found[field]}, but has no meaning for {kind}")
    if config.family == "diversity":
        heads, size = config.model.num_heads, config.model.embed_size
        require(size > 0 and size % heads == 0, f"embed_size is {size}; it does not divide among {heads} heads")
        require(config.model.mlp_width > 0, "mlp_width is 0; a decoder's block has an MLP")
        pairs = config.data.num_pairs
        require(pairs > 1, f"num_pairs is {pairs}; a sequence is at least 2 pairs long, for the first has no context")
    if config.family == "sine":
        dim, size = config.data.dim, config.model.embed_size
        require(dim == 1, f"dim is {dim}; a sine has inputs of one dimension")
        require(size > 1, f"embed_size is {size}; it must be at least 2, for features and for the label")


def _at(values: dict[str, Any], name: str) -> dict[str, Any]:
    """A section, or a field alone by its last name."""
    section, _, field = name.rpartition(".")
    owner = values[section] if section else values
    return owner[field] if isinstance(owner[field], dict) else {field: owner[field]}
