"""Measures the ledger's claims on finished runs, and writes its table, its page and its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plots.curves import draw_curves
from plots.weights import draw_products
from report.claims import CLAIMS, PAPER, RUNS
from report.curves import heat_maps, rows_of
from report.figures import FIGURES, HEAT_MAPS
from report.ledger import PROFILES, VERDICTS, Claim, Measurement, of_profile, row, write_ledger
from report.page import rendered
from report.remarks import REMARKS
from src.config import to_dict
from store import rundir
from store.atomic import write_bytes, write_csv, write_json
from store.provenance import git_commit, now
from sweeps.collect import standing
from sweeps.plan import Cell, cells, plan

SEEDS = (0, 1, 2)  # of claims that need no training
TABLE, PAGE = "claims.csv", "claims.md"
TEMPLATE = Path(__file__).with_name("claims.md.j2")


def cells_of(name: str) -> list[Cell]:
    """The cells of one of the ledger's runs, by seed."""
    return cells(plan([RUNS[name].grid]))


def measure(claim: Claim, folder: Path, device: str) -> Measurement | None:
    """A claim's values; None if none of its runs is done."""
    if not claim.runs:
        facts = {seed: (claim.measure(seed), 0.0) for seed in SEEDS}
    else:
        done = [finished(name, folder) for name in (claim.runs, claim.beside) if name]
        seeds = [seed for seed in done[0] if all(seed in runs for runs in done)]
        facts = {
            seed: (claim.measure(*(runs[seed] for runs in done)), sum(minutes(runs[seed]) for runs in done))
            for seed in seeds
        }
    if not facts:
        return None
    values, each = zip(*facts.values(), strict=True)
    commit = git_commit() or "unknown"
    return Measurement(tuple(map(float, values)), tuple(facts), sum(each), device, str(now())[:10], commit)


def finished(name: str, folder: Path) -> dict[int, Path]:
    """The finished ones of the ledger's runs of a name, by seed."""
    done = [cell for cell in cells_of(name) if standing(cell, folder)[0] == "done"]
    return {cell.config.data_seed: folder / cell.name for cell in done}


def minutes(run: Path) -> float:
    """What a run took to compile and train."""
    meta = rundir.read_meta(run)
    return (float(meta["run_seconds"]) + float(meta["compile_seconds"])) / 60


def write(out: Path, measured: dict[str, Measurement]) -> None:
    """Writes the table and the page of all claims, with the measurements there are."""
    rows = [line(claim, measured.get(claim.name)) for claim in CLAIMS]
    write_ledger(out / TABLE, rows)
    write_bytes(out / PAGE, page(rows).encode())


def line(claim: Claim, measurement: Measurement | None) -> dict[str, Any]:
    """A claim's line, with the command that measures it."""
    found = row(claim, measurement, f"make reproduce PROFILE={claim.profile}")
    return found | {"remark": "" if found["verdict"] == "reproduced" else REMARKS.get(claim.name, "")}


def page(rows: Sequence[dict[str, Any]]) -> str:
    """The ledger as Markdown."""
    counts = {name: sum(found["verdict"] == name for found in rows) for name in VERDICTS}
    return rendered(TEMPLATE, paper=PAPER, counts=counts, rows=rows)


def draw(profile: str, folder: Path, out: Path) -> None:
    """Writes each figure whose runs there are, with its bundle: CSV, the configs of its runs, the command."""
    for figure in of_profile(FIGURES, profile):
        runs = {name: finished(name, folder) for name in figure.runs}
        if figure.runs and not any(runs.values()):
            continue
        labels = {name: getattr(figure, name) for name in ("title", "x_label", "y_label", "log_x", "log_y")}
        of_runs = [figure.curves(run, name) for name, found in runs.items() for run in found.values()]
        source = out / f"{figure.name}.csv"
        write_csv(source, rows_of(of_runs or [figure.curves(seed, "") for seed in SEEDS], figure.limit))
        used = [run for found in runs.values() for run in found.values()]
        write_json(source.with_suffix(".json"), _bundle(labels, figure.profile, used))
        draw_curves(source, labels)
    for name in (name for name, least in HEAT_MAPS.items() if PROFILES.index(least) <= PROFILES.index(profile)):
        found = finished(name, folder)
        if found:
            source, text = out / f"weights_{name}.csv", f"{name.replace('_', ' ')}, mean over {len(found)} seeds"
            write_csv(source, heat_maps(list(found.values())))
            write_json(source.with_suffix(".json"), _bundle({"title": text}, HEAT_MAPS[name], list(found.values())))
            draw_products(source, text)


def _bundle(labels: Mapping[str, Any], profile: str, runs: Sequence[Path]) -> dict[str, Any]:
    command = f"python -m report.reproduce --profile {profile}"
    return {"labels": labels, "command": command, "configs": [to_dict(rundir.read_config(run)) for run in runs]}
