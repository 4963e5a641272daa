"""Linear regression in context: a transformer compared with gradient descent, GD++ and ridge, for any order and noise.

The presets: `paper` follows the published code of von Oswald et al. 2023; where paper and code disagree, the published
curves follow the code (inputs U(-1/2, 1/2), loss with the 1/2, an initial *variance* of .002/K over fan-in). `default`
is the same for lsa1; for twolayer it starts from larger weights on smaller batches, which ends the plateau at
.41 early. `published` adds what the code's stacks do otherwise (docs/fidelity.md): it counts where there are layer
norms, MLPs or interleaved tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from icl_lab.lab.configs import columns
from icl_lab.lab.configs.family import (
    AUTO,
    PRESETS,
    SORTED_PAIR,
    Columns,
    Criterion,
    Curve,
    Family,
    Flag,
    Meaning,
    NamedLoss,
    Panel,
    Preset,
    Results,
    layers_seconds,
)
from icl_lab.lab.configs.run import RunConfig
from icl_lab.lab.flag_types import COUNT, Either, number
from icl_lab.src import loss_conventions
from icl_lab.src.checks import require, sizes
from icl_lab.src.config import (
    DIFFICULTIES,
    PLACEMENTS,
    PREDICTION_CHANNELS,
    TOKENS,
    Architecture,
    ContextConfig,
    ModelConfig,
)
from icl_lab.src.data_config import AXES, QUERY_COVARIANCES, SPECTRA, TASK_COVARIANCES, TEACHERS, DataConfig
from icl_lab.src.registries import BY_DIFFICULTY, NOISE_MODES, OPPONENTS, ORDERINGS, TASK_DISTRIBUTIONS, WITHOUT_SIGMA

ALIGNED = 0.6  # cosine with gradient descent's sensitivities: .1 to .5 on the plateau, above .9 once it is left
GAIN = 0.9  # of what one step of gradient descent gains over predicting zero: at most .5 on the plateau


@dataclass(frozen=True)
class RegressionConfig(RunConfig):
    """A run of the family: `base` is what the user asked of both contexts; `train` and `eval` are the ones in force.

    Gradient descent's step size is searched on `step_size_tasks` clean tasks. `opponents` are registered predictors
    whose losses stand in the summary too.
    """

    family: ClassVar[str] = "regression"

    name: str = "lsa1"
    step_size_tasks: int = 65_536
    opponents: tuple[str, ...] = ()
    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    base: ContextConfig = ContextConfig()
    train: ContextConfig = ContextConfig()
    eval: ContextConfig = ContextConfig()

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes(self, "step_size_tasks", least=2)
        for opponent in self.opponents:
            require(
                opponent in OPPONENTS,
                f"opponents has {opponent!r}; known are {', '.join(OPPONENTS)}, and --plugin FILE brings others",
            )
        self.architecture.check(self.tasks_at_once)
        sorts = [context.ordering for context in (self.train, self.eval) if context.ordering in BY_DIFFICULTY]
        if sorts:
            self.data.check_moments(sorts[0])
        if "random_pairs" in (self.train.noise_mode, self.eval.noise_mode):
            alike = self.data.equal_inputs and self.data.equal_tasks and self.data.task_distribution == "gaussian"
            require(
                alike, "noise_mode random_pairs draws pairs of linear labels, isotropic inputs and Gaussian tasks alone"
            )

    @property
    def tasks_at_once(self) -> dict[str, int]:
        """The numbers of tasks that are in memory at once, by name."""
        return super().tasks_at_once | {"step_size_tasks": self.step_size_tasks}

    @property
    def architecture(self) -> Architecture[ModelConfig]:
        """The model and the contexts it sees."""
        return Architecture(self.model, self.data.dim, self.data.num_pairs)


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
WHERE = {"base": "both contexts", "train": "training contexts", "eval": "evaluation contexts"}
# flag -> (field of a context, its values, what it is, other names in sweeps)
OF_A_CONTEXT: dict[str, tuple[Iterable[str] | None, str, tuple[str, ...]]] = {
    "ordering": (ORDERINGS, "order of the pairs", ()),
    "noise_mode": (NOISE_MODES, "how pairs are corrupted", ()),
    "noise_p": (None, "share of pairs hit", ("p",)),
    "noise_sigma": (None, "standard deviation of label noise", ("sigma",)),
    "noise_placement": (PLACEMENTS, "where corrupted pairs stand", ("placement",)),
}


def _context_flag(prefix: str, field: str) -> Flag:
    choices, text, short = OF_A_CONTEXT[field]
    text = f"{text}, in {WHERE[CONTEXTS[prefix]]} alone" if prefix else text
    read, key = (str if choices else NUMBER_OR_AUTO), f"{CONTEXTS[prefix]}.{field}"
    return Flag(prefix + field, key, read, text, choices, AUTO, () if prefix else short)


NUMBER_OR_AUTO = Either((AUTO,), AUTO, number)
CODE = Flag("pos_enc_size", "model.pos_enc_size", int, "size of the sinusoidal code concatenated to each token")
DIFFICULTY = Flag("difficulty", "base.difficulty", str, "what easy2hard and hard2easy sort by", DIFFICULTIES, AUTO)
CONTEXT_FLAGS = tuple(_context_flag(prefix, field) for prefix in CONTEXTS for field in OF_A_CONTEXT)
OPTIONS = (
    Flag("save_attention", "", bool, "capture attention at the end"),
    Flag("attention_batch", "", COUNT, "tasks to capture attention of", default=512),
)

MEANINGS_OF_A_CONTEXT: dict[str, tuple[str, Iterable[str]]] = {
    "ordering": ("order of the pairs in {}", ORDERINGS),
    "difficulty": ("what easy2hard and hard2easy sort {} by", DIFFICULTIES),
    "noise_mode": ("how pairs of {} are corrupted", NOISE_MODES),
    "noise_p": ("share of pairs hit in {}", ()),
    "noise_sigma": ("standard deviation of label noise in {}", ()),
    "noise_placement": ("where corrupted pairs stand in {}", PLACEMENTS),
}
MEANINGS: dict[str, Meaning] = {
    "step_size_tasks": Meaning("clean tasks by which gradient descent's step size is chosen"),
    "opponents": Meaning("further predictors on the test set", OPPONENTS),
    "data.num_distractors": Meaning("labels of a context replaced by N(0, 1)"),
    "data.spectrum": Meaning("eigenvalues of the inputs' covariance", SPECTRA),
    "data.spectrum_exponent": Meaning("power_law: eigenvalue i is i to minus this"),
    "data.condition_number": Meaning("log_spaced, log_uniform: largest eigenvalue, 1, over the smallest"),
    "data.eigenvalues": Meaning("given: one for each dimension"),
    "data.axes": Meaning("where the eigenvalues stand; rotated: in axes drawn for each context", AXES),
    "data.exact_covariance": Meaning("a context's X^T X / N is its covariance, not on average alone"),
    "data.query_covariance": Meaning("covariance of the queries", QUERY_COVARIANCES),
    "data.task_distribution": Meaning("distribution of the tasks", TASK_DISTRIBUTIONS),
    "data.task_covariance": Meaning("covariance of the tasks: that of the inputs, or its inverse", TASK_COVARIANCES),
    "data.task_mean": Meaning("mean of each coordinate of a task"),
    "data.teacher": Meaning("function of w.x that labels are", TEACHERS),
    "model.tokens": Meaning("what a token holds; shared: the label in the last channel of x", TOKENS),
    "model.prediction_channel": Meaning("channel of the query's row that is read", PREDICTION_CHANNELS),
    "model.pos_enc_size": Meaning("channels of the sinusoidal code concatenated to each token"),
    **{
        f"{context}.{field}": Meaning(text.format(words), names)
        for context, words in WHERE.items()
        for field, (text, names) in MEANINGS_OF_A_CONTEXT.items()
    },
}


def complete(values: dict[str, Any]) -> dict[str, Any]:
    """Unset fields of a context come from `base`, unset difficulties from the noise mode.

    The difficulty of a context with corrupted labels is `residual`, else `gd_error`; by configuration, so it is the
    same for every batch.
    """
    base, completed = values["base"], {}
    for name in CONTEXTS.values():
        context = {field: base[field] if value is None else value for field, value in values[name].items()}
        if context["difficulty"] is None:
            context["difficulty"] = "gd_error" if context["noise_mode"] == ContextConfig().noise_mode else "residual"
        completed[name] = context
    return values | completed


# --- cells of a sweep ---


def canonical(config: RegressionConfig) -> RegressionConfig:
    """The config that represents all equivalent configs, so that they are trained once.

    Noise that hits nothing or adds nothing is clean; where no pair differs from another, placement is mixed; sigma
    counts for label noise alone, difficulty for the orderings that sort by it. What the user asked of both contexts is
    what holds at evaluation.
    """
    train, evaluation = canonical_context(config.train), canonical_context(config.eval)
    return replace(config, base=evaluation, train=train, eval=evaluation)


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


def run_words(config: RegressionConfig) -> list[str]:
    """The contexts in words: that of the evaluation and, if it is another, that of the training."""
    evaluated, trained = in_words(config.eval), in_words(config.train)
    return [evaluated, *(["trained", trained] if trained != evaluated else [])]


def in_words(context: ContextConfig) -> str:
    """A context's settings in a word."""
    noise = [context.noise_mode, f"p{context.noise_p:g}", *([f"s{context.noise_sigma:g}"] * (context.noise_sigma > 0))]
    placement = [context.noise_placement] * (context.noise_placement != "mixed")
    return "_".join([context.ordering, *(noise + placement) * (context.noise_mode != "clean")])


