"""Frozen configs of data, models, training and contexts: what core functions take. Every value is checked here.

A run's config (`configs.run`) is composed of them. No JAX is imported.

Sizes, used as shape letters everywhere:
    B tasks in a batch, N context pairs, D input dimension, R token rows, W token width, H heads, L layers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from src.checks import ConfigError, finite, in_range, one_of, require, sizes
from src.registries import (
    ADDITIVE,
    ATTENTION_KINDS,
    INPUT_DISTRIBUTIONS,
    NOISE_MODES,
    ORDERINGS,
    SCHEDULES,
    TASK_DISTRIBUTIONS,
)

TOKENS = ("concatenated", "interleaved")
DIFFICULTIES = ("residual", "gd_error")
PLACEMENTS = ("mixed", "clean_first", "noisy_first")
BLOCKS = ("gpt2", "regression")
EMBEDDED = ("pairs", "inputs")
SPECTRA = ("isotropic", "power_law", "log_spaced", "log_uniform", "given")
AXES = ("coordinates", "rotated")
QUERY_COVARIANCES = ("inputs", "isotropic")
TASK_COVARIANCES = ("isotropic", "inputs", "inverse")
TEACHERS = ("linear", "relu", "tanh")
OPTIMIZERS = ("adamw", "sgd")

LARGEST = 3.4028234663852886e38  # of the numbers of float32, in which everything is computed
NO_MOMENTS = "the closed form is of inputs with independent coordinates of equal variance;"
TOO_MANY = 2**31  # elements of an array, or steps: indices are 32-bit integers


def scale(name: str, value: float, open_low: bool = True) -> None:
    """Raises unless a scale of data is finite, above 0 (at least 0 if not `open_low`) and a number of float32."""
    in_range(name, value, 0, open_low=open_low)
    require(value <= LARGEST, f"{name} is {value}; it must be at most {LARGEST:g}, float32's largest number")


def tasks_exist(distribution: str, dim: int) -> None:
    """Raises unless a distribution of tasks is registered and has tasks of this dimension."""
    one_of("task_distribution", distribution, TASK_DISTRIBUTIONS)
    least = TASK_DISTRIBUTIONS[distribution].least_dim
    require(dim >= least, f"dim is {dim}; {distribution!r} tasks have at least {least} dimensions")


@dataclass(frozen=True)
class LinearData:
    """Linear regression: y = w.x + noise_std * n, w ~ N(0, weight_scale^2 I).

    `input_distribution`: uniform is U(-input_range/2, input_range/2) in each coordinate (range 1 is what the published
    curves use, although the paper's text says U(-1, 1)); gaussian is N(0, input_range^2).
    """

    dim: int = 10
    num_pairs: int = 10
    input_distribution: str = "uniform"
    input_range: float = 1.0
    weight_scale: float = 1.0
    noise_std: float = 0.0

    def __post_init__(self) -> None:
        sizes(self, "dim", "num_pairs")
        one_of("input_distribution", self.input_distribution, INPUT_DISTRIBUTIONS)
        scale("input_range", self.input_range)
        scale("weight_scale", self.weight_scale)
        scale("noise_std", self.noise_std, open_low=False)

    @property
    def input_variance(self) -> float:
        """Variance of one input coordinate; `ConfigError` if none is registered."""
        return self._moment("variance", INPUT_DISTRIBUTIONS[self.input_distribution].variance)

    @property
    def input_fourth_moment(self) -> float:
        """Fourth moment of one input coordinate; `ConfigError` if none is registered."""
        return self._moment("fourth moment", INPUT_DISTRIBUTIONS[self.input_distribution].fourth)

    def _moment(self, name: str, of_range: Callable[[float], float] | None) -> float:
        if of_range is None:
            raise ConfigError(f"the input distribution {self.input_distribution!r} is registered without a {name}")
        return of_range(self.input_range)

    def check_moments(self, user: str) -> None:
        """`ConfigError` if the inputs lack a moment of the closed-form step of gradient descent, which `user` needs."""
        moments = INPUT_DISTRIBUTIONS[self.input_distribution]
        require(
            None not in (moments.variance, moments.fourth),
            f"input_distribution is {self.input_distribution!r}, which is registered without its variance or fourth "
            f"moment; {user} needs both, for the closed-form step of gradient descent",
        )

    @property
    def query_variance(self) -> float:
        """Variance of one coordinate of a query; `ConfigError` if none is registered."""
        return self.input_variance

    @property
    def task_variance(self) -> float:
        """Variance of one coordinate of a task."""
        return self.weight_scale**2

    @property
    def mean_task_variance(self) -> float:
        """Mean square of a coordinate of a task."""
        return self.task_variance


@dataclass(frozen=True)
class DataConfig(LinearData):
    """Contexts with one query; `num_distractors` context labels are replaced by N(0, 1).

    Inputs x = U L^(1/2) z, z of the input distribution. L = diag(l): `isotropic`, the identity; `power_law`,
    l_i = i^-spectrum_exponent; `log_spaced` from 1 to 1 / condition_number; `given`, the `eigenvalues`; `log_uniform`,
    drawn for each context on [1 / condition_number, 1]. U: `coordinates`, the identity; `rotated`, Haar-distributed for
    each context. With `exact_covariance` a context's X^T X / N is its covariance itself, not on average alone. Queries
    have the inputs' covariance, or are `isotropic`.

    Tasks w = task_mean + weight_scale W^(1/2) v, v of the task distribution, W the identity, the `inputs`' covariance L
    or its `inverse`. Labels are y = f(w.x) + noise, f the `teacher`.
    """

    num_distractors: int = 0
    spectrum: str = "isotropic"
    spectrum_exponent: float = 1.0
    condition_number: float = 10.0
    eigenvalues: tuple[float, ...] = ()
    axes: str = "coordinates"
    exact_covariance: bool = False
    query_covariance: str = "inputs"
    task_distribution: str = "gaussian"
    task_covariance: str = "isotropic"
    task_mean: float = 0.0
    teacher: str = "linear"

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes(self, "num_distractors", least=0)
        require(
            self.num_distractors <= self.num_pairs,
            f"num_distractors is {self.num_distractors}; a context has only {self.num_pairs} pairs",
        )
        one_of("spectrum", self.spectrum, SPECTRA)
        one_of("axes", self.axes, AXES)
        one_of("query_covariance", self.query_covariance, QUERY_COVARIANCES)
        tasks_exist(self.task_distribution, self.dim)
        one_of("task_covariance", self.task_covariance, TASK_COVARIANCES)
        one_of("teacher", self.teacher, TEACHERS)
        in_range("spectrum_exponent", self.spectrum_exponent, 0)
        in_range("condition_number", self.condition_number, 1)
        finite("task_mean", self.task_mean)
        self._check_eigenvalues()
        if self.exact_covariance:
            self._check_exact()

    def _check_eigenvalues(self) -> None:
        given, count = self.spectrum == "given", len(self.eigenvalues)
        wanted = self.dim if given else 0
        require(
            count == wanted,
            f"eigenvalues has {count} values; the spectrum {self.spectrum!r} in {self.dim} dimensions takes {wanted}",
        )
        for value in self.eigenvalues:
            require(
                0 < value <= LARGEST,
                f"eigenvalues has {value}; a covariance is positive, so each must be a finite number above 0",
            )

    def _check_exact(self) -> None:
        require(
            self.num_pairs >= self.dim,
            f"exact_covariance needs at least as many pairs as dimensions; {self.num_pairs} pairs span no "
            f"{self.dim} dimensions",
        )
        _ = self.coordinate_variance  # by which the covariance is scaled

    @property
    def equal_inputs(self) -> bool:
        """Whether a context's inputs have independent coordinates of equal variance."""
        return self.spectrum == "isotropic" and self.axes == "coordinates" and not self.exact_covariance

    @property
    def equal_tasks(self) -> bool:
        """Whether tasks have mean 0 and uncorrelated coordinates of equal variance, and labels are linear in them."""
        alike = TASK_DISTRIBUTIONS[self.task_distribution].uncorrelated
        return alike and self.task_covariance == "isotropic" and self.task_mean == 0 and self.teacher == "linear"

    @property
    def coordinate_variance(self) -> float:
        """Variance of a coordinate of z, an input before its covariance; `ConfigError` if none is registered."""
        return self._moment("variance", INPUT_DISTRIBUTIONS[self.input_distribution].variance)

    @property
    def coordinate_fourth_moment(self) -> float:
        """Fourth moment of a coordinate of z; `ConfigError` if none is registered."""
        return self._moment("fourth moment", INPUT_DISTRIBUTIONS[self.input_distribution].fourth)

    @property
    def input_variance(self) -> float:
        """Variance of one input coordinate of a context; `ConfigError` where they differ or none is registered."""
        require(self.equal_inputs, f"{NO_MOMENTS} these inputs have a covariance of their own")
        return self.coordinate_variance

    @property
    def input_fourth_moment(self) -> float:
        """Fourth moment of one input coordinate; `ConfigError` where they differ or none is registered."""
        require(self.equal_inputs, f"{NO_MOMENTS} these inputs have a covariance of their own")
        return self.coordinate_fourth_moment

    @property
    def query_variance(self) -> float:
        """Variance of one coordinate of a query; `ConfigError` where they differ or none is registered."""
        equal = self.spectrum == "isotropic" or self.query_covariance == "isotropic"
        require(equal, "the queries' coordinates differ in variance; the closed form is of queries that do not")
        return self.coordinate_variance

    @property
    def task_variance(self) -> float:
        """Variance of one coordinate of a task; `ConfigError` where they differ, or labels are not linear in it."""
        require(
            self.equal_tasks,
            "the closed form is of linear labels and tasks of mean 0 with uncorrelated coordinates of equal variance",
        )
        return self.mean_task_variance

    @property
    def mean_task_variance(self) -> float:
        """Variance of a coordinate of a task before its covariance; `ConfigError` if none is registered."""
        variance = TASK_DISTRIBUTIONS[self.task_distribution].variance
        if variance is None:
            raise ConfigError(f"the task distribution {self.task_distribution!r} is registered without a variance")
        return variance(self.weight_scale, self.dim)

    def check_isotropic_loss(self) -> None:
        """`ConfigError` unless a loss averaged over tasks and queries is one of eigenvalues alone."""
        _ = self.query_variance, self.task_variance

    def check_moments(self, user: str) -> None:
        """`ConfigError` where the closed-form step of gradient descent, which `user` needs, is not defined."""
        super().check_moments(user)
        require(
            self.equal_inputs and self.equal_tasks,
            f"{user} needs the closed-form step of gradient descent, which is of linear labels, isotropic inputs and "
            "isotropic tasks of mean 0",
        )


@dataclass(frozen=True)
class QueriesData(LinearData):
    """Contexts of each of which `num_queries` queries are asked."""

    num_queries: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes(self, "num_queries")


@dataclass(frozen=True)
class PoolData(LinearData):
    """Sequences of pairs whose task is one of a pool of `num_tasks`, or fresh (inf), from `task_distribution`."""

    num_tasks: float = math.inf
    task_distribution: str = "gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_tasks == 0:  # what stood for infinity in earlier versions
            object.__setattr__(self, "num_tasks", math.inf)
        if self.num_tasks != math.inf:
            whole = isinstance(self.num_tasks, int) and self.num_tasks >= 1
            require(whole, f"num_tasks is {self.num_tasks}; it must be a whole number of at least 1, or inf")
            require(self.num_tasks < TOO_MANY, f"num_tasks is {self.num_tasks}; it must be below 2^31, or inf")
        require(
            self.num_pairs > 1,
            f"num_pairs is {self.num_pairs}; a sequence is at least 2 pairs long, for the first has no context",
        )
        tasks_exist(self.task_distribution, self.dim)

    @property
    def task_variance(self) -> float:
        """Mean variance of a coordinate of a task of the task distribution; `ConfigError` if none is registered."""
        variance = TASK_DISTRIBUTIONS[self.task_distribution].variance
        if variance is None:
            raise ConfigError(f"the task distribution {self.task_distribution!r} is registered without a variance")
        return variance(self.weight_scale, self.dim)


@dataclass(frozen=True)
class SineData:
    """y = a sin(x + phi), a ~ U(amplitude_low, amplitude_high), phi ~ U(0, pi), x ~ U(-input_range/2, input_range/2).

    The published code has amplitudes up to .5, the paper's text up to 5. With `tied_phase` both follow one draw, as in
    the published code: phi = pi (a - amplitude_low) / (amplitude_high - amplitude_low), a family of one parameter.
    """

    num_pairs: int = 10
    input_range: float = 1.0
    amplitude_low: float = 0.1
    amplitude_high: float = 0.5
    tied_phase: bool = False
    dim: ClassVar[int] = 1
    input_distribution: ClassVar[str] = "uniform"

    def __post_init__(self) -> None:
        sizes(self, "num_pairs")
        scale("input_range", self.input_range)
        in_range("amplitude_low", self.amplitude_low, 0)
        in_range("amplitude_high", self.amplitude_high, self.amplitude_low, open_low=True)


@dataclass(frozen=True)
class StackConfig:
    """A stack of attention layers.

    `attention` names the kind of each layer; the last name repeats, so ("softmax", "linear") is a softmax layer below
    linear ones. `key_size` is the total over heads; 0 gives every head the token width. `damping` scales every
    residual update. `activation_clip` bounds the tokens after each layer (0 is off). `init_scale` is the variance
    scale of the truncated-normal fan-in initialiser, divided by the number of layers.

    `merged`: the parameters of attention are the products W_K^T W_Q and P W_V, [H, W, W], instead of four factors. It
    is then these that start with variance `init_scale` / layers / fan-in; those of factors of variance scale s start
    as merged ones of s^2 / layers do.

    What the published stacks of several layers do: no layer norm before the first attention (`first_norm` false), one
    MLP for all layers (`shared_mlp`), none of its biases (`mlp_bias` false), and the clip before the MLP too
    (`clip_before_mlp`). Without a layer norm, an MLP or a clip these change nothing.
    """

    attention: tuple[str, ...] = ("linear",)
    num_layers: int = 1
    num_heads: int = 1
    key_size: int = 0
    recurrent: bool = False
    damping: float = 1.0
    activation_clip: float = 0.0
    bias: bool = False
    layer_norm: bool = False
    mlp_width: int = 0
    init_scale: float = 0.002
    first_norm: bool = True
    shared_mlp: bool = False
    mlp_bias: bool = True
    clip_before_mlp: bool = False
    merged: bool = False

    def __post_init__(self) -> None:
        require(len(self.attention) > 0, "attention is empty; it must name the kind of at least one layer")
        for kind in self.attention:
            one_of("attention", kind, ATTENTION_KINDS)
        sizes(self, "num_layers", "num_heads")
        sizes(self, "key_size", "mlp_width", least=0)
        in_range("damping", self.damping, 0, open_low=True)
        in_range("activation_clip", self.activation_clip, 0)
        in_range("init_scale", self.init_scale, 0, open_low=True)
        require(
            self.key_size % self.num_heads == 0,
            f"key_size is {self.key_size}; it does not divide among {self.num_heads} heads",
        )
        require(
            not self.recurrent or len(set(self.attention[: self.num_layers])) == 1,
            "recurrent layers share their weights, so attention must be of one kind",
        )
        require(not (self.merged and self.bias), "bias is on, but merged matrices have none")
        require(
            not (self.merged and self.key_size),
            f"key_size is {self.key_size}; merged matrices are of the token's width, so it must be 0",
        )

    @property
    def layer_names(self) -> list[str]:
        """The names of the layers' parameters: one for each layer, or one that all share when recurrent."""
        return ["layer"] if self.recurrent else [f"layer_{layer}" for layer in range(self.num_layers)]

    def kind(self, layer: int) -> str:
        """The kind of attention in a layer."""
        return self.attention[min(layer, len(self.attention) - 1)]


@dataclass(frozen=True)
class ModelConfig(StackConfig):
    """A stack on the tokens of a context with one query, and what each token holds."""

    tokens: str = "concatenated"
    pos_enc_size: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("tokens", self.tokens, TOKENS)
        sizes(self, "pos_enc_size", least=0)
        require(self.pos_enc_size % 2 == 0, f"pos_enc_size is {self.pos_enc_size}; sines come with cosines, so even")


@dataclass(frozen=True)
class EmbeddedModel(StackConfig):
    """A stack on tokens embedded in `d_model` channels; all layers share one learned read-out (0: neither)."""

    d_model: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes(self, "d_model", least=0)


@dataclass(frozen=True)
class SineModel(StackConfig):
    """An embedding in `d_model` channels and an MLP of `mlp_width` below the layers.

    `embedded` says what they take: pairs, as in the published code, or inputs, as in Prop. 2. `step_size` above 0 makes
    the model the control: the layers are one step of gradient descent of that size (eta/N), and have no settings.
    """

    d_model: int = 40
    embedded: str = "pairs"
    step_size: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.d_model > 1,
            f"d_model is {self.d_model}; it must be at least 2, for features and for the label",
        )
        one_of("embedded", self.embedded, EMBEDDED)
        in_range("step_size", self.step_size, 0)
        control = self.step_size > 0
        kind = "control, whose layers are a step of descent" if control else "stack whose MLP stands below its layers"
        for name in self.without_meaning:
            value = getattr(self, name)
            require(value == getattr(StackConfig, name), f"{name} is {value}, but has no meaning for a {kind}")

    @property
    def without_meaning(self) -> list[str]:
        """The fields of an MLP of the layers and, in a control, of the layers: it has a step of descent in their place.

        The width and the biases are of the MLP below.
        """
        layers = [
            field.name for field in dataclasses.fields(StackConfig) if field.name not in ("mlp_width", "mlp_bias")
        ]
        return layers if self.step_size > 0 else ["shared_mlp", "clip_before_mlp"]


