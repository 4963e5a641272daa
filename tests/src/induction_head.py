"""An induction head with weights set by hand, in a decoder of symbols of two layers with numbers by distance."""

import numpy as np

from icl_lab.src.decoder_config import DecoderConfig


def decoder_config(num_symbols: int, start: bool = False) -> DecoderConfig:
    """The config of the decoder that `induction`'s weights are of."""
    width = 3 * (num_symbols + int(start))
    return DecoderConfig(block="plain", num_layers=2, num_heads=1, d_model=width, mlp_width=0, positions="relative")


def induction(scale: float, num_symbols: int, rows: int, start: bool = False) -> dict[str, dict[str, np.ndarray]]:
    """Weights of an induction head: channels of a symbol, of the one before it, and of what has followed it.

    Layer 0 attends to the row before, by its number of distance 1; layer 1 to rows behind the row's own symbol. A start
    symbol is one more, which nothing reads out.
    """
    seen = num_symbols + int(start)
    width, one = 3 * seen, np.eye(seen)
    channels = [slice(part * seen, (part + 1) * seen) for part in range(3)]

    def zeros(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.float32)

    symbols, read_out = zeros(seen, width), zeros(width, num_symbols)
    symbols[:, channels[0]], read_out[channels[2]] = one, one[:, :num_symbols]
    copy, match = zeros(width, 3 * width), zeros(width, 3 * width)
    copy[channels[0], 2 * width : 2 * width + seen] = one  # a value is the symbol
    match[channels[0], :seen] = scale * np.sqrt(width) * one  # a query is the symbol
    match[channels[1], width : width + seen] = one  # a key is the symbol before
    match[channels[0], 2 * width : 2 * width + seen] = one
    to_previous, to_output = zeros(width, width), zeros(width, width)
    to_previous[:seen, channels[1]], to_output[:seen, channels[2]] = one, one
    distances = zeros(1, rows)
    distances[0, 1] = scale
    return {
        "embed": {"symbols": symbols},
        "layer_0/attention": {"distances": distances},
        "layer_0/attention/query_key_value": {"w": copy},
        "layer_0/attention/output": {"w": to_previous},
        "layer_1/attention": {"distances": zeros(1, rows)},
        "layer_1/attention/query_key_value": {"w": match},
        "layer_1/attention/output": {"w": to_output},
        "read_out": {"symbols": read_out},
    }
