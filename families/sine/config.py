"""Sines in context: an MLP below one linear layer, and its control, which takes a step of gradient descent instead.

`paper` is von Oswald et al. 2023, Sec. 4 and App. A.8; `default` takes a smaller batch and fewer steps; `published` is
the published code, whose amplitudes and phases follow one draw (docs/fidelity.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from icl_lab.lab.configs import columns
from icl_lab.lab.configs.family import (
    Columns,
    Criterion,
    Curve,
    Family,
    Meaning,
    NamedLoss,
    Panel,
    Preset,
    layers_seconds,
)
from icl_lab.lab.configs.run import RunConfig
from icl_lab.src import loss_conventions
from icl_lab.src.config import EMBEDDED, Architecture, SineModel
from icl_lab.src.data_config import SineData

SINE_LEFT = 0.5  # of the loss of predicting zero. A predictor that knows the mean function E y = E[a] (2/pi) cos x, and
# ignores the context, has 1 - (E[a]^2 / E[a^2]) (2/pi)^2 E[cos^2 x] / E[sin^2(x + phi)] = .67 of it


@dataclass(frozen=True)
class SineConfig(RunConfig):
    """A run of the family: sines, and a model with an embedding."""

    family: ClassVar[str] = "sine"

    name: str = "sine"
    data: SineData = SineData()
    model: SineModel = SineModel()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.architecture.check(self.tasks_at_once)

    @property
    def architecture(self) -> Architecture[SineModel]:
        """The model and the contexts it sees."""
        return Architecture(self.model, self.data.dim, self.data.num_pairs)


SINES = {"input_range": 10.0, "d_model": 40, "mlp_width": 160, "num_layers": 1}
TRAINED = {"b1": 0.9, "b2": 0.98, "grad_clip": 100.0, "activation_clip": 0.0}
SMALL, PAPER = {"batch_size": 256, "steps": 20_000}, {"lr": 3e-4, "batch_size": 2048, "steps": 50_000}
PUBLISHED = PAPER | {"steps": 20_000, "tied_phase": True}
LAYER, STEP = {"key_size": 40}, {"step_size": 0.01}

MODELS: dict[str, dict[str, Preset]] = {
    "sine": {
        "default": Preset(SINES | LAYER | TRAINED | SMALL | {"lr": 1e-3}),
        "paper": Preset(SINES | LAYER | TRAINED | PAPER),
        "published": Preset(SINES | LAYER | TRAINED | PUBLISHED),
    },
    "sine_control": {
        "default": Preset(SINES | STEP | TRAINED | SMALL | {"lr": 3e-3}),
        "paper": Preset(SINES | STEP | TRAINED | PAPER),
        "published": Preset(SINES | STEP | TRAINED | PUBLISHED),
    },
}


def batch_shapes(config: SineConfig) -> dict[str, tuple[int, ...]]:
    """The shapes of the evaluation batch, by field; w holds amplitude and phase."""
    tasks, pairs = config.eval_tasks, config.data.num_pairs
    shapes: dict[str, tuple[int, ...]] = {"x": (tasks, pairs, 1), "y": (tasks, pairs), "w": (tasks, 2)}
    return shapes | {"x_query": (tasks, 1), "y_query": (tasks,)}


MEASURED = {
    "trained": columns.trained,
    "test_loss": columns.at("headline", "loss"),
    "test_loss_se": columns.at("headline", "loss_se"),
}

FAMILY = Family(
    name="sine",
    config=SineConfig,
    models=MODELS,
    loss_convention=loss_conventions.LOSS_AND_MSE,
    test_loss=NamedLoss("test_loss", columns.at("headline", "loss")),
    columns=Columns(
        {}, MEASURED, {"test_mse": columns.doubled("headline", "loss")}, {"steps": lambda config: config.training.steps}
    ),
    panels=(
        Panel(
            "loss (half MSE)",
            (
                Curve("train_loss", "train batch", "train"),
                Curve("eval_loss", "after the context", "model"),
                Curve("eval_initial_loss", "before the context", "other"),
            ),
            "log",
        ),
    ),
    batch_shapes=batch_shapes,
    switches={"control": ({"sine": "sine_control"}, "train the control, sine_control")},
    meanings={
        "data.amplitude_low": Meaning("smallest amplitude of a sine"),
        "data.amplitude_high": Meaning("largest amplitude of a sine"),
        "data.tied_phase": Meaning("amplitude and phase of a sine follow one draw"),
        "model.embedded": Meaning("what embedding and MLP take", EMBEDDED),
        "model.d_model": Meaning("channels of an embedded token"),
        "model.step_size": Meaning(
            "step of gradient descent in the layers' place, which makes the model the control; 0: layers"
        ),
    },
    without_meaning=lambda config: [f"model.{name}" for name in config.model.without_meaning],
    criteria=(
        Criterion(
            "loss after the context over that of zero",
            lambda config, summary: columns.ratio(summary["headline"]["loss"], summary["headline"]["zero_loss"]),
            SINE_LEFT,
        ),
    ),
    task_seconds=lambda config: layers_seconds(
        config.architecture.num_rows,
        2 * config.model.d_model + config.model.mlp_width,
        config.model.num_layers,
    ),
    analyses=("compare_sine",),
    modules=("icl_lab.families.sine.task", "icl_lab.runners.sine"),
)
