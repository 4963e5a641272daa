"""Tokens in context: a causal decoder that says at every position which symbol comes next.

`markov` are chains whose transitions the context alone tells, after Edelman et al. 2024; their loss is in nats a token,
beside the exact posterior's. `markov_plateau` starts from small tables, so that it waits before it learns bigrams.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from icl_lab.families.tokens.data import TokenData
from icl_lab.lab.configs.family import Family, Preset, flag_of, layers_seconds
from icl_lab.lab.configs.run import RunConfig
from icl_lab.lab.flag_types import INFINITY, Either, Whole
from icl_lab.src.batch import TokenBatch
from icl_lab.src.checks import require
from icl_lab.src.config import check_arrays
from icl_lab.src.decoder_config import DecoderConfig
from icl_lab.src.fields import field

LOSS = "half_squared_error"  # of a decoder of pairs, which one of symbols does not have


@dataclass(frozen=True)
class TokenModel(DecoderConfig):
    """A decoder of symbols: its blocks, and how large the tables are that it starts from.

    It reads symbols and gives logits, so `tokens`, `read_out` and `loss` of decoders of pairs say nothing here.
    """

    embedding_std: float = field(
        0.0, "standard deviation of both tables of symbols at the start; 0: d_model^(-1/2)", low=0, high=100
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, own in (("tokens", "interleaved"), ("read_out", "block"), ("loss", LOSS)):
            value = getattr(self, name)
            require(value == own, f"{name} is {value!r}; a decoder of symbols has logits and cross-entropy alone")

    @property
    def table_std(self) -> float:
        """The standard deviation of both tables."""
        return self.embedding_std or 1 / math.sqrt(self.d_model)


@dataclass(frozen=True)
class TokensConfig(RunConfig):
    """A run of the family: sequences of symbols, and a decoder."""

    family: ClassVar[str] = "tokens"

    name: str = "markov"
    data: TokenData = TokenData()
    model: TokenModel = TokenModel()

    def __post_init__(self) -> None:
        super().__post_init__()
        widest = max(self.model.d_model, self.data.num_symbols)
        check_arrays(self.data.rows, widest, self.model, self.tasks_at_once)

    def batch_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the evaluation batch, by field."""
        tasks, data = self.eval_tasks, self.data
        return {"x": (tasks, data.rows), "y_query": (tasks, data.num_tokens - 1)}

    def run_words(self) -> list[str]:
        """The source and the depth in words."""
        data = self.data
        words = [f"k{data.num_symbols}", f"T{data.num_tokens}", f"order{data.chain_order}", f"M{data.num_chains}"]
        return [*words, f"L{self.model.num_layers}", f"steps{self.training.steps}"]

    def task_seconds(self) -> float:
        """What a step of one sequence costs."""
        width = 2 * self.model.d_model + self.model.mlp_width
        return layers_seconds(self.data.rows, width, self.model.num_layers)


MARKOV: dict[str, Any] = {
    "block": "plain",
    "num_layers": 2,
    "num_heads": 1,
    "d_model": 32,
    "mlp_width": 0,
    "positions": "relative",
    "num_symbols": 3,
    "num_tokens": 64,
    "start_token": True,
    "lr": 3e-3,
    "b1": 0.9,
    "b2": 0.999,
    "grad_clip": 0.0,
    "batch_size": 32,
    "steps": 1500,
    "eval_every": 50,
    "eval_tasks": 512,
    "test_tasks": 4096,
    "snapshots": True,
}
PLATEAU = MARKOV | {"layer_norm": True, "embedding_std": 0.02, "start_token": False, "steps": 2500}

MODELS: dict[str, dict[str, Preset]] = {
    "markov": {
        "default": Preset(MARKOV),
        "paper": Preset(MARKOV | {"num_tokens": 100, "steps": 3000, "start_token": False}),
    },
    "markov_plateau": {"default": Preset(PLATEAU), "paper": Preset(PLATEAU | {"num_tokens": 100})},
}

DEFAULT = TokensConfig()
FLAGS = (
    flag_of(DEFAULT, "data.num_symbols"),
    flag_of(DEFAULT, "data.num_tokens"),
    flag_of(DEFAULT, "data.chain_order"),
    flag_of(DEFAULT, "data.concentration"),
    flag_of(DEFAULT, "data.num_chains", read=Either(INFINITY, math.inf, Whole(1))),
    flag_of(DEFAULT, "data.start_token"),
)
AXES = (
    *FLAGS,
    flag_of(DEFAULT, "model.num_layers"),
    flag_of(DEFAULT, "model.num_heads"),
    flag_of(DEFAULT, "model.d_model"),
    flag_of(DEFAULT, "model.embedding_std"),
    flag_of(DEFAULT, "training.lr"),
    flag_of(DEFAULT, "training.steps"),
)

FAMILY = Family(
    TokensConfig,
    MODELS,
    TokenBatch,
    {"x": "int32", "y_query": "int32"},
    flags=FLAGS,
    axes=AXES,
    batched={"data.num_chains": math.inf},
)
