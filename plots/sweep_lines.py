"""Grouping of runs into a figure's lines: runs that agree in every setting in force, but for the one along x.

A setting that does nothing in a run (sigma where nothing is noisy) agrees with any. Training is as evaluated or fixed:
a run trained as it is evaluated belongs to the line of runs like that, and to the one of runs all trained like it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from icl_lab.plots.choice import TooLarge
from icl_lab.src.registries import BY_DIFFICULTY, ORDERINGS, WITHOUT_SIGMA

if TYPE_CHECKING:
    import pandas as pd

CLEAN = "clean"
EVALUATED = "as evaluated"
SETTINGS, KEYS = 1500, 200_000  # in one figure, seeds apart, and of them with what they agree with, at most

Options = dict[str, tuple[Any, ...]]  # of each setting the values that a run agrees with; none: it agrees with any
Settings = dict[str, Any]  # of a line; None: not in force

# setting -> how a legend says it
PHRASES = {
    "model": "{}",
    "noise_mode": "{}",
    "p": "p={:g}",
    "sigma": "sigma={:g}",
    "placement": "{}",
    "ordering": "{} order",
    "difficulty": "difficulty by {}",
    "train_noise_mode": "trained {}",
    "train_p": "trained at p={:g}",
    "train_sigma": "trained at sigma={:g}",
    "train_placement": "trained {}",
    "train_ordering": "trained in {} order",
    "train_difficulty": "trained by {}",
    "steps": "{:.0f} steps",
    "results_version": "results version {}",
}
BRIEF = {"train_ordering": "trained {}"}  # in a legend
# What is said of the setting that stands for the others of training, if they are those of evaluation.
AS_EVALUATED = {"train_noise_mode": "trained with that noise", "train_ordering": "trained in that order"}
ALL_AS_EVALUATED = {"train_noise_mode": "trained with the same noise", "train_ordering": "trained in the same order"}
# evaluation -> training: said once where they are the same
BOTH = {"noise_mode": "train_noise_mode", "ordering": "train_ordering"}
IN = {"ordering": "in "}


class Line(NamedTuple):
    """Cells that agree, and in what."""

    settings: Settings
    rows: pd.DataFrame


# the columns that decide in which lines a row is
DECIDING = (
    *("model", "noisy", "noise_mode", "p", "sigma", "placement", "ordering", "eval_difficulty"),
    *("train_noise_mode", "train_p", "train_sigma", "train_placement", "train_ordering", "train_difficulty"),
    *("steps", "results_version"),
)


def lines(table: pd.DataFrame, along: str | None = None) -> list[Line]:
    """The lines of a table of finished runs; `along` is the setting on the x axis, which may differ in a line.

    Along p, a clean run is the point p = 0 of every kind of noise. Along the ordering, runs of one line were trained
    in the same order, whether or not that is the one of evaluation. `TooLarge` for more than a page can show.
    """
    number, kinds = settings_of(table)
    options = [_options(row, along) for row in kinds[:SETTINGS]]
    if len(kinds) > SETTINGS or _keys(options) > KEYS:
        raise too_large(table)
    places = np.argsort(number, kind="stable")
    rows = np.split(places, np.cumsum(np.bincount(number, minlength=len(kinds)))[:-1]) if len(kinds) else []
    groups = group(options, [len(those) for those in rows])
    bare = table.copy(deep=False)
    bare.attrs = {}  # which pandas copies deeply wherever rows are taken
    return [
        Line(settings, bare.iloc[np.sort(np.concatenate([rows[member] for member in members]))])
        for settings, members in groups
    ]


def settings_of(table: pd.DataFrame) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """The number of each row's settings, seeds apart, in order of appearance; and these settings."""
    import pandas as pd

    deciding = table[list(DECIDING)]
    number, _ = pd.factorize(deciding.groupby(list(DECIDING), dropna=False, sort=False).ngroup())
    _, first = np.unique(number, return_index=True)
    return number, deciding.iloc[first].to_dict("records")


def too_large(table: pd.DataFrame) -> TooLarge:
    """What a figure raises that does not fit a page."""
    import pandas as pd

    number, kinds = settings_of(table)
    columns = {"difficulty": "eval_difficulty"}
    in_force = [
        {columns.get(name, name): (values or (None,))[-1] for name, values in _options(row, None).items()}
        for row in kinds
    ]
    return TooLarge(table, pd.DataFrame(in_force).iloc[number])


