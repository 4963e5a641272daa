"""The axes of a sweep: any field of a config, under its own name or its flag's; several in one axis move together.

An axis is a field's name or, of an axis whose fields move together, a tuple of names; its values are tuples then.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from icl_lab.lab.configs.earlier_names import renamed
from icl_lab.lab.configs.family import AUTO
from icl_lab.lab.configs.registry import family_of_model
from icl_lab.lab.configs.run import default_of
from icl_lab.runners import flags
from icl_lab.src.checks import UsageError, require
from icl_lab.src.words import in_brackets, parted

Axis: TypeAlias = str | tuple[str, ...]
Axes: TypeAlias = Mapping[Any, Sequence[Any]]  # by `Axis`; a mapping's keys are of one type to a type checker

# fields that must not be set: no effect, or rows that could not be distinguished -> what to use instead
RESERVED = {
    "preset": "--preset",
    "data_seed": "--seeds",
    "name": "--models",
    "plugins": "--plugin",
}
INIT_FROM = "init_from"  # no field that one sets, but an axis (`sweeps.sources`)
BEGINNING = re.compile(r"[A-Za-z_][\w.-]*=")  # of a field's values
LISTED = "each of its values stands in brackets, as in attention=(softmax,linear),(linear)"


# --- names ---


def fields(axis: Axis) -> tuple[str, ...]:
    """The names of an axis's fields."""
    return (axis,) if isinstance(axis, str) else axis


def keys_of(model: str, names: Iterable[str]) -> dict[str, str]:
    """{name: dotted key} of fields of a model's config, and of `init_from`; raises as `runners.flags.keys_of` does."""
    wanted = [*names]
    keys = flags.keys_of(model, [name for name in wanted if name != INIT_FROM])
    return keys | {name: name for name in wanted if name == INIT_FROM}


def in_words(axis: Axis) -> str:
    """An axis in a sentence."""
    return " and ".join(fields(axis))


def checked_keys(model: str, axes: Axes) -> dict[str, str]:
    """`keys_of` all fields of axes; raises where one cannot be swept, is swept twice, or lacks a list's brackets."""
    names = [name for axis in axes for name in fields(axis)]
    for name in names:
        require(name not in RESERVED, f"{name} cannot be swept; use {RESERVED.get(name)}")
    keys = keys_of(model, names)
    lists = keys_of_lists(model, keys.values())
    by_key: dict[str, str] = {}
    for name in names:
        key = keys[name]
        require(key not in by_key, f"{key} is swept twice, as {by_key.get(key)} and {name}")
        by_key[key] = name
    for axis, values in axes.items():
        for name, column in zip(fields(axis), _columns(axis, values), strict=True):
            if keys[name] in lists:
                bare = any(isinstance(read_list(value), str) and value != AUTO for value in column)
                require(not bare, f"{name} is a list of words; {LISTED}")
    return keys


def keys_of_lists(model: str, keys: Iterable[str]) -> set[str]:
    """The fields, among those of these keys, whose value is a list."""
    kind = family_of_model(model).config
    return {key for key in keys if isinstance(default_of(kind, key), tuple)}


def read_list(value: Any) -> Any:
    """The words of a list that is text in brackets; any other value as it is."""
    words = in_brackets(value) if isinstance(value, str) else None
    return value if words is None else words


def _columns(axis: Axis, values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """The values of each field of an axis; `ConfigError` for an axis that lacks any, or for one of unequal lists."""
    require(len(values) > 0, f"{in_words(axis)} is an empty list; it needs at least one value")
    if isinstance(axis, str):
        return iter([values])
    for value in values:
        both = isinstance(value, tuple | list) and len(value) == len(axis)
        require(both, f"{in_words(axis)} move together, so {value!r} must have {len(axis)} values")
    return zip(*values, strict=True)


def point_of(axes: Axes, values: Sequence[Any]) -> dict[str, Any]:
    """{name: value} of the fields of axes, of one value of each axis."""
    of_axes = zip(axes, values, strict=True)
    return {
        name: one
        for axis, value in of_axes
        for name, one in zip(fields(axis), [value] if isinstance(axis, str) else value, strict=True)
    }


def refuse_set(model: str, axes: Axes, settings: Mapping[str, Any]) -> None:
    """`ConfigError` if a field that is swept is also set for all runs alike; raises as `checked_keys` does."""
    keys = {key: name for name, key in checked_keys(model, axes).items()}
    for name in (name for name, value in settings.items() if value is not None):
        earlier = renamed(name)
        key = earlier.key if earlier else keys_of(model, [name])[name]
        require(key not in keys, f"{keys.get(key)} is swept, and set for all runs alike; leave one of them out")


# --- command lines ---


def of_words(swept: Sequence[str], zipped: Sequence[Sequence[str]]) -> dict[Axis, list[Any]]:
    """The axes of --sweep FIELD=VALUES, and of each --zip FIELD=VALUES FIELD=VALUES, with values as text."""
    found: dict[Axis, list[Any]] = {}
    for name, values in _lists("--sweep", swept):
        require(name not in found, f"{name} is swept twice")
        found[name] = values
    for words in zipped:
        lists = _lists("--zip", words)
        names = tuple(name for name, _ in lists)
        lengths = [len(values) for _, values in lists]
        counts = ", ".join(f"{name} has {length}" for name, length in zip(names, lengths, strict=True))
        require(len({*names}) == len(names), f"--zip {in_words(names)}: a field is given twice")
        require(len({*lengths}) == 1, f"--zip moves its fields together, so their lists are of equal length: {counts}")
        found[names] = list(zip(*(values for _, values in lists), strict=True))
    return found


def _lists(flag: str, words: Iterable[str]) -> list[tuple[str, list[Any]]]:
    """(name, values) of each FIELD=VALUES; a word that names no field goes on with the list before it."""
    texts: list[list[str]] = []
    for word in words:
        if BEGINNING.match(word):
            texts.append([word])
        elif texts:
            texts[-1].append(word)
        else:
            raise UsageError(f"argument {flag}: {word!r} is not FIELD=VALUES, as in lr=1e-3,3e-3")
    lists = []
    for name, _, rest in (",".join(text).partition("=") for text in texts):
        values = parted(rest)
        require(len(values) > 0, f"{name} is an empty list; it needs at least one value")
        lists.append((name.replace("-", "_"), [*values]))
    return lists