# --- columns of a table ---


def _settings(context: ContextConfig) -> dict[str, Any]:
    """What is in force: without noise, p and sigma are 0 whatever was asked for the other context."""
    clean = context.noise_mode == "clean"
    return {
        "ordering": context.ordering,
        "noise_mode": context.noise_mode,
        "p": 0.0 if clean else context.noise_p,
        "sigma": 0.0 if clean else context.noise_sigma,
        "placement": context.noise_placement,
        "difficulty": context.difficulty,
    }


def _setting(context: str, name: str) -> Callable[[RegressionConfig], Any]:
    return lambda config: _settings(getattr(config, context))[name]


IN_FORCE = tuple(_settings(ContextConfig()))
SETTINGS: dict[str, Callable[[RegressionConfig], Any]] = {
    **{f"{context}_{name}": _setting(context, name) for context in ("train", "eval") for name in IN_FORCE},
    "steps": lambda config: config.training.steps,
}


def _not_defined(results: Results) -> str | None:
    """Which comparators and detectors have no value, and why."""
    parts = {**results["separation"].get("detectors", {}), **results["comparators"]}
    reasons = {name: part["reason"] for name, part in parts.items() if isinstance(part, Mapping) and "reason" in part}
    return "; ".join(f"{name}: {reason}" for name, reason in reasons.items()) or None


