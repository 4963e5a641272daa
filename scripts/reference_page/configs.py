"""The fields of configs, and what presets make of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from ml_collections import ConfigDict

from icl_lab.lab.configs.config_help import fields, in_words
from icl_lab.lab.configs.earlier_names import RENAMED, TODAYS
from icl_lab.lab.configs.family import Family, Preset
from icl_lab.lab.configs.keys import find_key, leaves
from icl_lab.lab.configs.presets import preset, resolve, sections_of_kinds, set_values, value_at
from icl_lab.lab.configs.registry import named
from icl_lab.lab.configs.run import fields_of
from icl_lab.lab.registries import FAMILIES
from icl_lab.scripts.reference_page.markdown import code, of_family, table
from icl_lab.src.fields import kinds_of
from icl_lab.src.registries import ALGORITHM, ALWAYS, BASELINES, CORRUPTED, KNOWLEDGE, NAMED

BASELINES_OF_ALL = """## Baselines

The predictors that models are compared with. None knows the label of the query or the task; the last
column says what each one knows. The function has the baseline's name."""
COMPARED = {
    ALWAYS: "every run",
    ALGORITHM: "every run, by `analysis.algorithm_distance`",
    CORRUPTED: "corrupted or ordered contexts, by `analysis.comparators`",
    NAMED: "runs that name it: `--config.baselines`",
    "": "scores of pairs alone, by `analysis.attention_stats`",
}
DEEPEST = 32  # layers up to which values that follow the depth are looked at
FIELDS = """## Config fields

`--config.NAME=VALUE` sets a field; the last part of a name is enough where it is unique, as in `--config.dim=5`.
`--config.help` lists a model's fields with its preset's values. Defaults here are those of the default preset of the
family's first model that has the field."""
PRESETS_OF_ALL = """## Presets

`--preset default`, or `--preset paper`, which has the published values. Some models have `--preset published`, what the
published code does where it departs from the paper: [fidelity.md](../fidelity.md). A preset sets these fields; the
others have their defaults. Where there is an `init_scale`, initial weights are truncated normal of variance
`init_scale` / layers / fan-in. With `merged` these weights are the products W_K^T W_Q and P W_V. Separate factors of
variance scale s start with products like merged ones of scale s² / layers."""
EARLIER = """### Earlier names

Still read, on command lines, in Python and in the configs of runs."""


def field_section() -> str:
    """A table of each family's fields."""
    names = {**TODAYS, **{then: now.key for then, now in RENAMED.items()}}
    earlier = table(("then", "now"), ((code(then), code(now)) for then, now in names.items()))
    return "\n\n".join([FIELDS, *(part for family in _families() for part in _fields(family)), EARLIER, earlier])


def preset_section() -> str:
    """Tables of each family's presets: what differs between them, what all share, what follows the depth."""
    return "\n\n".join([PRESETS_OF_ALL, *(part for family in _families() for part in _presets(family))])


def baseline_section() -> str:
    """A table of all baselines, and what their knowledge is."""
    built_in = ((name, BASELINES[name]) for name in BASELINES.built_in)
    rows = (
        (code(name), ", ".join(map(code, one.where)), COMPARED[one.compared], ", ".join(one.knows) or "nothing")
        for name, one in built_in
    )
    facts = table(("it knows", "that is"), KNOWLEDGE.items())
    return "\n\n".join([BASELINES_OF_ALL, table(("baseline", "module", "compared with", "knows"), rows), facts])


def _families() -> list[Family]:
    return [named(name) for name in FAMILIES.built_in]


def _fields(family: Family) -> Iterator[str]:
    known: dict[str, tuple[str, ...]] = {}
    for begun in (*map(preset, family.models), *_of_kinds(family)):
        known = {row[0]: row for row in fields(begun)} | known
    of_kinds = [flag.key for flag in family.flags_of_kinds]
    own = [*leaves(fields_of(family.config())).values()]
    order = dict.fromkeys(key for name in own for key in (name, *(of_kinds if name.endswith(".kind") else ())))
    rows = (known[name] for name in order if name in known)
    yield of_family(family.name, family.models)
    yield table(("field", "type", "default", "meaning"), ((code(n), kind, code(v), text) for n, kind, v, text in rows))


