"""The flags that every runner has, and the run config they give. Nothing heavy is imported here."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ml_collections import ConfigDict

import cli
from configs.fields import listing
from configs.overrides import AUTO, resolve, set_values
from configs.presets import CONTROLS, PRESETS, preset
from src.config import DIFFICULTIES, NOISE_MODES, ORDERINGS, PLACEMENTS, TASK_LAWS, RunConfig

# flag -> config key; a flag that is not given leaves the preset's value
CONFIG_FLAGS: dict[str, tuple[str, type, str]] = {
    "steps": ("training.steps", int, "training steps"),
    "eval_every": ("eval_every", int, "steps between two records of the metrics"),
    "batch_size": ("training.batch_size", int, "tasks in a training batch"),
    "lr": ("training.lr", float, "learning rate"),
    "num_layers": ("model.num_layers", int, "attention layers"),
    "num_heads": ("model.num_heads", int, "heads of each layer"),
    "pos_enc_size": ("model.pos_enc_size", int, "size of the sinusoidal code concatenated to each token"),
}


def tasks_or_infinity(text: str) -> int:
    """A number of tasks from its text; 0, as in a config, for inf."""
    if text in ("inf", "infinity"):
        return 0
    if not text.removeprefix("-").isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a pool has at least 1 task, or inf of them, not {text}")
    return int(text)


SCHEDULES = {"constant": False, "triangle": True}


def schedule(text: str) -> bool:
    """Whether a schedule's name is the triangle's."""
    if text not in SCHEDULES:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(SCHEDULES)}")
    return SCHEDULES[text]


# the same of the family diversity
DIVERSITY_FLAGS: dict[str, tuple[str, Callable[[str], Any], str]] = {
    "num_tasks": ("data.num_tasks", tasks_or_infinity, "tasks in the pool, M; inf draws a fresh one for each sequence"),
    "task_law": ("data.task_law", str, f"distribution of the tasks: {', '.join(TASK_LAWS)}"),
    "dim": ("data.dim", int, "dimension; noise variance D/32 and 2 D pairs follow it"),
    "num_pairs": ("data.num_pairs", int, "pairs of a sequence, K"),
    "noise_std": ("data.noise_std", float, "standard deviation of the labels' noise"),
    "weight_decay": ("training.weight_decay", float, "weight decay of the blocks' kernels"),
    "schedule": ("training.triangle", schedule, f"of the learning rate: {', '.join(SCHEDULES)}"),
}

# flag -> field of a context; `train_` and `eval_` before the flag set one context alone
CONTEXT_FLAGS: dict[str, tuple[str, type, Sequence[str] | None, str]] = {
    "ordering": ("ordering", str, ORDERINGS, "order of the pairs"),
    "noise_mode": ("noise_mode", str, NOISE_MODES, "how pairs are corrupted"),
    "noise_p": ("noise_p", float, None, "share of pairs hit"),
    "noise_sigma": ("noise_sigma", float, None, "standard deviation of label noise"),
    "noise_placement": ("noise_placement", str, PLACEMENTS, "where corrupted pairs stand"),
}
CONTEXTS = {"": "base", "train_": "train", "eval_": "eval"}


class Request(NamedTuple):
    """What the user asked a runner for."""

    config: RunConfig
    out: str | None
    overwrite: bool
    attention_batch: int | None  # how many tasks to capture attention of; None for no capture
    compile_cache: bool
    quiet: bool = False


def parser(models: str | Sequence[str], prog: str, description: str) -> cli.Parser:
    """The parser of a runner; its help shows the default preset's values, of several models the first one's."""
    first, *others = [models] if isinstance(models, str) else models
    defaults = resolve(preset(first))
    built = cli.Parser(prog, description)
    if others:
        built.add_argument("--model", choices=models, default=first, help="what is trained")
    built.set_defaults(model=first)
    built.add_argument("--seed", type=int, default=0, help="seed of data and initialisation")
    built.add_argument("--data_seed", type=int, help="seed of the data alone")
    built.add_argument("--init_seed", type=int, help="seed of the initialisation alone")
    built.add_argument("--preset", choices=PRESETS, default="default", help="the table of docs/contract.md")
    built.add_argument("--out", help="run directory; runs/<name>[_k] if not given")
    built.add_argument("--overwrite", action="store_true", help="redo what is there")
    built.add_argument("--compile_cache", action="store_true", help="keep compiled programs for the next process")
    cli.add_quiet(built)
    cli.add_config_help(built)
    for flag, (key, kind, text) in CONFIG_FLAGS.items():
        section, _, field = key.rpartition(".")
        value = getattr(getattr(defaults, section) if section else defaults, field)
        built.add_argument(f"--{flag}", type=kind, help=f"{text} (preset: {value})")
    built.epilog = "Any other field of the config: --config.KEY=VALUE, as in --config.dim=20 or --config.data.dim=20."
    if first in CONTROLS:
        built.add_argument("--control", action="store_true", help=f"train the control, {CONTROLS[first]}")
    if defaults.family == "regression":
        _add_regression_flags(built)
    if defaults.family == "diversity":
        for flag, (_, read_value, text) in DIVERSITY_FLAGS.items():
            built.add_argument(f"--{flag}", type=read_value, help=text)
    return built


def _add_regression_flags(built: cli.Parser) -> None:
    """The flags of orderings, noise and captured attention."""
    built.add_argument("--save_attention", action="store_true", help="capture attention at the end")
    built.add_argument("--attention_batch", type=int, default=512, help="tasks to capture attention of")
    built.add_argument("--difficulty", choices=(AUTO, *DIFFICULTIES), default=AUTO, help="what easy2hard sorts by")
    for prefix in CONTEXTS:
        for flag, (_, kind, choices, text) in CONTEXT_FLAGS.items():
            scope = f"{text}, in {prefix[:-1]} contexts alone" if prefix else text
            accepted = (AUTO, *choices) if choices else None
            read = kind if choices else number_or_auto
            built.add_argument(f"--{prefix}{flag}", type=read, choices=accepted, default=AUTO, help=scope)


def read(models: str | Sequence[str], prog: str, description: str, argv: Sequence[str]) -> Request:
    """The request in a command line; `UsageError` or `ConfigError` for what cannot be run."""
    rest, overrides = cli.split_config_flags(argv)
    if "preset" in overrides:
        raise cli.UsageError("preset is not a field to set but a table to start from: --preset")
    flags = parser(models, prog, description).parse(rest)
    given = vars(flags)  # a family may lack some flags
    model = CONTROLS[flags.model] if given.get("control") else flags.model
    if flags.config_help:
        settings = {"num_layers": flags.num_layers} | overrides
        print(listing(preset_of_depth(model, flags.preset, settings)))
        sys.exit(0)
    config = config_from_flags(model, flags, overrides)
    tasks = flags.attention_batch if given.get("save_attention") else None
    if given.get("attention_batch", 1) < 1:
        raise cli.UsageError(f"attention_batch is {flags.attention_batch}; it must be at least 1")
    return Request(config, flags.out, flags.overwrite, tasks, flags.compile_cache, flags.quiet)


def config_from_flags(model: str, flags: argparse.Namespace, overrides: Mapping[str, str]) -> RunConfig:
    """The run config of parsed flags and `--config.` overrides; the latter win."""
    given = vars(flags)  # a family may lack some flags
    config = preset_of_depth(model, flags.preset, {"num_layers": flags.num_layers} | dict(overrides))
    set_values(config, {key: given.get(flag) for flag, (key, _, _) in (CONFIG_FLAGS | DIVERSITY_FLAGS).items()})
    for name in ("data_seed", "init_seed"):
        own = getattr(flags, name)
        set_values(config, {name: flags.seed if own is None else own})
    set_values(config, {"base.difficulty": given.get("difficulty")})
    for prefix, context in CONTEXTS.items():
        values = {f"{context}.{field}": given.get(prefix + flag) for flag, (field, *_) in CONTEXT_FLAGS.items()}
        set_values(config, values)
    set_values(config, overrides)
    return resolve(config)


def preset_of_depth(model: str, name: str, settings: Mapping[str, Any]) -> ConfigDict:
    """The preset for as many layers as the settings ask for: its learning rate and clips depend on that."""
    depth = settings.get("model.num_layers", settings.get("num_layers"))
    recurrent = str(settings.get("model.recurrent", settings.get("recurrent", "false"))).lower() in ("true", "1")
    return preset(model, name, _depth(depth), recurrent)


def _depth(value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except ValueError:
        raise cli.UsageError(f"num_layers is {value!r}; it must be a whole number") from None


def number_or_auto(text: str) -> float | str:
    """A number, or the word that leaves it to the base."""
    try:
        return AUTO if text == AUTO else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor {AUTO}") from None
