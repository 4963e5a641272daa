"""What commands leave: the files of a run directory, the columns of a sweep's table; and the targets of make."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from icl_lab.lab.configs import columns
from icl_lab.lab.configs.family import Family
from icl_lab.lab.configs.registry import named, outputs_of
from icl_lab.lab.registries import FAMILIES
from icl_lab.scripts.reference_page import files
from icl_lab.scripts.reference_page.markdown import code, codes, of_family, table

FILES = """## Files of a run directory

`{L}` and `{H}` are numbers of a layer and a head. Shapes: B tasks, N pairs, K pairs of a sequence, Q queries, L layers,
D dimensions, W channels."""
COLUMNS = """## Columns of a sweep's CSV

Settings first, then results. A number that is not finite is an empty field. Baselines of plugins add `NAME_loss` and
`NAME_ratio`, with `_se`, in rows that ask for them; a plugin's posterior mean adds the same columns as the built-in
ones.

Rows of runs with `keep_best` also have `measured_params` (the parameters that their numbers are of: `last`),
`measured_step`, `best_step` and `best_eval_loss`."""
TARGETS = """## Make targets

`make TARGET ARGS="--seed 1"` hands flags on; `PYTHON=python3.12` chooses the interpreter; `make env CUDA=1` is for a
GPU."""


def file_section() -> str:
    """The files of a run directory."""
    rows = ((code(f.name), f.left_by, " ".join(f.content.split()).replace("; ", ";<br>")) for f in files.FILES)
    return f"{FILES}\n\n" + table(("file", "left by", "content"), rows)


def column_section() -> str:
    """The columns of each family's table."""
    return "\n\n".join([COLUMNS, *(part for name in FAMILIES.built_in for part in _columns(named(name)))])


def columns_of(family: Family) -> list[str]:
    """The names of a family's columns, in their order."""
    groups = outputs_of(family).columns
    names = ("exp", "model", *groups.asked, "seed", *groups.first, "status", *groups.settings, *groups.measured)
    return [*names, "results_version", "runs_dir", "bitwise"]


def meaning_of(family: Family, column: str) -> str:
    """The meaning of a column; `KeyError` for one that has none."""
    groups, texts = outputs_of(family).columns, {(*flag.former, flag.name)[0]: flag.text for flag in family.all_axes}
    asked = {name: text for name, text in texts.items() if name in groups.asked}
    known = {**asked, **groups.meanings}
    known |= {name: text for name, text in columns.MEANINGS.items() if name not in known}
    meaning = next((text for pattern, text in known.items() if fnmatchcase(column, pattern)), None)
    if meaning is None:
        raise KeyError(f"the column {column!r} of the family {family.name} has no meaning in its table")
    return meaning


def _columns(family: Family) -> Iterator[str]:
    yield of_family(family.name, family.models)
    groups: dict[str, list[str]] = {}
    for column in columns_of(family):
        groups.setdefault(meaning_of(family, column), []).append(column)
    yield table(("columns", "meaning"), ((codes(names), meaning) for meaning, names in groups.items()))


def target_section(makefile: Path) -> str:
    """The targets of make and what they do."""
    lines = makefile.read_text(encoding="utf-8").splitlines()
    matches = (re.match(r"([a-z][a-z_-]*):.*?## (.*)", line) for line in lines)
    return f"{TARGETS}\n\n" + table(("target", "what it does"), ((code(m[1]), m[2]) for m in matches if m))
