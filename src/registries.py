"""The registries of named parts of a config, with the facts that are needed before JAX is imported.

Functions of built-in names stand in the modules that use them, under the same names; a plugin's stand in its entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from icl_lab.src.registry import Deferred, Registry, Selection

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
    """A kind of attention. weights(scores [B, H, R, N], key_size) -> weights [B, H, R, N]; `src.attn`.

    causal(scores [B, H, R, T], key_size, visible [1, 1, R, T], count [1, 1, R, 1]) -> weights [B, H, R, T], those of a
    decoder, in which a row sees the `visible` keys, `count` of them; weights of the others must be 0, and no other
    weight may depend on their scores.
    """

    weights: Function | None = None
    causal: Function | None = None


# what a baseline may know; none knows the query's label or the task
KNOWLEDGE: Mapping[str, str] = {
    "inputs": "the inputs of the context's pairs",
    "labels": "their labels",
    "query": "the query's input",
    "clean step": "step sizes or rates that are best on separate clean tasks",
    "tasks": "the distribution of tasks, and of the noise in their labels",
    "covariance": "the covariances of inputs and of tasks",
    "noise": "how pairs are corrupted at evaluation, but not which",
    "order": "the order and the placement of pairs at evaluation",
    "training": "the corruption, the order and the placement of pairs in training",
    "pool": "the tasks of the training pool",
    "languages": "the languages of the training",
}
PAIRS = ("inputs", "labels", "query")
# with which runs of its families a baseline is compared: all; in regression all, by `analysis.algorithm_distance`;
# those with corrupted or ordered contexts; those whose config names it
ALWAYS, ALGORITHM, CORRUPTED, NAMED = "always", "algorithm", "corrupted", "named"


class Baseline(NamedTuple):
    """A predictor that models are compared with: what it knows (of `KNOWLEDGE`) and where its functions stand.

    where: modules of `icl_lab`, one of a family, that have a function of the baseline's name (`baselines.registry`). Of
    a `NAMED` one it is predict(batch, config) -> [B], as a plugin's. pairs: "module:function" of (batch, config) that
    says how clean the pairs are, [B, N].
    """

    knows: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    compared: str = NAMED
    pairs: str = ""
    predict: Function | None = None


class Schedule(NamedTuple):
    """A learning rate over training. rate(lr, config, step) -> the learning rate of a step, from 0; `src.optimizer`."""

    rate: Function | None = None


MODEL = "tf"  # the name of what is compared, beside the baselines' names
REGRESSION, LANGUAGES, DIVERSITY = (
    *("families.regression.baselines", "families.languages.baselines"),
    "families.diversity.task",
)
BASELINES: Registry[Baseline] = Registry(
    "baseline",
    {
        "gd": Baseline((*PAIRS, "clean step"), (REGRESSION, LANGUAGES), ALWAYS),
        "gd_own_steps": Baseline((*PAIRS, "clean step"), (REGRESSION, LANGUAGES), ALGORITHM),
        "gd_plus_plus_paper": Baseline((*PAIRS, "clean step"), (REGRESSION,), ALGORITHM),
        "gd_plus_plus": Baseline((*PAIRS, "clean step"), (REGRESSION, LANGUAGES), ALGORITHM),
        "gd_plus_plus_own_rates": Baseline((*PAIRS, "clean step"), (REGRESSION,), ALGORITHM),
        "conjugate_gradients": Baseline(PAIRS, (REGRESSION,), ALGORITHM),
        "momentum": Baseline(PAIRS, (REGRESSION,), ALGORITHM),
        "chebyshev": Baseline(PAIRS, (REGRESSION,), ALGORITHM),
        "newton_schulz": Baseline(PAIRS, (REGRESSION,), ALGORITHM),
        "newton_schulz_identity": Baseline(PAIRS, (REGRESSION,), ALGORITHM),
        "ridge": Baseline((*PAIRS, "tasks"), (REGRESSION, LANGUAGES, DIVERSITY), ALWAYS),
        "zero": Baseline((), (REGRESSION,), ALWAYS),
        "gd_clean_step": Baseline((*PAIRS, "clean step"), (REGRESSION,), CORRUPTED),
        "gd_tuned_step": Baseline((*PAIRS, "tasks", "covariance", "noise"), (REGRESSION,), CORRUPTED),
        "linear_mmse": Baseline((*PAIRS, "tasks", "noise"), (REGRESSION,), CORRUPTED),
        "mask_bayes": Baseline(
            (*PAIRS, "tasks", "noise"), (REGRESSION,), CORRUPTED, "baselines.mask_bayes:clean_posterior"
        ),
        "gd_positions": Baseline((*PAIRS, "tasks", "covariance", "noise", "order"), (REGRESSION,), CORRUPTED),
        "gd_positions_trained": Baseline((*PAIRS, "tasks", "covariance", "training"), (REGRESSION,), CORRUPTED),
        "loo_gd": Baseline(("inputs", "labels", "clean step"), (), "", "baselines.gradient_descent:minus_gd_error"),
        "preconditioned_gd": Baseline((*PAIRS, "tasks", "covariance"), ("baselines.preconditioned",), NAMED),
        "gaussian_posterior": Baseline((*PAIRS, "tasks", "covariance"), ("baselines.linear_mmse",), NAMED),
        "mixture_posterior": Baseline((*PAIRS, "tasks"), ("baselines.mixture",), NAMED),
        "sparse_posterior": Baseline((*PAIRS, "tasks"), ("baselines.sparse",), NAMED),
        "discriminants": Baseline((*PAIRS, "tasks", "languages"), (LANGUAGES,), ALWAYS),
        "optimum": Baseline((*PAIRS, "tasks"), (LANGUAGES,), ALWAYS),
        "optimum_biased": Baseline((*PAIRS, "tasks"), (LANGUAGES,), ALWAYS),
        "logit": Baseline((*PAIRS, "tasks"), (LANGUAGES,), ALWAYS),
        "nearest": Baseline(PAIRS, (LANGUAGES,), ALWAYS),
        "majority": Baseline(("labels",), (LANGUAGES,), ALWAYS),
        "no_context": Baseline(("query", "tasks"), (LANGUAGES,), ALWAYS),
        "version_space": Baseline((*PAIRS, "languages"), ("baselines.classifiers",), ALWAYS),
        "any_language": Baseline(("query", "languages"), ("baselines.classifiers",), ALWAYS),
        "dmmse": Baseline((*PAIRS, "tasks", "pool"), (DIVERSITY,), ALWAYS),
        "laplace": Baseline((*PAIRS, "tasks"), (DIVERSITY,), ALWAYS),
        "mixture": Baseline((*PAIRS, "tasks"), (DIVERSITY,), ALWAYS),
        "sparse": Baseline((*PAIRS, "tasks"), (DIVERSITY,), ALWAYS),
    },
    reserved=(MODEL, "loss", "train", "eval", "test"),  # metrics and columns of a table begin with these
)
NAMED_BASELINES = Selection(BASELINES, lambda baseline: baseline.compared == NAMED)  # by a config
# A task distribution's own posterior mean has its name among these; columns with standard errors end in _se.
MEANS = (MODEL, "zero", *(name for name, baseline in BASELINES.items() if DIVERSITY in baseline.where))

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
    reserved=(*MEANS, *(f"{name}_se" for name in MEANS)),
)
ATTENTION_KINDS = Registry("attention", {"linear": AttentionKind(), "softmax": AttentionKind()})
SCHEDULES = Registry(
    "schedule",
    {name: Schedule() for name in ("constant", "cosine", "linear_up_down", "cosine_oscillation")},
    reserved=("triangle", "swing"),  # what the last two were called first
)
FUNCTION_CLASSES: Registry[Any] = Registry("function class", {})  # name -> a `FunctionClass`, of `families.functions`
for _module, _classes in {
    "linear": {
        **{"linear": "Linear", "noisy_linear": "NoisyLinear", "sparse_linear": "SparseLinear"},
        **{"sign_vector": "SignVector", "quadratic": "Quadratic"},
    },
    "smooth": {"relu_network": "ReluNetwork", "fourier": "Fourier"},
    "tree": {"decision_tree": "DecisionTree"},
    "labelled": {
        **{"linear_classification": "LinearClassification", "logistic_regression": "LogisticRegression"},
        **{"nearest_neighbour": "NearestNeighbour", "prototypes": "Prototypes"},
    },
    "boolean": {
        **{"conjunctions": "Conjunctions", "disjunctions": "Disjunctions", "parities": "Parities"},
        "majority": "Majority",
    },
    "mixtures": {
        **{"two_noise_levels": "TwoNoiseLevels", "regression_or_classification": "RegressionOrClassification"},
        "fourier_orders": "FourierOrders",
    },
}.items():
    for _name, _class in _classes.items():
        FUNCTION_CLASSES.build_in(_name, Deferred(f"icl_lab.families.functions.classes.{_module}", _class))
PURPOSES: Registry[int] = Registry("key purpose", {})  # name -> number; the built-in ones are `src.prng.Purpose`

ALL: tuple[Registry[Any], ...] = (
    *(ORDERINGS, NOISE_MODES, INPUT_DISTRIBUTIONS, TASK_DISTRIBUTIONS, ATTENTION_KINDS, SCHEDULES, BASELINES),
    *(FUNCTION_CLASSES, PURPOSES),
)
# field of a config -> where its word, or its words, are registered
FIELDS: Mapping[str, Registry[Any]] = {
    "baselines": BASELINES,
    "input_distribution": INPUT_DISTRIBUTIONS,
    "task_distribution": TASK_DISTRIBUTIONS,
    "attention": ATTENTION_KINDS,
    "ordering": ORDERINGS,
    "noise_mode": NOISE_MODES,
    "schedule": SCHEDULES,
    "kind": FUNCTION_CLASSES,
}

BY_DIFFICULTY = Selection(ORDERINGS, lambda ordering: ordering.by_difficulty)
ADDITIVE = Selection(NOISE_MODES, lambda mode: mode.additive)  # those that change nothing at sigma = 0
WITHOUT_SIGMA = Selection(NOISE_MODES, lambda mode: mode.ignores_sigma)  # runs that differ in sigma alone are one
BAYES_IS_RIDGE = Selection(TASK_DISTRIBUTIONS, lambda tasks: tasks.bayes == "ridge")
POSTERIOR_MEANS = Selection(TASK_DISTRIBUTIONS, lambda tasks: tasks.bayes == "own")
