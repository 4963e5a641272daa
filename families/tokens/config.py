"""Tokens in context: a causal decoder that says at every position which symbol comes next.

`markov` are chains whose transitions the context alone tells, after Edelman et al. 2024; `markov_plateau` starts from
small tables, so that it waits before it learns bigrams. `triggers` is a bigram language in which some symbols have a
successor that the context alone tells, after Bietti et al. 2023. `text` is text, after Hoogland et al. 2024, and
`text_control` text of which half of the windows are random symbols that come again and again.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from icl_lab.families.own_config import file_name
from icl_lab.families.tokens.data import OF_SOURCE, TokenData
from icl_lab.lab.configs.family import Family, Flag, Preset, flag_of, layers_seconds
from icl_lab.lab.configs.run import RunConfig
from icl_lab.lab.flag_types import INFINITY, Either, Whole
from icl_lab.src.batch import TokenBatch
from icl_lab.src.checks import require
from icl_lab.src.config import check_arrays
from icl_lab.src.decoder_config import DecoderConfig
from icl_lab.src.fields import field

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class TokenModel(DecoderConfig):
    """A decoder of symbols: its blocks, and how large the tables are that it starts from.

    It reads symbols and gives logits, so `tokens`, `read_out` and `loss` of decoders of pairs say nothing here.
    """

    embedding_std: float = field(
        0.0, "initial standard deviation of embedding and unembedding; 0: d_model^(-1/2)", low=0, high=100
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.without_meaning:
            value = getattr(self, name)
            said = f"{name} is {value!r}, but has no meaning for a decoder of symbols: it gives logits"
            require(value == getattr(DecoderConfig, name), said)

    @property
    def without_meaning(self) -> list[str]:
        """Fields of decoders of pairs."""
        return ["tokens", "read_out", "loss"]

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

    @classmethod
    def complete(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Of text, no more windows for evaluation and test than its held-out part has; its file by its whole path."""
        data = dict(values["data"])
        if data["file"]:
            data["file"] = os.path.abspath(data["file"])
        values = values | {"data": data}
        if data["source"] != "text":
            return values
        from icl_lab.families.tokens import text

        found = text.held_out(text.text_of(data["file"], data["num_symbols"]), data["num_tokens"])
        sizes = zip(("eval_tasks", "test_tasks"), found, strict=True)
        return values | {name: min(values[name], len(windows)) for name, windows in sizes}

    @property
    def shares_arrays(self) -> bool:
        """Whether there is a text, of which all runs of a pack have what they need in common."""
        return self.data.source in OF_SOURCE["file"]

    @property
    def data_file(self) -> str:
        """The text's file or folder; empty if it is the sample, or there is none."""
        return self.data.file

    def shared_arrays(self) -> Mapping[str, np.ndarray]:
        """The training text, or the language of its characters."""
        if not self.shares_arrays:
            return {}
        from icl_lab.families.tokens.shared import shared_arrays

        return shared_arrays(self.data)

    def hashed_as(self) -> Mapping[str, np.ndarray]:
        """The text, not where it lies."""
        if not self.shares_arrays:
            return {}
        from icl_lab.families.tokens.shared import hashed

        return dict.fromkeys(self.shared_arrays(), hashed(self.data))

    def run_words(self) -> list[str]:
        """The source and the depth in words."""
        data = self.data
        words = [data.source, f"k{data.num_symbols}", f"T{data.num_tokens}"]
        if data.source == "markov":
            words += [f"order{data.chain_order}", f"alpha{data.concentration:g}", f"M{data.num_chains}"]
        words += ["start"] if data.start_token else []
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
TRIGGERS = MARKOV | {
    "source": "triggers",
    "num_symbols": 64,
    "num_tokens": 128,
    "d_model": 64,
    "batch_size": 16,
    "start_token": False,
    "steps": 2400,
    "test_tasks": 1024,
}
TEXT = MARKOV | {
    "source": "text",
    "num_symbols": 1024,
    "num_tokens": 129,
    "num_heads": 4,
    "d_model": 128,
    "layer_norm": True,
    "embedding_std": 0.02,
    "positions": "query_key",
    "batch_size": 16,
    "start_token": False,
    "warmup_steps": 200,
    "steps": 3400,
    "eval_every": 100,
    "eval_tasks": 256,
    "test_tasks": 2048,
}
CONTROL = TEXT | {
    "num_heads": 1,
    "d_model": 64,
    "layer_norm": False,
    "embedding_std": 0.0,
    "positions": "relative",
    "repeated_share": 0.5,
    "shortest_repeat": 8,
    "batch_size": 32,
    "warmup_steps": 100,
}

MODELS: dict[str, dict[str, Preset]] = {
    "markov": {
        "default": Preset(MARKOV),
        "paper": Preset(MARKOV | {"num_tokens": 100, "steps": 3000, "start_token": False}),
    },
    "markov_plateau": {"default": Preset(PLATEAU), "paper": Preset(PLATEAU | {"num_tokens": 100})},
    "triggers": {"default": Preset(TRIGGERS), "paper": Preset(TRIGGERS | {"num_tokens": 256, "steps": 10_000})},
    "text": {"default": Preset(TEXT), "paper": Preset(TEXT | {"d_model": 256, "steps": 50_000})},
    "text_control": {"default": Preset(CONTROL), "paper": Preset(CONTROL | {"steps": 10_000})},
}

DEFAULT = TokensConfig()
FLAGS = (
    Flag("corpus", "data.file", file_name, "text of your own: a text file, or a folder of such (docs/own_data.md)"),
    flag_of(DEFAULT, "data.num_symbols"),
    flag_of(DEFAULT, "data.num_tokens"),
    flag_of(DEFAULT, "data.chain_order"),
    flag_of(DEFAULT, "data.concentration"),
    flag_of(DEFAULT, "data.num_chains", read=Either(INFINITY, math.inf, Whole(1))),
    flag_of(DEFAULT, "data.trigger_rate"),
    flag_of(DEFAULT, "data.start_token"),
)
AXES = (
    *FLAGS[1:],
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
    about={
        "markov": "decoder of Markov chains",
        "markov_plateau": "the same, at settings whose training has a plateau",
        "triggers": "decoder of sequences with triggers, in which induction heads form",
        "text": "decoder of text",
        "text_control": "the same; half of its training windows are random symbols that repeat",
    },
)
