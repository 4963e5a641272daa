"""The table of `benchmarks.devinterp`, of accuracy and of seconds to an equal error, and its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from icl_lab.benchmarks.devinterp_cases import CASES
from icl_lab.benchmarks.devinterp_sides import ALL_DATA, BURN_IN, FIRST_BATCH, VERSION, Estimated, Measured
from icl_lab.benchmarks.table import aligned

Row = dict[str, Any]
OURS = "ours"
TARGETED = "devinterp, L(w*) over all data"  # whose times the targets are about
DEFAULT = "devinterp, its default baseline"
PREDICTED = "ours, with the quadratic prediction"  # of the same chains as ours
# (side, reading) -> what it is called
ESTIMATORS = {
    ("ours", ALL_DATA): OURS,
    ("ours, predicted", ALL_DATA): PREDICTED,
    ("devinterp", ALL_DATA): TARGETED,
    ("devinterp, replacement", ALL_DATA): "devinterp, L(w*) over all data, batches with replacement",
    ("devinterp", FIRST_BATCH): DEFAULT,
    ("devinterp", BURN_IN): "devinterp, burn-in averaged in",
}
FAR = 3.0  # own standard errors, beyond which an estimate misses the reference
HEAD = f"""# Our estimates of the LLC and devinterp's

<!-- Made by python -m benchmarks.devinterp: not edited by hand. -->

