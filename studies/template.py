"""Renders pages from templates, with filters for numbers. A missing value is an error."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from icl_lab.lab.environment import extra
from icl_lab.src.planning import MOST_SEEDS
from icl_lab.studies.claim import ORIGINS, OURS, UNBOUNDED
from icl_lab.studies.words import OTHER_SCALE, PROVISIONAL, TWO_KINDS, legend, words_of

LARGEST = 1e5  # what is larger has diverged, and its digits say nothing
MOST_DECIMALS = 6
NOT_MEASURED = "…"
SMALLEST = 1e-5  # a lower end below it stands for 0, which is not in the range


def rendered(template: Path, **values: Any) -> str:
    """The template with the values in it; it may import those in studies/. `UnusableEnvironment` without jinja2."""
    jinja2 = extra("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([template.parent, Path(__file__).parent]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"accepted": accepted, "measured": measured, "verdict": verdict, "control": control}
    environment.filters |= {
        "place": place,
        "cell": cell,
        "number": number,
        "worst": worst,
        "origin": ORIGINS.__getitem__,
        "legend": lambda rows: legend(words_of(rows)),
    }
    text: str = environment.get_template(template.name).render(**values)
    return text


def accepted(row: Mapping[str, Any]) -> str:
    """The range of a line of the ledger, with what counts as no effect and the range before it was revised."""
    words = range_in_words(row["low"], row["high"])
    if row["no_effect_low"] is not None:
        words += f"; no effect: {number(row['no_effect_low'])} to {number(row['no_effect_high'])}"
    if row["range"] == "original":
        return words
    return f"{words} (was {range_in_words(row['earlier_low'], row['earlier_high'])})"


def range_in_words(low: float, high: float) -> str:
    """An accepted range."""
    if high >= UNBOUNDED:
        return f"at least {number(low)}" if low > SMALLEST else "above 0"
    return f"at most {number(high)}" if low == 0 or low <= -UNBOUNDED else f"{number(low)} to {number(high)}"


def measured(row: Mapping[str, Any]) -> str:
    """The mean of a line of the ledger with its 90 % interval; for a claim on every run, how many satisfy it."""
    if row["mean"] is None:
        return ""
    if row["share"] is not None:
        return f"{row['share'] * row['n']:.0f} of {row['n']}: at least {100 * row['share_low']:.0f} % of runs"
    if not math.isfinite(row["mean"]):
        return row.get("infinite") or "diverged"
    if row["n"] < 2:
        return f"{number(row['mean'])}, one run"
    mean, low, high = with_digits_of_interval(*(row[name] for name in ("mean", "mean_low", "mean_high")))
    return f"{mean} [{low}, {high}]"


def value(row: Mapping[str, Any]) -> str:
    """The number of a line with its interval and n; for a claim on every run, how many satisfy it."""
    if row["mean"] is None:
        return NOT_MEASURED
    if row["share"] is not None:
        return f"{row['share'] * row['n']:.0f} of {row['n']} runs (at least {100 * row['share_low']:.0f} %)"
    if not math.isfinite(row["mean"]):
        return f"infinite (n = {row['n']})"
    return measured(row).replace("]", f"; n = {row['n']}]")


def with_digits_of_interval(mean: float, low: float, high: float) -> list[str]:
    """An estimate and its interval's ends, to as many decimals as the distance to the nearer end has meaning.

    That is to two digits of a distance up to 3.5 times a power of ten, else to one (Particle Data Group's rule).
    """
    apart = [distance for distance in (mean - low, high - mean) if 0 < distance < LARGEST]
    if not apart or not math.isfinite(high) or mean >= LARGEST:
        return [number(value) for value in (mean, low, high)]
    exponent = math.floor(math.log10(min(apart)))
    decimals = min(max((min(apart) < 3.55 * 10**exponent) - exponent, 0), MOST_DECIMALS)
    return [_rounded(value, decimals) if abs(value) < LARGEST else number(value) for value in (mean, low, high)]


def _rounded(value: float, decimals: int) -> str:
    """A number with so many decimals; one that would be 0, and is not, with one digit."""
    text = f"{value:.{decimals}f}"
    return text if value == 0 or float(text) else f"{value:.{-math.floor(math.log10(abs(value)))}f}"


def number(value: float) -> str:
    """A number with four digits and at most five decimals, without exponents; what is huge or infinite in words."""
    if not math.isfinite(value):
        return "unbounded"
    if abs(value) < 1e-3:
        return f"{value:.5f}".rstrip("0").rstrip(".")
    if value >= LARGEST:
        return f"over {LARGEST:.0f}"
    return f"{value:.0f}" if abs(value) >= 1e3 else f"{value:.4g}"


def verdict(row: Mapping[str, Any]) -> str:
    """The verdict of a line, what its numbers alone say, what would decide it, and the same by its first range."""
    words = short_verdict(row)
    if row["verdict"] == OTHER_SCALE:
        words += f": {row['smaller']}"
    if row["of_kind"] is not None and row["verdict"] == TWO_KINDS:
        words += f", {row['of_kind']} of {row['n']} [{row['of_kind_low']:.2f}, {row['of_kind_high']:.2f}]"
    if row["because"]:
        words += f", {row['because']}"
    elif row["n_needed"] and row["planned"] is None:
        words += f"; {_seeds(row['n_needed'])} fresh seeds would decide"
    if row["planned"] is not None:
        words += f"; reading {row['planned']} is planned"
    if row["earlier_verdict"]:
        words += f"; by the first range {row['earlier_verdict']}"
    return words


def short_verdict(row: Mapping[str, Any]) -> str:
    """The verdict of a line, and what its numbers alone say where that is something else."""
    words = str(row["verdict"])
    return words if row["reading_says"] == words else f"{words} ({row['reading_says']} at n = {row['n']})"


def verdict_in_prose(row: Mapping[str, Any]) -> str:
    """The verdict of a line as it stands in a sentence, where n stands beside it."""
    if row["verdict"] == OTHER_SCALE:
        return f"{row['reading_says']} at a smaller scale"
    return f"provisionally {row['reading_says']}" if row["verdict"] == PROVISIONAL else str(row["verdict"])


def value_of_control(row: Mapping[str, Any]) -> str:
    """The control's estimate with its interval."""
    if row["control_mean"] is None:
        return NOT_MEASURED
    mean, low, high = with_digits_of_interval(*(row[f"control_{end}"] for end in ("mean", "low", "high")))
    return mean if low == high else f"{mean} [{low}, {high}]"


def _seeds(needed: int) -> str:
    return f"more than {MOST_SEEDS}" if needed > MOST_SEEDS else str(needed)


def control(row: Mapping[str, Any]) -> str:
    """The control's estimate with its interval and what it is, or why there is none, or none yet."""
    if not row["control"]:
        return f"none: {row['uncontrolled']}" if row["uncontrolled"] else "none"
    name = row["control"] if row["control_kind"] == "rival" else "untrained, weak"
    name += ", chosen later" if row["control_chosen"] == "later" else ""
    if row["control_mean"] is None:
        return f"{'not defined' if json.loads(row['control_values']) else 'not measured'} ({name})"
    numbers = with_digits_of_interval(*(row[f"control_{end}"] for end in ("mean", "low", "high")))
    return f"{numbers[0]} [{numbers[1]}, {numbers[2]}] ({name})"


def worst(rows: Sequence[Mapping[str, Any]], name: str) -> str:
    """The largest of these simulated shares in percent, with two standard errors, and the looks that it is of."""
    row = max(rows, key=lambda row: float(row[name]))
    error = 2 * math.sqrt(row[name] * (1 - row[name]) / row["draws"])
    return f"{100 * row[name]:.1f} ± {100 * error:.1f} % ({str(row['looks']).replace(' ', ', ')})"


def place(row: Mapping[str, Any]) -> str:
    """Where the claim stands: the paper, and the figure in it if it has a number."""
    figure, paper = str(row["figure"]), str(row["paper"]).split(",")[0]
    if row["paper"] == OURS:
        return "ours"
    if figure.startswith(("Th. ", "Sec. ", "Prop. ", "App. ")):
        return f"{paper}, {figure}"
    words = {"code": "published code", "depth": "depth curve", "1, depth": "Fig. 1, depth curve", "text": "text"}
    if figure in words:
        return f"{paper}, {words[figure]}"
    if not any(letter.isdigit() for letter in figure):
        return paper
    return f"{paper}, App. {figure}" if figure.startswith("A.") else f"{paper}, Fig. {figure}"


def cell(text: str) -> str:
    """Text as it may stand in a cell of a Markdown table."""
    return text.replace("|", "\\|")
