"""What the family says of itself without JAX: its config, presets, axes, columns and words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

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
    layers_seconds,
)
from icl_lab.lab.configs.run import RunConfig
from icl_lab.src.checks import in_range, sizes
from icl_lab.src.config import Architecture, StackConfig


@dataclass(frozen=True)
class LogisticData:
    """y ~ Bernoulli(sigmoid(w.x)), w ~ N(0, weight_scale^2 I), x ~ N(0, I)."""

    dim: int = 5
    num_pairs: int = 20
    weight_scale: float = 1.0

    def __post_init__(self) -> None:
        sizes(self, "dim", "num_pairs")
        in_range("weight_scale", self.weight_scale, 0, open_low=True)


@dataclass(frozen=True)
class LogisticConfig(RunConfig):
    """A run of the family: contexts with labels of 0 and 1, and a stack whose label channel is a logit."""

    family: ClassVar[str] = "logistic"

    name: str = "logistic"
    data: LogisticData = LogisticData()
    model: StackConfig = StackConfig()  # noqa: RUF009 - it is frozen

    def __post_init__(self) -> None:
        super().__post_init__()
        self.architecture.check(self.tasks_at_once)

    @property
    def architecture(self) -> Architecture[StackConfig]:
        """The model and the contexts it sees."""
        return Architecture(self.model, self.data.dim, self.data.num_pairs)


STACK = {"num_layers": 1, "init_scale": 0.02, "grad_clip": 1.0}

MODELS = {
    "logistic": {
        "default": Preset(STACK | {"lr": 3e-3, "batch_size": 256, "steps": 3000}),
        "paper": Preset(STACK | {"lr": 1e-3, "batch_size": 2048, "steps": 20_000}),
    }
}


def batch_shapes(config: LogisticConfig) -> dict[str, tuple[int, ...]]:
    """The shapes of the evaluation batch, by field."""
    tasks, pairs, dim = config.eval_tasks, config.data.num_pairs, config.data.dim
    shapes: dict[str, tuple[int, ...]] = {"x": (tasks, pairs, dim), "y": (tasks, pairs), "w": (tasks, dim)}
    return shapes | {"x_query": (tasks, dim), "y_query": (tasks,)}


SETTINGS = {
    "dim": lambda config: config.data.dim,
    "weight_scale": lambda config: config.data.weight_scale,
}
MEASURED = {
    "trained": columns.trained,
    "constant_loss": columns.at("headline", "constant_loss"),
    "teacher_loss": columns.at("headline", "teacher_loss"),
    "accuracy": columns.at("headline", "accuracy"),
}

FAMILY = Family(
    name="logistic",
    config=LogisticConfig,
    models=MODELS,
    loss_convention="loss: cross-entropy of a label of 0 or 1, in nats",
    test_loss=NamedLoss("test_loss", columns.at("headline", "loss")),
    columns=Columns(SETTINGS, MEASURED, {"test_loss": columns.at("headline", "loss")}),
    panels=(
        Panel(
            "cross-entropy (nats)",
            (
                Curve("train_loss", "train batch", "train"),
                Curve("eval_loss", "model", "model"),
                Curve("eval_constant_loss", "log 2", "other"),
            ),
        ),
    ),
    batch_shapes=batch_shapes,
    flags=(Flag("weight_scale", "data.weight_scale", float, "standard deviation of a task's weights"),),
    axes=(
        Flag("dim", "data.dim", int, "input dimension"),
        Flag("weight_scale", "data.weight_scale", float, "standard deviation of a task's weights"),
    ),
    meanings={"data.num_pairs": Meaning("labelled inputs of a context")},
    batched={"data.weight_scale": 1.0},
    run_words=lambda config: [f"dim{config.data.dim}", f"scale{config.data.weight_scale:g}"],
    criteria=(
        Criterion(
            "cross-entropy over log 2",
            lambda config, summary: columns.ratio(summary["headline"]["loss"], summary["headline"]["constant_loss"]),
            0.95,
        ),
    ),
    task_seconds=lambda config: layers_seconds(
        config.architecture.num_rows, config.architecture.width, config.model.num_layers
    ),
    modules=("logistic.experiment", "logistic.ending"),
)
