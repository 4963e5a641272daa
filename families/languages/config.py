"""Membership in a regular language, in context: strings as codes, labels 1 and -1, and the models that read them.

`languages` is linear self-attention on codes, `languages_softmax` the unrestricted model: softmax attention with MLPs.
The preset `published` is the program of the original student project; the study of languages turns off its flaws.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from icl_lab.families.autoencoder.config import AutoencoderConfig, autoencoder_of
from icl_lab.families.languages.data import CodeConfig, LanguageData
from icl_lab.families.languages.flags import (
    FOLLOWS,
    LANGUAGE_FLAGS,
    LANGUAGE_LISTS,
    language_words,
    pool_arrays,
    with_negatives,
)
from icl_lab.lab.configs.family import Family, Preset, StackRun, flag_of
from icl_lab.src.batch import context_shapes
from icl_lab.src.checks import require
from icl_lab.src.config import Architecture, EmbeddedModel
from icl_lab.src.fields import field

if TYPE_CHECKING:
    import numpy as np

MOST_CHANNELS = 2**14  # of an MLP on strings


@dataclass(frozen=True)
class LanguagesModel(EmbeddedModel):
    """A stack on tokens (code, label), with an embedding if `d_model` is above 0.

    With `features`, an MLP of width `features_width` first maps a string's one-hot symbols to that many channels.
    `query_in_keys`: the query's own row is among the keys and values, as in the published program.
    """

    features: int = field(0, "features that an MLP computes from one-hot symbols, for the code `learned`", least=0)
    features_width: int = field(64, "hidden channels of that MLP", least=1)
    query_in_keys: bool = field(False, "the query's row is among the keys and values")


@dataclass(frozen=True)
class LanguagesConfig(StackRun):
    """A run of the family."""

    family: ClassVar[str] = "languages"

    name: str = "languages"
    data: LanguageData = LanguageData()
    code: CodeConfig = CodeConfig()
    model: LanguagesModel = LanguagesModel()

    def __post_init__(self) -> None:
        super().__post_init__()
        learned = self.code.kind == "learned"
        require(
            learned == (self.model.features > 0),
            f"features is {self.model.features}; it must be above 0 with the code `learned`, and 0 with other codes",
        )
        for width in (self.model.features_width, self.code.autoencoder_dim):
            require(width <= MOST_CHANNELS, f"{width} channels are more than the {MOST_CHANNELS} that fit in memory")

    @property
    def code_channels(self) -> int:
        """The channels of a string in a batch; those of `learned` are its one-hot symbols."""
        from icl_lab.families.languages.pools import alphabet

        if self.code.kind == "learned":
            return self.data.max_length * (len(alphabet(self.data)) + 1)
        return self.code.dim + int(self.code.constant)

    @property
    def architecture(self) -> Architecture[LanguagesModel]:
        """The stack, and the contexts it sees: channels are those of a code, or of learned features."""
        dim = self.model.features or self.code_channels
        return Architecture(self.model, dim, self.data.num_pairs + int(self.model.query_in_keys))

    @classmethod
    def complete(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Sets unset negatives, and learned features: as many as the code has channels, 0 for other codes."""
        values = with_negatives(values)
        model, code = dict(values["model"]), values["code"]
        if model["features"] is None:
            model["features"] = code["dim"] if code["kind"] == "learned" else 0
        return values | {"model": model}

    def batch_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the evaluation batch, by field; w holds the number of each task's language."""
        return context_shapes(self.eval_tasks, self.data.num_pairs, self.code_channels, weights=1)

    def run_words(self) -> list[str]:
        """The strings, the code and the depth in words."""
        code, model = self.code, self.model
        words = [*language_words(self.data), f"N{self.data.num_pairs}", code.kind, code.scale, f"d{code.dim}"]
        return [*words, f"L{model.num_layers}", f"pool{self.data.pool_seed}"]

    def shared_arrays(self) -> Mapping[str, np.ndarray]:
        """The draws of the training pool and, except for an autoencoder, the codes of its strings."""
        pool = pool_arrays(self.data)
        draws = {name: pool[name] for name in ("positives", "negatives")}
        if self.code.kind == "autoencoder":  # its codes come with the run that is required
            return draws
        from icl_lab.families.languages.codes import coded_pools

        return draws | {"codes": coded_pools(self.data, self.code).train}

    def hashed_as(self) -> Mapping[str, np.ndarray]:
        """The encoded strings: codes contain eigenvectors, whose last digits depend on the processor."""
        return {} if self.code.kind == "autoencoder" else {"codes": pool_arrays(self.data)["strings"]}

    def required_runs(self) -> list[AutoencoderConfig]:
        """The autoencoder whose code the run builds on."""
        code = self.code
        if code.kind != "autoencoder":
            return []
        return [autoencoder_of(self.data, code.autoencoder_dim, code.autoencoder_input)]


