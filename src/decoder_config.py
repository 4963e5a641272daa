"""The config of a causal decoder: its sizes, and the choices that its kind of block leaves open. No JAX is imported."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

from icl_lab.src.checks import require
from icl_lab.src.config import TOKENS, check_attention, check_layers, kind_of
from icl_lab.src.fields import check_fields, field
from icl_lab.src.registries import ATTENTION_KINDS


class OwnChoices(NamedTuple):
    """What a block has where the config leaves it to the block."""

    activation: str
    read_out: str


BLOCKS = {
    "gpt2": OwnChoices("gelu", "label"),
    "regression": OwnChoices("relu", "token"),
    "plain": OwnChoices("relu", "label"),
}
BLOCKS_OWN = "block"  # the word that leaves a choice to the block
ACTIVATIONS = ("gelu", "relu", "silu", "tanh")
READ_OUTS = ("label", "token")
POSITIONS = ("learned", "sinusoidal", "rotary", "query_key", "relative", "none")
NORMS = ("pre", "post")
SEQUENCES = tuple(name for name, layout in TOKENS.items() if layout.rows_of_a_pair == 2)
# loss -> its degree d: of labels c times as large it is c^d times as large
LOSSES = {"half_squared_error": 2, "absolute_error": 1}


@dataclass(frozen=True)
class DecoderConfig:
    """A causal decoder of `d_model` channels, made of blocks.

    A block is gpt2's, that of the smaller regression transformer, which may lack attention's output projection
    (`attention_output`) and may add a block's input to its output a second time (`doubled_residual`), or a plain one
    of weights N(0, 1 / fan-in). Without an `mlp_width` it is attention alone. The other fields are
    choices that all leave open: `attention` names the kind of each layer, as in a stack; layer norms stand before
    attention and MLP (`norm` pre, and one before the read-out) or after each sum (post); `mlp_ratio`, where it is above
    0, sets `mlp_width` to so many times `d_model`.
    """

    num_layers: int = field(1, "layers", least=1)
    num_heads: int = field(1, "heads of each layer", least=1)
    d_model: int = field(32, "width of the residual stream")
    mlp_width: int = field(128, "hidden channels of an MLP; 0: none", least=0)
    layer_norm: bool = field(False, "layer normalisation before each layer")
    block: str = field("gpt2", "kind of a decoder's block", names=BLOCKS)
    attention_output: bool = field(True, "apply an output projection after the heads")
    doubled_residual: bool = field(False, "add a block's input to its output a second time")
    attention: tuple[str, ...] = field(
        ("softmax",), "attention of each layer; the last kind is used for all further layers", names=ATTENTION_KINDS
    )
    tokens: str = field(
        "interleaved",
        "what a token holds (interleaved_shared: the label is in the first channel of x)",
        names=SEQUENCES,
    )
    positions: str = field(
        "learned",
        "positional encoding (query_key: added in queries and keys only; relative: by distance)",
        names=POSITIONS,
    )
    norm: str = field(
        "pre", "layer norms before attention and MLP (pre), or after each residual sum (post)", names=NORMS
    )
    mlp_ratio: float = field(0.0, "sets mlp_width to this many times d_model; 0: mlp_width as given", low=0, high=1024)
    activation: str = field(BLOCKS_OWN, "activation function of an MLP", names=(BLOCKS_OWN, *ACTIVATIONS))
    read_out: str = field(
        BLOCKS_OWN,
        "read-out (label: one channel; token: all channels of a token, with biases; the label's is used)",
        names=(BLOCKS_OWN, *READ_OUTS),
    )
    loss: str = field("half_squared_error", "loss of one prediction; training minimises its mean", names=LOSSES)

    def __post_init__(self) -> None:
        check_attention(self)
        check_fields(self)
        check_layers(self)
        heads, size = self.num_heads, self.d_model
        require(
            size > 0 and size % heads == 0,
            f"d_model is {size}; it does not divide among {heads} heads",
        )
        object.__setattr__(self, "mlp_width", mlp_width_of(self))
        check_choices(self)

    def kind(self, layer: int) -> str:
        """The kind of attention in a layer."""
        return kind_of(self, layer)

    def token_width(self, dim: int) -> int:
        """Channels of a token of inputs of a dimension."""
        return dim + TOKENS[self.tokens].own_label_channel

    @property
    def canonical(self) -> DecoderConfig:
        """The config of the same decoder that leaves to its block, and to `mlp_width`, what they say anyway."""
        same: dict[str, Any] = left_to_block(self)
        return dataclasses.replace(self, mlp_ratio=0.0, **same)


def choices_of(model: DecoderConfig) -> OwnChoices:
    """The activation function and the read-out of a decoder's config."""
    own = BLOCKS[model.block]._asdict()
    return OwnChoices(**{name: word if (word := getattr(model, name)) != BLOCKS_OWN else own[name] for name in own})


def left_to_block(model: DecoderConfig) -> dict[str, str]:
    """The choices of a decoder's config that name what its block has anyway, and the word that leaves them to it."""
    return {name: BLOCKS_OWN for name, word in BLOCKS[model.block]._asdict().items() if getattr(model, name) == word}


def mlp_width_of(model: DecoderConfig) -> int:
    """The hidden channels of an MLP: `mlp_ratio` times `d_model`, or where that is 0 `mlp_width`; `ConfigError`."""
    width = model.mlp_ratio * model.d_model
    require(
        width == int(width),
        f"mlp_ratio is {model.mlp_ratio:g}; times d_model, {model.d_model}, it must be a whole number of channels",
    )
    return int(width or model.mlp_width)


def check_choices(model: DecoderConfig) -> None:
    """`ConfigError` for choices of a decoder's config that its sizes, or its other choices, do not allow."""
    for kind in model.attention:
        require(
            not ATTENTION_KINDS.owner(kind) or ATTENTION_KINDS[kind].causal is not None,
            f"attention is {kind!r}, which has no causal form; a decoder needs one: register it by "
            f"@plugins.attention({kind!r}, causal=f), with f(scores, key_size, visible, count) -> weights",
        )
    channels = model.d_model // model.num_heads
    require(
        model.positions != "rotary" or channels % 2 == 0,
        f"positions is 'rotary', which rotates channels in pairs, but d_model / num_heads is {channels}; it must be "
        "even",
    )
    require(
        model.positions != "sinusoidal" or model.d_model % 2 == 0,
        f"positions is 'sinusoidal', but d_model is {model.d_model}; it must be even, one sine and "
        "one cosine for each frequency",
    )
    require(
        model.norm == "pre" or model.layer_norm,
        "norm is 'post', but layer_norm is off, so there is no layer norm to place",
    )
