"""Function classes: decoders trained on prompts x_1, f(x_1), x_2, ... of functions of a class. Garg et al. 2022.

`paper` is theirs: D = 20 inputs, of which a curriculum begins with 5, and 500 000 steps of Adam at a rate of 1e-4.
The default presets are for a computer without a GPU.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from icl_lab.families.functions.batch import FunctionBatch
from icl_lab.families.functions.classes.linear import Linear
from icl_lab.families.functions.function_class import LOSSES, MOST_LISTED, OWN, FunctionClass
from icl_lab.lab.configs.family import DecoderRun, Family, Preset, flag_of
from icl_lab.lab.configs.run import made_of
from icl_lab.lab.flag_types import INFINITY, Either, Whole
from icl_lab.src.checks import require, size
from icl_lab.src.config import check_arrays
from icl_lab.src.decoder_config import DecoderConfig
from icl_lab.src.fields import check_fields, field

PROGRAMS = 4  # of different lengths, at most, that a run with a growing number of predictions trains by
MODEL_LOSSES = (OWN, *dict.fromkeys(name for names in LOSSES.values() for name in names))


@dataclass(frozen=True)
class PromptData:
    """Prompts of K pairs of D inputs; pools of functions and of whole prompts."""

    dim: int = field(5, "inputs, D", least=1)
    num_pairs: int = field(11, "pairs of a prompt, K", least=1)
    num_functions: float = field(math.inf, "functions in the pool, M; inf: a fresh one for each prompt")
    num_prompts: float = field(math.inf, "whole prompts in the training set, which repeat; inf: all are fresh")

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("num_functions", "num_prompts"):
            if (value := getattr(self, name)) != math.inf:
                size(name, value)


@dataclass(frozen=True)
class Curriculum:
    """Prompts grow in training: inputs and pairs that count, as functions of the step. 0 turns a part off.

    At step t the first min(D, start_dims + dims_by * (t // dims_every)) inputs are in use, the others are 0, and the
    loss is that of the first min(K, start_points + ...) predictions. Garg et al. 2022, App. A.2.
    """

    start_dims: int = field(0, "inputs in use at the first step, the others being 0; 0: all", least=0)
    dims_by: int = field(1, "inputs that are added at a time", least=1)
    dims_every: int = field(2000, "steps until inputs are added", least=1)
    start_points: int = field(0, "predictions that the loss counts at the first step; 0: all", least=0)
    points_by: int = field(2, "predictions that are added at a time", least=1)
    points_every: int = field(2000, "steps until predictions are added", least=1)

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def is_on(self) -> bool:
        """Whether anything grows."""
        return self.start_dims > 0 or self.start_points > 0

    def lengths(self, num_pairs: int) -> tuple[int, ...]:
        """The lengths of prompts that a run of K pairs trains on, none of them longer than needed by more than a few.

        A step takes the shortest that has all predictions that count; a mask leaves out the others.
        """
        if not self.start_points:
            return ()
        counts = [*range(self.start_points, num_pairs, self.points_by), num_pairs]
        number = min(PROGRAMS, len(counts))
        return tuple(counts[-(-len(counts) * part // number) - 1] for part in range(1, number + 1))

    def check(self, dim: int, num_pairs: int, steps: int) -> None:
        """`ConfigError` unless both parts begin within D and K and reach them before training ends."""
        parts = (
            ("dims", self.start_dims, self.dims_by, self.dims_every, "dim", dim),
            ("points", self.start_points, self.points_by, self.points_every, "num_pairs", num_pairs),
        )
        for part, start, by, every, name, end in parts:
            require(start <= end, f"start_{part} is {start}; it must be at most {name}, {end}")
            needed = math.ceil((end - start) / by) * every if start else 0
            require(
                needed < steps,
                f"the curriculum reaches {name} {end} after {needed} steps, and training ends after {steps}; raise "
                f"start_{part} or {part}_by, or lower {part}_every",
            )


@dataclass(frozen=True)
class FunctionModel(DecoderConfig):
    """A decoder on the loss of its function class, or on another that fits its labels."""

    loss: str = field(OWN, "training loss of a prediction; class: that of the function class", names=MODEL_LOSSES)


@dataclass(frozen=True)
class FunctionsConfig(DecoderRun):
    """A run of the family: a class of functions, prompts and a decoder."""

    family: ClassVar[str] = "functions"

    name: str = "functions_tiny"
    function: FunctionClass = Linear()
    data: PromptData = PromptData()
    curriculum: Curriculum = Curriculum()
    model: FunctionModel = FunctionModel()
    fitted_prompts: int = field(
        200, "test prompts that baselines which are fitted anew at every position are measured on", least=2
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        data, function = self.data, self.function
        check_arrays(2 * data.num_pairs, self.model.d_model, self.model, self.tasks_at_once)
        function.check(data.dim, data.num_pairs)
        self.curriculum.check(data.dim, data.num_pairs, self.training.steps)
        count = function.count(data.dim)
        require(
            data.num_functions == math.inf or data.num_functions <= count,
            f"num_functions is {data.num_functions}, but there are {count:.0f} functions of the class "
            f"{function.kind} of {data.dim} inputs",
        )
        require(
            data.num_functions == math.inf or function.has_pools,
            f"num_functions is {data.num_functions}, but a mixture, {function.kind}, has no pool of functions",
        )
        require(
            math.inf in (data.num_functions, count) or function.is_listed(data.dim),
            f"num_functions is {data.num_functions}, but a pool of different functions is drawn from a list, and the "
            f"{count:.3g} functions of the class {function.kind} of {data.dim} inputs are more than {MOST_LISTED}",
        )
        is_pool = min(data.num_functions, data.num_prompts) < math.inf
        require(
            not (self.curriculum.start_dims and is_pool),
            "a pool has functions and prompts of all inputs, so their number cannot grow; leave out start_dims or the "
            "pool",
        )
        require(
            not 0 < self.curriculum.start_dims < function.least_inputs,
            f"start_dims is {self.curriculum.start_dims}; functions of the class {function.kind} need "
            f"{function.least_inputs} inputs",
        )
        fitting = function.losses
        require(
            self.model.loss in (OWN, *fitting),
            f"loss is {self.model.loss!r}, which does not fit the labels of {function.kind}; it must be "
            f"{' or '.join((OWN, *fitting))}",
        )
        require(
            data.dim >= function.num_classes or self.model.tokens == "interleaved",
            f"tokens is {self.model.tokens!r}, whose rows of {data.dim} channels do not hold {function.num_classes} "
            "classes; take interleaved",
        )

    @classmethod
    def complete(cls, values: dict[str, Any]) -> dict[str, Any]:
        """An unset number of pairs is that of the class: twice the dimension and one, or more."""
        data = dict(values["data"])
        if data["num_pairs"] is None:
            function: FunctionClass = made_of(values["function"], type(cls.function))
            data["num_pairs"] = function.points(data["dim"])
        return values | {"data": data}

    def batch_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the evaluation batch, by field."""
        tasks, pairs = self.eval_tasks, self.data.num_pairs
        of_pairs = {"y": (tasks, pairs), "y_query": (tasks, pairs), "counted": (tasks, pairs)}
        inputs = (tasks, pairs, self.data.dim)
        return {"x": inputs, "x_query": inputs, "member": (tasks,), **of_pairs}

    def canonical(self) -> Self:
        """Equivalent runs are of decoders that differ in how they are written down alone."""
        model: Any = self.model.canonical
        if len(self.function.losses) > 0 and model.loss == self.function.losses[0]:
            model = replace(model, loss=OWN)
        return replace(self, model=model)

    def as_evaluated(self) -> Self:
        """Without a curriculum."""
        return replace(self, curriculum=Curriculum())

    def run_words(self) -> list[str]:
        """The class and the pool in words."""
        data = self.data
        words = [self.function.kind, f"D{data.dim}", f"K{data.num_pairs}"]
        words += [f"M{data.num_functions}"] * (data.num_functions < math.inf)
        words += [f"P{data.num_prompts}"] * (data.num_prompts < math.inf)
        return [*words, *["curriculum"] * self.curriculum.is_on, f"steps{self.training.steps}"]


COMMON: dict[str, Any] = {
    "layer_norm": True,
    "eval_every": 1000,
    "eval_tasks": 1024,
    "test_tasks": 20_000,
    "b1": 0.9,
    "b2": 0.999,
    "grad_clip": 0.0,
    "batch_size": 64,
}
QUICK: dict[str, Any] = {"lr": 1e-3, "schedule": "linear_up_down", "steps": 20_000, "dim": 5}
PAPER: dict[str, Any] = {
    "lr": 1e-4,
    "steps": 500_000,
    "dim": 20,
    "tokens": "interleaved_shared",
    "start_dims": 5,
    "start_points": 11,
}


def _presets(layers: int, width: int, heads: int) -> dict[str, Preset]:
    sizes = COMMON | {"num_layers": layers, "d_model": width, "num_heads": heads, "mlp_width": 4 * width}
    return {"default": Preset(sizes | QUICK), "paper": Preset(sizes | PAPER)}


MODELS = {
    "functions_tiny": _presets(3, 64, 2),
    "functions_small": _presets(6, 128, 4),
    "functions_standard": _presets(12, 256, 8),
}

# --- flags and axes ---

DEFAULT = FunctionsConfig()
POOL_SIZE = Either(INFINITY, math.inf, Whole(1))
FLAGS = (
    flag_of(DEFAULT, "function.kind", name="function"),
    flag_of(DEFAULT, "data.dim", text="inputs, D; by default a prompt has the pairs of its class, 2 D + 1 or more"),
    flag_of(DEFAULT, "data.num_pairs"),
    flag_of(DEFAULT, "data.num_functions", read=POOL_SIZE),
    flag_of(DEFAULT, "data.num_prompts", read=POOL_SIZE),
    flag_of(DEFAULT, "curriculum.start_dims"),
    flag_of(DEFAULT, "curriculum.dims_every"),
    flag_of(DEFAULT, "curriculum.start_points"),
    flag_of(DEFAULT, "curriculum.points_every"),
)
AXES = (
    *FLAGS,
    flag_of(DEFAULT, "model.num_layers"),
    flag_of(DEFAULT, "model.num_heads"),
    flag_of(DEFAULT, "model.d_model"),
    flag_of(DEFAULT, "training.lr"),
    flag_of(DEFAULT, "training.steps"),
)

FAMILY = Family(
    FunctionsConfig,
    MODELS,
    FunctionBatch,
    {"member": "int32"},
    flags=FLAGS,
    axes=AXES,
    follows={"data.num_pairs": ""},
    batched={"data.num_functions": math.inf, "data.num_prompts": math.inf},
    about={
        "functions_tiny": "decoder on prompts of functions of a class, --function NAME: 3 layers of 64 channels",
        "functions_small": "the same: 6 layers of 128 channels",
        "functions_standard": "the same: 12 layers of 256 channels, as published",
    },
)
