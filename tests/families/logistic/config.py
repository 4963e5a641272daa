"""The config of the family, without JAX: its data and its model, presets, flags and axes."""

from dataclasses import dataclass
from typing import ClassVar

from icl_lab.lab.configs.family import Family, Flag, Preset, layers_seconds
from icl_lab.lab.configs.run import RunConfig
from icl_lab.src.batch import context_shapes
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

    def batch_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the evaluation batch, by field."""
        return context_shapes(self.eval_tasks, self.data.num_pairs, self.data.dim)

    def run_words(self) -> list[str]:
        """What distinguishes a run of a sweep."""
        return [f"dim{self.data.dim}", f"scale{self.data.weight_scale:g}"]

    def task_seconds(self) -> float:
        """What a step of one task costs."""
        return layers_seconds(self.architecture.num_rows, self.architecture.width, self.model.num_layers)


STACK = {"num_layers": 1, "init_scale": 0.02, "grad_clip": 1.0}
MODELS = {
    "logistic": {
        "default": Preset(STACK | {"lr": 3e-3, "batch_size": 256, "steps": 3000}),
        "paper": Preset(STACK | {"lr": 1e-3, "batch_size": 2048, "steps": 20_000}),
    }
}
SCALE = Flag("weight_scale", "data.weight_scale", float, "standard deviation of a task's weights")
FAMILY = Family(
    config=LogisticConfig,
    models=MODELS,
    flags=(SCALE,),
    axes=(Flag("dim", "data.dim", int, "input dimension"), SCALE),
    batched={"data.weight_scale": 1.0},
)
