"""The depth curve: a loss after every layer, compared with gradient descent's after as many steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from icl_lab.families.regression.config import WITH_DESCENT
from icl_lab.lab.configs import columns
from icl_lab.lab.configs.family import (
    Columns,
    Criterion,
    Family,
    Meaning,
    NamedLoss,
    Preset,
    Results,
    Summary,
    layers_seconds,
)
from icl_lab.lab.configs.run import RunConfig
from icl_lab.src import loss_conventions
from icl_lab.src.config import Architecture, EmbeddedModel, LayersTrainConfig
from icl_lab.src.data_config import QueriesData

UNTRAINED = 0.9  # of the loss of predicting zero: what ends above it did not train


@dataclass(frozen=True)
class LayerwiseConfig(RunConfig):
    """A run of the family: contexts of several queries, and a stack that is read after every layer."""

    family: ClassVar[str] = "layerwise"

    name: str = "linear"
    training: LayersTrainConfig = LayersTrainConfig()
    data: QueriesData = QueriesData()
    model: EmbeddedModel = EmbeddedModel()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.architecture.check(self.tasks_at_once)
        self.data.check_moments("the depth curve")

    @property
    def architecture(self) -> Architecture[EmbeddedModel]:
        """The model and the contexts it sees."""
        return Architecture(self.model, self.data.dim, self.data.num_pairs, self.data.num_queries)


DATA = {"dim": 20, "num_pairs": 20, "num_queries": 20, "input_distribution": "gaussian", "noise_std": 0.05}
DATA |= {"test_tasks": 5000}
STACK = {"num_layers": 4, "num_heads": 4, "attention": ("softmax",), "layer_norm": True, "init_scale": 1.0}
STACK |= {"d_model": 128, "key_size": 128, "mlp_width": 512}

LINEAR = {"b2": 0.98, "init_scale": 0.002, "schedule": "cosine"}
# Weights that read the query's own label get no gradient while that label is 0, as it is in one application. In a
# roll-out it is not, so they must start small: at .002 the loss after 50 layers ends 10 % above gradient descent's.
LSA = LINEAR | {"init_scale": 2e-4, "lr": 1e-3, "grad_clip": 1e-3}
SOFTMAX = {"b2": 0.98, "lr": 1e-4, "weight_decay": 0.01, "grad_clip": 1.0, "warmup_steps": 2000, "batch_size": 64}

ONE_LAYER, FOUR_LAYERS, ANY_LAYERS = DATA | {"num_layers": 1}, DATA | {"num_layers": 4}, DATA | STACK
MODELS: dict[str, dict[str, Preset]] = {
    "lsa": {
        "default": Preset(ONE_LAYER | LSA | {"batch_size": 512, "steps": 3000}),
        "paper": Preset(ONE_LAYER | LSA | {"batch_size": 2048, "steps": 5000}),
    },
    "linear": {
        "default": Preset(FOUR_LAYERS | LINEAR | {"lr": 1e-3, "grad_clip": 1.0, "batch_size": 256, "steps": 10_000}),
        "paper": Preset(FOUR_LAYERS | LINEAR | {"lr": 5e-4, "grad_clip": 1.0, "batch_size": 2048, "steps": 50_000}),
    },
    "softmax": {
        "default": Preset(ANY_LAYERS | SOFTMAX | {"lr": 3e-4, "steps": 20_000}),
        "paper": Preset(ANY_LAYERS | SOFTMAX | {"steps": 50_000}),
    },
}


def last_layer(config: LayerwiseConfig, summary: Summary) -> float | None:
    """The loss relative to zero's: a stack's after its last layer, a rolled-out layer's after its first application."""
    curve = summary["layerwise"]
    loss = curve["trimmed_mean"][0 if curve["rolled_out"] else -1]
    return columns.ratio(loss, curve["references"]["zero"]["mse"][0])


def batch_shapes(config: LayerwiseConfig) -> dict[str, tuple[int, ...]]:
    """The shapes of the evaluation batch, by field."""
    tasks, pairs, dim, queries = config.eval_tasks, config.data.num_pairs, config.data.dim, config.data.num_queries
    shapes: dict[str, tuple[int, ...]] = {"x": (tasks, pairs, dim), "y": (tasks, pairs), "w": (tasks, dim)}
    return shapes | {"x_query": (tasks, queries, dim), "y_query": (tasks, queries)}


SETTINGS: dict[str, Callable[[LayerwiseConfig], Any]] = {
    "num_layers": lambda config: config.model.num_layers,
    "steps": lambda config: config.training.steps,
}
MEASURED: dict[str, Callable[[Results], Any]] = {  # after the last layer, of a roll-out too
    "trained": columns.trained,
    "test_loss": columns.halved("layerwise", "mse", -1),
    "test_loss_se": columns.halved("layerwise", "sem", -1),
    "gd_mse": columns.at("layerwise", "gd", "mse", -1),
    "test_gd_loss": columns.halved("layerwise", "gd", "mse", -1),
    "test_ridge_loss": columns.halved("layerwise", "references", "ridge", "mse", -1),
}

MEANINGS_OF_COLUMNS = {
    "test_mse": "mean squared error on the test set, after the last layer",
    "test_loss": "half of it",
    "gd_mse": "`test_mse` of as many steps of gradient descent",
    "test_gd_loss": "half of it, of as many steps of gradient descent",
}

FAMILY = Family(
    name="layerwise",
    config=LayerwiseConfig,
    models=MODELS,
    loss_convention=loss_conventions.LOSS_AND_MSE,
    test_loss=NamedLoss("test_mse", columns.at("layerwise", "mse", -1)),
    columns=Columns(
        {}, MEASURED, {"test_mse": columns.at("layerwise", "mse", -1)}, SETTINGS, meanings=MEANINGS_OF_COLUMNS
    ),
    panels=(WITH_DESCENT,),
    batch_shapes=batch_shapes,
    meanings={
        "data.num_queries": Meaning("queries asked of each context"),
        "model.d_model": Meaning("channels of an embedded token; 0: not embedded"),
        "training.deep_supervision": Meaning("the loss is the mean over the predictions after every layer"),
    },
    criteria=(Criterion("last layer's MSE over that of zero", last_layer, UNTRAINED),),
    task_seconds=lambda config: layers_seconds(
        config.architecture.num_rows,
        2 * config.model.d_model + config.model.mlp_width or config.architecture.width,
        config.model.num_layers,
    ),
    analyses=("layerwise",),
    modules=("icl_lab.families.layerwise.task", "icl_lab.runners.layerwise"),
)
