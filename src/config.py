"""Frozen configs of models, training and contexts, which core functions take.

Those of data are in `src.data_config`, a decoder's in `src.decoder_config`. Every value is checked here. A run's
config (`lab.configs.run`) is composed of them. No JAX is imported.

Sizes, used as shape letters everywhere:
    B tasks in a batch, N context pairs, D input dimension, R token rows, W token width, H heads, L layers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from icl_lab.src.checks import TOO_MANY, finite, require, with_pattern
from icl_lab.src.fields import check_fields, field
from icl_lab.src.registries import ADDITIVE, ATTENTION_KINDS, NOISE_MODES, ORDERINGS, SCHEDULES


class TokenLayout(NamedTuple):
    """How many rows a pair takes, and whether the label has a channel of its own or stands in the last one of x."""

    rows_of_a_pair: int
    own_label_channel: bool


TOKENS = {
    "concatenated": TokenLayout(1, True),
    "interleaved": TokenLayout(2, True),
    "interleaved_shared": TokenLayout(2, False),
}
PREDICTION_CHANNELS = ("label", "last")
DIFFICULTIES = ("residual", "gd_error")
PLACEMENTS = ("mixed", "clean_first", "noisy_first")
MOST_LAYERS = 1000
EMBEDDED = ("pairs", "inputs")
OPTIMIZERS = ("adamw", "sgd")


def check_layers(model: Any) -> None:
    """`ConfigError` unless a model has as many layers and heads as can be compiled."""
    many = model.num_layers > MOST_LAYERS
    require(not many, f"num_layers is {model.num_layers}; it must be at most {MOST_LAYERS}, because each is compiled")


def check_attention(model: Any) -> None:
    """`ConfigError` unless a model names the kind of attention of at least one layer."""
    require(len(model.attention) > 0, "attention is empty; it must name the kind of at least one layer")


def kind_of(model: Any, layer: int) -> str:
    """The kind of attention in a layer: the last one that a model names is repeated."""
    kinds: tuple[str, ...] = model.attention
    return kinds[min(layer, len(kinds) - 1)]


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

    attention: tuple[str, ...] = field(
        ("linear",), "attention of each layer; the last kind is used for all further layers", names=ATTENTION_KINDS
    )
    num_layers: int = field(1, "layers", least=1)
    num_heads: int = field(1, "heads of each layer", least=1)
    key_size: int = field(
        0, "total size of the keys, and of the values, over all heads; 0: each head has a token's width", least=0
    )
    recurrent: bool = field(False, "all layers share their weights")
    damping: float = field(1.0, "factor that multiplies every residual update", low=0, open_low=True)
    activation_clip: float = field(0.0, "clip activations to this magnitude after each layer; 0: no clipping", low=0)
    bias: bool = field(False, "biases in attention")
    layer_norm: bool = field(False, "layer normalisation before each layer")
    mlp_width: int = field(0, "hidden channels of an MLP; 0: none", least=0)
    init_scale: float = field(
        0.002, "variance scale of the initial weights, divided by the number of layers", low=0, open_low=True
    )
    first_norm: bool = field(True, "layer norm before the first attention too, where there are layer norms")
    shared_mlp: bool = field(False, "all layers share one MLP")
    mlp_bias: bool = field(True, "biases in the MLP")
    clip_before_mlp: bool = field(False, "apply activation_clip to the MLP's input as well")
    merged: bool = field(False, "parametrise attention by the products W_K^T W_Q and P W_V, not by four matrices")

    def __post_init__(self) -> None:
        check_attention(self)
        check_fields(self)
        check_layers(self)
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
        return kind_of(self, layer)


@dataclass(frozen=True)
class ModelConfig(StackConfig):
    """A stack on the tokens of a context with one query, what each token holds, and where the prediction is read.

    `prediction_channel` is the label's, or the last of a token, as in the published code: with a positional encoding
    that is one of its channels, which does not start at 0.
    """

    tokens: str = field(
        "concatenated", "what a token holds (interleaved_shared: the label is in the last channel of x)", names=TOKENS
    )
    pos_enc_size: int = field(0, "channels of the sinusoidal positional encoding concatenated to each token", least=0)
    prediction_channel: str = field(
        "label", "channel of the query's row in which the prediction is read", names=PREDICTION_CHANNELS
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.pos_enc_size % 2 == 0,
            f"pos_enc_size is {self.pos_enc_size}; it must be even, one sine and one cosine for each frequency",
        )

    @property
    def interleaved(self) -> bool:
        """Whether a pair's input and label stand in rows of their own."""
        return TOKENS[self.tokens].rows_of_a_pair == 2


@dataclass(frozen=True)
class EmbeddedModel(StackConfig):
    """A stack on tokens embedded in `d_model` channels; all layers share one learned read-out (0: neither)."""

    d_model: int = field(0, "channels of an embedded token; 0: not embedded", least=0)


