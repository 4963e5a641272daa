"""Lists the runs below a folder, including those of sweeps, newest first.

python -m store.runs [DIR]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from icl_lab.lab import cli
from icl_lab.src.words import printable
from icl_lab.store import provenance
from icl_lab.store.listing import MISSING, Entry, list_runs
from icl_lab.store.outputs import in_path
from icl_lab.store.rundir import RUNS

COLUMNS = ("run", "status", "age", "size", "test set", "sources", "differs in")
AGES = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))  # seconds of a unit, from the longest
HIDDEN = ("preset", "base.")  # fields that repeat others
BOTH_SEEDS = ("data_seed", "init_seed")


def text_of(entries: Sequence[Entry], now: datetime) -> str:
    """An aligned line per run, with the reason if it is broken, and a line that counts other folders."""
    fields, shown = differences(entries), [entry for entry in entries if entry.shown]
    rows = [COLUMNS, *(_cells(entry, fields[entry.path], now) for entry in shown)]
    widths = [max(len(row[column]) for row in rows if len(row) > column) for column in range(len(COLUMNS) - 1)]
    lines = ["  ".join(map(str.ljust, row, [*widths, 0])).rstrip() for row in rows]
    others = len(entries) - len(shown)
    count = f"{others} other folder{'s' * (others > 1)} without a run"
    return "\n".join([*lines, *[count] * (others > 0), *_sweeps(entries)])


def _sweeps(entries: Sequence[Entry]) -> list[str]:
    """A line for each folder of a sweep, with the statuses of its runs."""
    by_folder: dict[Path, Counter[str]] = {}
    for entry in entries:
        by_folder.setdefault(entry.path.parent, Counter())["killed" if entry.killed else entry.status] += 1
    sweeps = {folder: counts for folder, counts in by_folder.items() if any(folder.glob("plan_*.json"))}
    return [
        f"sweep {printable(folder)}: {', '.join(f'{number} {status}' for status, number in sorted(counts.items()))}"
        for folder, counts in sorted(sweeps.items())
    ]


def _cells(entry: Entry, differing: Mapping[str, Any], now: datetime) -> tuple[str, ...]:
    status = f"{entry.status} on {entry.host}" if entry.status == "running" and entry.host else entry.status
    status = "killed" if entry.killed else status
    shown = [printable(entry.path), printable(status), age(entry.time, now), size(entry.size)]
    if entry.reason:
        return (*shown, "", "", printable(" ".join(entry.reason.split())))
    loss = (
        "" if entry.loss is None else f"{entry.loss[0]} {entry.loss[1]:.4g}" + f" ({entry.whose})" * bool(entry.whose)
    )
    if entry.bitwise is False or (entry.bitwise is None and entry.status == "done"):
        differing = {**differing, "bitwise": provenance.in_words(entry.bitwise)}
    differing = {**differing, MISSING: [*entry.plugins_missing]} if entry.plugins_missing else differing
    fields = " ".join(f"{name}={_value(value)}" for name, value in differing.items())
    return (*shown, loss, entry.sources, printable(f"{entry.config['name']} {fields}"))


def age(time: datetime | None, now: datetime) -> str:
    """How long ago a time is, in whole units: `3 h`; "" for none."""
    seconds = 0.0 if time is None else max((now - time).total_seconds(), 0.0)
    length, unit = next((each for each in AGES if seconds >= each[0]), AGES[-1])
    return "" if time is None else f"{int(seconds // length)} {unit}"


def size(count: int) -> str:
    """A number of bytes: `12 kB`, `2.5 MB`."""
    kilobytes = count / 1000
    return f"{kilobytes:.0f} kB" if kilobytes < 1000 else f"{kilobytes / 1000:.1f} MB"


def _value(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def differences(entries: Sequence[Entry]) -> dict[Path, dict[str, Any]]:
    """For each run, the fields in which the runs of the same model differ, under the shortest unique names."""
    by_name: dict[str, list[Entry]] = {}
    for entry in entries:
        by_name.setdefault(str(entry.config.get("name")), []).append(entry)
    return {path: fields for those in by_name.values() for path, fields in _differences(those).items()}


def _differences(entries: Sequence[Entry]) -> dict[Path, dict[str, Any]]:
    configs = [_merged(entry.config) for entry in entries]
    names = list(dict.fromkeys(name for config in configs for name in config))
    last = Counter(name.rpartition(".")[2] for name in names)
    short = {name: name if last[name.rpartition(".")[2]] > 1 else name.rpartition(".")[2] for name in names}
    differing = [name for name in names if len({str(config.get(name)) for config in configs}) > 1]
    return {
        entry.path: {short[name]: config[name] for name in differing if name in config}
        for entry, config in zip(entries, configs, strict=True)
    }


def _merged(config: Mapping[str, Any]) -> dict[str, Any]:
    """A run's fields, with train and eval settings merged where they agree, and both seeds too."""
    fields = {name: value for name, value in config.items() if not name.startswith(HIDDEN)}
    pairs = [(name, f"eval.{name[6:]}", name[6:]) for name in config if name.startswith("train.")]
    for one, other, merged in [(*BOTH_SEEDS, "seed"), *pairs]:
        if one in fields and fields[one] == fields.get(other):
            fields[merged] = fields.pop(one)
            del fields[other]
    return fields


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("store.runs", "Lists the runs below a folder, including those of sweeps, newest first.")
    built.add_argument("folder", metavar="DIR", type=in_path, nargs="?", default=RUNS, help="folder to search")
    return built


def main(argv: list[str]) -> None:
    """The command line."""
    print(text_of(list_runs(parser().parse(argv).folder), datetime.now(UTC)))


if __name__ == "__main__":
    cli.launch(main)
