"""A grid of settings: the product of its axes is the planned points of a sweep, each with the config it means."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from configs.family import AUTO
from configs.overrides import resolve, set_values
from configs.presets import ARCHITECTURE
from configs.regression import RegressionConfig
from runners.flags import CONFIG_FLAGS, CONTEXT_FLAGS, CONTEXTS, DIVERSITY_FLAGS, preset_of_depth
from src.checks import ConfigError, require
from src.config import BY_DIFFICULTY, WITHOUT_SIGMA, ContextConfig

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


MOST_POINTS = 100_000  # of a plan; more are a slip of the finger, and no folder holds so many runs
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

    @property
    def size(self) -> int:
        """How many points it has, counted and not made."""
        return len(self.models) * len(self.seeds) * math.prod(len(values) for values in self.axes.values())

    def points(self) -> Iterator[RegressionConfig]:
        """The configs as asked for, the seed running fastest."""
        for model, *values in product(self.models, *self.axes.values()):
            point = dict(zip(self.axes, values, strict=True))
            config = preset_of_depth(model, "default", self.settings)
            set_values(config, self._seeds(self.seeds[0]))
            set_values(config, {AXES[axis]: value for axis, value in point.items() if value != AUTO})
            set_values(config, self.settings)
            with _named(model, point):
                resolved = resolve(config)
            for seed in self.seeds:  # a thousandfold faster than to resolve each
                with _named(model, point):
                    seeded = replace(resolved, **self._seeds(seed))
                yield seeded

    def _seeds(self, seed: int) -> dict[str, int]:
        """The fields of a seed, less those that are the same everywhere."""
        fields = {"data_seed": seed + self.data_offset, "init_seed": seed}
        return {name: value for name, value in fields.items() if name not in self.settings}


def check_number(grids: Sequence[Grid]) -> int:
    """How many points grids have together; `ConfigError` if these are more than can be planned."""
    number = sum(grid.size for grid in grids)
    require(number <= MOST_POINTS, f"the grid has {number} rows, and a plan at most {MOST_POINTS}; plan it in parts")
    return number


@contextmanager
def _named(model: str, point: Mapping[str, Any]) -> Iterator[None]:
    """An error says of which point it is."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{model} with {_in_words(point)}: {error}" if point else str(error)) from None


def _in_words(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{axis} {value}" for axis, value in point.items() if value != AUTO)


def canonical(config: RegressionConfig) -> RegressionConfig:
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
