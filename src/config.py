"""Frozen configs. A run is one `RunConfig`; every value in it is checked here, before JAX is imported.

Sizes, used as shape letters everywhere:
    B tasks in a batch, N context pairs, D input dimension, R token rows, W token width, H heads, L layers.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from src.checks import ConfigError, finite, in_range, one_of, require, sizes


class InputMoments(NamedTuple):
    """Even moments of an input coordinate as functions of `input_range`; None where there is none, or none is known.

    Closed forms take coordinates to be independent and symmetric about 0.
    """

    variance: Callable[[float], float] | None = None
    fourth: Callable[[float], float] | None = None


# input distribution -> its moments; `src.inputs` has its sampler, of the same name
INPUT_LAWS: Mapping[str, InputMoments] = {
    "uniform": InputMoments(lambda width: width**2 / 12, lambda width: width**4 / 80),
    "gaussian": InputMoments(lambda std: std**2, lambda std: 3 * std**4),
}
TOKENS = ("concatenated", "interleaved")
ATTENTION_KINDS = ("linear", "softmax")
ORDERINGS = ("random", "smallnorm2largenorm", "easy2hard", "hard2easy")
BY_DIFFICULTY = ("easy2hard", "hard2easy")  # the orderings that sort by a difficulty
DIFFICULTIES = ("residual", "gd_error")
NOISE_MODES = ("clean", "label_noise", "random_pairs")
ADDITIVE = ("label_noise",)  # the noise modes that change nothing at sigma = 0
WITHOUT_SIGMA = ("clean", "random_pairs")  # those that sigma does not reach: runs that differ in it alone are one
PLACEMENTS = ("mixed", "clean_first", "noisy_first")
# task distribution -> the variance of a coordinate, of `weight_scale` and the dimension, or None where it is not known;
# `src.sequences` has its sampler. Ridge regression is made from it.
TASK_LAWS: Mapping[str, Callable[[float, int], float] | None] = {
    "gaussian": lambda scale, dim: scale**2,
    "laplace": lambda scale, dim: scale**2,
    "sphere": lambda scale, dim: scale**2 / dim,
}
BAYES_IS_RIDGE = ("gaussian",)  # the task distributions whose posterior mean is ridge regression
POSTERIOR_MEANS = ("laplace",)  # those of another one, which `analysis.task_diversity` computes
BLOCKS = ("gpt2", "regression")
FAMILIES = ("regression", "layerwise", "sine", "diversity")
EMBEDDED = ("pairs", "inputs")

LARGEST = 3.4028234663852886e38  # of the numbers of float32, in which everything is computed
TOO_MANY = 2**31  # elements of an array, or steps: indices are 32-bit integers


@dataclass(frozen=True)
class DataConfig:
    """Linear regression: y = w.x + noise_std * n, w ~ N(0, weight_scale^2 I), one query for each context.

    Input distribution (`input_law`): uniform is U(-input_range/2, input_range/2) in each coordinate (range 1 is what
    the published curves use, although the paper's text says U(-1, 1)); gaussian is N(0, input_range^2).
    `num_distractors` context labels are replaced by N(0, 1). The family layerwise asks `num_queries` queries of each
    context.

    The family sine has dim 1 and labels y = a sin(x + phi), a ~ U(amplitude_low, amplitude_high), phi ~ U(0, pi). The
    published code has amplitudes up to .5, the paper's text up to 5.
    """

    dim: int = 10
    num_pairs: int = 10
    input_law: str = "uniform"
    input_range: float = 1.0
    weight_scale: float = 1.0
    noise_std: float = 0.0
    num_distractors: int = 0
    num_queries: int = 1
    amplitude_low: float = 0.1
    amplitude_high: float = 0.5
    num_tasks: int = 0
    task_law: str = "gaussian"

    def __post_init__(self) -> None:
        sizes(self, "dim", "num_pairs", "num_queries")
        sizes(self, "num_distractors", "num_tasks", least=0)
        require(self.num_tasks < TOO_MANY, f"num_tasks is {self.num_tasks}; it must be below 2^31")
        one_of("task_law", self.task_law, TASK_LAWS)
        one_of("input_law", self.input_law, INPUT_LAWS)
        in_range("input_range", self.input_range, 0, open_low=True)
        in_range("weight_scale", self.weight_scale, 0, open_low=True)
        in_range("noise_std", self.noise_std, 0)
        for name in ("input_range", "weight_scale", "noise_std"):
            value = getattr(self, name)
            require(value <= LARGEST, f"{name} is {value}; it must be at most {LARGEST:g}, float32's largest number")
        require(
            self.num_distractors <= self.num_pairs,
            f"num_distractors is {self.num_distractors}; a context has only {self.num_pairs} pairs",
        )
        in_range("amplitude_low", self.amplitude_low, 0)
        in_range("amplitude_high", self.amplitude_high, self.amplitude_low, open_low=True)

    @property
    def input_variance(self) -> float:
        """Variance of one input coordinate; `ConfigError` if none is registered."""
        return self._moment("variance", INPUT_LAWS[self.input_law].variance)

    @property
    def input_fourth_moment(self) -> float:
        """Fourth moment of one input coordinate; `ConfigError` if none is registered."""
        return self._moment("fourth moment", INPUT_LAWS[self.input_law].fourth)

    def _moment(self, name: str, of_range: Callable[[float], float] | None) -> float:
        if of_range is None:
            raise ConfigError(f"the input distribution {self.input_law!r} has no {name} in INPUT_LAWS of src/config.py")
        return of_range(self.input_range)

    @property
    def task_variance(self) -> float:
        """Variance of one coordinate of a task of the task distribution; `ConfigError` if none is registered."""
        variance = TASK_LAWS[self.task_law]
        if variance is None:
            raise ConfigError(f"the task distribution {self.task_law!r} has no variance in TASK_LAWS of src/config.py")
        return variance(self.weight_scale, self.dim)


@dataclass(frozen=True)
class ModelConfig:
    """The stack of attention layers and what each token holds.

    `attention` names the kind of each layer; the last name repeats, so ("softmax", "linear") is a softmax layer below
    linear ones. `key_size` is the total over heads; 0 gives every head the token width. `damping` scales every
    residual update. `activation_clip` bounds the tokens after each layer (0 is off). `init_scale` is the variance
    scale of the truncated-normal fan-in initialiser, divided by the number of layers.

    In the family layerwise tokens are embedded in `embed_size` channels, and all layers share one learned read-out (0:
    neither). In the family sine an embedding in `embed_size` channels and an MLP of `mlp_width` stand before the
    layers. `embedded` says what they take: pairs, as in the published code, or inputs, as in Prop. 2. `step_size`
    above 0 makes the model the control: the layers are one step of gradient descent of that size (eta/N).

    The family diversity has a causal decoder of `embed_size` channels, made of blocks: gpt2, or that of the smaller
    regression transformer, which may lack the matrix after its heads (`attention_output`) and may add a block's input
    once more to its output (`doubled_residual`).
    """

    tokens: str = "concatenated"
    attention: tuple[str, ...] = ("linear",)
    num_layers: int = 1
    num_heads: int = 1
    key_size: int = 0
    recurrent: bool = False
    damping: float = 1.0
    activation_clip: float = 0.0
    pos_enc_size: int = 0
    bias: bool = False
    layer_norm: bool = False
    mlp_width: int = 0
    init_scale: float = 0.002
    embed_size: int = 0
    embedded: str = "pairs"
    step_size: float = 0.0
    block: str = "gpt2"
    attention_output: bool = True
    doubled_residual: bool = False

    def __post_init__(self) -> None:
        one_of("tokens", self.tokens, TOKENS)
        require(len(self.attention) > 0, "attention is empty; it must name the kind of at least one layer")
        for kind in self.attention:
            one_of("attention", kind, ATTENTION_KINDS)
        sizes(self, "num_layers", "num_heads")
        sizes(self, "key_size", "mlp_width", "pos_enc_size", "embed_size", least=0)
        one_of("embedded", self.embedded, EMBEDDED)
        one_of("block", self.block, BLOCKS)
        in_range("step_size", self.step_size, 0)
        in_range("damping", self.damping, 0, open_low=True)
        in_range("activation_clip", self.activation_clip, 0)
        in_range("init_scale", self.init_scale, 0, open_low=True)
        require(
            self.key_size % self.num_heads == 0,
            f"key_size is {self.key_size}; it does not divide among {self.num_heads} heads",
        )
        require(self.pos_enc_size % 2 == 0, f"pos_enc_size is {self.pos_enc_size}; sines come with cosines, so even")
        require(
            not self.recurrent or len(set(self.attention[: self.num_layers])) == 1,
            "recurrent layers share their weights, so attention must be of one kind",
        )

    @property
    def layer_names(self) -> list[str]:
        """The names of the layers' parameters: one for each layer, or one that all share when recurrent."""
        return ["layer"] if self.recurrent else [f"layer_{layer}" for layer in range(self.num_layers)]

    def kind(self, layer: int) -> str:
        """The kind of attention in a layer."""
        return self.attention[min(layer, len(self.attention) - 1)]


@dataclass(frozen=True)
class TrainConfig:
    """AdamW on half the mean squared error, after clipping the global gradient norm (`grad_clip`, 0 is off).

    The learning rate rises linearly over `warmup_steps`, then stays or, with `cosine`, falls to 0 at the last step;
    with `triangle` it rises linearly to the middle of the training and falls linearly to 0 at its end.
    With `deep_supervision`, of the family layerwise, the loss is the mean over all layers' predictions. With
    `full_batch` all there is to train on is a pool of `batch_size` tasks, which every step sees whole.
    """

    steps: int = 5000
    batch_size: int = 2048
    lr: float = 1e-3
    b1: float = 0.9
    b2: float = 0.98
    weight_decay: float = 0.0
    grad_clip: float = 1e-3
    warmup_steps: int = 0
    cosine: bool = False
    deep_supervision: bool = False
    full_batch: bool = False
    triangle: bool = False

    def __post_init__(self) -> None:
        sizes(self, "steps", "batch_size")
        sizes(self, "warmup_steps", least=0)
        require(self.steps < TOO_MANY - 1, f"steps is {self.steps}; it must be below 2^31 - 1")
        in_range("lr", self.lr, 0, open_low=True)
        in_range("weight_decay", self.weight_decay, 0)
        require(not (self.triangle and self.cosine), "triangle and cosine are two schedules; set one of them")
        require(
            not (self.triangle and self.warmup_steps),
            f"warmup_steps is {self.warmup_steps}; a triangle rises to the middle of the training",
        )
        in_range("grad_clip", self.grad_clip, 0)
        for name in ("b1", "b2"):
            value = getattr(self, name)
            finite(name, value)
            require(0 <= value < 1, f"{name} is {value}; it must be at least 0 and below 1")


@dataclass(frozen=True)
class ContextConfig:
    """What is done to the pairs of a context: corruption, then order, then placement of the corrupted pairs."""

    ordering: str = "random"
    difficulty: str = "gd_error"
    noise_mode: str = "clean"
    noise_p: float = 0.0
    noise_sigma: float = 0.0
    noise_placement: str = "mixed"

    def __post_init__(self) -> None:
        one_of("ordering", self.ordering, ORDERINGS)
        one_of("difficulty", self.difficulty, DIFFICULTIES)
        one_of("noise_mode", self.noise_mode, NOISE_MODES)
        one_of("noise_placement", self.noise_placement, PLACEMENTS)
        in_range("noise_p", self.noise_p, 0, 1)
        in_range("noise_sigma", self.noise_sigma, 0)

    @property
    def hit_rate(self) -> float:
        """The probability p that a pair is corrupted: 0 also where a hit would change nothing."""
        return 0.0 if self.noise_mode == "clean" or self.adds_nothing else self.noise_p

    @property
    def adds_nothing(self) -> bool:
        """Whether a hit leaves its pair as it was, because sigma is 0."""
        return self.noise_mode in ADDITIVE and self.noise_sigma == 0


@dataclass(frozen=True)
class RunConfig:
    """One training run; `family` says what is trained and held against what.

    `base` is what the user asked of both contexts; `train` and `eval` are the ones in force. With `snapshots` the
    parameters stay at every record of the metrics, for analyses over training. Records are made every `eval_every`
    steps, at `log_records` steps that are spaced logarithmically, and at the last one.
    """

    name: str = "lsa1"
    family: str = "regression"
    preset: str = "default"
    data_seed: int = 0
    init_seed: int = 0
    eval_every: int = 500
    eval_tasks: int = 2048
    headline_tasks: int = 10_000
    step_size_tasks: int = 65_536
    snapshots: bool = False
    log_records: int = 0
    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    training: TrainConfig = TrainConfig()
    base: ContextConfig = ContextConfig()
    train: ContextConfig = ContextConfig()
    eval: ContextConfig = ContextConfig()

    def __post_init__(self) -> None:
        require(
            re.fullmatch(r"\w[\w.-]*", self.name) is not None, f"name is {self.name!r}; it must be a plain file name"
        )
        one_of("family", self.family, FAMILIES)
        sizes(self, "eval_every")
        sizes(self, "log_records", least=0)
        sizes(self, "eval_tasks", "headline_tasks", "step_size_tasks", least=2)
        for name in ("data_seed", "init_seed"):
            value = getattr(self, name)
            require(
                isinstance(value, int) and 0 <= value < 2**32,
                f"{name} is {value}; it must be a whole number from 0 to 2^32 - 1",
            )
        self._check_arrays()
        self._check_step_size()

    def _check_step_size(self) -> None:
        """Refuses what is defined by the closed-form step of gradient descent where the inputs' moments are unknown."""
        sorts = [context.ordering for context in (self.train, self.eval) if context.ordering in BY_DIFFICULTY]
        user = "the depth curve" if self.family == "layerwise" else sorts[0] if sorts else None
        moments = INPUT_LAWS[self.data.input_law]
        require(
            user is None or None not in moments,
            f"input_law is {self.data.input_law!r}, whose variance or fourth moment is not in INPUT_LAWS of "
            f"src/config.py; {user} needs both, for the closed-form step of gradient descent",
        )

    def _check_arrays(self) -> None:
        """Refuses what would end without memory: arrays of too many elements."""
        searched = () if self.family == "diversity" else ("step_size_tasks",)
        counts = {name: getattr(self, name) for name in ("eval_tasks", "headline_tasks", *searched)}
        for name, tasks in (counts | {"batch_size": self.training.batch_size}).items():
            require(
                tasks * self.num_rows * self.model_width < TOO_MANY,
                f"{name} is {tasks}; with {self.num_rows} rows of {self.model_width} channels a task, that is an array "
                "of 2^31 elements or more",
            )
        keys = self.model.key_size or self.model.num_heads * self.model_width
        weights = self.model.num_layers * max(keys, self.model.mlp_width) * self.model_width
        require(
            weights < TOO_MANY, f"a model of {self.model.num_layers} layers of {keys} keys has 2^31 weights or more"
        )

    @property
    def token_width(self) -> int:
        """W: input, label and positional code side by side."""
        return self.data.dim + 1 + self.model.pos_enc_size

    @property
    def model_width(self) -> int:
        """Channels of a row inside the stack: those of a token, or of its embedding."""
        return self.model.embed_size or self.token_width

    @property
    def record_steps(self) -> list[int]:
        """The steps at which a record is made: a linear grid and a logarithmic one, the first step and the last."""
        last, count = self.training.steps, self.log_records
        spaced = [round(last ** (index / max(count - 1, 1))) for index in range(count)]
        return sorted({0, *range(0, last, self.eval_every), *spaced, last})

    @property
    def num_rows(self) -> int:
        """R: the context's rows and the queries'; of a sequence that of every input and of every label."""
        if self.family == "diversity":
            return 2 * self.data.num_pairs
        return {"concatenated": 1, "interleaved": 2}[self.model.tokens] * self.data.num_pairs + self.data.num_queries


def to_dict(config: Any) -> dict[str, Any]:
    """A config as plain nested dictionaries, tuples as lists: what JSON holds."""
    return {
        field.name: to_dict(value)
        if dataclasses.is_dataclass(value)
        else list(value)
        if isinstance(value, tuple)
        else value
        for field in dataclasses.fields(config)
        for value in [getattr(config, field.name)]
    }


def from_dict(values: dict[str, Any], kind: type[Any] = RunConfig) -> Any:
    """A config from what `to_dict` gave. Missing fields take their defaults; unknown ones are an error."""
    require(isinstance(values, dict), f"a config must be an object, not {type(values).__name__}")
    known = {field.name: field for field in dataclasses.fields(kind)}
    require(set(values) <= set(known), f"unknown config fields: {', '.join(sorted(set(values) - set(known)))}")
    return kind(**{name: _value(known[name], value) for name, value in values.items()})


def _value(field: dataclasses.Field[Any], value: Any) -> Any:
    """One field's value with the type of its default; JSON has neither tuples nor, at times, floats."""
    default = field.default
    if dataclasses.is_dataclass(default):
        return from_dict(value, type(default))
    if isinstance(default, tuple):
        require(
            isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value),
            f"{field.name} is {value!r}; it must be a list of words",
        )
        return tuple(value)
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        require(abs(value) < sys.float_info.max, f"{field.name} is too large a number")
        return float(value)
    require(type(value) is type(default), f"{field.name} is {value!r}; it must be of type {type(default).__name__}")
    return value