def _at(*path: Any) -> Callable[[Results], Any]:
    return columns.at(*path)


def _scaled(alpha: float, name: str) -> Callable[[Results], Any]:
    return lambda results: {row["alpha"]: row for row in results["ood"]}[alpha][name]


def _score(whose: str, score: str) -> Callable[[Results], Any]:
    """A score's AUROC: gradient descent's; the model's influence; or of its last layer's heads, their mean."""
    if whose:
        return _at("separation", "gd", score, "auroc")
    return _at("separation", score, "auroc") if score == "influence" else _of_layer(-1, score)


def _of_layer(layer: int, score: str) -> Callable[[Results], float | None]:
    def value(results: Results) -> float | None:
        heads = results["separation"]["layers"][layer]["heads"]
        return columns.mean([head["scores"][score]["auroc"] for head in heads])

    return value


def gain(results: Results) -> float | None:
    """(l_0 - l) / (l_0 - l_1): what a model gains over predicting zero, over what one step of gradient descent gains.

    l, l_0 and l_1 are the losses of the model, of zero and of `families.regression.task.references` on the same test
    tasks. None where one is unknown.
    """
    step = results["one_step"]
    model, zero, one = results["headline"]["tf_loss"], step["zero_loss"], step["loss"]
    return None if None in (model, zero, one) else columns.ratio(zero - model, zero - one)