@dataclass(frozen=True)
class DecoderConfig:
    """A causal decoder of `d_model` channels, made of blocks.

    A block is gpt2's, or that of the smaller regression transformer, which may lack the matrix after its heads
    (`attention_output`) and may add a block's input once more to its output (`doubled_residual`).
    """

    num_layers: int = 1
    num_heads: int = 1
    d_model: int = 32
    mlp_width: int = 128
    layer_norm: bool = False
    block: str = "gpt2"
    attention_output: bool = True
    doubled_residual: bool = False

    def __post_init__(self) -> None:
        sizes(self, "num_layers", "num_heads")
        one_of("block", self.block, BLOCKS)
        heads, size = self.num_heads, self.d_model
        require(
            size > 0 and size % heads == 0,
            f"d_model is {size}; it does not divide among {heads} heads",
        )
        require(
            self.mlp_width > 0,
            f"mlp_width is {self.mlp_width}; a decoder's block has an MLP",
        )


Stack = TypeVar("Stack", bound=StackConfig, covariant=True)


@dataclass(frozen=True)
class Architecture(Generic[Stack]):
    """A model, and the contexts it sees: all that its parameters depend on, and nothing else of a run.

    `model` is a stack, `num_pairs` pairs of dimension `dim` stand in a context, of which `num_queries` queries are
    asked.
    """

    model: Stack
    dim: int
    num_pairs: int
    num_queries: int = 1

    @property
    def code_size(self) -> int:
        """Channels of the positional code."""
        return int(getattr(self.model, "pos_enc_size", 0))

    @property
    def token_width(self) -> int:
        """W: input, label and positional code side by side."""
        return self.dim + 1 + self.code_size

    @property
    def width(self) -> int:
        """Channels of a row inside the stack: those of a token, or of its embedding."""
        return int(getattr(self.model, "d_model", 0)) or self.token_width

    @property
    def num_rows(self) -> int:
        """R: the context's rows and the queries'."""
        rows_of_a_pair = {"concatenated": 1, "interleaved": 2}[getattr(self.model, "tokens", "concatenated")]
        return rows_of_a_pair * self.num_pairs + self.num_queries

    def check(self, counts: Mapping[str, int]) -> None:
        """Refuses what would end without memory: arrays of too many elements, for these numbers of tasks by name."""
        check_arrays(self.num_rows, self.width, self.model, counts)