@dataclass(frozen=True)
class SineModel(StackConfig):
    """An embedding in `d_model` channels and an MLP of `mlp_width` below the layers.

    `embedded` says what they take: pairs, as in the published code, or inputs, as in Prop. 2. `step_size` above 0 makes
    the model the control: the layers are one step of gradient descent of that size (eta/N), and have no settings.
    """

    d_model: int = field(40, "channels of an embedded token")
    embedded: str = field("pairs", "input of the embedding and the MLP", names=EMBEDDED)
    step_size: float = field(
        0.0, "size of a gradient descent step that replaces the layers (the control model); 0: keep the layers", low=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.d_model > 1,
            f"d_model is {self.d_model}; it must be at least 2, for features and for the label",
        )
        control = self.step_size > 0
        kind = "control, whose layers are a step of descent" if control else "stack whose MLP stands below its layers"
        for name in self.without_meaning:
            value = getattr(self, name)
            require(value == getattr(StackConfig, name), f"{name} is {value}, but has no meaning for a {kind}")

    @property
    def without_meaning(self) -> list[str]:
        """Fields without effect: those of the layers' MLP or, in a control, of the layers, which are a gradient step.

        Width and biases do have an effect: they belong to the MLP below the layers.
        """
        layers = [
            field.name for field in dataclasses.fields(StackConfig) if field.name not in ("mlp_width", "mlp_bias")
        ]
        return layers if self.step_size > 0 else ["shared_mlp", "clip_before_mlp"]


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
    def pos_enc_size(self) -> int:
        """Channels of the positional encoding."""
        return int(getattr(self.model, "pos_enc_size", 0))

    @property
    def layout(self) -> TokenLayout:
        """What a token holds."""
        return TOKENS[getattr(self.model, "tokens", "concatenated")]

    @property
    def data_width(self) -> int:
        """Channels of input and label; the label's is the last of them."""
        return self.dim + self.layout.own_label_channel

    @property
    def token_width(self) -> int:
        """W: input, label and positional encoding side by side."""
        return self.data_width + self.pos_enc_size

    @property
    def prediction_channel(self) -> int:
        """The channel of the query's row of which the prediction is minus the value, where no read-out is learned."""
        last = getattr(self.model, "prediction_channel", "label") == "last"
        return (self.token_width if last else self.data_width) - 1

    @property
    def width(self) -> int:
        """Channels of a row inside the stack: those of a token, or of its embedding."""
        return int(getattr(self.model, "d_model", 0)) or self.token_width

    @property
    def num_rows(self) -> int:
        """R: the context's rows and the queries'."""
        return self.layout.rows_of_a_pair * self.num_pairs + self.num_queries

    def check(self, counts: Mapping[str, int]) -> None:
        """`ConfigError` if arrays would have too many elements, for these named numbers of tasks."""
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

    The learning rate rises linearly over `warmup_steps`, then follows `schedule`. With `full_batch` the training set is
    `batch_size` tasks, all used in every step. A batch is drawn and differentiated in `micro_batches` equal parts, one
    after another: the memory is that of a part.
    """

    steps: int = field(5000, "training steps", least=1)
    batch_size: int = field(2048, "tasks in a training batch", least=1)
    lr: float = field(1e-3, "learning rate", low=0, open_low=True)
    b1: float = field(0.9, "Adam's decay of the first moment")
    b2: float = field(0.98, "Adam's decay of the second moment")
    weight_decay: float = field(0.0, "decoupled weight decay", low=0)
    grad_clip: float = field(1e-3, "clip the gradient to this global norm; 0: no clipping", low=0)
    warmup_steps: int = field(0, "steps over which the learning rate rises from 0", least=0)
    schedule: str = field("constant", "learning-rate schedule after the warmup", names=SCHEDULES)
    optimizer: str = field("adamw", "optimizer", names=OPTIMIZERS)
    full_batch: bool = field(False, "every step trains on the first batch")
    train_only: str = field("", "train only parameters whose module/name matches this regular expression")
    micro_batches: int = field(1, "parts into which a batch is split; only one is in memory at a time", least=1)

    def __post_init__(self) -> None:
        require(self.steps < TOO_MANY - 1, f"steps is {self.steps}; it must be below 2^31 - 1")
        check_fields(self)
        require(
            self.batch_size % self.micro_batches == 0,
            f"micro_batches is {self.micro_batches}; it must divide batch_size, {self.batch_size}",
        )
        with_pattern("train_only", self.train_only)
        require(
            self.schedule != "linear_up_down" or self.warmup_steps == 0,
            f"warmup_steps is {self.warmup_steps}; it must be 0 with linear_up_down, which itself warms up, over "
            "the first half of training",
        )
        for name in ("b1", "b2"):
            value = getattr(self, name)
            finite(name, value)
            require(0 <= value < 1, f"{name} is {value}; it must be at least 0 and below 1")


@dataclass(frozen=True)
class LayersTrainConfig(TrainConfig):
    """With `deep_supervision` the loss is the mean over all layers' predictions."""

    deep_supervision: bool = field(False, "the loss is the mean over the predictions after every layer")


@dataclass(frozen=True)
class ContextConfig:
    """What is done to the pairs of a context: corruption, then order, then placement of the corrupted pairs."""

    ordering: str = field("random", "order of the pairs in {}", names=ORDERINGS)
    difficulty: str = field("gd_error", "what easy2hard and hard2easy sort {} by", names=DIFFICULTIES)
    noise_mode: str = field("clean", "how pairs of {} are corrupted", names=NOISE_MODES)
    noise_p: float = field(0.0, "probability that a pair of {} is corrupted", low=0, high=1)
    noise_sigma: float = field(0.0, "standard deviation of label noise in {}", low=0)
    noise_placement: str = field("mixed", "where corrupted pairs are placed in {}", names=PLACEMENTS)

    def __post_init__(self) -> None:
        check_fields(self)

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
