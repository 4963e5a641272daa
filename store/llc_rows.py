"""Rows of the local learning coefficient (LLC): whether an estimate may be used; those of earlier versions.

A row has the columns verdict, one of `VERDICTS`, and reasons: "", or the reasons to distrust it as `word: sentence`,
joined by semicolons, whose words are `WORDS`. Rows of earlier versions had one column in place of both, health: it said
`healthy`, or why not, in other words. Every reader takes both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from icl_lab.store import layout
from icl_lab.store.readers import csv_rows, expecting, read_csv, read_json

if TYPE_CHECKING:
    import pandas as pd

LLC = "LLC"  # a plateau in gamma, at the quadratic prediction: rank H / 2
CURVATURE = "curvature"  # set by gamma, and at the quadratic prediction
AT_THIS_NBETA = "LLC at this nbeta"  # a plateau in gamma, and not at the quadratic prediction
UNDECIDED = "undecided"  # neither shown
NONE = "none"  # there are reasons against it
VERDICTS = (LLC, CURVATURE, AT_THIS_NBETA, UNDECIDED, NONE)
USABLE = frozenset(VERDICTS) - {NONE}

OFF_MINIMUM, SADDLE = "off minimum", "saddle"
SATURATED, ESCAPED = "saturated", "escaped"
NOT_MIXED, STEP_TOO_LONG = "not mixed", "step too long"
NOT_COMPUTED = "cannot be computed"
WORDS = (OFF_MINIMUM, SADDLE, SATURATED, ESCAPED, NOT_MIXED, STEP_TOO_LONG, NOT_COMPUTED)
BETWEEN = "; "  # reasons

ESTIMATE = ("llc", "llc_low", "llc_high")
DIAGNOSTICS = ("saturation", "stability", "trend", "r_hat", "acceptance")  # a row without reasons has numbers here
SAID = ("verdict", "reasons")  # the columns

HEALTH, HEALTHY = "health", "healthy"  # the column of earlier versions, and what it said where there was no reason
EARLIER_WORDS = {
    "saturated": SATURATED,
    "unstable": STEP_TOO_LONG,
    "rejected": STEP_TOO_LONG,
    "moving": NOT_MIXED,
    "unmixed": NOT_MIXED,
    "no movement": NOT_MIXED,
    "no minimum": OFF_MINIMUM,
    "not computed": NOT_COMPUTED,
    "diverged": NOT_COMPUTED,
    "above null": NOT_COMPUTED,
}
ABOVE_NULL = "saturation, for L(w*) is above the null predictor's loss"
EARLIER_NAMES = {"healthy": "usable", "healthy_at_all": "usable_at_all", "healthy_only": "usable_only"}  # elsewhere
SAMPLER, EARLIER_SETTING = "sampler", "preconditioner"  # "" was SGLD
LATER_SETTINGS: Mapping[str, Any] = {SAMPLER: "sgld", "friction": 0.1, "descend": 0}  # which earlier tables do not have
IN_RECORDS = "llc_"  # what names in metrics begin with
RECORDED = ("saturation", *SAID)  # of a row in metrics, beside the estimate


def is_known(value: float | None) -> TypeGuard[float]:
    """Whether a value is a finite number."""
    return value is not None and math.isfinite(value)


def is_usable(row: Mapping[str, Any], suffix: str = "") -> bool:
    """Whether a row's estimate may be used: nothing is said against it, and it and its interval are finite numbers.

    suffix: of the names of its columns, in a table of several settings.
    """
    return row[f"verdict{suffix}"] in USABLE and all(is_known(row.get(f"{name}{suffix}")) for name in ESTIMATE)


def is_sampled(row: Mapping[str, Any]) -> bool:
    """Whether chains drew from a posterior at w*, be it a minimum or not: usable, or with no reason but `off minimum`.

    The quadratic prediction has the slope at w* as a part, so that such an estimate can be compared with it.
    """
    reasons = str(row["reasons"] or "").split(BETWEEN)
    alone = row["verdict"] == NONE and all(reason.startswith(OFF_MINIMUM) for reason in reasons)
    return is_usable(row) or (alone and all(is_known(row.get(name)) for name in ESTIMATE))


def usable(table: pd.DataFrame, suffix: str = "") -> np.ndarray:
    """Which rows [T] of a table are usable."""
    return np.array([is_usable(row, suffix) for row in table.to_dict("records")], bool)


def said(reasons: Sequence[str]) -> dict[str, str]:
    """The columns verdict and reasons, of chains with these reasons to distrust them."""
    return dict(zip(SAID, (NONE if reasons else UNDECIDED, BETWEEN.join(reasons)), strict=True))


def unknown(row: Mapping[str, Any], names: Sequence[str] = ESTIMATE, suffix: str = "") -> list[str]:
    """A reason for each of these columns that is no finite number."""
    values = {name: row.get(f"{name}{suffix}") for name in names}
    return [f"{NOT_COMPUTED}: {name} is {value}" for name, value in values.items() if not is_known(value)]


# --- rows of earlier versions ---


def current(row: Mapping[str, Any], suffix: str = "") -> dict[str, Any]:
    """A row as it is written today; `KeyError` for one that has neither the columns of today nor the earlier one.

    What was called healthy is `undecided` if all its numbers are known, and what was not is `none`.
    """
    if f"verdict{suffix}" in row:
        return dict(row)
    health = str(row[f"{HEALTH}{suffix}"])
    there = [name for name in DIAGNOSTICS if f"{name}{suffix}" in row]
    reasons = unknown(row, (*ESTIMATE, *there), suffix) if health == HEALTHY else translated(health)
    return replaced(row, reasons, suffix)


def replaced(row: Mapping[str, Any], reasons: Sequence[str], suffix: str = "") -> dict[str, Any]:
    """A row with the columns verdict and reasons in the place of the earlier one."""
    todays: dict[str, Any] = {}
    for name, value in row.items():
        if name == f"{HEALTH}{suffix}":
            todays |= {f"{column}{suffix}": text for column, text in said(reasons).items()}
        else:
            todays[name] = value
    return todays


def translated(health: str) -> list[str]:
    """The reasons of an earlier version in today's words; a text that is none of them, such as an error, is one."""
    parts = [part.partition(": ") for part in health.split(BETWEEN)]
    if any(word not in EARLIER_WORDS for word, _, _ in parts):
        return [f"{NOT_COMPUTED}: {health.replace(';', ',') or 'no reason is given'}"]
    return [_translated(word, sentence) for word, _, sentence in parts]


