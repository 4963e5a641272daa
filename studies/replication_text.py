"""What a replication prints of a claim: a sentence that says whether the seeds agree with the table, then numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.src.intervals import LEVEL, Interval
from icl_lab.src.prediction import POWER
from icl_lab.studies import ledger
from icl_lab.studies.claim import Claim, Measurement
from icl_lab.studies.comparison import Comparison, of_claim
from icl_lab.studies.study import Study
from icl_lab.studies.template import range_in_words
from icl_lab.studies.verdict import NOBODY, NOT_COMPUTED, counted

POOLED = "without a verdict: the seeds of the table were judged once already"
WIDTH = 13  # of the words before numbers
PLAIN, MOST_DECIMALS = (1e-3, 1e6), 8  # numbers that are written without an exponent


def estimate(claim: Claim, committed: Measurement | None, n: int) -> str:
    """How long a replication with n seeds takes, by what the table's took."""
    what = f"{claim.name} with {n} seed{'s' * (n > 1)}"
    if committed is None:
        return f"{what}: nobody has recorded how long it takes (profile {claim.profile})"
    m = len(committed.seeds)
    took = f"the table's {m} took {committed.minutes:.1f} ({committed.device})"
    return f"{what}: about {committed.minutes / m * n:.1f} minutes of training and measuring, for {took}"


def lines(study: Study, claim: Claim, committed: Measurement | None, fresh: Measurement, report: Path) -> Iterator[str]:
    """The sentence and the numbers of a claim that was replicated."""
    row = ledger.row(study, claim, committed)
    yield f"{claim.name}, {claim.says}"
    compared = of_claim(claim, fresh, committed)
    own = [] if committed is None else [seed for seed in fresh.seeds if seed in committed.seeds]
    if not compared:
        yield f"Nothing can be compared: {NOT_COMPUTED if len(counted(claim, fresh)) else NOBODY}."
    elif committed is None:
        yield f"{report / ledger.TABLE} has no values of this claim to compare with."
    elif own:
        yield _of_own(own, fresh, committed)
    else:
        yield from (_sentence(what, comparison) for what, comparison in compared.items())
    yield from _numbered("seeds", _values(claim, fresh))
    for what, comparison in compared.items():
        yield from _numbers(what, comparison, bool(own))
    yield from _numbered("the table", _of_table(row))
    yield from _numbered("accepted", f"{range_in_words(claim.low, claim.high)} ({row['source']})")
    yield from _of_control(row, fresh, ledger.row(study, claim, fresh))


def _sentence(what: str, comparison: Comparison) -> str:
    """Whether the fresh mean lies where the committed values predict it."""
    n = comparison.fresh.n
    further = f"{n} further seed{'s' * (n > 1)}"
    if comparison.committed is None or comparison.predicted is None:
        return f"The table predicts nothing of the {what}, for that takes two values in it, and none that is infinite."
    step = _step(comparison)
    low, high, mean = (
        _number(value, step)
        for value in (comparison.predicted.low, comparison.predicted.high, comparison.fresh.estimate)
    )
    predicted = f"The table predicts {low} to {high} for {further} ({100 * LEVEL:.0f} % prediction interval)."
    if not comparison.side:
        return f"Your seeds agree with the table: their {what} is {mean}. {predicted}"
    found = f"Your seeds differ from the table: their {what} is {mean}. {predicted}"
    return f"{found} One replication in ten differs by chance."


def _of_own(own: Sequence[int], fresh: Measurement, committed: Measurement) -> str:
    """Seeds that the table has are compared one by one, for they are no further seeds."""
    now, then = (
        np.array([dict(zip(one.seeds, one.values, strict=True))[seed] for seed in own], float)
        for one in (fresh, committed)
    )
    is_equal = (now == then) | (np.isnan(now) & np.isnan(then))
    words = f"{is_equal.sum()} of {len(own)} values of seeds that the table has are the table's to the last bit"
    with np.errstate(invalid="ignore"):
        changes = np.abs(now - then)[~is_equal]
    return f"{words}; the largest change is {changes.max():.2g}." if len(changes) else f"{words}."


def _values(claim: Claim, measurement: Measurement) -> str:
    """Each seed's value, and how many are left out."""
    words = ", ".join(
        f"{seed}: {_value(claim, value)}" for seed, value in zip(measurement.seeds, measurement.values, strict=True)
    )
    left_out = len(measurement.values) - len(counted(claim, measurement))
    return words + f"; left out: {left_out} of {len(measurement.values)} runs" * bool(left_out)


