"""The flags of a runner and the run config that they give. Imports nothing heavy."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from icl_lab.lab import cli
from icl_lab.lab.configs.config_help import listing
from icl_lab.lab.configs.earlier_names import todays_words
from icl_lab.lab.configs.family import AUTO, Family, Flag, flag_of
from icl_lab.lab.configs.keys import find_key, leaves
from icl_lab.lab.configs.presets import check_given, preset, resolve, set_values, value_at
from icl_lab.lab.configs.registry import family_of_model, outputs_of
from icl_lab.lab.configs.run import RunConfig
from icl_lab.lab.flag_types import SEED, of_field, truth, whole
from icl_lab.lab.native.kernel import AUTO as AUTO_KERNEL
from icl_lab.runners import distributed, kernel, llc, resume
from icl_lab.runners.distributed import Process
from icl_lab.runners.llc import Llc
from icl_lab.runners.resume import Persistence
from icl_lab.src.config import StackConfig
from icl_lab.store.outputs import run_directory
from icl_lab.store.weights import Given, Weights, weights_of

# flags of every family whose config has the field; the default is the preset's value
COMMON_FLAGS = (
    *map(partial(flag_of, RunConfig()), ("training.steps", "eval_every", "training.batch_size", "training.lr")),
    *map(partial(flag_of, RunConfig()), ("training.train_only", "stop_when", "patience", "keep_best", "log_norms")),
    flag_of(StackConfig(), "model.num_layers", text="attention layers"),
    flag_of(StackConfig(), "model.num_heads"),
)


# fields that cannot be set -> what to use instead
NOT_SET = {
    "preset": "use --preset",
    "plugins": "use --plugin",
    "family": "it follows from the model",
    "init_from": "use --init_from",
}


class Request(NamedTuple):
    """What the user asked for. `options` are the values of flags that are not fields of the config."""

    config: RunConfig
    out: str | None
    overwrite: bool
    options: Mapping[str, Any]
    quiet: bool = False
    persistence: Persistence = Persistence()
    llc: Llc | None = None
    process: Process | None = None
    keep_state: bool = True
    weights: Weights | None = None
    kernel: str = AUTO_KERNEL

    @property
    def given(self) -> tuple[Weights, ...]:
        """The parameters that the run starts from, if any are given."""
        return () if self.weights is None else (self.weights,)


def config_flags(family: Family) -> list[Flag]:
    """The flags that set fields of a family's config."""
    known = leaves(preset(next(iter(family.models))).to_dict()).values()
    return [flag for flag in COMMON_FLAGS if flag.key in known] + [
        flag for flag in (*family.flags, *family.flags_of_kinds) if flag not in family.lists
    ]


def keys_of(model: str, names: Iterable[str]) -> dict[str, str]:
    """{name: dotted key} of fields of a model's config.

    A short name that is a flag's means what the flag means. `UsageError` for one that no field has, or several.
    """
    config = preset(model).to_dict()
    known = leaves(config)
    of_flags = keys_of_flags(family_of_model(model))
    return {
        name: name if name in known.values() else of_flags.get(name) or find_key(config, name, known) for name in names
    }


def keys_of_flags(family: Family) -> dict[str, str]:
    """{name: key} of the flags of a family's runners and sweeps that set fields."""
    flags = (*config_flags(family), *family.lists, *family.all_axes)
    return {name: flag.key for flag in flags for name in (flag.name, *flag.short, *flag.former)}


def parser(models: str | Sequence[str], prog: str, description: str) -> cli.Parser:
    """The parser of a runner; its help shows the default preset's values of the first model."""
    first, *others = [models] if isinstance(models, str) else models
    family, defaults = family_of_model(first), resolve(preset(first))
    built = cli.Parser(prog, description)
    if others:
        built.add_argument("--model", choices=models, default=first, help="model to train")
    built.set_defaults(model=first)
    built.config_keys = [key for key in leaves(preset(first).to_dict()) if key not in NOT_SET]
    built.add_argument("--seed", type=SEED, default=0, help="seed of data and initialisation")
    built.add_argument("--data_seed", type=SEED, help="seed of the data; default: --seed")
    built.add_argument("--init_seed", type=SEED, help="seed of the initialisation; default: --seed")
    switched = [instead[first] for instead, _ in family.switches.values() if first in instead]
    names = [name for name in family.models[first] if all(name in family.models[one] for one in (*others, *switched))]
    built.add_argument(
        "--preset",
        choices=names,
        default="default",
        help="named set of default values, listed in docs/reference/presets.md",
    )
    built.add_argument("--out", type=run_directory, help="run directory; default: runs/<name>[_k]")
    built.add_argument("--overwrite", action="store_true", help="retrain a run that exists")
    resume.add_flags(built)
    kernel.add_flag(built)
    built.add_argument(
        "--keep_state",
        type=truth,
        nargs="?",
        const=True,
        default=True,
        metavar="BOOL",
        help="keep the final training state, so that a run with more --steps can continue from it",
    )
    built.add_argument(
        "--init_from",
        metavar="RUN[@STEP]",
        type=source,
        help="start from the parameters of a finished run, of its snapshot at STEP, or of a safetensors file",
    )
    cli.add_quiet(built)
    cli.add_config_help(built)
    of_kinds = family.flags_of_kinds  # which say their defaults themselves
    for flag in config_flags(family):
        has_value = flag.default is None and flag not in of_kinds
        value = f" (preset: {value_at(defaults, flag.key)})" if has_value else ""
        value = "" if value == " (preset: )" else value
        add_flag(built, flag, value)
    cli.add_word_lists(built, family.lists)
    built.epilog = "--config.KEY=VALUE sets any other field of the config, as in --config.eval_tasks=512."
    for name, (instead, text) in family.switches.items():
        if first in instead:
            built.add_argument(f"--{name}", action="store_true", help=text)
    for flag in outputs_of(family).options:
        add_flag(built, flag)
    llc.add_flags(built)
    distributed.add_flags(built)
    return built


