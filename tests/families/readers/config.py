"""What the family says of itself without JAX: its config, presets, axes, batch and shared array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from icl_lab.lab.configs.family import Family, Flag, Preset
from icl_lab.lab.configs.run import RunConfig
from icl_lab.src.checks import require, sizes

if TYPE_CHECKING:
    from jax import Array

EMBEDDING = "embedding"  # the shared array


class MaskedBatch(NamedTuple):
    """B sequences: tokens and the ones after them, int32 [B, T], and which of them are there, bool [B, T]."""

    tokens: Array
    targets: Array
    mask: Array


@dataclass(frozen=True)
class ChainData:
    """Sequences of 1 to `length` transitions of a first-order Markov chain, a fresh one of `vocab` states for each."""

    vocab: int = 6
    length: int = 16

    def __post_init__(self) -> None:
        sizes(self, "vocab", "length", least=2)


@dataclass(frozen=True)
class ReaderModel:
    """Causal attention on tokens embedded by a frozen matrix, [V, C], of the seed `embedding_seed`.

    `boosted`: its logits are added to those of a finished run that is not, of the seed `base_seed`, which stay frozen.
    """

    channels: int = 8
    embedding_seed: int = 0
    boosted: bool = False
    base_seed: int = 0

    def __post_init__(self) -> None:
        sizes(self, "channels")
        sizes(self, "embedding_seed", "base_seed", least=0)
        require(
            self.boosted or self.base_seed == 0, f"base_seed is {self.base_seed}, but the model is not a boosted one"
        )


@dataclass(frozen=True)
class ReadersConfig(RunConfig):
    """A run of the family."""

    family: ClassVar[str] = "readers"

    name: str = "reader"
    data: ChainData = ChainData()
    model: ReaderModel = ReaderModel()

    def batch_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the evaluation batch, by field."""
        return dict.fromkeys(MaskedBatch._fields, (self.eval_tasks, self.data.length))

    def run_words(self) -> list[str]:
        """What distinguishes a run of a sweep."""
        return [f"length{self.data.length}", f"channels{self.model.channels}", f"base_seed{self.model.base_seed}"]

    def task_seconds(self) -> float:
        """What a step of one sequence costs."""
        return 1e-8 * self.data.length**2 * self.model.channels

    def shared_arrays(self) -> Mapping[str, np.ndarray]:
        """The array that runs have in common."""
        return {EMBEDDING: embedding(self)}

    def required_runs(self) -> list[ReadersConfig]:
        """The run whose logits a boosted one adds to: of the same settings, but with the base's seed."""
        model = self.model
        if not model.boosted:
            return []
        base = replace(self, name="reader", model=replace(model, boosted=False, base_seed=0))
        return [replace(base, data_seed=model.base_seed, init_seed=model.base_seed)]


def embedding(config: ReadersConfig) -> np.ndarray:
    """The frozen embedding, N(0, 1) [V, C]."""
    shape = (config.data.vocab, config.model.channels)
    return np.random.default_rng(config.model.embedding_seed).standard_normal(shape, np.float32)


TRAINED = {"lr": 1e-2, "batch_size": 128, "steps": 2000, "grad_clip": 1.0, "eval_tasks": 512, "test_tasks": 2048}
PAPER = TRAINED | {"batch_size": 512, "steps": 20_000}

MODELS = {
    "reader": {"default": Preset(TRAINED), "paper": Preset(PAPER)},
    "boosted_reader": {
        "default": Preset(TRAINED | {"boosted": True}),
        "paper": Preset(PAPER | {"boosted": True}),
    },
}

FAMILY = Family(
    config=ReadersConfig,
    models=MODELS,
    batch=MaskedBatch,
    batch_types={"tokens": "int32", "targets": "int32", "mask": "bool"},
    axes=(
        Flag("length", "data.length", int, "most transitions of a sequence"),
        Flag("channels", "model.channels", int, "channels of an embedded token"),
        Flag("base_seed", "model.base_seed", int, "seed of the run that a boosted one adds to"),
    ),
)
