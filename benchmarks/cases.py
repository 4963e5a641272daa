"""The measurements by name. Imports nothing heavy, so that a wrong name is reported at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.lab.configs.run import RunConfig


@dataclass(frozen=True)
class Case:
    """Work timed within a process, on a model's preset with these values; a unit of ours is for `width` runs.

    work: a key of `benchmarks.programs.WORK`.
    """

    text: str
    model: str
    values: Mapping[str, Any] = field(default_factory=dict)
    work: str = "steps"
    width: int = 1

    @cached_property
    def config(self) -> Any:
        """The run's config, which of a text reads it."""
        return config_of(self.model, **self.values)


class Commands(NamedTuple):
    """Command lines (after `python`) timed from process start; {steps} and {out} are filled in.

    `times` multiplies the seconds of a command that does only a part of the others' work.
    """

    text: str
    words: dict[str, str]
    times: Mapping[str, int] = {}


class Sweep(NamedTuple):
    """Steps timed while one size grows: `at` gives the config and the pack's width for each value."""

    text: str
    values: Sequence[int]
    at: Callable[[int], tuple[RunConfig, int]]


def config_of(model: str, num_layers: int | None = None, **values: Any) -> Any:
    """The config of a model's preset at a depth, with these fields."""
    config = preset(model, num_layers=num_layers)
    set_values(config, values)
    return resolve(config)


def lsa1(num_layers: int = 1, **values: Any) -> RegressionConfig:
    """The config of the main experiment."""
    config: RegressionConfig = config_of("lsa1", num_layers, **values)
    return config


def decoder(model: str, **values: Any) -> DiversityConfig:
    """The config of a decoder on a pool of 16 tasks."""
    config: DiversityConfig = config_of(model, **values)
    return config


CASES: dict[str, Case] = {
    "lsa1_1": Case("a step of lsa1", "lsa1"),
    "lsa1_2": Case("a step, 2 layers", "lsa1", {"num_layers": 2}),
    "lsa1_5": Case("a step, 5 layers", "lsa1", {"num_layers": 5}),
    "lsa1_12": Case("a step, 12 layers", "lsa1", {"num_layers": 12}),
    "twolayer": Case("a step of twolayer", "twolayer"),
    "pack_8": Case("a step of one of 8 runs of lsa1 in a pack", "lsa1", width=8),
    "pack_64": Case("a step of one of 64 runs of lsa1 in a pack", "lsa1", width=64),
    "decoder_tiny": Case("a step of the decoder tiny, batch 64", "tiny"),
    "decoder_tiny_pack_4": Case("a step of one of 4 decoders tiny in a pack", "tiny", width=4),
    "decoder_small": Case("a step of the decoder small, batch 256", "small"),
    "decoder_tiny_1024": Case("a step of the decoder tiny, batch 1024", "tiny", {"batch_size": 1024}),
    "decoder_text": Case("a step of the decoder of text, batch 16", "text"),
    "decoder_text_32": Case("a step of the decoder of text, batch 32", "text", {"batch_size": 32}),
    "gradient_5": Case("losses and gradients alone, 5 layers", "lsa1", {"num_layers": 5}, "gradients"),
    "gradient_12": Case("losses and gradients alone, 12 layers", "lsa1", {"num_layers": 12}, "gradients"),
    "gradient_heads": Case(
        "losses and gradients alone, twolayer with 2 heads", "twolayer", {"num_heads": 2}, "gradients"
    ),
    "gradient_alone": Case(
        "losses and gradients alone, a layer at N = D = 20", "lsa1", {"dim": 20, "num_pairs": 20}, "gradients"
    ),
    "gradient_large": Case(
        "losses and gradients alone, 3 layers at N = D = 50, 256 tasks",
        "lsa1",
        {"num_layers": 3, "dim": 50, "num_pairs": 50, "batch_size": 256},
        "gradients",
    ),
    "batches": Case("a training batch of lsa1", "lsa1", work="batches"),
    "evaluation": Case("lsa1 on 10 000 tasks", "lsa1", work="evaluation"),
    "evaluation_twolayer": Case("twolayer on 10 000 tasks", "twolayer", work="evaluation"),
}

SWEEP_OF_16 = (
    "-m eval_noise --models lsa1 --ordering random,smallnorm2largenorm --noise_mode label_noise --p 0,0.25 --sigma 0.5 "
    "--placement mixed --seeds 0,1,2,3 --steps {steps} --overwrite --runs_dir {out}_cells --out {out}.csv"
)
RUN = "-m runners.run_concat_inputs_targets --steps {steps} --overwrite --out {out}"

