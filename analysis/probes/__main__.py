"""Linear probes: what can be decoded from the activations of a run, layer by layer and row by row.

python -m analysis.probes --run DIR [--targets w,gd] [--target FILE.npz] [--activations "blocks.*.resid_post"]
    [--positions all] [--steps N] [--eta X] [--tasks N]

Writes analysis/probes.csv, a row for each score, analysis/probes.json and figs/probes.png.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from icl_lab.analysis.command import Command
from icl_lab.analysis.loaded_run import LoadedRun, load_run
from icl_lab.analysis.probes.question import Question, add_flags, check, question_of
from icl_lab.analysis.probes.table import COLUMNS, Scored, probe
from icl_lab.plots.probes import READ_OUT, TOKENS, TRAINED, draw_probes
from icl_lab.store import layout
from icl_lab.store.atomic import write_csv, write_json
from icl_lab.store.rundir import read_config


def write(loaded: LoadedRun, question: Question) -> list[Scored]:
    """Writes probes.csv, probes.json and the figure."""
    found, facts = probe(loaded, question)
    table = [dict.fromkeys(COLUMNS) | row for row in found]
    write_csv(loaded.run / layout.PROBES, [{name: _field(value) for name, value in row.items()} for row in table])
    write_json(loaded.run / layout.PROBES_FACTS, facts | {"best": best(table)})
    draw_probes(loaded.run)
    return table


def _field(value: Any) -> Any:
    """A value as a field of the table: empty for none, so that whole numbers stay such."""
    return "" if value is None else value


def best(table: Sequence[Scored]) -> dict[str, Scored]:
    """Of each target, where the trained network's score is the largest."""
    found: dict[str, Scored] = {}
    for row in table:
        if row["probe"] == TRAINED and row["score"] is not None:
            known = found.setdefault(row["target"], row)
            found[row["target"]] = max(known, row, key=lambda each: float(each["score"]))
    shown = ("activation", "position", "steps", "measure", "score", "low", "high")
    return {name: {key: row[key] for key in shown} for name, row in found.items()}


def measure(run: Path, flags: argparse.Namespace) -> Iterator[Scored]:
    """Probes a run, and gives a row for each target and activation with the scores of its controls."""
    question = question_of(flags)
    check(read_config(run), question)
    table = write(load_run(run), question)
    for row in table:
        if row["probe"] in (TRAINED, READ_OUT):
            yield _in_words(row, table)


def _in_words(row: Scored, table: Sequence[Scored]) -> Scored:
    steps = "" if row["steps"] is None else f" ({row['steps']} steps)"
    shown = {"target": row["target"] + steps, "activation": row["activation"], "row": row["position"]}
    if row["reason"]:
        return shown | {"not defined:": row["reason"]}
    shown |= {row["measure"]: f"{row['score']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"}
    if row["probe"] == READ_OUT:
        return shown | {"probe": READ_OUT}
    same = ("target", "steps", "position")
    beside = [other for other in table if all(other[key] == row[key] for key in same) and not other["reason"]]
    controls = {
        other["probe"]: f"{other['score']:.3f}"
        for other in beside
        if other["activation"] in (row["activation"], TOKENS) and other["probe"] not in (TRAINED, READ_OUT)
    }
    return shown | controls


COMMAND = Command("probes", "Fits linear probes to the activations of a run.", measure, add_flags)

if __name__ == "__main__":
    COMMAND.launch()
