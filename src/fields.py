"""Fields of configs: what a field means, and the names or the range that it may have, said once, beside the field.

Help texts, flags and checks are read from it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

from icl_lab.src.checks import in_range, one_of, size
from icl_lab.src.checks import scale as check_scale

KEY = "meaning"  # of a field's metadata


class OfKinds:
    """A section of a config that comes in several kinds, each a frozen dataclass with fields of its own.

    `kind`, a field, is the name of a section's kind; a field that several kinds have is of one type in all.
    """

    kind: str

    @classmethod
    def registered(cls) -> Mapping[str, type[Any]]:
        """The kinds that there are, by name."""
        raise NotImplementedError(f"{cls.__name__} lacks registered")


def kinds_of(section: type[Any]) -> Mapping[str, type[Any]]:
    """The kinds of a section by name; of a section that comes in one kind alone, none."""
    return section.registered() if issubclass(section, OfKinds) else {}


def every_kind(section: type[Any]) -> dict[str, dict[str, Any]]:
    """{field: {kind: default}} of the fields that kinds of a section have, `kind` itself left out."""
    found: dict[str, dict[str, Any]] = {}
    for kind, of_kind in kinds_of(section).items():
        for each in dataclasses.fields(of_kind):
            if each.name != "kind":
                found.setdefault(each.name, {})[kind] = each.default
    return found


class Meaning(NamedTuple):
    """What a field means, the names it may have, which may become more while plugins load, and check(name, value)."""

    text: str
    names: Iterable[str] = ()
    check: Callable[[str, Any], None] | None = None

    def __str__(self) -> str:
        return f"{self.text}: {', '.join(self.names)}" if self.names else self.text


def field(
    default: Any,
    text: str,
    *,
    names: Iterable[str] = (),
    least: int | None = None,
    low: float | None = None,
    high: float = math.inf,
    open_low: bool = False,
    scale: bool = False,
    checked: bool = True,
) -> Any:
    """A field of a frozen dataclass.

    names: it is one of them, or a tuple of them. least: a whole number of at least this. low, high: a number between
    them, without `low` where `open_low`. scale: a scale of data, above 0 where `open_low`. Without `checked` its class
    checks it. In the text of a section's field, {} stands for the text of the section.
    """
    check: Callable[[str, Any], None] | None = None
    if names and checked:
        check = partial(_check_names, names)
    elif least is not None:
        check = partial(size, least=least)
    elif scale:
        check = partial(check_scale, open_low=open_low)
    elif low is not None:
        check = partial(in_range, low=low, high=high, open_low=open_low)
    return dataclasses.field(default=default, metadata={KEY: Meaning(text, names, check)})


def _check_names(names: Iterable[str], name: str, value: Any) -> None:
    for word in value if isinstance(value, tuple) else (value,):
        one_of(name, word, names)


def check_fields(config: Any) -> None:
    """`ConfigError` unless each field has a value that it may have."""
    kind: Any = type(config)
    for name, meaning in _of_kind(kind).items():
        if meaning.check is not None:
            meaning.check(name, getattr(config, name))


def meaning_of(kind: type[Any], name: str) -> Meaning:
    """The meaning of a field of a class."""
    of_kind: Any = kind
    return _of_kind(of_kind)[name]


def meanings(config: Any) -> Iterator[tuple[str, Meaning]]:
    """(dotted name, meaning) of each field of a config, and of its sections, that says what it means."""
    kind: Any = type(config)
    own = _of_kind(kind)
    for each in dataclasses.fields(config):
        value, meaning = getattr(config, each.name), own.get(each.name)
        if dataclasses.is_dataclass(value):
            section = "" if meaning is None else meaning.text
            for name, inner in meanings(value):
                yield f"{each.name}.{name}", inner._replace(text=inner.text.replace("{}", section))
        elif meaning is not None:
            yield each.name, meaning


@cache
def _of_kind(kind: type[Any]) -> dict[str, Meaning]:
    """The meanings of a class's fields, by name; a field with another default in a subclass keeps its own."""
    found: dict[str, Meaning] = {}
    for base in reversed(kind.__mro__):
        for name, each in vars(base).get("__dataclass_fields__", {}).items():
            if KEY in each.metadata:
                found[name] = each.metadata[KEY]
    return found