[devinterp](https://pypi.org/project/devinterp/) {VERSION} is a library on PyTorch that estimates the local learning
coefficient. Both libraries get the same weights, the same 4096 samples and the same settings: 8 chains, of which 200
draws are left out and 400 are kept, with batches of 64. The script checks that the losses of all samples at w* are
equal. The numbers, unrounded, are in [devinterp.csv](devinterp.csv).

```sh
python3 -m venv DIR && DIR/bin/python -m pip install torch devinterp=={VERSION}
python -m benchmarks.devinterp --python DIR/bin/python
```
"""
ACCURACY = r"""## Accuracy

- `reference`: the LLC at these settings from long chains, with its standard error. These chains are written in PyTorch
  apart from both libraries, draw batches with replacement, and leave out a longer burn-in.
- `estimate`: the mean over all seeds, with its standard error. `off`: the estimate less the reference, with the
  standard error of the difference.
- `RMSE`: the root of the mean squared difference between one estimate and the reference.
- `own error`: the standard error that an estimate gives itself, from its 8 chains (root mean square over seeds).
- `beyond 3`: estimates that miss the reference by more than 3 of their own standard errors. Where these errors are
  right, one estimate in fifty does (t with 7 degrees of freedom).

The rows of devinterp differ in one thing each.

- *L(w\*) over all data*: the loss at w* over all data is the baseline (`init_loss`). Batches are those of a shuffled
  `DataLoader`, epoch by epoch.
- *Batches with replacement*: the loader draws with replacement, as our estimator does. In a shuffled epoch a batch has
  none of the samples that the weights were just fitted to, so its loss is too high on average.
- *Its default baseline*: without `init_loss`, the loss of the first batch stands for L(w*). All chains share the error
  of this baseline, so their standard error does not show it.
- *Burn-in averaged in*: `num_burnin_steps` is 0, its default. The first draws, whose loss still rises from L(w*), are
  part of the mean.
"""
TIMES = """## Seconds to an equal error

- `seconds`, `CPU seconds`: of one estimate, medians; CPU seconds count all processors. *Warm*: in a process that has
  made an estimate before, with our program compiled and PyTorch loaded. *Cold*: from the start of a process, with
  imports and compilation; no compiled program is kept on disk. With its quadratic prediction, ours also computes the
  Hessian's spectrum.
- `times faster`: how many times as long as our estimator the row takes to an equal RMSE, which is the ratio of time
  times variance. The variance of an estimate is pooled over chains and seeds. The range over turns is in brackets.
  `in CPU seconds`: the same ratio of CPU seconds.
- `target`: what we aimed at. It is met if both ratios reach it.
"""


# --- numbers ---


def rows_of(name: str, measured: Measured) -> list[Row]:
    """A row for each way to estimate."""
    ours = variance([each for each in measured.estimates if each.side == "ours"], ALL_DATA)
    return [
        {"model": name, "estimator": label, **accuracy(of(measured, side), reading, measured.reference)}
        | (times(name, label, measured, side, ours) if reading == ALL_DATA else {})
        for (side, reading), label in ESTIMATORS.items()
    ]


def of(measured: Measured, side: str) -> list[Estimated]:
    """The estimates of a side."""
    return [each for each in measured.estimates if each.side == side]


def accuracy(estimates: Sequence[Estimated], reading: str, reference: tuple[float, float]) -> Row:
    """The columns that compare estimates with the reference (value, standard error)."""
    values = np.array([each.readings[reading].value for each in estimates])
    errors = np.array([each.readings[reading].error for each in estimates])
    off, error = values - reference[0], float(values.std(ddof=1) / np.sqrt(len(values)))
    return {
        "estimates": len(values),
        "reference": reference[0],
        "reference_error": reference[1],
        "estimate": float(values.mean()),
        "estimate_error": error,
        "off": float(off.mean()),
        "off_error": float(np.hypot(error, reference[1])),
        "rmse": float(np.sqrt((off**2).mean())),
        "own_error": float(np.sqrt((errors**2).mean())),
        "beyond_3": int((np.abs(off) > FAR * errors).sum()),
    }


def variance(estimates: Sequence[Estimated], reading: str) -> float:
    """The variance of an estimate of C chains: that of their means, over all chains and seeds, divided by C."""
    means = np.array([each.readings[reading].means for each in estimates])
    return float(means.var(ddof=1) / means.shape[1])


def times(name: str, label: str, measured: Measured, side: str, ours: float) -> Row:
    """The columns of times, and of ratios to ours at an equal error."""
    share = variance(of(measured, side), ALL_DATA) / ours
    share = 1.0 if label == PREDICTED else share  # fewer of the same chains
    row: Row = {"variance": share * ours}
    for state, target in zip(("warm", "cold"), CASES[name].targets, strict=True):
        cold = state == "cold"
        for unit in ("seconds", "cpu"):
            row[f"{state}_{unit}"] = float(np.median(taken(measured, side, cold, unit)))
            ratio = [
                share * np.median(theirs) / np.median(own)
                for theirs, own in zip(
                    by_turn(measured, side, cold, unit), by_turn(measured, "ours", cold, unit), strict=True
                )
            ]
            if label != OURS:
                row[f"{state}_{unit}_faster"] = (
                    share * row[f"{state}_{unit}"] / np.median(taken(measured, "ours", cold, unit))
                )
                row |= {f"{state}_{unit}_low": min(ratio), f"{state}_{unit}_high": max(ratio)}
        if label == TARGETED:
            least = min(row[f"{state}_seconds_faster"], row[f"{state}_cpu_faster"])
            row |= {f"{state}_target": target, f"{state}_met": bool(least >= target)}
    return row


def taken(measured: Measured, side: str, cold: bool, unit: str) -> list[float]:
    """Seconds of the clock or of processors of each cold or warm estimate of a side."""
    return [getattr(each, unit) for each in of(measured, side) if each.cold == cold]


def by_turn(measured: Measured, side: str, cold: bool, unit: str) -> list[list[float]]:
    """The same, a list for each turn."""
    turns = sorted({each.turn for each in measured.estimates})
    found = [each for each in of(measured, side) if each.cold == cold]
    return [[getattr(each, unit) for each in found if each.turn == turn] for turn in turns]


# --- page ---


def page(rows: Sequence[Row], about: Sequence[str], facts: Mapping[str, Any]) -> str:
    """The page: how it was measured, and the two tables with what their columns mean."""
    accurate, fast = tables(rows).split("\n\n")
    return "\n".join(
        [HEAD, *answers(rows), "", conditions(facts), "", *about, "", ACCURACY, accurate, "", TIMES, fast, ""]
    )


def answers(rows: Sequence[Row]) -> list[str]:
    """A line for each model: how many times as long devinterp takes, and how often each misses."""
    lines = []
    for name in dict.fromkeys(row["model"] for row in rows):
        own, theirs, default = (
            next(row for row in rows if (row["model"], row["estimator"]) == (name, label))
            for label in (OURS, TARGETED, DEFAULT)
        )
        lines.append(
            f"- `{name}`: to an equal error devinterp takes {theirs['warm_cpu_faster']:.3g} times our CPU seconds in a "
            f"warm process, and {theirs['cold_cpu_faster']:.3g} times in a cold one. With its default baseline "
            f"{default['beyond_3']} of {default['estimates']} estimates miss the reference by more than 3 of their own "
            f"standard errors, with L(w*) over all data {theirs['beyond_3']}, and of ours {own['beyond_3']}."
        )
    return lines


def conditions(facts: Mapping[str, Any]) -> str:
    """The device, versions and lengths."""
    ours, theirs = facts["versions"], facts["theirs"]
    return (
        f"Measured on {facts['machine']}, {facts['date'][:10]}, commit {str(facts['git_hash'])[:12]}, load average "
        f"{facts['load_average']:.2f} before; ours: jax {ours['jax']}, {facts['our_threads']} threads; devinterp: "
        f"{theirs['devinterp']}, PyTorch {theirs['torch']}, Python {theirs['Python']}. {facts['turns']} turns, each "
        f"with one cold and {facts['warm']} warm estimates of both, one after the other. PyTorch takes one thread or "
        "all, whichever is faster for the model's gradient. devinterp draws chains one by one, as is its default.\n"
    )


def sentence_of(name: str, measured: Measured) -> str:
    """What a model and its settings are."""
    case = CASES[name]
    settings = ", ".join(f"{key} {value:g}" for key, value in case.sizes.items())
    chains, burn_in, draws = case.reference
    threads = "one thread" if measured.threads == 1 else f"{measured.threads} threads"
    return (
        f"- `{name}`: {case.text}; {settings}; the reference has {chains} chains of {draws} draws after {burn_in}; "
        f"PyTorch with {threads}; the largest difference of a sample's loss at w* is {measured.apart:.1g} of the mean."
    )


def tables(rows: Sequence[Row]) -> str:
    """The two tables, of accuracy and of times, in Markdown."""
    accurate = [["model", "estimator", "reference", "estimate", "off", "RMSE", "own error", "beyond 3"]]
    accurate += [accurate_cells(row) for row in rows if row["estimator"] != PREDICTED]
    fast = [["model", "estimator"]]
    for state in ("warm", "cold"):
        fast[0] += [f"{state}: seconds", "CPU seconds", "times faster", "in CPU seconds", "target"]
    fast += [fast_cells(row) for row in rows if "warm_seconds" in row]
    return "\n\n".join("\n".join(aligned(cells)) for cells in (accurate, fast))


def accurate_cells(row: Row) -> list[str]:
    """The cells of a row of the first table."""
    return [
        row["model"],
        row["estimator"],
        f"{row['reference']:.3f} ± {row['reference_error']:.3f}",
        f"{row['estimate']:.3f} ± {row['estimate_error']:.3f}",
        f"{row['off']:+.3f} ± {row['off_error']:.3f}",
        f"{row['rmse']:.3f}",
        f"{row['own_error']:.3f}",
        f"{row['beyond_3']} of {row['estimates']}",
    ]


def fast_cells(row: Row) -> list[str]:
    """The cells of a row of the second table."""
    cells = [row["model"], row["estimator"]]
    for state in ("warm", "cold"):
        cells += [f"{row[f'{state}_{unit}']:.3g}" for unit in ("seconds", "cpu")]
        cells += [ratio(row, f"{state}_{unit}") for unit in ("seconds", "cpu")]
        met = "met" if row.get(f"{state}_met") else "**missed**"
        cells.append(f"{row[f'{state}_target']}: {met}" if f"{state}_target" in row else "")
    return cells


def ratio(row: Row, name: str) -> str:
    """A ratio and its range; empty for ours, which has none."""
    if f"{name}_faster" not in row:
        return ""
    return f"{row[f'{name}_faster']:.3g} ({row[f'{name}_low']:.3g} to {row[f'{name}_high']:.3g})"
