"""What a run is known by: the id of its config, the hashes of arrays that it shares, the runs that it requires."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cache
from itertools import compress
from typing import TYPE_CHECKING, Any

from icl_lab.lab.configs.earlier_names import first_fields
from icl_lab.lab.configs.run import Config, RunConfig, Seeds, kinds_in, seeds_of, with_seeds

if TYPE_CHECKING:
    import numpy as np

RESULTS_VERSION = 4  # of the numbers of runs: raised when the same config gives other numbers
VOLATILE = ("preset", "data.file")  # fields that name a config, or its data, without changing what it computes
MARKS = ("<seed of the data>", "<seed of the initialisation>")  # in the place of numbers
DIGITS = 16  # of a SHA-256, in hexadecimal


def config_id(config: RunConfig) -> str:
    """A hash of all that a run's numbers depend on: its family, the resolved config and the results version.

    Only what differs from the family's defaults counts, under the names that fields had first: neither a field added
    later, at its default, nor one renamed changes an id.
    """
    return _digest(_text(config.family, _differing(config)))


def ids_by_seeds(config: RunConfig) -> Callable[[Seeds], str]:
    """`config_id` of a config with other seeds, a hundred times faster: they are put into the text that is hashed."""
    default = seeds_of(type(config)())
    values = _differing(with_seeds(config, default))

    @cache
    def text(*differ: bool) -> str:
        """The hashed text, with marks for the seeds that differ from the defaults; the others are not in it."""
        marks = {f"{name}_seed": mark for name, mark in zip(Seeds._fields, MARKS, strict=True)}
        return _text(config.family, values | dict(compress(marks.items(), differ)))

    def id_of(seeds: Seeds) -> str:
        written = text(seeds.data != default.data, seeds.init != default.init)
        for mark, seed in zip(MARKS, seeds, strict=True):
            written = written.replace(f'"{mark}"', str(seed))
        return _digest(written)

    return id_of


def _differing(config: RunConfig) -> dict[str, Any]:
    """The fields of a config that differ from its family's defaults, under their first names."""
    return differences(first_fields(config), _default_fields(*kinds_in(config)))


@cache
def _default_fields(kind: type[RunConfig], *of_kinds: tuple[str, type[Any]]) -> Mapping[str, Any]:
    """The fields of a family's default config, under their first names.

    Sections of several kinds are of these, so that only a field that differs from its kind's default counts, and of
    the kind itself the name, where it is not the family's default.
    """
    defaults = first_fields(kind())
    for name, section in of_kinds:
        defaults[name] = first_fields(section()) | {"kind": defaults[name]["kind"]}
    return defaults | {"plugins": []}  # a family's own plugin is in its defaults too


def _text(family: str, values: dict[str, Any]) -> str:
    """What is hashed: a family, and the fields that differ from its defaults."""
    hashed = {"family": family, "config": _without(VOLATILE, values), "results_version": RESULTS_VERSION}
    return json.dumps(hashed, sort_keys=True)


def _without(keys: Collection[str], values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """The entries, sections within sections, without those of these dotted names."""
    return {
        name: _without(keys, value, f"{before}{name}.") if isinstance(value, dict) else value
        for name, value in values.items()
        if before + name not in keys
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def differences(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that differ from the defaults, sections within sections."""
    return {
        name: differences(value, defaults[name]) if isinstance(value, dict) else value
        for name, value in values.items()
        if value != defaults[name]
    }


def number_of(text: str) -> int:
    """A 32-bit number that stands for a text in keys of random numbers."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")


def array_hash(array: np.ndarray) -> str:
    """The hash of an array's type, shape and content."""
    head = json.dumps([array.dtype.str, list(array.shape)]).encode()
    return hashlib.sha256(head + array.tobytes()).hexdigest()[:DIGITS]


# --- what a run depends on besides its fields ---


def with_dependencies(config: Config) -> Config:
    """The config with the hashes of the arrays it shares with others and the ids of the runs that it requires."""
    shared = shared_hashes(config, config.shared_arrays())
    requires = tuple(config_id(required) for required in required_of(config))
    same = (shared, requires) == (config.shared, config.requires)
    return config if same else replace(config, shared=shared, requires=requires)


def shared_hashes(config: RunConfig, shared: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    """NAME:HASH of each shared array of a config, equal on all machines: of its `hashed_as` array, else of itself."""
    arrays = {**shared, **config.hashed_as()}
    return tuple(f"{name}:{array_hash(array)}" for name, array in sorted(arrays.items()))


def depends_on_nothing(config: RunConfig) -> bool:
    """Whether a config shares no arrays and requires no runs, whatever its seeds."""
    kind = type(config)
    return not config.shares_arrays and kind.required_runs is RunConfig.required_runs


def required_of(config: RunConfig) -> list[RunConfig]:
    """The configs of the runs that a run builds on."""
    return [with_dependencies(required) for required in config.required_runs()]


def generation(config: RunConfig) -> int:
    """How many runs stand in a row before this one can begin."""
    return max((1 + generation(required) for required in required_of(config)), default=0)


def root(config: RunConfig) -> RunConfig:
    """The first run in the chain that a run builds on; the run itself if it requires none."""
    required = required_of(config)
    return root(required[0]) if required else config