SCORES = ("influence", "attention", "abs_attention", "contribution", "abs_contribution")
OF_INFLUENCE = ("auroc_raw", "auroc_position")
DETECTORS = ("mask_bayes", "loo_gd")  # positive controls
FIRST: dict[str, Callable[[Results], Any]] = {
    "test_mse": columns.doubled("headline", "tf_loss"),
    "align_cos": _at("alignment", "align_cos"),
    "align_l2": _at("alignment", "l2_pred_diff"),
    "auroc": _at("separation", "abs_influence", "auroc"),
    "ood_alpha3": _scaled(3.0, "test_mse"),
}
POSITION_WEIGHTED = ("gd_positions", "gd_positions_trained")  # runs of earlier versions lack them
MEASURED: dict[str, Callable[[Results], Any]] = {
    "trained": columns.trained,
    "test_gain": lambda results: gain(results),
    "not_defined": _not_defined,
    "test_loss": _at("headline", "tf_loss"),
    "test_loss_se": _at("headline", "tf_loss_se"),
    "gd_mse": columns.doubled("headline", "gd_loss"),
    "test_gd_loss": _at("headline", "gd_loss"),
    "test_loss_ratio": _at("headline", "loss_ratio"),
    "test_loss_ratio_se": _at("headline", "loss_ratio_se"),
    "test_ridge_loss": _at("headline", "ridge_loss"),
    **{
        f"test_{name}_loss": _at("comparators", name, "loss") for name in ("gd_tuned_step", "linear_mmse", "mask_bayes")
    },
    **{f"test_{name}_loss": columns.if_there("comparators", name, "loss") for name in POSITION_WEIGHTED},
    "gd_tuned_over_clean_step": lambda results: columns.ratio(
        results["comparators"]["tuned_step_size"], results["alignment"]["eta"]
    ),
    "eval_slope": _at("alignment", "slope"),
    "eval_preds_diff": _at("alignment", "preds_diff"),
    "auroc_low": _at("separation", "abs_influence", "auroc_interval", 0),
    "auroc_high": _at("separation", "abs_influence", "auroc_interval", 1),
    **{name: _at("separation", "abs_influence", name) for name in OF_INFLUENCE},
    "gd_auroc": _at("separation", "gd", "abs_influence", "auroc"),
    "gd_auroc_raw": _at("separation", "gd", "abs_influence", "auroc_raw"),
    **{f"{name}_auroc": columns.if_there("separation", "detectors", name, "auroc") for name in DETECTORS},
    **{name: _at("separation", "abs_influence", name) for name in ("twin_change_noisy", "twin_change_clean")},
    **{f"{whose}auroc_{score}": _score(whose, score) for score in SCORES for whose in ("", "gd_")},
    "auroc_first_abs_contribution": _of_layer(0, "abs_contribution"),
    **{
        f"{whose}ood_alpha{alpha:g}": _scaled(alpha, f"{whose}test_mse")
        for whose in ("", "gd_")
        for alpha in (1.0, 1.5, 2.0, 3.0)
        if whose or alpha != 3.0
    },
}


def further_losses(config: RegressionConfig | None) -> dict[str, Callable[[Results], Any]]:
    """The columns of a config's opponents, or of all that are registered."""
    names = OPPONENTS if config is None else config.opponents
    columns_of = (f"{name}_{number}{se}" for name in names for number in ("loss", "ratio") for se in ("", "_se"))
    return {f"test_{column}": _at("headline", column) for column in columns_of}


