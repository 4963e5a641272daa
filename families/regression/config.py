"""Linear regression in context: a transformer compared with gradient descent, GD++ and ridge, for any order and noise.

The presets: `paper` follows the published code of von Oswald et al. 2023; where paper and code disagree, the published
curves follow the code (inputs U(-1/2, 1/2), loss with the 1/2, an initial *variance* of .002/K over fan-in). `default`
is the same for lsa1; for twolayer it starts from larger weights on smaller batches, with which its
loss is soon below .41. `published` adds what the code's stacks do otherwise (docs/fidelity.md): it counts where there
are layer norms, MLPs or interleaved tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from icl_lab.families import own_config
from icl_lab.families.own_config import OwnDataRun, with_file
from icl_lab.lab.configs.family import (
    AUTO,
    PRESETS,
    SORTED_PAIR,
    Family,
    Flag,
    Preset,
    StackRun,
    flag_of,
    layers_seconds,
)
from icl_lab.lab.flag_types import COUNT, Either, number
from icl_lab.src.checks import require
from icl_lab.src.config import (
    ContextConfig,
    ModelConfig,
    StackConfig,
)
from icl_lab.src.data_config import DataConfig
from icl_lab.src.fields import field, meaning_of, meanings
from icl_lab.src.registries import BY_DIFFICULTY, NAMED_BASELINES, WITHOUT_SIGMA
from icl_lab.src.words import did_you_mean


@dataclass(frozen=True)
class RegressionConfig(StackRun, OwnDataRun):
    """A run of the family: `base` is what the user asked of both contexts; `train` and `eval` are the ones in force.

    Gradient descent's step size is searched on `step_size_tasks` clean tasks. `baselines` are registered
    predictors whose losses stand in the summary too.
    """

    family: ClassVar[str] = "regression"

    name: str = "lsa1"
    step_size_tasks: int = field(65_536, "clean tasks on which gradient descent's step size is tuned", least=2)
    baselines: tuple[str, ...] = field((), "further baselines on the test set", names=NAMED_BASELINES, checked=False)
    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    base: ContextConfig = field(ContextConfig(), "training and evaluation contexts")
    train: ContextConfig = field(ContextConfig(), "training contexts")
    eval: ContextConfig = field(ContextConfig(), "evaluation contexts")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.baselines:
            others = f"; known are {', '.join(NAMED_BASELINES)}, and --plugin FILE brings others"
            near = did_you_mean(name, NAMED_BASELINES)
            require(name in NAMED_BASELINES, f"baselines has {name!r}{near or others}")
        sorts = [context.ordering for context in (self.train, self.eval) if context.ordering in BY_DIFFICULTY]
        if sorts:
            self.data.check_moments(sorts[0])
        if "random_pairs" in (self.train.noise_mode, self.eval.noise_mode):
            self.data.check_drawn("noise_mode random_pairs")
            alike = self.data.equal_inputs and self.data.equal_tasks and self.data.task_distribution == "gaussian"
            require(
                alike,
                "noise_mode random_pairs needs linear labels, isotropic inputs and isotropic Gaussian tasks of mean 0",
            )

    @property
    def tasks_at_once(self) -> dict[str, int]:
        """The numbers of tasks that are in memory at once, by name."""
        return super().tasks_at_once | {"step_size_tasks": self.step_size_tasks}

    @classmethod
    def complete(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Unset fields of a context come from `base`, unset difficulties from the noise mode.

        The difficulty of a context with corrupted labels is `residual`, else `gd_error`; by configuration, so it is the
        same for every batch. D, N and the sizes of the sets are those of a data file, if there is one.
        """
        values = with_file(values, DataConfig, cls.sequences) if values["data"]["file"] else values
        base, completed = values["base"], {}
        for name in CONTEXTS.values():
            context = {field: base[field] if value is None else value for field, value in values[name].items()}
            if context["difficulty"] is None:
                clean = context["noise_mode"] == ContextConfig().noise_mode
                context["difficulty"] = "gd_error" if clean else "residual"
            completed[name] = context
        return values | completed

    def canonical(self) -> Self:
        """The config that represents all equivalent configs, so that they are trained once.

        Noise that hits nothing or adds nothing is clean; where no pair differs from another, placement is mixed; sigma
        counts for label noise alone, difficulty for the orderings that sort by it. What the user asked of both contexts
        is what holds at evaluation.
        """
        train, evaluation = canonical_context(self.train), canonical_context(self.eval)
        return replace(self, base=evaluation, train=train, eval=evaluation)

    def as_evaluated(self) -> Self:
        """The config whose training contexts are ordered and corrupted as those of its evaluation."""
        self.check_drawn()
        return replace(self, train=self.eval)

    def run_words(self) -> list[str]:
        """The contexts in words: that of the evaluation and, if it is another, that of the training."""
        evaluated, trained = in_words(self.eval), in_words(self.train)
        return [evaluated, *(["trained", trained] if trained != evaluated else [])]

    def task_seconds(self) -> float:
        """What a step of one task costs; sorting its pairs is a part of it."""
        seen, pairs = self.architecture, self.data.num_pairs
        sorting = SORTED_PAIR * pairs if self.train.ordering != "random" else 0.0
        return layers_seconds(seen.num_rows, seen.width, self.model.num_layers) + sorting


def gd_steps(model: StackConfig) -> int:
    """How many steps of gradient descent a model is compared with: one for each linear layer.

    A softmax layer below linear ones copies; without any linear layer every layer counts.
    """
    linear = sum(model.kind(layer) == "linear" for layer in range(model.num_layers))
    return linear or model.num_layers


# --- presets ---