def reader(flag: Flag) -> Callable[[str], Any]:
    """What reads a flag's value, which takes a word of an earlier version for today's."""
    read, words = of_field(flag.read), todays_words(flag.key)
    return (lambda text: read(words.get(text, text))) if words else read


def source(text: str) -> str:
    """The value of --init_from; `argparse.ArgumentTypeError` for no path."""
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a run nor a file")
    return text


def add_flag(built: cli.Parser, flag: Flag, value: str = "") -> None:
    """Adds a flag; one with choices also accepts "auto" if that is its default."""
    if flag.read is bool:
        default = None if flag.key else False  # a preset's value stays where the flag is not given
        built.add_argument(f"--{flag.name}", action="store_true", default=default, help=flag.text)
        return
    names = None if flag.choices is None else [*[AUTO] * (flag.default == AUTO), *flag.choices]
    built.add_argument(
        f"--{flag.name}", type=reader(flag), choices=names, default=flag.default, help=f"{flag.text}{value}"
    )
    cli.add_former_names(built, flag.name, flag.former)


def read(models: str | Sequence[str], prog: str, description: str, argv: Sequence[str]) -> Request:
    """The request in a command line; `UsageError` or `ConfigError` if it cannot be run."""
    rest, overrides = cli.split_config_flags(argv)
    for name, instead in NOT_SET.items():
        if name in overrides:
            raise cli.UsageError(f"{name} cannot be set with --config.; {instead}")
    flags = parser(models, prog, description).parse(rest)
    family = family_of_model(flags.model)
    model = flags.model
    for name, (models_instead, _) in family.switches.items():
        if getattr(flags, name, False):
            model = models_instead[flags.model]
    if flags.config_help:
        settings = {"num_layers": getattr(flags, "num_layers", None)} | overrides
        print(listing(preset_for_depth(model, flags.preset, settings)))
        sys.exit(0)
    config = config_from_flags(model, flags, overrides)
    options = {flag.name: getattr(flags, flag.name) for flag in outputs_of(family).options}
    kept, watched = resume.from_flags(flags), llc.from_flags(flags)
    process = distributed.from_flags(flags)
    if process is not None and flags.out is None:
        raise cli.UsageError("training in several processes needs --out, so that all of them use one run directory")
    out = None if flags.out is None else str(flags.out)
    request = Request(config, out, flags.overwrite, options, flags.quiet, kept, watched, process, flags.keep_state)
    request = request._replace(kernel=flags.kernel)
    return request if flags.init_from is None else starting_from(request, flags.init_from)


def starting_from(request: Request, given: Given) -> Request:
    """A request of a run that starts from given parameters (`store.weights`)."""
    weights = weights_of(given)
    return request._replace(config=replace(request.config, init_from=weights.source), weights=weights)


def config_from_flags(model: str, flags: argparse.Namespace, overrides: Mapping[str, str]) -> RunConfig:
    """The run config from flags and `--config.` overrides; overrides win."""
    config = preset_for_depth(model, flags.preset, {"num_layers": getattr(flags, "num_layers", None)} | dict(overrides))
    for name in ("data_seed", "init_seed"):
        seed = getattr(flags, name)
        set_values(config, {name: flags.seed if seed is None else seed})
    values = {flag.key: getattr(flags, flag.name) for flag in config_flags(family_of_model(model))}
    given = {key: value for key, value in values.items() if value is not False}  # a flag that stands for true
    set_values(config, given)
    set_values(config, list_values(family_of_model(model), flags))
    set_values(config, overrides)
    resolved: RunConfig = resolve(config)
    check_given(resolved, given, overrides)
    return resolved


def list_values(family: Family, flags: argparse.Namespace) -> dict[str, Any]:
    """The values of a family's lists of words, by key; None where a flag is not given."""
    given = {flag: getattr(flags, flag.name) for flag in family.lists}
    return {
        flag.key: None if words is None else tuple(word for one in words for word in flag.read(one))
        for flag, words in given.items()
    }


def preset_for_depth(model: str, name: str, settings: Mapping[str, Any]) -> ConfigDict:
    """The preset for the number of layers in the settings, on which its learning rate and clips depend."""
    depth = settings.get("model.num_layers", settings.get("num_layers"))
    recurrent = str(settings.get("model.recurrent", settings.get("recurrent", "false"))).lower() in ("true", "1")
    return preset(model, name, _depth(depth), recurrent)


def _depth(value: Any) -> int | None:
    try:
        return None if value is None else whole(str(value))
    except ValueError:
        raise cli.UsageError(f"num_layers is {value!r}; it must be a whole number") from None
