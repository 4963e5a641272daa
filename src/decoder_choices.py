"""The choices of a decoder that its kind of block leaves open: their names, what a block has of itself, the checks.

A decoder's config (`src.config.DecoderConfig`) has them as fields. No JAX is imported.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from icl_lab.src.checks import require
from icl_lab.src.registries import ATTENTION_KINDS


class OwnChoices(NamedTuple):
    """What a block has where the config leaves it to the block."""

    activation: str
    read_out: str


BLOCKS = {"gpt2": OwnChoices("gelu", "label"), "regression": OwnChoices("relu", "token")}
BLOCKS_OWN = "block"  # the word that leaves a choice to the block
ACTIVATIONS = ("gelu", "relu", "silu", "tanh")
READ_OUTS = ("label", "token")
POSITIONS = ("learned", "sinusoidal", "rotary", "none")
NORMS = ("pre", "post")
# loss -> its degree d: of labels c times as large it is c^d times as large
LOSSES = {"half_squared_error": 2, "absolute_error": 1}


def choices_of(model: Any) -> OwnChoices:
    """The activation function and the read-out of a decoder's config."""
    own = BLOCKS[model.block]._asdict()
    return OwnChoices(**{name: word if (word := getattr(model, name)) != BLOCKS_OWN else own[name] for name in own})


def left_to_block(model: Any) -> dict[str, str]:
    """The choices of a decoder's config that name what its block has anyway, and the word that leaves them to it."""
    return {name: BLOCKS_OWN for name, word in BLOCKS[model.block]._asdict().items() if getattr(model, name) == word}


def mlp_width_of(model: Any) -> int:
    """The hidden channels of an MLP: `mlp_ratio` times `d_model`, or where that is 0 `mlp_width`; `ConfigError`."""
    width = model.mlp_ratio * model.d_model
    require(
        width == int(width),
        f"mlp_ratio is {model.mlp_ratio:g}; times d_model, {model.d_model}, it must be a whole number of channels",
    )
    return int(width or model.mlp_width)


def check_choices(model: Any) -> None:
    """`ConfigError` for choices of a decoder's config that its sizes, or its other choices, do not allow."""
    for kind in model.attention:
        require(
            not ATTENTION_KINDS.owner(kind) or ATTENTION_KINDS[kind].causal is not None,
            f"attention is {kind!r}, which has no causal form, as a decoder needs; register it by "
            f"@plugins.attention({kind!r}, causal=f), with f(scores, key_size, visible, count) -> weights",
        )
    channels = model.d_model // model.num_heads
    require(
        model.positions != "rotary" or channels % 2 == 0,
        f"positions is 'rotary', which turns channels in pairs, but d_model / num_heads is {channels}; it must be even",
    )
    require(
        model.positions != "sinusoidal" or model.d_model % 2 == 0,
        f"positions is 'sinusoidal', but d_model is {model.d_model}; sines come with cosines, so it must be even",
    )
    require(model.norm == "pre" or model.layer_norm, "norm is 'post', but layer_norm is off, so there is none to place")