def concatenated(depth: int, recurrent: bool) -> dict[str, float]:
    """Learning rate and clips of layers on concatenated tokens."""
    if depth <= 3:
        return {"lr": 1e-3, "grad_clip": 1e-3 if depth <= 2 else 10.0, "activation_clip": 0.0}
    return {"lr": 5e-4, "grad_clip": 10.0, "activation_clip": 10.0}


def interleaved(depth: int, recurrent: bool) -> dict[str, float]:
    """The same on interleaved tokens."""
    return concatenated(max(depth, 3), recurrent)


def lsa1(depth: int, recurrent: bool) -> dict[str, float]:
    """The same of lsa1, which beyond one layer takes longer unless the layers share their weights."""
    longer = {"steps": 50_000} if depth > 1 and not recurrent else {}
    return concatenated(depth, recurrent) | longer


def published(by_depth: Callable[[int, bool], Mapping[str, Any]]) -> Callable[[int, bool], dict[str, Any]]:
    """The same, with the norms and MLPs of the published stacks of several layers without weight sharing."""

    def values(depth: int, recurrent: bool) -> dict[str, Any]:
        own_weights = depth > 1 and not recurrent
        return {**by_depth(depth, recurrent), "first_norm": not own_weights, "shared_mlp": own_weights}

    return values


LSA1 = {"tokens": "concatenated", "attention": ("linear",), "num_layers": 1, "b1": 0.9, "b2": 0.98}
LSA1 |= {"batch_size": 2048, "init_scale": 0.002, "steps": 5000}
TWOLAYER = {"tokens": "interleaved", "attention": ("softmax", "linear"), "num_layers": 2, "pos_enc_size": 10}
TWOLAYER |= {"b1": 0.9, "b2": 0.98}
PAPER = {"batch_size": 2048, "init_scale": 0.02, "steps": 10_000}
PUBLISHED = {"mlp_bias": False, "clip_before_mlp": True}  # the code's MLP has biases where attention has
PUBLISHED_TOKENS = {"tokens": "interleaved_shared", "prediction_channel": "last"}

MODELS: dict[str, dict[str, Preset]] = {
    "lsa1": {name: Preset(LSA1 | {"pos_enc_size": 0}, lsa1) for name in PRESETS}
    | {"published": Preset(LSA1 | {"pos_enc_size": 0} | PUBLISHED, published(lsa1))},
    "lsa1_pe": {name: Preset(LSA1 | {"pos_enc_size": 20}, lsa1) for name in PRESETS},
    "twolayer": {
        "default": Preset(TWOLAYER | {"batch_size": 512, "init_scale": 0.5, "steps": 5000}, interleaved),
        "paper": Preset(TWOLAYER | PAPER, interleaved),
        "published": Preset(TWOLAYER | PAPER | PUBLISHED | PUBLISHED_TOKENS, published(interleaved)),
    },
}


# --- flags and axes ---

CONTEXTS = {"": "base", "train_": "train", "eval_": "eval"}
OTHER_NAMES = {"noise_p": ("p",), "noise_sigma": ("sigma",), "noise_placement": ("placement",)}  # of flags, in sweeps
OF_A_CONTEXT = ("ordering", "noise_mode", "noise_p", "noise_sigma", "noise_placement")


def _context_flag(prefix: str, name: str) -> Flag:
    """The flag of a field of the contexts, of both or with a prefix of one alone."""
    section, said = CONTEXTS[prefix], dict(meanings(ContextConfig()))[name]
    text = re.sub(r" (in |of )?{}", "", said.text)
    text = f"{text}, in {meaning_of(RegressionConfig, section).text} only" if prefix else text
    other = () if prefix else OTHER_NAMES.get(name, ())
    return Flag(
        prefix + name, f"{section}.{name}", str if said.names else NUMBER_OR_AUTO, text, said.names or None, AUTO, other
    )


NUMBER_OR_AUTO = Either((AUTO,), AUTO, number)
NUM_PAIRS = flag_of(DataConfig(), "data.num_pairs", read=COUNT, text="number of pairs in a context, N")
POSITIONAL_ENCODING = flag_of(
    ModelConfig(), "model.pos_enc_size", text="size of the sinusoidal positional encoding concatenated to each token"
)
DIFFICULTY = _context_flag("", "difficulty")
CONTEXT_FLAGS = tuple(_context_flag(prefix, name) for prefix in CONTEXTS for name in OF_A_CONTEXT)


# --- contexts in words, and equivalent ones ---


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


def in_words(context: ContextConfig) -> str:
    """A context's settings in a word."""
    noise = [context.noise_mode, f"p{context.noise_p:g}", *([f"s{context.noise_sigma:g}"] * (context.noise_sigma > 0))]
    placement = [context.noise_placement] * (context.noise_placement != "mixed")
    return "_".join([context.ordering, *(noise + placement) * (context.noise_mode != "clean")])


FAMILY = Family(
    RegressionConfig,
    MODELS,
    flags=(*own_config.FLAGS, NUM_PAIRS, POSITIONAL_ENCODING, DIFFICULTY, *CONTEXT_FLAGS),
    axes=(*CONTEXT_FLAGS, DIFFICULTY),
    follows={"base.difficulty": AUTO, "train": "as base", "eval": "as base"},
    training_ignores={"base": ContextConfig(), "eval": ContextConfig(), "step_size_tasks": 2, "baselines": ()},
    batched={"train.noise_p": 0.0, "train.noise_sigma": 0.0},
    stack=True,
    about={
        "lsa1": "linear self-attention on tokens (x, y)",
        "lsa1_pe": "the same, with positional encodings concatenated to the tokens",
        "twolayer": "interleaved tokens: a softmax layer copies, a linear one does gradient descent",
    },
)
