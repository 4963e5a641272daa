"""Codes of strings by an autoencoder: a run of its own, on whose frozen code the family languages may build.

`autoencoder` reads one-hot symbols, has a linear code and a softmax over the symbols of every place. `published` is the
one of the published program: symbols as numbers, codes of at least 0, squared errors, trained on members alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from icl_lab.families.languages.data import AUTOENCODER_INPUTS, MOST_LETTERS, LanguageData
from icl_lab.families.languages.flags import (
    FOLLOWS,
    LANGUAGE_FLAGS,
    LANGUAGE_LISTS,
    language_words,
    pool_arrays,
    with_negatives,
)
from icl_lab.lab.configs.family import Family, Preset, flag_of, layers_seconds
from icl_lab.lab.configs.run import RunConfig
from icl_lab.src.batch import StringBatch
from icl_lab.src.checks import TOO_MANY, require
from icl_lab.src.fields import check_fields, field

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class AutoencoderModel:
    """An autoencoder of strings with a code of `dim` channels; encoder and decoder are MLPs of `hidden` channels.

    `input` one_hot: a linear code and cross-entropies of symbols. raw_index: the published program's layers, 20 - 16
    linear, 16 - 8 - 16 ReLU and back, with squared errors of the symbols' numbers; dim and hidden are 16 and 8 there.
    """

    dim: int = field(16, "channels of the code", least=1)
    hidden: int = field(64, "hidden channels of encoder and decoder", least=1)
    input: str = field("one_hot", "what the encoder reads", names=AUTOENCODER_INPUTS)

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class AutoencoderConfig(RunConfig):
    """A run of the family: strings of the languages' training pool, of which `negative_share` are no members."""

    family: ClassVar[str] = "autoencoder"

    name: str = "autoencoder"
    negative_share: float = field(0.5, "share of non-members among the strings", low=0, high=1)
    data: LanguageData = LanguageData()
    model: AutoencoderModel = AutoencoderModel()

    def __post_init__(self) -> None:
        super().__post_init__()
        symbols, channels = self.data.max_length, max(self.model.hidden, self.model.dim)
        for name, tasks in self.tasks_at_once.items():
            elements = tasks * max(symbols, channels)
            require(
                elements < TOO_MANY,
                f"{name} is {tasks}; with {channels} channels that is an array of 2^31 elements or more",
            )
        require(channels * MOST_LETTERS < TOO_MANY, f"{channels} channels have 2^31 weights or more")

    @classmethod
    def complete(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Sets unset negatives."""
        return with_negatives(values)

    def batch_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of the evaluation batch."""
        return {"symbols": (self.eval_tasks, self.data.max_length)}

    def run_words(self) -> list[str]:
        """What the encoder reads, the code and the strings in words."""
        return [self.model.input, f"d{self.model.dim}", *language_words(self.data)]

    def task_seconds(self) -> float:
        """What a step of one string costs."""
        return layers_seconds(1, 4 * self.model.hidden + 80, 1)

    def shared_arrays(self) -> Mapping[str, np.ndarray]:
        """The strings of the training pool, and its draws."""
        return pool_arrays(self.data)


# what strings do not depend on
ALIKE: dict[str, Any] = {"num_pairs": 1, "positive_share": 0.5, "unseen_languages": (), "num_unseen": 0}
TRAINED: dict[str, Any] = {
    "b1": 0.9,
    "b2": 0.98,
    "grad_clip": 1.0,
    "batch_size": 256,
    "steps": 2000,
    "lr": 2e-3,
    "schedule": "cosine",
}
TRAINED |= {"eval_every": 100} | ALIKE
INDEX = {"input": "raw_index", "hidden": 8, "negative_share": 0.0}
MODELS: dict[str, dict[str, Preset]] = {
    "autoencoder": {
        "default": Preset(TRAINED),
        "paper": Preset(TRAINED | {"steps": 20_000, "eval_every": 500}),
        "published": Preset(TRAINED | INDEX | {"negatives": "random_hash", "steps": 10_000, "eval_every": 500}),
    },
}


def autoencoder_of(data: LanguageData, dim: int, kind: str) -> AutoencoderConfig:
    """The run whose code languages build on: trained on the strings of this pool, its seed being the pool's."""
    preset = MODELS["autoencoder"]["published" if kind == "raw_index" else "default"].values
    defaults = AutoencoderConfig()
    training = {name: value for name, value in preset.items() if hasattr(defaults.training, name)}
    common = {name: value for name, value in preset.items() if name in ("eval_every", "negative_share")}
    model = AutoencoderModel(dim, int(preset.get("hidden", defaults.model.hidden)), kind)
    seed = data.pool_seed
    return replace(
        defaults,
        **common,
        preset="published" if kind == "raw_index" else "default",
        data_seed=seed,
        init_seed=seed,
        data=_alone(data),
        model=model,
        training=replace(defaults.training, **training),
    )


def _alone(data: LanguageData) -> LanguageData:
    """The data of a pool of strings alone; the alphabet is set where unseen languages bring further symbols."""
    from icl_lab.families.languages.pools import alphabet

    alone = replace(data, **ALIKE)
    return alone if alphabet(alone) == alphabet(data) else replace(alone, alphabet=alphabet(data))


FLAGS = (
    flag_of(AutoencoderModel(), "model.dim", "code_dim"),
    flag_of(AutoencoderModel(), "model.input"),
    *LANGUAGE_FLAGS,
)

FAMILY = Family(
    AutoencoderConfig,
    MODELS,
    StringBatch,
    {"symbols": "uint8"},
    flags=(*FLAGS, *LANGUAGE_LISTS),
    axes=FLAGS,
    follows=FOLLOWS,
    about={"autoencoder": "autoencoder of strings, whose code the languages may build on"},
)
