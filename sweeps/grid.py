"""A grid of settings: the product of its axes is the planned points of a sweep, each with the config it means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from ml_collections import ConfigDict

from configs.overrides import AUTO, resolve, set_values
from configs.presets import ARCHITECTURE
from runners.flags import CONFIG_FLAGS, CONTEXT_FLAGS, CONTEXTS, DIVERSITY_FLAGS, preset_of_depth
from src.checks import ConfigError, require
from src.config import BY_DIFFICULTY, WITHOUT_SIGMA, ContextConfig, RunConfig

# axis -> config key: every ordering and noise flag of the runners, for both contexts, for training, for evaluation
CONTEXT_AXES = {
    f"{prefix}{flag}": f"{context}.{key}"
    for prefix, context in CONTEXTS.items()
    for flag, (key, *_) in CONTEXT_FLAGS.items()
} | {"difficulty": "base.difficulty"}
# and of task diversity: the pool, the recipe, the capacity
DIVERSITY_AXES = {
    **{flag: key for flag, (key, *_) in DIVERSITY_FLAGS.items()},
    **{flag: CONFIG_FLAGS[flag][0] for flag in ("batch_size", "steps", "lr", "num_layers", "num_heads")},
    "embed_size": "model.embed_size",
    "mlp_width": "model.mlp_width",
}
AXES = CONTEXT_AXES | DIVERSITY_AXES


# settings that would reach nothing, or make rows that cannot be told apart -> what to use instead
RESERVED = {"preset": "; every model has its default one", "data_seed": ": --seeds", "name": ": --models"}


@dataclass(frozen=True)
class Grid:
    """Models times seeds times the values of each axis, a key of `AXES`; "auto" leaves the model's own value.

    `settings` are config fields that are the same everywhere, by key, as text or values. With a `data_offset` tasks
    and data are those of the seed that much further on, while the initialisation is the seed's own.
    """

    models: Sequence[str] = ("lsa1",)
    axes: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    seeds: Sequence[int] = (0,)
    settings: Mapping[str, Any] = field(default_factory=dict)
    data_offset: int = 0

    def __post_init__(self) -> None:
        for model in self.models:
            require(model in ARCHITECTURE, f"unknown model {model!r}; known are {', '.join(ARCHITECTURE)}")
        for name, values in [("models", self.models), ("seeds", self.seeds), *self.axes.items()]:
            require(len(values) > 0, f"{name} is an empty list; it needs at least one value")
        for name, instead in RESERVED.items():
            require(name not in self.settings, f"{name} is no field to set in a sweep{instead}")

    def points(self) -> Iterator[RunConfig]:
        """The configs as asked for, the seed running fastest."""
        for model, *values, seed in product(self.models, *self.axes.values(), self.seeds):
            config = preset_of_depth(model, "default", self.settings)
            set_values(config, {"data_seed": seed + self.data_offset, "init_seed": seed})
            yield _resolved(config, model, dict(zip(self.axes, values, strict=True)), self.settings)


def _resolved(config: ConfigDict, model: str, point: Mapping[str, Any], settings: Mapping[str, Any]) -> RunConfig:
    set_values(config, {AXES[axis]: value for axis, value in point.items() if value != AUTO})
    set_values(config, settings)
    try:
        return resolve(config)
    except ConfigError as error:
        raise ConfigError(f"{model} with {_in_words(point)}: {error}" if point else str(error)) from None


def _in_words(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{axis} {value}" for axis, value in point.items() if value != AUTO)


def canonical(config: RunConfig) -> RunConfig:
    """The config with the same meaning that all its synonyms share, so that they are trained once.

    Noise that hits nothing or adds nothing is clean; where no pair differs from another, placement is mixed; sigma
    counts for label noise alone, difficulty for the orderings that sort by it. What the user asked of both contexts is
    what holds at evaluation.
    """
    train, evaluation = canonical_context(config.train), canonical_context(config.eval)
    return replace(config, preset="default", base=evaluation, train=train, eval=evaluation)


def canonical_context(context: ContextConfig) -> ContextConfig:
    """A context's own canonical form."""
    if context.noise_p == 1:  # all pairs are hit
        context = replace(context, noise_placement="mixed")
    as_drawn = context.ordering == "random" or context.noise_placement == "mixed"  # else placement undoes an order
    silent = context.noise_p == 0 or (context.adds_nothing and as_drawn)
    if context.noise_mode == "clean" or silent:
        context = ContextConfig(context.ordering)  # without noisy labels, difficulty is the error of gradient descent
    if context.noise_mode in WITHOUT_SIGMA:
        context = replace(context, noise_sigma=0.0)
    if context.ordering not in BY_DIFFICULTY:
        context = replace(context, difficulty="gd_error")
    return context