def _of_kinds(family: Family) -> Iterator[ConfigDict]:
    """The default preset of the first model with each kind of its sections that come in several."""
    for section, kind in sections_of_kinds(family.config).items():
        for name in kinds_of(kind):
            begun = preset(next(iter(family.models)))
            set_values(begun, {f"{section}.kind": name})
            yield begun


def _presets(family: Family) -> Iterator[str]:
    chosen = {(model, name): family.models[model][name] for model in family.models for name in family.models[model]}
    keys = list(dict.fromkeys(key for one in chosen.values() for key in (*one.values, *one.by_depth(1, False))))
    values = {head: [_value(*head, key) for key in keys] for head in chosen}
    shared = [len({row[column] for row in values.values()}) == 1 for column in range(len(keys))]
    differing = [column for column, same in enumerate(shared) if not same]
    rows = ([*head, *(row[column] for column in differing)] for head, row in values.items())
    yield of_family(family.name, family.models)
    yield table(("model", "preset", *(code(keys[column]) for column in differing)), _merged(rows, 1))
    first = next(iter(values.values()))
    said = [f"`{key}` {value}" for key, value, same in zip(keys, first, shared, strict=True) if same]
    if said:
        yield f"All of them: {', '.join(said)}."
    yield from _by_depth(chosen)


def _by_depth(chosen: Mapping[tuple[str, str], Preset]) -> Iterator[str]:
    """What of presets follows the number of layers; nothing where nothing does."""
    keys = list(dict.fromkeys(key for one in chosen.values() for key in one.by_depth(2, False)))
    rows = [
        [*head, _range(depths), *values]
        for head, one in chosen.items()
        if one.by_depth(2, False)
        for depths, values in _ranges(one, {key: _value(*head, key) for key in keys})
    ]
    if rows:
        yield "By the number of layers:"
        yield table(("model", "preset", "layers", *map(code, keys)), _merged(_merged(rows, 1), 0))


def _ranges(one: Preset, values: Mapping[str, str]) -> Iterator[tuple[list[int], list[str]]]:
    """Neighbouring numbers of layers at which these fields have the same values, and the values.

    Those of `values` are of one that does not follow the number of layers.
    """
    pairs = ((depth, [_at_depth(one, key, depth, values[key]) for key in values]) for depth in range(1, DEEPEST + 1))
    for same, group in groupby(pairs, key=lambda pair: pair[1]):
        yield [depth for depth, _ in group], same


def _at_depth(one: Preset, key: str, depth: int, value: str) -> str:
    followed = (one.by_depth(depth, recurrent) for recurrent in (False, True))
    stacked, shared = (in_words(values[key]) if key in values else _fixed(one, key, value) for values in followed)
    return stacked if stacked == shared else f"{stacked}; recurrent {shared}"


def _fixed(one: Preset, key: str, value: str) -> str:
    return in_words(one.values[key]) if key in one.values else value


def _value(model: str, name: str, key: str) -> str:
    """A field's value in a preset, in words."""
    config = preset(model, name)
    return in_words(value_at(resolve(config), find_key(config.to_dict(), key)))


def _range(depths: Sequence[int]) -> str:
    first, last = depths[0], depths[-1]
    return f"from {first}" if last == DEEPEST else str(first) if first == last else f"{first} to {last}"


def _merged(rows: Iterable[Sequence[str]], column: int) -> list[list[str]]:
    """Rows that differ in one column alone as one row, with all that stands there."""
    merged: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        merged.setdefault((*row[:column], *row[column + 1 :]), []).append(row[column])
    return [[*rest[:column], ", ".join(words), *rest[column:]] for rest, words in merged.items()]