FILES = {"separation": "analysis/attention_stats.json", "comparators": "analysis/comparators.json"}
MEANINGS_OF_COLUMNS = {
    "ordering": "order of the pairs at evaluation",
    "noise_mode": "corruption at evaluation",
    "p": "share of pairs hit at evaluation",
    "sigma": "standard deviation of label noise at evaluation",
    "placement": "where corrupted pairs stand at evaluation",
    "align_cos": "cosine of sensitivities with gradient descent",
    "align_l2": "root mean squared difference of predictions from gradient descent's",
    "auroc": "AUROC of |influence|, within positions: above .5, corrupted pairs get less",
    "eval_slope": "slope of predictions on gradient descent's, on the evaluation batch: the step it takes",
    "eval_preds_diff": "mean absolute difference of predictions from gradient descent's, on the evaluation batch",
    "train_*": "the setting in force in training",
    "eval_*": "the setting in force at evaluation",
    "test_gain": "gain over predicting zero, over that of one step of gradient descent, the best for the training",
    "test_loss_ratio": "`test_loss` over `test_gd_loss`, on the same tasks",
    "test_gd_tuned_step_loss": "loss of gradient descent with its step size tuned on the corruption",
    "test_linear_mmse_loss": "loss of the best linear predictor, which knows p and sigma",
    "test_mask_bayes_loss": "loss of the posterior mean over masks, which knows p and sigma",
    "test_gd_positions_loss": "loss of one step with a step size for each position, fitted on evaluation contexts",
    "test_gd_positions_trained_loss": "the same, fitted on training contexts",
    "gd_tuned_over_clean_step": "step size tuned on the corruption, over the clean one",
    "auroc_low": "lower end of the 95 % interval of `auroc`",
    "auroc_high": "upper end of the 95 % interval of `auroc`",
    "auroc_raw": "AUROC of |influence| over all positions together",
    "auroc_position": "AUROC of the position alone",
    "gd_auroc": "`auroc` of gradient descent",
    "gd_auroc_raw": "`auroc_raw` of gradient descent",
    "mask_bayes_auroc": "AUROC of the posterior probability of being clean, which knows p and sigma",
    "loo_gd_auroc": "AUROC of minus the leave-one-out error of gradient descent at its clean step",
    "twin_change_*": "change of |influence| of noisy, or clean, pairs from the clean twin",
    "gd_auroc_*": "AUROC of this score of gradient descent, within positions",
    "auroc_first_abs_contribution": "AUROC of |contribution| in the first layer, mean of its heads",
    "auroc_*": "AUROC of this score, within positions; of attention and contribution in the last layer, mean of heads",
    "gd_ood_alpha*": "mean squared error of gradient descent on inputs times this",
    "ood_alpha*": "mean squared error on inputs times this",
}


# --- the family ---


def batch_shapes(config: RegressionConfig) -> dict[str, tuple[int, ...]]:
    """The shapes of the evaluation batch, by field."""
    tasks, pairs, dim = config.eval_tasks, config.data.num_pairs, config.data.dim
    shapes: dict[str, tuple[int, ...]] = {"x": (tasks, pairs, dim), "y": (tasks, pairs), "w": (tasks, dim)}
    return shapes | {"x_query": (tasks, dim), "y_query": (tasks,)}


def task_seconds(config: RegressionConfig) -> float:
    """What a step of one task costs; sorting its pairs is a part of it."""
    seen, model = config.architecture, config.model
    sorting = SORTED_PAIR * config.data.num_pairs if config.train.ordering != "random" else 0.0
    return layers_seconds(seen.num_rows, seen.width, model.num_layers) + sorting


WITH_DESCENT = Panel(
    "loss (half MSE)",
    (
        Curve("train_loss", "train batch", "train"),
        Curve("eval_loss", "Trained Transformer", "model"),
        Curve("eval_gd_loss", "Gradient descent", "descent"),
    ),
)

FAMILY = Family(
    name="regression",
    config=RegressionConfig,
    models=MODELS,
    loss_convention=loss_conventions.LOSS_AND_MSE,
    test_loss=NamedLoss("test_loss", _at("headline", "tf_loss")),
    columns=Columns(
        {name: _setting("eval", name) for name in IN_FORCE if name != "difficulty"},
        MEASURED,
        FIRST,
        SETTINGS,
        FILES,
        further_losses,
        MEANINGS_OF_COLUMNS,
    ),
    panels=(WITH_DESCENT,),
    batch_shapes=batch_shapes,
    flags=(CODE, DIFFICULTY, *CONTEXT_FLAGS),
    options=OPTIONS,
    axes=(*CONTEXT_FLAGS, DIFFICULTY),
    meanings=MEANINGS,
    follows={"base.difficulty": AUTO, "train": "as base", "eval": "as base"},
    complete=complete,
    training_ignores={"base": ContextConfig(), "eval": ContextConfig(), "step_size_tasks": 2, "opponents": ()},
    batched={"train.noise_p": 0.0, "train.noise_sigma": 0.0},
    canonical=canonical,
    run_words=run_words,
    criteria=(
        Criterion("cosine of sensitivities", lambda config, results: results["alignment"]["align_cos"], ALIGNED, True),
        Criterion("gain over predicting zero", lambda config, results: gain(results), GAIN, True, "of one GD step's"),
    ),
    task_seconds=task_seconds,
    analyses=(
        "alignment",
        "ood_eval",
        "shifts",
        "comparators",
        "attention_stats",
        "copying",
        "over_training",
        "algorithm_distance",
        "position_steps",
    ),
    modules=("icl_lab.families.regression.task", "icl_lab.runners.regression"),
)
