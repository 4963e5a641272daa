"""Membership in a regular language, in context: strings as codes, labels 1 and -1, and the models that read them.

`languages` is linear self-attention on codes, `languages_softmax` the unrestricted model: softmax attention with MLPs.
The preset `published` is the program of the original student project; the study of languages turns off its flaws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from icl_lab.families.autoencoder.config import AutoencoderConfig, autoencoder_of
from icl_lab.families.languages.data import AUTOENCODER_INPUTS, CODE_SCALES, CODES, CodeConfig, LanguageData
from icl_lab.families.languages.flags import (
    FOLLOWS,
    LANGUAGE_FLAGS,
    LANGUAGE_LISTS,
    LANGUAGE_MEANINGS,
    language_words,
    pool_arrays,
    with_negatives,
)
from icl_lab.lab.configs import columns
from icl_lab.lab.configs.family import (
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
    Summary,
    layers_seconds,
)
from icl_lab.lab.configs.run import RunConfig
from icl_lab.src import loss_conventions
from icl_lab.src.checks import require, sizes
from icl_lab.src.config import Architecture, EmbeddedModel

if TYPE_CHECKING:
    import numpy as np

MOST_CHANNELS = 2**14  # of an MLP on strings
NEEDS_CONTEXT = 0.95  # of the loss of the best linear predictor that sees the query alone


@dataclass(frozen=True)
class LanguagesModel(EmbeddedModel):
    """A stack on tokens (code, label), with an embedding if `d_model` is above 0.

    With `features`, an MLP of width `features_width` first maps a string's one-hot symbols to that many channels.
    `query_in_keys`: the query's own row is among the keys and values, as in the published program.
    """

    features: int = 0
    features_width: int = 64
    query_in_keys: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes(self, "features", least=0)
        sizes(self, "features_width")


@dataclass(frozen=True)
class LanguagesConfig(RunConfig):
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
            f"features is {self.model.features}; it is how many channels the code `learned` has, and 0 for others",
        )
        self.architecture.check(self.tasks_at_once)
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


def complete(values: dict[str, Any]) -> dict[str, Any]:
    """Sets an unset number of learned features to the code's channels, or to 0 for other codes; and the negatives."""
    values = with_negatives(values)
    model, code = dict(values["model"]), values["code"]
    if model["features"] is None:
        model["features"] = code["dim"] if code["kind"] == "learned" else 0
    return values | {"model": model}


def shared(config: LanguagesConfig) -> Mapping[str, np.ndarray]:
    """The draws of the training pool and, except for an autoencoder, the codes of its strings."""
    pool = pool_arrays(config.data)
    draws = {name: pool[name] for name in ("positives", "negatives")}
    if config.code.kind == "autoencoder":  # its codes come with the run that is required
        return draws
    from icl_lab.families.languages.coded import coded_pools

    return draws | {"codes": coded_pools(config.data, config.code).train}


def hashed_as(config: LanguagesConfig) -> Mapping[str, np.ndarray]:
    """The encoded strings: codes contain eigenvectors, whose last digits depend on the processor."""
    return {} if config.code.kind == "autoencoder" else {"codes": pool_arrays(config.data)["strings"]}


def required(config: LanguagesConfig) -> list[AutoencoderConfig]:
    """The autoencoder whose code the run builds on."""
    code = config.code
    if code.kind != "autoencoder":
        return []
    return [autoencoder_of(config.data, code.autoencoder_dim, code.autoencoder_input)]


def batch_shapes(config: LanguagesConfig) -> dict[str, tuple[int, ...]]:
    """The shapes of the evaluation batch, by field; w holds the number of each task's language."""
    tasks, pairs, dim = config.eval_tasks, config.data.num_pairs, config.code_channels
    shapes: dict[str, tuple[int, ...]] = {"x": (tasks, pairs, dim), "y": (tasks, pairs), "w": (tasks, 1)}
    return shapes | {"x_query": (tasks, dim), "y_query": (tasks,)}


# --- flags, axes and columns ---

FLAGS = (
    Flag("num_pairs", "data.num_pairs", int, "labelled strings of a context, N"),
    Flag("positive_share", "data.positive_share", float, "chance that a label is 1"),
    Flag("code", "code.kind", str, "how strings become vectors", CODES),
    Flag("code_scale", "code.scale", str, "of a code: whitened, centred, or raw features", CODE_SCALES),
    Flag("code_dim", "code.dim", int, "channels of a code"),
    *LANGUAGE_FLAGS,
)
AXES = (
    *FLAGS,
    Flag("num_layers", "model.num_layers", int, "attention layers"),
    Flag("lr", "training.lr", float, "learning rate"),
    Flag("steps", "training.steps", int, "training steps"),
)
ASKED: dict[str, Callable[[LanguagesConfig], Any]] = {
    "negatives": lambda config: config.data.negatives,
    "num_pairs": lambda config: config.data.num_pairs,
    "code": lambda config: config.code.kind,
    "code_scale": lambda config: config.code.scale,
    "code_dim": lambda config: config.code.dim,
    "num_languages": lambda config: config.data.num_languages or len(config.data.languages),
    "num_layers": lambda config: config.model.num_layers,
    "alignment": lambda config: config.data.alignment,
    "pool_seed": lambda config: config.data.pool_seed,
    "steps": lambda config: config.training.steps,
}
ON_TEST_SET = (
    *(f"{who}_loss" for who in ("gd", "ridge", "optimum", "optimum_biased", "no_context", "version_space")),
    *(f"{who}_accuracy" for who in ("gd", "ridge", "optimum", "optimum_biased", "no_context", "version_space")),
    *("shuffled_accuracy", "context_free", "contextual", "gd_preds_mse", "gd_cosine"),
    *("optimum_preds_mse", "optimum_cosine", "way_to_optimum"),
)


