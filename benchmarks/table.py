"""Formats the results as a Markdown table for the terminal and for pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Entry = Mapping[str, Any]
HEADER = ("", "ours", "plain loop", "times faster", "GFLOP/s")
# what the names of entries begin with -> the heading of their table
COMPARED = {
    "llc_": "local learning coefficient",
    "develop_": "development",
    "capture_": "activations",
    "curriculum_": "curriculum on points",
}
COMPARED_HEADER = ("ours", "compared with", "its time", "ours over it")
SUFFIXES = {  # of a row's text
    "cached": ", programs kept",
    "cold": ", programs compiled anew",
    "packed": ": packed in one process",
    "ray": ": on Ray, started for it",
    "xla": ", by XLA",
    "separate": ": one of 16 by itself, 16 times",
}
UNITS = ((1.0, "s", 1.0), (1e-3, "ms", 1e3), (0.0, "µs", 1e6))  # (from this many seconds, unit, factor)


def text(results: Mapping[str, Entry]) -> str:
    """The table and the notes below it."""
    rows = [row for entry in results.values() if "seconds" in entry for row in _rows(entry, results.get("peak"))]
    lines = [*aligned([HEADER, *rows]), "", *_sentences(results)] if rows or "peak" in results else []
    return "\n".join([*lines, *(line for prefix in COMPARED for line in _compared(results, prefix))])


def duration(measured: Mapping[str, float]) -> str:
    """A median and its range, in a suitable unit."""
    _, unit, factor = next((row for row in UNITS if measured["median"] >= row[0]), UNITS[-1])
    return f"{between(measured, factor)} {unit}"


def between(measured: Mapping[str, float], factor: float = 1.0) -> str:
    """A median and its range, times a factor, with three digits."""
    median, low, high = (_three_digits(measured[name] * factor) for name in ("median", "low", "high"))
    return f"{median} ({low} to {high})"


def _three_digits(value: float) -> str:
    """A number with at least three digits and without an exponent."""
    return f"{value:.0f}" if value >= 999.5 else f"{value:#.3g}".rstrip(".")


def _rows(entry: Entry, peak: Entry | None) -> list[tuple[str, ...]]:
    """A row per variant of ours, with the plain loop's time and the ratio; one more row for memory."""
    seconds, ratios = entry["seconds"], entry["times_faster"]
    plain = duration(seconds["plain"]) if "plain" in seconds else ""
    rows: list[tuple[str, ...]] = [
        (
            entry["text"] + SUFFIXES.get(who, ""),
            duration(measured),
            plain,
            between(ratios[who]) if who in ratios else "",
            _speed(entry, who, peak),
        )
        for who, measured in seconds.items()
        if who != "plain"
    ]
    memory = {who: f"{value['median']:.0f} MiB" for who, value in entry.get("peak_mib", {}).items()}
    if memory:
        rows.append((f"peak memory of {entry['text']}", memory["ours"], memory.get("plain", ""), "", ""))
    alone = entry.get("compile_seconds", {})
    return rows + [
        (f"of which tracing and compiling{SUFFIXES.get(who, '')}", duration(measured), "", "", "")
        for who, measured in alone.items()
    ]


def _speed(entry: Entry, who: str, peak: Entry | None) -> str:
    """Achieved GFLOP/s and share of the peak."""
    if "flops" not in entry:
        return ""
    speed = 1e-9 * entry["flops"] / entry["seconds"][who]["median"]
    return _three_digits(speed) + (f" ({speed / peak['gflops']:.0%} of peak)" if peak else "")


def _sentences(results: Mapping[str, Entry]) -> list[str]:
    sentences = []
    if "peak" in results:
        sentences.append(f"Peak: {results['peak']['gflops']:.0f} GFLOP/s, {results['peak']['text']}.")
    if "same_loss" in results:
        entry = results["same_loss"]
        sentences.append(
            f"The {entry['text']}: ours {entry['loss']['ours']:.4f}, plain {entry['loss']['plain']:.4f}, apart by "
            f"{abs(entry['difference']):.2%}, {'within' if entry['same'] else 'more than'} {entry['tolerance']:.0%}."
        )
    return sentences


def _compared(results: Mapping[str, Entry], prefix: str) -> list[str]:
    """The table of what an LLC costs, a development, or activations, and sentences on an LLC's bias by batch size."""
    entries = [entry for name, entry in results.items() if name.startswith(prefix)]
    rows = [row for entry in entries if "llc_seconds" in entry for row in _costs(entry)]
    table = ["", *aligned([(COMPARED[prefix], *COMPARED_HEADER), *rows]), ""] if rows else []
    notes = dict.fromkeys(entry["note"] + "." for entry in entries if entry.get("note"))
    return [*table, *(_bias(entry) for entry in entries if "by_batch" in entry), *notes]


def _costs(entry: Entry) -> list[tuple[str, ...]]:
    """A row for each that an entry is compared with, or one row."""
    ours = duration(entry["llc_seconds"]["ours"])
    others: list[tuple[str, ...]] = [
        (entry["text"], ours, who, duration(entry["llc_seconds"][who]), between(ratio))
        for who, ratio in entry["cost"].items()
    ]
    return others or [(entry["text"], ours, "", "", "")]


def _bias(entry: Entry) -> str:
    by_batch = ", ".join(f"{batch}: {llc:.3g} ± {error:.2g}" for batch, (llc, error) in entry["by_batch"].items())
    return f"{entry['text']}, with its standard error: {by_batch}."


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of an aligned Markdown table; the first row is the header."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + " |" for row in rows]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]
