"""Counts the floating-point operations of a training step from its shapes: two per multiply-add of a matrix product.

Forward, for a layer whose R' rows attend to C columns, with H heads of size K and tokens W wide (one more with biases):

    score and value matrices        2 H W W K   each
    queries, the update from pooled 2 B H R' W W  each
    scores, pooled                  2 B H R' C W  each

Backward, each product counts once more per operand that needs a gradient; the first layer's tokens need none, unless
they come from a layer norm. The last layer updates the query's row alone. A sum of outer products
(src/attention_products.py) counts like the equivalent product. Elementwise work, softmax, norms, random numbers and the
optimiser are not counted.
"""

from __future__ import annotations

from typing import NamedTuple

from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.tokens.config import TokensConfig
from icl_lab.src.checks import require
from icl_lab.src.decoder_config import DecoderConfig, choices_of


class Dot(NamedTuple):
    """A matrix product of the forward pass: its operations, and the number of operands that need a gradient."""

    flops: int
    gradients: int


AnyConfig = RegressionConfig | DiversityConfig | TokensConfig


def training_step(config: AnyConfig) -> int:
    """Operations of one step of one run: labels, forward, backward."""
    return labels(config) + loss_and_gradient(config)


def loss_and_gradient(config: AnyConfig) -> int:
    """Operations of the loss and its gradient."""
    return sum(dot.flops * (1 + dot.gradients) for dot in stack(config))


def labels(config: AnyConfig) -> int:
    """Operations of the labels w.x of a batch, including the queries'; of symbols, which are their own labels, none."""
    if isinstance(config, TokensConfig):
        return 0
    return 2 * config.training.batch_size * (config.data.num_pairs + 1) * config.data.dim


def stack(config: AnyConfig) -> list[Dot]:
    """The matrix products of all layers."""
    layers = range(config.model.num_layers)
    if isinstance(config, DiversityConfig):
        return _ends_of_decoder(config) + [dot for layer in layers for dot in _decoder_block(config, layer)]
    if isinstance(config, TokensConfig):
        return [_read_out_of_symbols(config)] + [dot for _ in layers for dot in _block_of_all_rows(config)]
    return [dot for layer in layers for dot in _attention(config, layer) + _mlp(config, layer)]


def _decoder_block(config: DiversityConfig, layer: int) -> list[Dot]:
    """The products of a block, of which the last one keeps the inputs' rows."""
    rows = 2 * config.data.num_pairs
    return _block(config.model, config.training.batch_size, rows, rows // 2 if _is_last(config, layer) else rows)


def _block_of_all_rows(config: TokensConfig) -> list[Dot]:
    return _block(config.model, config.training.batch_size, config.data.rows, config.data.rows)


def _block(model: DecoderConfig, batch_size: int, rows: int, kept: int) -> list[Dot]:
    """Keys and values are of all rows, the rest of kept ones."""
    token, width = 2 * batch_size, model.d_model
    pairs, output = token * kept * rows * width, token * kept * width * width
    mlp = token * kept * width * model.mlp_width
    sizes = [3 * token * rows * width * width, pairs, pairs, output * model.attention_output, mlp, mlp]
    return [Dot(size, 2) for size in sizes]


def _read_out_of_symbols(config: TokensConfig) -> Dot:
    """The product with the table of the read-out; symbols are embedded by a table, without products."""
    data = config.data
    return Dot(2 * config.training.batch_size * data.rows * config.model.d_model * data.num_symbols, 2)


def _ends_of_decoder(config: DiversityConfig) -> list[Dot]:
    """The products of the embedding, whose tokens need no gradient, and of the read-out."""
    token, width = 2 * config.training.batch_size, config.model.d_model
    token_width = config.model.token_width(config.data.dim)
    channels = token_width if choices_of(config.model).read_out == "token" else 1
    embedding = Dot(token * 2 * config.data.num_pairs * token_width * width, 1)
    return [embedding, Dot(token * config.data.num_pairs * width * channels, 2)]


def _attention(config: RegressionConfig, layer: int) -> list[Dot]:
    model, rows = config.model, _rows(config, layer)
    require(not model.merged, "merged is on, but operations are counted of four factors")
    out, heads = config.architecture.token_width, model.num_heads
    width, head_size = out + model.bias, model.key_size // heads or out
    tokens_need_it = int(layer > 0 or (model.layer_norm and model.first_norm))
    batch = 2 * config.training.batch_size * heads * rows
    pairs = batch * (config.architecture.num_rows - 1) * width
    return [
        Dot(2 * heads * width * width * head_size, 2),  # score matrices
        Dot(2 * heads * width * out * head_size, 2),  # value matrices
        Dot(batch * width * width, 1 + tokens_need_it),  # queries
        Dot(pairs, 1 + tokens_need_it),  # scores
        Dot(pairs, 1 + tokens_need_it),  # pooled
        Dot(batch * width * out, 2),  # update
    ]


def _mlp(config: RegressionConfig, layer: int) -> list[Dot]:
    size = (
        2 * config.training.batch_size * _rows(config, layer) * config.architecture.token_width * config.model.mlp_width
    )
    return [Dot(size, 2), Dot(size, 2)] if size else []


def _rows(config: RegressionConfig, layer: int) -> int:
    return 1 if _is_last(config, layer) else config.architecture.num_rows


def _is_last(config: RegressionConfig | DiversityConfig, layer: int) -> bool:
    return layer == config.model.num_layers - 1
