"""The command that trains a run of a config."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from icl_lab.lab.configs.keys import OUTSIDE
from icl_lab.lab.configs.overrides import completed
from icl_lab.lab.configs.presets import preset
from icl_lab.lab.configs.run import RunConfig, fields_of


def command_of(config: RunConfig) -> str:
    """`python -m runners.run MODEL` with what differs from the config's preset, quoted for a shell."""
    begun = fields_of(completed(preset(config.name, config.preset)))
    words = ["python", "-m", "runners.run", config.name]
    if config.preset != RunConfig.preset:
        words += ["--preset", config.preset]
    if config.data_seed == config.init_seed != 0:
        words += ["--seed", str(config.data_seed)]
        begun |= {"data_seed": config.data_seed, "init_seed": config.init_seed}
    words += [f"--config.{key}={_text(value)}" for key, value in _differing(fields_of(config), begun)]
    return shlex.join(words)


def _differing(values: Mapping[str, Any], others: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _differing(value, others[name], f"{before}{name}.")
        elif before + name not in OUTSIDE and value != others[name]:
            yield before + name, value


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
