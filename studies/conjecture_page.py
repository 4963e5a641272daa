"""What is written of a user's conjecture: verdict, nearest algorithms, figures and page."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.lab.configs.registry import family_of, outputs_of
from icl_lab.lab.executors.task import Executor
from icl_lab.lab.loaded_plugins import LOADED, Plugin
from icl_lab.lab.progress import say
from icl_lab.lab.registries import CONJECTURES
from icl_lab.plots import style
from icl_lab.runners.conditions import device_text
from icl_lab.src import intervals
from icl_lab.src.words import printable
from icl_lab.store import outputs
from icl_lab.store.atomic import csv_bytes
from icl_lab.store.provenance import commit_of
from icl_lab.store.readers import StoreError, read_csv
from icl_lab.store.rundir import now
from icl_lab.studies import conjecture_seeds, ledger, template
from icl_lab.studies.claim import Claim, Measurement
from icl_lab.studies.conjecture import TRAINED, control_of, table_of, to_others
from icl_lab.studies.conjecture_seeds import Seeds, of_those_that_trained
from icl_lab.studies.drawing import as_drawn, draw
from icl_lab.studies.measuring import analysed, measure
from icl_lab.studies.runs import Runs, has_trained
from icl_lab.studies.study import Study
from icl_lab.studies.words import AS_PREDICTED, CONTRADICTED, HOLDS, PROVISIONAL, UNDECIDED, UNINFORMATIVE, of_few_seeds

# measures of a distance -> the scale of their intervals, and how near a value is; the smallest is the nearest
NEAREST: dict[str, tuple[str, Callable[[float], float]]] = {
    "difference": ("nonnegative", lambda value: value),
    "cosine": ("fisher", lambda value: -value),
    "loss_ratio": ("log", lambda value: abs(math.log(value))),
}
TABLE, DISTANCES, HISTORY = "claims.csv", "nearest.csv", "history.csv"
TEMPLATE = Path(__file__).with_name("conjecture.md.j2")

Row = dict[str, Any]


def check(study: Study, out: Path) -> None:
    """`StoreError` if the results would replace somebody else's files, or stand among those of the studies."""
    if (out / ledger.TABLE).exists():
        raise StoreError(f"{out} has the results of the studies; choose another folder with --report")
    names = [
        TABLE,
        DISTANCES,
        HISTORY,
        *(f"{one.name}.{suffix}" for one in study.figures for suffix in ("csv", "json")),
    ]
    outputs.check([out / f"{study.name}.md", *(out / study.name / name for name in names)], ledger.WRITER)
    outputs.check([out / study.name / f"{one.name}.png" for one in study.figures], style.WRITER)


def report(study: Study, profile: str, runs_dir: Path, out: Path, cluster: Executor | None = None) -> None:
    """Analyses the runs, measures the predictions, and writes tables, figures and page; prints the verdict."""
    names = {cell.name for runs in study.runs.values() for cell in runs.cells}
    runs = study.to_analyse(names, runs_dir)
    for number, name in enumerate(analysed(study, runs, runs_dir, cluster), 1):
        say(f"{number} of {len(runs)} runs analysed: {name}")
    table_of.cache_clear()
    measured = {claim.name: measure(study, claim, runs_dir, device_text()) for claim in study.claims}
    if None in measured.values():
        print("the conjecture is not measured: not all of its runs have ended")
        return
    ended = study.runs[TRAINED].ended(runs_dir)
    met = {seed: conjecture_seeds.of_run(run) for seed, run in ended.items() if isinstance(run, Path)}
    rows = [_row(study, profile, claim, found, met) for claim in study.claims if (found := measured[claim.name])]
    plugin, folder = LOADED[study.name], out / study.name
    finished = study.runs[TRAINED].finished(runs_dir) if study.analyses else []
    that_trained = [run for run in finished if conjecture_seeds.of_run(run) is not False]
    study = study if that_trained else replace(study, figures=())  # of none there is nothing to draw
    distances = _distances(that_trained)
    history = _history(folder / HISTORY, _now(plugin, profile, rows))
    tables = {TABLE: rows, DISTANCES: distances, HISTORY: history}  # without a transformer there are no distances
    outputs.write({folder / name: csv_bytes(table) for name, table in tables.items() if table}, ledger.WRITER)
    draw(study, study.figures_of(profile), runs_dir, out, cluster)
    of_seeds = conjecture_seeds.by_seed(rows, met)
    text = page(study, profile, out, rows, distances, history, _reasons(finished), of_seeds)
    outputs.write({out / f"{study.name}.md": text.encode()}, ledger.WRITER)
    for row in rows:
        print(f"{row['claim']}: {template.verdict(row)}, {template.measured(row)}, accepted {template.accepted(row)}")
    print(printable(f"{in_words(history[-1])}: {CONJECTURES[study.name].says}"))
    print(printable(out / f"{study.name}.md"))