def _headline(name: str, part: str = "headline") -> Callable[[Results], Any]:
    return columns.if_there(part, name)


MEASURED: dict[str, Callable[[Results], Any]] = {
    "uses_context": columns.trained,
    "test_loss_se": _headline("loss_se"),
    "test_accuracy": _headline("accuracy"),
    "test_accuracy_se": _headline("accuracy_se"),
    **{f"test_{name}": _headline(name) for name in ON_TEST_SET},
    "test_unseen_loss": _headline("loss", "unseen"),
    "test_unseen_accuracy": _headline("accuracy", "unseen"),
    "test_unseen_ridge_accuracy": _headline("ridge_accuracy", "unseen"),
    "test_unseen_optimum_accuracy": _headline("optimum_accuracy", "unseen"),
}
MEANINGS_OF_COLUMNS = {
    "negatives": "what strings that are no members look like",
    "num_pairs": "labelled strings of a context, N",
    "code": "how strings become vectors",
    "code_scale": "of the code",
    "code_dim": "channels of the code",
    "num_languages": "languages of training",
    "alignment": "where a string stands among its pads",
    "pool_seed": "seed of the strings",
    "uses_context": "whether the loss is below .95 of that of the best linear predictor that sees the query alone",
    "test_loss": "half the mean squared error on unseen strings of the trained languages",
    "test_accuracy": "share of these whose prediction has the label's sign",
    "test_shuffled_accuracy": "the same with the labels of each context in another order",
    "test_context_free": "root mean square of the part of predictions that does not depend on the context",
    "test_contextual": "root mean square of the other part",
    "*_preds_mse": "mean squared difference of the model's predictions from this predictor's",
    "*_cosine": "mean cosine of the model's sensitivities with this predictor's",
    "test_way_to_optimum": "share of the way from GD's loss to that of the optimum of one layer",
    "test_unseen_*": "the same on languages that were not trained on",
    "*_loss": "half the mean squared error of this predictor",
    "*_accuracy": "accuracy of this predictor",
}


def run_words(config: LanguagesConfig) -> list[str]:
    """The strings, the code and the depth in words."""
    code, model = config.code, config.model
    words = [*language_words(config.data), f"N{config.data.num_pairs}", code.kind, code.scale, f"d{code.dim}"]
    return [*words, f"L{model.num_layers}", f"pool{config.data.pool_seed}"]


def over_no_context(config: LanguagesConfig, summary: Summary) -> float | None:
    """The loss over that of the best linear predictor that sees the query alone."""
    headline = summary["headline"]
    return columns.ratio(headline["loss"], headline["no_context_loss"])


FAMILY = Family(
    name="languages",
    config=LanguagesConfig,
    models=MODELS,
    loss_convention=loss_conventions.LOSS_AND_MSE,
    test_loss=NamedLoss("test_loss", columns.at("headline", "loss")),
    columns=Columns(ASKED, MEASURED, {"test_loss": columns.at("headline", "loss")}, meanings=MEANINGS_OF_COLUMNS),
    panels=(
        Panel(
            "loss (half MSE)",
            (
                Curve("train_loss", "train batch", "train"),
                Curve("eval_loss", "unseen strings", "model"),
                Curve("eval_gd_loss", "gradient descent", "descent"),
                Curve("eval_optimum_loss", "optimum of one layer", "other"),
            ),
        ),
        Panel("accuracy", (Curve("eval_accuracy", "unseen strings", "model"),)),
    ),
    batch_shapes=batch_shapes,
    flags=FLAGS,
    lists=LANGUAGE_LISTS,
    axes=AXES,
    meanings=LANGUAGE_MEANINGS
    | {
        "code.kind": Meaning("how strings become vectors", CODES),
        "code.scale": Meaning("of a code", CODE_SCALES),
        "code.dim": Meaning("channels of a code"),
        "code.constant": Meaning("a channel that is 1 behind them"),
        "code.autoencoder_dim": Meaning("channels of the autoencoder's code"),
        "code.autoencoder_input": Meaning("what the autoencoder reads", AUTOENCODER_INPUTS),
        "model.d_model": Meaning("channels of an embedded token; 0: not embedded"),
        "model.features": Meaning("channels that an MLP makes of one-hot symbols, with the code `learned`"),
        "model.features_width": Meaning("hidden channels of that MLP"),
        "model.query_in_keys": Meaning("the query's row is among the keys and values"),
    },
    follows={"model.features": ""} | FOLLOWS,
    complete=complete,
    run_words=run_words,
    criteria=(
        Criterion("loss over that of the best linear predictor without context", over_no_context, NEEDS_CONTEXT),
    ),
    task_seconds=lambda config: layers_seconds(
        config.architecture.num_rows,
        2 * config.model.d_model + config.model.mlp_width or config.architecture.width,
        config.model.num_layers,
    ),
    shared=shared,
    hashed_as=hashed_as,
    required=required,
    modules=("icl_lab.families.languages.task", "icl_lab.runners.languages"),
)
