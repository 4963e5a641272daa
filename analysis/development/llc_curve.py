"""The curve of a run's local learning coefficients at one setting, and whether another run's is comparable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from icl_lab.analysis.development.smooth_curve import LEAST
from icl_lab.analysis.llc.settings import Settings
from icl_lab.lab.command_end import typed
from icl_lab.lab.configs.run import fields_of
from icl_lab.src.checks import require
from icl_lab.store import layout
from icl_lab.store.llc_rows import read_table, usable
from icl_lab.store.readers import StoreError
from icl_lab.store.rundir import read_config

if TYPE_CHECKING:
    import pandas as pd

ESTIMATE = "analysis.llc"  # the command
TEXT = ("settings", "data", "mask", "sampler")
ERROR = "llc_se"  # a column that a table may have; else the interval says it
SETTINGS = tuple(field.name for field in fields(Settings))
NUMBERS = ("step", "llc", "llc_low", "llc_high", "loss", "null_loss", *(name for name in SETTINGS if name not in TEXT))
LEVEL = 0.95  # of the intervals in llc.csv
SEEDS = ("data_seed", "init_seed")
# a preset is a name for fields; runs that it builds on have seeds of their own
NO_PART = (*SEEDS, "preset", "requires")


class LlcCurve(NamedTuple):
    """The LLC of T checkpoints at a setting: steps, llc, its standard errors, losses L(w*), usable [T].

    loss_alone [T]: nbeta (L_null - L(w*)), the LLC of fully saturated chains. diverged: how many checkpoints
    have no estimate; seeds: of data and initialisation.
    """

    run: Path
    setting: str
    settings: Mapping[str, Any]
    seeds: tuple[int, int]
    steps: np.ndarray
    llc: np.ndarray
    errors: np.ndarray
    loss: np.ndarray
    loss_alone: np.ndarray
    usable: np.ndarray
    diverged: int


def read_curve(run: Path, setting: str | None = None, usable_only: bool = False) -> LlcCurve:
    """The curve of the setting whose name begins so, or of the only one; `StoreError` if it cannot be used."""
    table = _table(run)
    name = _named(run, table, setting)
    return _curve(run, name, table[table["settings"] == name], usable_only)


def read_like(run: Path, first: LlcCurve, usable_only: bool = False) -> LlcCurve:
    """The curve of another run of the same training with other seeds, at the same setting but for the chains' seed.

    `ConfigError` that names the field in which it is another training or setting.
    """
    check_training(run, first.run)
    table = _table(run)
    told: list[str] = []
    for name, rows in table.groupby("settings"):
        differing = [field for field in SETTINGS if field != "seed" and rows.iloc[0][field] != first.settings[field]]
        if not differing:
            return _curve(run, str(name), rows, usable_only)
        told = told or [f"{field} {rows.iloc[0][field]}, not {first.settings[field]}" for field in differing]
    raise StoreError(f"{run} has LLCs with {', '.join(told)}, but none at the setting {first.setting} of {first.run}")


def check_seeds(runs: Sequence[Path]) -> None:
    """`ConfigError` if two runs have the same seeds: they are one run, counted twice."""
    seeds = [tuple(getattr(read_config(run), name) for name in SEEDS) for run in runs]
    for number, own in enumerate(seeds):
        require(
            own not in seeds[:number],
            f"{runs[number]} and {runs[seeds.index(own)]} have the same seeds (data {own[0]}, initialisation "
            f"{own[1]}); --also takes runs of other seeds",
        )


def check_training(run: Path, first: Path) -> None:
    """`ConfigError` unless a run differs from another in its seeds, and in these alone."""
    ours, theirs = read_config(first), read_config(run)
    require(
        type(ours) is type(theirs),
        f"{run} is of the family {theirs.family} and {first} of {ours.family}; --also takes runs that differ only in "
        "their seeds",
    )
    own, other = flat(fields_of(ours)), flat(fields_of(theirs))
    for name in own.keys() | other.keys() if own != other else ():
        if name not in NO_PART and own.get(name) != other.get(name):
            require(
                False,
                f"{run} has {name} {other.get(name)} and {first} {own.get(name)}; --also takes runs that differ in "
                "seeds alone",
            )


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested fields under dotted names."""
    flattened: dict[str, Any] = {}
    for name, value in values.items():
        flattened |= flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return flattened


def _table(run: Path) -> pd.DataFrame:
    path = run / layout.LLC
    if not path.exists():
        raise StoreError(
            f"{run} has no {layout.LLC}; estimate it first: {typed(ESTIMATE)} --run {quote(str(run))} --checkpoints all"
        )
    return read_table(path, NUMBERS, TEXT, infinite=("llc_low", "llc_high"))


def _named(run: Path, table: pd.DataFrame, setting: str | None) -> str:
    """The setting that is meant."""
    names = list(dict.fromkeys(table["settings"]))
    meant = [name for name in names if setting is None or (setting and name.startswith(setting))]
    if len(meant) == 1:
        return str(meant[0])
    listed = "; ".join(
        f"{name} (eps {row['eps']:g}, nbeta {row['nbeta']:g}, gamma {row['gamma']:g})"
        for name, row in table.drop_duplicates("settings").set_index("settings").iterrows()
    )
    said = "several settings" if setting is None else f"{len(meant) or 'no'} settings {setting!r}"
    raise StoreError(f"{run / layout.LLC} has {said}; choose one by --setting: {listed}")


def standard_errors(low: ArrayLike, high: ArrayLike, chains: ArrayLike) -> np.ndarray:
    """The standard errors of LLCs, from the ends of their 95 % t intervals over chains."""
    from scipy.special import stdtrit

    half = (np.asarray(high, float) - np.asarray(low, float)) / 2
    errors: np.ndarray = half / stdtrit(np.asarray(chains, float) - 1, (1 + LEVEL) / 2)
    return errors


def _curve(run: Path, name: str, rows: pd.DataFrame, usable_only: bool) -> LlcCurve:
    there = rows[np.isfinite(rows["llc"])].sort_values("step")
    if usable_only:
        there = there[usable(there)]
    if len(there) < LEAST:
        raise StoreError(
            f"{run} has {len(there)} {'usable ' if usable_only else ''}checkpoints with an LLC of the setting "
            f"{name}, but stages need {LEAST}; estimate more by {typed(ESTIMATE)} --checkpoints all"
        )
    steps, llc, low, high, loss, null = (there[column].to_numpy(float) for column in NUMBERS[:6])
    errors = there[ERROR].to_numpy(float) if ERROR in there else standard_errors(low, high, there["chains"])
    settings = {field: there.iloc[0][field] for field in SETTINGS}
    alone = float(settings["nbeta"]) * (null - loss)
    known = np.isfinite(errors) & (errors >= 0) & np.isfinite(alone)
    if not known.all() or not (np.diff(steps) > 0).all() or steps[0] < 0:
        raise StoreError(
            f"{run / layout.LLC} is not a table of LLCs: a standard error or a loss is missing, or a step occurs twice"
        )
    config = read_config(run)
    seeds = config.data_seed, config.init_seed
    gone = int((~np.isfinite(rows["llc"])).sum())
    return LlcCurve(run, name, settings, seeds, steps, llc, errors, loss, alone, usable(there), gone)