def _value(claim: Claim, value: float | None) -> str:
    if value is None:
        return "not computed"
    if math.isnan(value):
        return "did not train" if claim.among is not None else "not computed"
    return f"{value:.5g}" if math.isfinite(value) else f"infinite ({claim.infinite or 'it diverged'})"


def _numbers(what: str, comparison: Comparison, is_own: bool) -> Iterator[str]:
    """The intervals, the shifts that would be found, and the pooled estimate; seeds of the table have the first."""
    step, fresh = _step(comparison), comparison.fresh
    yield from _numbered(f"{what}", f"yours {_interval(fresh, step)}")
    if comparison.committed is None or is_own:
        return
    yield from _numbered("", f"the table's {_interval(comparison.committed, step)}")
    if comparison.predicted is not None:
        yield from _numbered("", _found(comparison, step))
    if comparison.pooled is not None:
        yield from _numbered("", f"both {_interval(comparison.pooled, step)}, {POOLED}")


def _found(comparison: Comparison, step: float) -> str:
    """The smallest shifts from the table's estimate that so many seeds detect, each with the value that it leads to."""
    assert comparison.committed is not None
    n, middle, below, above = comparison.fresh.n, comparison.committed.estimate, *comparison.found
    ways = [
        f"{sign}{_number(abs(mean - middle), step)} (to {_number(mean, step)})"
        for sign, mean in (("-", below), ("+", above))
        if math.isfinite(mean)
    ]
    seeds = f"{n} seed{'s' * (n > 1)}"
    power = f"with {100 * POWER:.0f} % power"
    if not ways:
        return f"{seeds} would detect no possible shift {power}"
    only = "; no possible shift the other way" * (len(ways) == 1)
    return f"the smallest shift that {seeds} would detect {power}: {' or '.join(ways)}{only}"


def _of_table(row: dict[str, Any]) -> str:
    """The reading of the table and its verdict, with the interval by which several looks are judged."""
    words = f"reading {row['reading']}: {row['verdict']}"
    if row["mean"] is None or row["level"] == LEVEL:
        return words
    interval = Interval(row["mean"], row["mean_low"], row["mean_high"], row["n"])
    return f"{words}, judged by {_interval(interval, _width(interval), row['level'])} after looks at n = {row['looks']}"


def _of_control(row: dict[str, Any], fresh: Measurement, now: dict[str, Any]) -> Iterator[str]:
    """The control's values, and its interval beside the table's."""
    if not fresh.control_values:
        return
    values = ", ".join("not computed" if value is None else f"{value:.5g}" for value in fresh.control_values)
    yield from _numbered("control", f"{now['control']}: {values}")
    for whose, of_row in (("yours", now), ("the table's", row)):
        if of_row["control_mean"] is not None:
            mean, low, high = (of_row[name] for name in ("control_mean", "control_low", "control_high"))
            interval = Interval(mean, low, high, len(json.loads(of_row["control_values"])))
            yield from _numbered("", f"{whose} {_interval(interval, _width(interval))}")


def _interval(interval: Interval, step: float, level: float = LEVEL) -> str:
    return f"{_ends(interval, step, level)}, n = {interval.n}"


def _ends(interval: Interval, step: float, level: float = LEVEL) -> str:
    """An estimate with its interval, of which one value has none."""
    low, mean, high = (_number(value, step) for value in (interval.low, interval.estimate, interval.high))
    if not math.isfinite(interval.high - interval.low) or interval.n < 2:
        return f"{mean} (one seed has no interval)" if interval.n < 2 else f"{mean} [{low}, {high}]"
    return f"{mean} [{low}, {high}]{'' if level == LEVEL else f' ({100 * level:.1f} %)'}"


def _step(comparison: Comparison) -> float:
    """The width by which numbers are rounded: that of the narrower interval."""
    widths = [_width(one) for one in (comparison.fresh, comparison.committed) if one is not None]
    return min((width for width in widths if width > 0), default=0.0)


def _width(interval: Interval) -> float:
    width = interval.high - interval.low
    return width if math.isfinite(width) else 0.0


def _number(value: float, step: float) -> str:
    """A number to two digits of the step."""
    if not math.isfinite(value):
        return "unbounded"
    if value == 0 or step <= 0:
        return f"{value:.4g}"
    exponent, decimals = math.floor(math.log10(abs(value))), 1 - math.floor(math.log10(step))
    if PLAIN[0] <= abs(value) < PLAIN[1]:
        return f"{value:.{min(max(decimals, 0), MOST_DECIMALS)}f}"
    return f"{value:.{min(max(exponent + decimals, 1), MOST_DECIMALS)}e}"


def _numbered(word: str, text: str) -> Iterator[str]:
    yield f"  {word:{WIDTH}}{text}"