ADAM = {"b1": 0.9, "b2": 0.98}
LINEAR: dict[str, Any] = {
    "num_layers": 1,
    "batch_size": 1024,
    "steps": 5000,
    "lr": 3e-3,
    "grad_clip": 1.0,
    "schedule": "cosine",
} | ADAM
LINEAR |= {"init_scale": 0.05, "eval_every": 250}
SOFTMAX: dict[str, Any] = {
    "num_layers": 2,
    "num_heads": 4,
    "d_model": 32,
    "key_size": 32,
    "mlp_width": 64,
    "layer_norm": True,
}
SOFTMAX |= {"attention": ("softmax",), "init_scale": 1.0, "lr": 1e-3, "grad_clip": 1.0, "schedule": "cosine"} | ADAM
SOFTMAX |= {"warmup_steps": 200, "batch_size": 256, "steps": 4000, "eval_every": 250}
STRINGS: dict[str, Any] = {"code.kind": "autoencoder", "code.scale": "raw", "autoencoder_input": "raw_index"}
STRINGS |= {"negatives": "random_hash", "query_in_keys": True}
PUBLISHED: dict[str, Any] = {
    "schedule": "cosine_oscillation",
    "batch_size": 64,
    "lr": 1e-3,
    "init_scale": 1.0,
    "b2": 0.999,
    "grad_clip": 0.0,
}
PUBLISHED |= {"steps": 70_000, "eval_every": 1000}

MODELS: dict[str, dict[str, Preset]] = {
    "languages": {
        "default": Preset(LINEAR),
        "paper": Preset(LINEAR | {"steps": 20_000, "eval_every": 1000}),
        "published": Preset(LINEAR | STRINGS | PUBLISHED),
    },
    "languages_softmax": {
        "default": Preset(SOFTMAX),
        "paper": Preset(SOFTMAX | {"steps": 20_000, "eval_every": 1000}),
        "published": Preset(SOFTMAX | STRINGS),
    },
}


DEFAULT = LanguagesConfig()
FLAGS = (
    flag_of(DEFAULT, "data.num_pairs", text="labelled strings of a context, N"),
    flag_of(DEFAULT, "data.positive_share"),
    flag_of(DEFAULT, "code.kind", "code"),
    flag_of(DEFAULT, "code.scale", "code_scale", "scaling of the code's features"),
    flag_of(DEFAULT, "code.dim", "code_dim"),
    *LANGUAGE_FLAGS,
)
AXES = (
    *FLAGS,
    flag_of(DEFAULT, "model.num_layers", text="attention layers"),
    flag_of(DEFAULT, "training.lr"),
    flag_of(DEFAULT, "training.steps"),
)

FAMILY = Family(
    LanguagesConfig,
    MODELS,
    flags=(*FLAGS, *LANGUAGE_LISTS),
    axes=AXES,
    follows={"model.features": ""} | FOLLOWS,
    about={
        "languages": "membership in regular languages: linear attention on codes of strings",
        "languages_softmax": "the same: softmax attention and MLPs",
    },
)
