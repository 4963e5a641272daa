"""The registries of named parts of a config, with the facts that are needed before JAX is imported.

Functions of built-in names stand in the modules that use them, under the same names; a plugin's stand in its entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from icl_lab.src.registry import Registry, Selection

Function = Callable[..., Any]


class Ordering(NamedTuple):
    """An order of a context's pairs. order(batch, difficulty) -> index [B, N]; `src.ordering`.

    Only an ordering that is `by_difficulty` is given sort keys; others get an empty tuple.
    """

    by_difficulty: bool = False
    order: Function | None = None


class NoiseMode(NamedTuple):
    """A corruption of pairs. corrupt(key, batch, hit, sigma, data) -> (batch, label error); `src.noise`.

    `additive`: it changes nothing at sigma = 0. `ignores_sigma`: runs that differ in sigma alone are one.
    `linear_mmse` and `mask_bayes`: what `baselines.linear_mmse` and `baselines.mask_bayes` call for this mode.
    """

    additive: bool = False
    ignores_sigma: bool = False
    corrupt: Function | None = None
    linear_mmse: Function | None = None
    mask_bayes: Function | None = None


class InputDistribution(NamedTuple):
    """A distribution of inputs. sample(key, input_range, shape) -> x; `src.inputs`.

    `variance` and `fourth` are even moments of a coordinate as functions of `input_range`; None where there is none, or
    none is known. Closed forms take coordinates to be independent and symmetric about 0.
    """

    variance: Callable[[float], float] | None = None
    fourth: Callable[[float], float] | None = None
    sample: Function | None = None


class TaskDistribution(NamedTuple):
    """A distribution of tasks. sample(key, dim) -> w [D]; `src.sequences`.

    `variance` is that of a coordinate, of `weight_scale` and the dimension, or None where it is not known; ridge
    regression is made from it. `bayes` says what the posterior mean is: "ridge", "own", which is
    posterior_mean(batch, config) -> predictions [B, K] (`families.diversity.task`), or "" if unknown. A dimension below
    `least_dim` is refused. `uncorrelated`: coordinates are known to have mean 0, equal variance and no correlation.
    """

    variance: Callable[[float, int], float] | None = None
    bayes: str = ""
    sample: Function | None = None
    posterior_mean: Function | None = None
    least_dim: int = 1
    uncorrelated: bool = False


class AttentionKind(NamedTuple):
    """A kind of attention. weights(scores [B, H, R, N], key_size) -> weights [B, H, R, N]; `src.attn`."""

    weights: Function | None = None


class Opponent(NamedTuple):
    """A baseline that a config names. predict(batch, config) -> [B]; `baselines.opponents` has the built-in ones."""

    predict: Function | None = None


class Schedule(NamedTuple):
    """A learning rate over training. rate(lr, config, step) -> the learning rate of a step, from 0; `src.optimizer`."""

    rate: Function | None = None


OTHER_LOSSES = (
    *("tf", "gd", "gd_plus_plus", "ridge", "zero", "gd_clean_step", "gd_tuned_step", "linear_mmse", "mask_bayes"),
    *("gd_positions", "gd_positions_trained"),
    *("loss", "train", "eval", "test"),  # metrics and columns of a table begin with these
)
# others that `analysis.algorithms` compares with
OTHER_ALGORITHMS = (
    *("gd_own_steps", "gd_plus_plus_paper", "gd_plus_plus_own_rates", "conjugate_gradients", "momentum", "chebyshev"),
    *("newton_schulz", "newton_schulz_identity"),
)
# A distribution's own posterior mean has its name among these; columns with its standard errors end in _se.
OTHER_MEANS = ("tf", "ridge", "dmmse", "zero")

ORDERINGS = Registry(
    "ordering",
    {
        "random": Ordering(),
        "smallnorm2largenorm": Ordering(),
        "easy2hard": Ordering(by_difficulty=True),
        "hard2easy": Ordering(by_difficulty=True),
    },
)
NOISE_MODES = Registry(
    "noise mode",
    {
        "clean": NoiseMode(ignores_sigma=True),
        "label_noise": NoiseMode(additive=True),
        "random_pairs": NoiseMode(ignores_sigma=True),
    },
)
INPUT_DISTRIBUTIONS = Registry(
    "input distribution",
    {
        "uniform": InputDistribution(lambda width: width**2 / 12, lambda width: width**4 / 80),
        "gaussian": InputDistribution(lambda std: std**2, lambda std: 3 * std**4),
    },
)
TASK_DISTRIBUTIONS = Registry(
    "task distribution",
    {
        "gaussian": TaskDistribution(lambda scale, dim: scale**2, bayes="ridge", uncorrelated=True),
        "laplace": TaskDistribution(lambda scale, dim: scale**2, bayes="own", uncorrelated=True),
        "sphere": TaskDistribution(lambda scale, dim: scale**2 / dim, uncorrelated=True),
        "mixture": TaskDistribution(lambda scale, dim: scale**2 * (1 / dim + 1 / 64), bayes="own", least_dim=2),
        "sparse": TaskDistribution(lambda scale, dim: scale**2, bayes="own", uncorrelated=True),
    },
    reserved=(*OTHER_MEANS, *(f"{name}_se" for name in (*OTHER_MEANS, "laplace", "mixture", "sparse"))),
)
ATTENTION_KINDS = Registry("attention", {"linear": AttentionKind(), "softmax": AttentionKind()})
SCHEDULES = Registry(
    "schedule",
    {name: Schedule() for name in ("constant", "cosine", "linear_up_down", "cosine_oscillation")},
    reserved=("triangle", "swing"),  # what the last two were called first
)
# Additional to the baselines that every run is compared with; a config names them.
OPPONENTS: Registry[Opponent] = Registry(
    "opponent",
    dict.fromkeys(("preconditioned_gd", "gaussian_posterior", "mixture_posterior", "sparse_posterior"), Opponent()),
    reserved=(*OTHER_LOSSES, *OTHER_ALGORITHMS),
)
PURPOSES: Registry[int] = Registry("key purpose", {})  # name -> number; the built-in ones are `src.prng.Purpose`

ALL: tuple[Registry[Any], ...] = (
    *(ORDERINGS, NOISE_MODES, INPUT_DISTRIBUTIONS, TASK_DISTRIBUTIONS, ATTENTION_KINDS, SCHEDULES, OPPONENTS),
    PURPOSES,
)
# field of a config -> where its word, or its words, are registered
FIELDS: Mapping[str, Registry[Any]] = {
    "opponents": OPPONENTS,
    "input_distribution": INPUT_DISTRIBUTIONS,
    "task_distribution": TASK_DISTRIBUTIONS,
    "attention": ATTENTION_KINDS,
    "ordering": ORDERINGS,
    "noise_mode": NOISE_MODES,
    "schedule": SCHEDULES,
}

BY_DIFFICULTY = Selection(ORDERINGS, lambda ordering: ordering.by_difficulty)
ADDITIVE = Selection(NOISE_MODES, lambda mode: mode.additive)  # those that change nothing at sigma = 0
WITHOUT_SIGMA = Selection(NOISE_MODES, lambda mode: mode.ignores_sigma)  # runs that differ in sigma alone are one
BAYES_IS_RIDGE = Selection(TASK_DISTRIBUTIONS, lambda tasks: tasks.bayes == "ridge")
POSTERIOR_MEANS = Selection(TASK_DISTRIBUTIONS, lambda tasks: tasks.bayes == "own")