def alike(table: pd.DataFrame) -> np.ndarray:
    """A number for each row, the same for rows that agree in every setting in force and lack the same ones."""
    number, kinds = settings_of(table)
    seen: dict[tuple[Any, ...], int] = {}
    of_kinds = [seen.setdefault(tuple(_options(row, None).values()), len(seen)) for row in kinds]
    return np.asarray(np.array(of_kinds, int)[number])


def pooled(pool: Sequence[Line]) -> Line:
    """Lines as one, each run once, for what does not depend on the settings in which they differ (None)."""
    import pandas as pd

    rows = pd.concat([line.rows for line in pool])
    first, *others = (line.settings for line in pool)
    common = {name: value if all(value == line[name] for line in others) else None for name, value in first.items()}
    return Line(common, rows[~rows.index.duplicated()])


def group(runs: Sequence[Options], sizes: Sequence[int] | None = None) -> list[tuple[Settings, list[int]]]:
    """The largest sets of runs that agree, each with its settings; a set within another is none of its own.

    `sizes` are the rows that each run stands for: one.
    """
    sizes = sizes or [1] * len(runs)
    names = list((runs or [{}])[0])
    counts: dict[str, Counter[Any]] = {name: Counter() for name in names}
    for run, size in zip(runs, sizes, strict=True):
        for name in names:
            counts[name].update(dict.fromkeys(run[name], size))
    members: dict[tuple[Any, ...], dict[int, None]] = {}
    for alike in _apart(runs):
        values = {name: tuple(dict.fromkeys(value for i in alike for value in runs[i][name])) for name in names}
        for i in alike:
            for key in product(*(runs[i][name] or values[name] or (None,) for name in names)):
                members.setdefault(key, {})[i] = None
    usual = {key: sum(counts[name][value] for name, value in zip(names, key, strict=True)) for key in members}
    rows = {key: sum(sizes[i] for i in those) for key, those in members.items()}
    kept: list[tuple[Any, ...]] = []
    kept_with: dict[int, list[tuple[Any, ...]]] = {}  # those that a run is in
    for key in sorted(members, key=lambda key: (-rows[key], -usual[key])):
        those = members[key].keys()
        if not any(those <= members[other].keys() for other in kept_with.get(next(iter(those)), ())):
            kept.append(key)
            for i in those:
                kept_with.setdefault(i, []).append(key)
    groups = [
        (_in_force(dict(zip(names, key, strict=True)), runs, members[key].keys()), sorted(members[key])) for key in kept
    ]
    return sorted(groups, key=lambda line: [_rank(name, value, counts) for name, value in line[0].items()])


def _keys(runs: Sequence[Options]) -> int:
    """How many settings `group` would compare."""
    total = 0
    for alike in _apart(runs):
        values = {name: len({value for i in alike for value in runs[i][name]}) or 1 for name in runs[0]}
        total += sum(math.prod(len(those) or values[name] for name, those in runs[i].items()) for i in alike)
    return total


def _apart(runs: Sequence[Options]) -> list[list[int]]:
    """Runs that can agree: those with the same values of the settings of which every run has exactly one."""
    single = [name for name in (runs or [{}])[0] if all(len(run[name]) == 1 for run in runs)]
    found: dict[tuple[Any, ...], list[int]] = {}
    for i, run in enumerate(runs):
        found.setdefault(tuple(run[name] for name in single), []).append(i)
    return [*found.values()]


def _in_force(key: Settings, runs: Sequence[Options], members: Iterable[int]) -> Settings:
    return {name: value if any(runs[i][name] for i in members) else None for name, value in key.items()}


def _rank(name: str, value: Any, counts: Mapping[str, Counter[Any]]) -> tuple[int, float]:
    """A sort key: None, then numbers, then orderings as in `ordered`, other words as the table has them."""
    if value is None:
        return 0, 0.0
    if isinstance(value, (int, float)):
        return 1, value
    known = ordered() if name.endswith("ordering") and value in ORDERINGS else tuple(counts[name])
    return 2, float(known.index(value))


def ordered() -> tuple[str, ...]:
    """The orderings as figures have them."""
    first = ("random", *BY_DIFFICULTY)
    return *first, *(name for name in ORDERINGS if name not in first)


def _by_difficulty(ordering: str) -> bool:
    """Whether an ordering sorts by a difficulty; it may, where it is that of a plugin which is not loaded."""
    return ordering in BY_DIFFICULTY or ordering not in ORDERINGS