DEEP_RUN = "-m runners.run_concat_inputs_targets --config.num_layers=8 --steps 300 --overwrite --out {out}"

COMMANDS: dict[str, Commands] = {
    "run": Commands(
        "a run of lsa1, {steps} steps, from process start",
        {
            "ours": RUN,
            "cold": RUN,
            "xla": f"{RUN} --kernel xla",
            "plain": "-m benchmarks.plain_loop --steps {steps}",
        },
    ),
    "sweep": Commands(
        "16 runs of lsa1, {steps} steps, as a sweep from process start",
        {
            "ours": SWEEP_OF_16,
            "xla": f"{SWEEP_OF_16} --kernel xla",
            "plain": "-m benchmarks.plain_loop --steps {steps}",
        },
        {"plain": 16},
    ),
    "sweep_ways": Commands(
        "16 runs of lsa1, {steps} steps, as a sweep from process start",
        {
            "ours": SWEEP_OF_16,
            "packed": f"{SWEEP_OF_16} --executor packed",
            "ray": f"{SWEEP_OF_16} --executor ray",
            "separate": RUN,
            "plain": "-m benchmarks.plain_loop --steps {steps}",
        },
        {"separate": 16, "plain": 16},
    ),
    "deep_run": Commands(
        "300 steps of eight layers, from process start",
        {"ours": DEEP_RUN, "xla": f"{DEEP_RUN} --kernel xla"},
    ),
    "help": Commands("--help of the runner", {"ours": "-m runners.run_concat_inputs_targets --help"}),
    "import_jax": Commands("import jax, for scale", {"ours": "-c 'import jax'"}),
}

VARIABLES = {"cold": {"JAX_ENABLE_COMPILATION_CACHE": "false"}}  # of the environment of a command's line
NEEDED = {"ray": "ray"}  # the module without which a line is left out

COMPILED = ("lsa1_1", "lsa1_12", "twolayer")  # cases whose compilation is timed

SWEEPS: dict[str, Sweep] = {
    "growth_layers": Sweep("layers", (1, 2, 3, 5, 8, 12), lambda layers: (lsa1(layers), 1)),
    "growth_pairs": Sweep("pairs in a context, N", (5, 10, 20, 40, 80), lambda n: (lsa1(num_pairs=n), 1)),
    "growth_dim": Sweep("dimension of the inputs, D", (5, 10, 20, 40, 80), lambda d: (lsa1(dim=d), 1)),
    "growth_batch": Sweep(
        "tasks in a batch, B", (128, 256, 512, 1024, 2048, 4096, 8192), lambda size: (lsa1(batch_size=size), 1)
    ),
    "growth_pack": Sweep("runs in a pack", (1, 2, 4, 8, 16, 32, 64), lambda width: (lsa1(), width)),
}

# of benchmarks/llc.py
LLC = (
    *("llc_step_256", "llc_step_64", "llc_chains_64", "llc_native_1", "llc_native_5"),
    *("llc_error_published", "llc_error_default"),
    *("llc_bias_published", "llc_bias_default", "llc_run"),
)

OF_ANY_MODEL = ("llc_cold_mlp", "llc_predict_mlp", "llc_predict_lsa1")  # of benchmarks/llc_any_model.py

DEVELOPMENT = ("develop_forms", "develop_metrics", "develop_hessian")  # of benchmarks/development.py

# of benchmarks/looking_inside.py
CAPTURE = ("capture_small", "capture_small_early", "capture_lsa1", "capture_lsa1_early")

CURRICULUM = ("curriculum_points",)  # of benchmarks/curriculum.py

COMPILATIONS = tuple(f"compile_{name}" for name in COMPILED)
NAMES = ("peak", "same_loss", *CASES, *COMPILATIONS, *COMMANDS, *SWEEPS)
NAMES += (*LLC, *OF_ANY_MODEL, *DEVELOPMENT, *CAPTURE, *CURRICULUM)


class Settings(NamedTuple):
    """How long to measure: repeats, seconds per repeat, steps of a run, steps to the same loss, points per sweep."""

    repeats: int
    seconds: float
    run_steps: int
    loss_steps: int
    points: int | None
    matmul_size: int


FULL = Settings(5, 0.5, 5000, 5000, None, 4096)
QUICK = Settings(2, 0.01, 20, 200, 2, 256)
