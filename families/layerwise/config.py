"""The depth curve: a loss after every layer, compared with gradient descent's after as many steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from icl_lab.lab.configs.family import Family, Preset, StackRun
from icl_lab.src.batch import context_shapes
from icl_lab.src.config import Architecture, EmbeddedModel, LayersTrainConfig
from icl_lab.src.data_config import QueriesData

UNTRAINED = 0.9  # of the loss of predicting zero: what ends above it did not train


@dataclass(frozen=True)
class LayerwiseConfig(StackRun):
    """A run of the family: contexts of several queries, and a stack that is read after every layer."""

    family: ClassVar[str] = "layerwise"

    name: str = "linear"
    training: LayersTrainConfig = LayersTrainConfig()
    data: QueriesData = QueriesData()
    model: EmbeddedModel = EmbeddedModel()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.data.check_moments("the depth curve")

    @property
    def architecture(self) -> Architecture[EmbeddedModel]:
        """The model and the contexts it sees, each with several queries."""
        return Architecture(self.model, self.data.dim, self.data.num_pairs, self.data.num_queries)

    def batch_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the evaluation batch, by field."""
        data = self.data
        return context_shapes(self.eval_tasks, data.num_pairs, data.dim, (data.num_queries,))


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


FAMILY = Family(
    LayerwiseConfig,
    MODELS,
    stack=True,
    about={
        "lsa": "depth curve: one linear layer, applied again and again",
        "linear": "depth curve: a stack of linear layers, with a loss after every layer",
        "softmax": "depth curve: a stack of softmax blocks, with a loss after every layer",
    },
)