def _options(row: Mapping[str, Any], along: str | None) -> Options:
    noise, training = _noise(row, ""), _noise(row, "train_")
    options: Options = {"model": (row["model"],)}
    options |= {name: () if value is None else (value,) for name, value in noise.items()}
    if along == "p" and not row["noisy"]:
        options["noise_mode"] = ()
    options["ordering"] = (row["ordering"],)
    by_difficulty = row["noisy"] and _by_difficulty(row["ordering"])  # without noise both difficulties are one
    options["difficulty"] = (row["eval_difficulty"],) if by_difficulty else ()
    options |= {f"train_{name}": _trained(value, noise[name]) for name, value in training.items()}
    options["train_ordering"] = _trained(row["train_ordering"], None if along == "ordering" else row["ordering"])
    if training["p"] is not None and _by_difficulty(row["train_ordering"]):
        options["train_difficulty"] = _trained(row["train_difficulty"], *(options["difficulty"] or [None]))
    else:
        options["train_difficulty"] = ()
    options["steps"] = () if _known(row["steps"]) is None else (row["steps"],)
    options["results_version"] = (row["results_version"],)
    if along:
        del options[along]
    return options


def _noise(row: Mapping[str, Any], where: str) -> Settings:
    """Noise settings in force: of clean pairs the mode alone, and sigma where the mode has one."""
    mode, p = row[f"{where}noise_mode"], row[f"{where}p"]
    if mode == CLEAN or p == 0:
        return {"noise_mode": CLEAN, "p": None, "sigma": None, "placement": None}
    sigma = None if mode in WITHOUT_SIGMA else _known(row[f"{where}sigma"])
    return {"noise_mode": mode, "p": p, "sigma": sigma, "placement": row[f"{where}placement"]}


def _known(value: float) -> float | None:
    """A number of the table, or None for an empty field, which is nan."""
    return value if value == value else None


def _trained(value: Any, evaluated: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    return (EVALUATED, value) if value == evaluated else (value,)


def phrase(name: str, value: Any, phrases: Mapping[str, str] = PHRASES) -> str:
    """A setting in words; nothing for one that is not in force or follows from another."""
    if value is None:
        return ""
    return AS_EVALUATED.get(name, "") if value == EVALUATED else phrases[name].format(value)


def split(line_settings: Sequence[Settings]) -> tuple[list[str], str]:
    """(the settings in which lines differ, a phrase of those that all share; the model has its own place)."""
    resolved = _resolved(line_settings)
    values = {name: {line[name] for line in resolved} - {None} for name in resolved[0]}
    differing = [name for name, those in values.items() if len(those) > 1]
    shared = {name: next(iter(those)) for name, those in values.items() if len(those) == 1 and name != "model"}
    phrases = {name: phrase(name, value) for name, value in shared.items()}
    phrases |= {name: text for name, text in ALL_AS_EVALUATED.items() if shared.get(name) == EVALUATED}
    for name, training in BOTH.items():
        if name in shared and shared[name] == shared.get(training):
            phrases |= {name: f"trained and tested {IN.get(name, '')}{phrases[name]}", training: ""}
    if [shared.get(name) for name in AS_EVALUATED] == [EVALUATED, EVALUATED]:
        phrases |= {**dict.fromkeys(AS_EVALUATED, ""), "train_noise_mode": "trained as evaluated"}
    return differing, ", ".join(filter(None, phrases.values()))


def labels(line_settings: Sequence[Settings], names: Sequence[str]) -> list[str]:
    """What a legend says of each of these lines: the named ones of its settings."""
    resolved = _resolved(line_settings)
    phrases = PHRASES | BRIEF
    return [
        ", ".join(filter(None, (phrase(name, line.get(name), phrases) for name in names)))
        for line in map(_clean, resolved)
    ]


def _clean(line: Settings) -> Settings:
    """Trained as evaluated, of a clean line, is trained clean."""
    clean = line.get("noise_mode") == CLEAN and line["train_noise_mode"] == EVALUATED
    return line | {"train_noise_mode": CLEAN} if clean else line


def _resolved(line_settings: Sequence[Settings]) -> list[Settings]:
    """Trained as evaluated, in plainer words where all lines are evaluated on clean pairs or in one order."""
    resolved = [dict(line) for line in line_settings]
    if all(line.get("noise_mode") == CLEAN for line in line_settings):
        resolved = [_clean(line) for line in resolved]
    orders = {line.get("ordering") for line in line_settings}
    if len(orders) == 1 and orders != {None}:
        for line in resolved:
            line["train_ordering"] = line["ordering"] if line["train_ordering"] == EVALUATED else line["train_ordering"]
    return resolved