def check_arrays(num_rows: int, width: int, model: Any, counts: Mapping[str, int]) -> None:
    """`ConfigError` if tokens of so many tasks, by name, or a model's weights have 2^31 elements or more."""
    for name, tasks in counts.items():
        require(
            tasks * num_rows * width < TOO_MANY,
            f"{name} is {tasks}; with {num_rows} rows of {width} channels a task, that is an array "
            "of 2^31 elements or more",
        )
    keys = getattr(model, "key_size", 0) or model.num_heads * width
    weights = model.num_layers * max(keys, model.mlp_width) * width
    require(weights < TOO_MANY, f"a model of {model.num_layers} layers of {keys} keys has 2^31 weights or more")


@dataclass(frozen=True)
class TrainConfig:
    """An optimiser on a model's loss, after clipping the global gradient norm (`grad_clip`, 0 is off).

    The learning rate rises linearly over `warmup_steps`, then follows `schedule`. With `full_batch` all there is to
    train on is a pool of `batch_size` tasks, which every step sees whole.
    """

    steps: int = 5000
    batch_size: int = 2048
    lr: float = 1e-3
    b1: float = 0.9
    b2: float = 0.98
    weight_decay: float = 0.0
    grad_clip: float = 1e-3
    warmup_steps: int = 0
    schedule: str = "constant"
    optimizer: str = "adamw"
    full_batch: bool = False

    def __post_init__(self) -> None:
        sizes(self, "steps", "batch_size")
        sizes(self, "warmup_steps", least=0)
        require(self.steps < TOO_MANY - 1, f"steps is {self.steps}; it must be below 2^31 - 1")
        in_range("lr", self.lr, 0, open_low=True)
        in_range("weight_decay", self.weight_decay, 0)
        one_of("schedule", self.schedule, SCHEDULES)
        require(
            self.schedule != "triangle" or self.warmup_steps == 0,
            f"warmup_steps is {self.warmup_steps}; a triangle rises to the middle of the training",
        )
        one_of("optimizer", self.optimizer, OPTIMIZERS)
        in_range("grad_clip", self.grad_clip, 0)
        for name in ("b1", "b2"):
            value = getattr(self, name)
            finite(name, value)
            require(0 <= value < 1, f"{name} is {value}; it must be at least 0 and below 1")


@dataclass(frozen=True)
class LayersTrainConfig(TrainConfig):
    """With `deep_supervision` the loss is the mean over all layers' predictions."""

    deep_supervision: bool = False


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
    def exchangeable(self) -> bool:
        """Whether no position of a context differs from another: nothing sorts its pairs and nothing places them."""
        placed = self.noise_placement != "mixed" and 0 < self.hit_rate < 1
        return self.ordering == "random" and not placed

    @property
    def adds_nothing(self) -> bool:
        """Whether a hit leaves its pair as it was, because sigma is 0."""
        return self.noise_mode in ADDITIVE and self.noise_sigma == 0