def _translated(word: str, sentence: str) -> str:
    if word == "above null":
        sentence = ABOVE_NULL
    if word == "diverged":
        sentence = re.sub(r"^(chain \d+) at draw", r"\1 diverged at draw", sentence or word)
    return f"{EARLIER_WORDS[word]}: {sentence}" if sentence else EARLIER_WORDS[word]


def current_record(record: dict[str, Any]) -> dict[str, Any]:
    """A record of metrics, or their summary, as it is written today; null is a number that is not defined."""
    if (earlier := f"{IN_RECORDS}{HEALTH}") not in record:
        return record
    names = {name: name if name in ESTIMATE else f"{IN_RECORDS}{name}" for name in (*ESTIMATE, "saturation")}
    row = current({name: record.get(own) for name, own in names.items()} | {HEALTH: record[earlier]})
    todays: dict[str, Any] = {}
    for name, value in record.items():
        todays |= {f"{IN_RECORDS}{column}": row[column] for column in SAID} if name == earlier else {name: value}
    return todays


# --- files ---


def read_table(
    path: Path,
    columns: Sequence[str],
    text: Sequence[str] = (),
    infinite: Sequence[str] = (),
    suffixes: Sequence[str] = ("",),
) -> pd.DataFrame:
    """`read_csv` of a table of LLCs: with verdict and reasons, each with these suffixes, whatever version wrote it."""
    header = {*csv_rows(path)[0]}
    columns, text, filled = _written(header, columns, text)
    earlier = [each for each in suffixes if f"{HEALTH}{each}" in header and f"verdict{each}" not in header]
    words = [f"{HEALTH}{each}" for each in earlier]
    words += [f"{name}{each}" for each in suffixes if each not in earlier for name in SAID]
    table = read_csv(path, columns, (*text, *words), infinite)
    with expecting(path, "a table of LLCs"):
        for suffix in earlier:
            rows = [current(row, suffix) for row in table.to_dict("records")]
            table = table.drop(columns=f"{HEALTH}{suffix}")
            table = table.assign(**{f"{name}{suffix}": [row[f"{name}{suffix}"] for row in rows] for name in SAID})
    return _with_settings(table, filled)


def _written(
    header: Collection[str], columns: Sequence[str], text: Sequence[str]
) -> tuple[list[str], list[str], dict[str, Any]]:
    """The columns and texts that a table has, and the settings that an earlier version did not write, with defaults."""
    filled = {name: value for name, value in LATER_SETTINGS.items() if name in {*columns, *text} - {*header}}
    there = [EARLIER_SETTING if name == SAMPLER and name in filled else name for name in text]
    numbers = [name for name in columns if name not in filled]
    return numbers, [name for name in there if name in header or name not in filled], filled


def _with_settings(table: pd.DataFrame, filled: Mapping[str, Any]) -> pd.DataFrame:
    """A table with the settings that it does not have; a preconditioner of an earlier version is a sampler."""
    table = table.assign(**filled)
    if SAMPLER in filled and EARLIER_SETTING in table:
        known = table[EARLIER_SETTING].fillna("").astype(str)
        table = table.assign(sampler=known.where(known != "", LATER_SETTINGS[SAMPLER])).drop(columns=EARLIER_SETTING)
    return table


def read_development(run: Path) -> dict[str, Any]:
    """develop.json of a run, under today's names."""
    facts = read_json(run / layout.DEVELOP)
    with expecting(run / layout.DEVELOP, "the development of a run"):
        lines = {name: _todays(line) for name, line in facts.get("lines", {}).items()}
        return _todays(facts) | ({"lines": lines} if "lines" in facts else {})


def read_stages(run: Path) -> dict[str, Any]:
    """stages.json of a run, under today's names."""
    facts = read_json(run / layout.STAGES_FACTS)
    with expecting(run / layout.STAGES_FACTS, "the stages of a run"):
        own = {"checkpoints": _todays(facts["checkpoints"]), "milestones": [*map(_todays, facts["milestones"])]}
        return _todays(facts) | own


def _todays(values: Mapping[str, Any]) -> dict[str, Any]:
    return {EARLIER_NAMES.get(name, name): value for name, value in values.items()}
