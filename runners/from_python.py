"""Trains a run from Python as the command does: keyword arguments are its flags, and exceptions have its sentences."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis.run import own_weights
from icl_lab.lab.cli import UsageError
from icl_lab.lab.configs.presets import command_of
from icl_lab.lab.configs.registry import family_of, family_of_model
from icl_lab.lab.configs.run import RunConfig
from icl_lab.runners import command, flags
from icl_lab.src.checks import UserError, require
from icl_lab.store import checkpoint, rundir

PROG = "runners.run"
OF_COMMANDS = {  # flags that mean nothing in Python -> what to do instead
    "help": "docs/reference.md lists the fields",
    "config_help": "icl_lab.presets(MODEL) lists the fields",
    "plugin": "call icl_lab.lab.plugins.load(FILE) first",
}


class Diverged(UserError):
    """The losses of a run are no longer finite; its state up to that point is kept."""


def request_of(model: str | RunConfig, settings: Mapping[str, Any]) -> flags.Request:
    """What `icl-lab run MODEL` makes of flags of these names; other names are fields of the config.

    `model` is a name, or the config of a run, in which the settings change fields; what follows these changes too.
    """
    settings = {name: own_weights(value) for name, value in settings.items()}
    if isinstance(model, str):
        return _read(model, [], settings)
    words = shlex.split(command_of(model))
    words = words[words.index(model.name) + 1 :]
    require(
        not model.init_from or "init_from" in settings, "this config starts from stored parameters; give init_from too"
    )
    begun = replace(model, init_from="")
    same = _read(model.name, words, {}).config == begun
    require(same, f"this config of {model.name} cannot be given by flags of `icl-lab run`, so it cannot be trained")
    changed = _changed(model, settings)
    return _read(model.name, [word for word in words if _key(word) not in changed], settings)


def _changed(config: RunConfig, settings: Mapping[str, Any]) -> set[str]:
    """The keys that settings change in a config: those of their fields, and those that have followed them in it."""
    fields = [name for name, value in settings.items() if value is not None and _is_field(config.name, name)]
    changed = {*flags.keys_of(config.name, fields).values(), *(["data_seed", "init_seed"] * ("seed" in settings))}
    for section, of in family_of(config).follows.items():
        followed = of.removeprefix("as ")
        for key in [key for key in changed if key.startswith(f"{followed}.")]:
            name = key.removeprefix(f"{followed}.")
            if getattr(getattr(config, section, None), name, None) == getattr(getattr(config, followed), name):
                changed.add(f"{section}.{name}")
    return changed


def _is_field(model: str, name: str) -> bool:
    """Whether a setting is a field of the config, as all are that are no options of the command."""
    known = flags.parser(model, PROG, "")._option_string_actions
    return name not in OF_COMMANDS and (f"--{name}" not in known or name in flags.keys_of_flags(family_of_model(model)))


def _key(word: str) -> str:
    """The key that a word of a command sets; "" for others."""
    return word.removeprefix("--config.").partition("=")[0] if word.startswith("--config.") else ""


def _read(model: str, words: list[str], settings: Mapping[str, Any]) -> flags.Request:
    known = flags.parser(model, PROG, "")._option_string_actions
    fields = flags.keys_of_flags(family_of_model(model))
    arrays = {name: value for name, value in settings.items() if isinstance(value, Mapping)}
    require(arrays.keys() <= {"init_from"}, f"{next(iter(arrays), '')} is a dictionary; it must be one value")
    more = [
        word for name, value in settings.items() if name not in arrays for word in _words(name, value, known, fields)
    ]
    request = flags.read(model, PROG, "", [*words, *more])
    return flags.starting_from(request, arrays["init_from"]) if arrays else request


def _words(name: str, value: Any, known: Mapping[str, Any], fields: Mapping[str, str]) -> Iterator[str]:
    """A keyword argument as words of the command; none for None."""
    if name in OF_COMMANDS:
        raise UsageError(f"{name} is a flag of commands; in Python, {OF_COMMANDS[name]}")
    action = known.get(f"--{name}")
    if value is None:
        return
    if action is None:
        yield f"--config.{name}={_text(value)}"
    elif action.nargs != 0:
        yield f"--{name}={_text(value)}"
    elif value:
        yield f"--{name}"
    elif name in fields:  # a preset, or a config, may have it true
        yield f"--config.{fields[name]}=false"


def _text(value: Any) -> str:
    """A value as it is typed."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    return ",".join(map(_text, value)) if isinstance(value, (list, tuple)) else str(value)


def train(model: str | RunConfig, settings: Mapping[str, Any]) -> Path:
    """The directory of a finished run of this config; without one it is trained, from its last checkpoint on.

    A signal stops the training at a checkpoint and is raised again: the same call goes on. `Diverged` if it did.
    """
    request = request_of(model, settings)
    directory = rundir.choose(request.config, request.out, request.overwrite, finished=True)
    ended = command.train(request, directory)
    if ended.status == "stopped":
        _pass_on(ended.signal, directory)
    if ended.status == "diverged":
        raise Diverged(command.divergence_text(directory, request.config.name))
    if not request.quiet:
        command.print_notices([directory], ended.finished)
    return directory


def _pass_on(number: int, directory: Path) -> None:
    """Raises a signal that was noted, for whoever handles it in this process: Ctrl-C is `KeyboardInterrupt`."""
    step = max(checkpoint.steps(directory), default=0)
    print(f"{directory} is stopped at step {step}; the same call, without overwrite, goes on")
    signal.raise_signal(number)
    raise KeyboardInterrupt
