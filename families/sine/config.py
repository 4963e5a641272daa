"""Sines in context: an MLP below one linear layer, and its control, which takes a step of gradient descent instead.

`paper` is von Oswald et al. 2023, Sec. 4 and App. A.8; `default` takes a smaller batch and fewer steps; `published` is
the published code, whose amplitudes and phases follow one draw (docs/fidelity.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from icl_lab.lab.configs.family import Family, Preset, StackRun
from icl_lab.src.batch import context_shapes
from icl_lab.src.config import SineModel
from icl_lab.src.data_config import SineData


@dataclass(frozen=True)
class SineConfig(StackRun):
    """A run of the family: sines, and a model with an embedding."""

    family: ClassVar[str] = "sine"

    name: str = "sine"
    data: SineData = SineData()
    model: SineModel = SineModel()

    def batch_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the evaluation batch, by field; w holds amplitude and phase."""
        return context_shapes(self.eval_tasks, self.data.num_pairs, 1, weights=2)


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


FAMILY = Family(
    SineConfig,
    MODELS,
    switches={"control": ({"sine": "sine_control"}, "train the control, sine_control")},
    about={
        "sine": "regression of sines: an MLP followed by one linear layer",
        "sine_control": "its control: the same MLP followed by one step of gradient descent",
    },
)