def _row(study: Study, profile: str, claim: Claim, of_all: Measurement, met: Mapping[int, bool | None]) -> Row:
    """The line of a prediction: judged by the runs that trained, with the values of all."""
    row = ledger.row(study, claim._replace(among=has_trained), of_those_that_trained(of_all, met))
    values = [value if value is not None and math.isfinite(value) else None for value in of_all.values]
    of_runs = {"values": json.dumps(values), "trained": json.dumps([met.get(seed) for seed in of_all.seeds])}
    return row | of_runs | {"runs": len(of_all.values), "command": study.command(profile)}


def together(rows: Sequence[Row]) -> dict[str, str]:
    """The verdict of all predictions and what the numbers say: contradicted if one is, as predicted if all are."""
    words = [str(row["reading_says"] if row["verdict"] == PROVISIONAL else row["verdict"]) for row in rows]
    says = UNINFORMATIVE if UNINFORMATIVE in words else UNDECIDED
    if CONTRADICTED in words or (words and all(word in HOLDS for word in words)):
        says = CONTRADICTED if CONTRADICTED in words else AS_PREDICTED
    return {"verdict": of_few_seeds(says, max((row["n"] for row in rows), default=0)), "reading_says": says}


def in_words(row: Row) -> str:
    """A verdict of all predictions, with what the numbers say where that is another word, and the runs it is of."""
    verdict, says, n, runs = str(row["verdict"]), row["reading_says"], int(row["n"]), int(row["runs"])
    words = verdict if says == verdict else f"{verdict} ({says} at n = {n})"
    if n == runs:
        return words
    return f"{words}, of the {n} of {runs} runs that trained" if n else f"{words}, as no run trained"


def _distances(runs: Sequence[Path]) -> list[Row]:
    """The transformer's distances to each algorithm, with intervals over seeds, and in how many it is the nearest."""
    rows = []
    for kind, (scale, near) in NEAREST.items():
        each = [to_others(run, kind) for run in runs]
        wins = Counter(min(distances, key=lambda name: near(distances[name])) for distances in each if distances)
        for name in dict.fromkeys(name for distances in each for name in distances):
            values = np.array([distances[name] for distances in each if name in distances])
            mean, low, high, n = intervals.of(values, scale)
            numbers = {"mean": mean, "mean_low": low, "mean_high": high, "n": n, "nearest_in": wins[name]}
            rows.append({"algorithm": name, "measure": kind, **numbers, "share": None})
    return rows


def _reasons(runs: Sequence[Path]) -> dict[str, str]:
    """Algorithms that are not defined for the runs, and why."""
    return {row["row"]: row["reason"] for row in table_of(runs[0]) if row["reason"]} if runs else {}


def _now(plugin: Plugin, profile: str, rows: Sequence[Row]) -> Row:
    ranges = "; ".join(f"{row['claim']} {template.range_in_words(row['low'], row['high'])}" for row in rows)
    commit = commit_of(plugin.path) or ""
    what = {"file_hash": plugin.digest, "file_commit": commit, "profile": profile, "accepted": ranges}
    return {"date": str(now())[:10], **what, "n": rows[0]["n"], "runs": rows[0]["runs"], **together(rows)}


def _history(path: Path, row: Row) -> list[Row]:
    """The verdicts of all versions of the file, of each the latest, in the order in which they came."""
    names = ("date", "file_hash", "file_commit", "profile", "accepted", "verdict")
    read: list[Row] = read_csv(path, ("n",), names).to_dict("records") if path.exists() else []
    earlier = [  # older files lack both
        old | {"reading_says": str(old.get("reading_says", old["verdict"])), "runs": old.get("runs", old["n"])}
        for old in read
    ]
    same = [(old["file_hash"], old["profile"]) == (row["file_hash"], row["profile"]) for old in earlier]
    return [old for old, is_same in zip(earlier, same, strict=True) if not is_same] + [row]


def _criterion(runs: Runs) -> str:
    """What a run's family asks of one that trained, in words."""
    criteria = outputs_of(family_of(runs.cells[0].config)).criteria
    return ", ".join(f"{one.words} {'at least' if one.at_least else 'at most'} {one.threshold:g}" for one in criteria)


def page(
    study: Study,
    profile: str,
    out: Path,
    rows: Sequence[Row],
    distances: Sequence[Row],
    history: Sequence[Row],
    reasons: Mapping[str, str],
    of_seeds: Seeds,
) -> str:
    """The page in Markdown: question, verdict, predictions, nearest algorithms, figures, where it all comes from."""
    by_algorithm: dict[str, dict[str, Row]] = {}
    for row in sorted(distances, key=lambda row: (row["measure"] != "difference", row["mean"])):
        by_algorithm.setdefault(row["algorithm"], {})[row["measure"]] = row
    conjecture = CONJECTURES[study.name]
    return template.rendered(
        TEMPLATE,
        study=study,
        conjecture=conjecture,
        command=study.command(profile),
        verdict=in_words(history[-1]),
        rows=rows,
        nearest=by_algorithm,
        measures=[*NEAREST],
        reasons=reasons,
        of_seeds=of_seeds,
        figures=as_drawn(study, out / study.name),
        history=history,
        in_words=in_words,
        plugin=LOADED[study.name],
        seeds=len(study.runs[TRAINED].seeds),
        criterion=_criterion(study.runs[TRAINED]),
        control_seeds=len(study.runs[control_of(conjecture)].seeds),
    )
