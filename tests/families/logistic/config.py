"""The config of the family, without JAX: its data and its model, presets, flags and axes."""

from dataclasses import dataclass
from typing import ClassVar

from icl_lab.lab.configs.family import Family, Preset, StackRun, flag_of
from icl_lab.src.config import StackConfig
from icl_lab.src.fields import check_fields, field


@dataclass(frozen=True)
class LogisticData:
    """y ~ Bernoulli(sigmoid(w.x)), w ~ N(0, weight_scale^2 I), x ~ N(0, I)."""

    dim: int = field(5, "input dimension", least=1)
    num_pairs: int = field(20, "labelled inputs of a context", least=1)
    weight_scale: float = field(1.0, "standard deviation of a task's weights", low=0, open_low=True)

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class LogisticConfig(StackRun):
    """A run of the family: contexts with labels of 0 and 1, and a stack whose label channel is a logit."""

    family: ClassVar[str] = "logistic"

    name: str = "logistic"
    data: LogisticData = LogisticData()
    model: StackConfig = StackConfig()  # noqa: RUF009 - it is frozen

    def run_words(self) -> list[str]:
        """What distinguishes a run of a sweep."""
        return [f"dim{self.data.dim}", f"scale{self.data.weight_scale:g}"]


STACK = {"num_layers": 1, "init_scale": 0.02, "grad_clip": 1.0}
MODELS = {
    "logistic": {
        "default": Preset(STACK | {"lr": 3e-3, "batch_size": 256, "steps": 3000}),
        "paper": Preset(STACK | {"lr": 1e-3, "batch_size": 2048, "steps": 20_000}),
    }
}
DIM, SCALE = (flag_of(LogisticConfig(), f"data.{name}") for name in ("dim", "weight_scale"))
FAMILY = Family(
    config=LogisticConfig,
    models=MODELS,
    flags=(SCALE,),
    axes=(DIM, SCALE),
    batched={"data.weight_scale": 1.0},
)
