"""Measures the ledger's claims on finished runs, and writes its table, its page and its figures."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from configs.run import to_dict
from plots.curves import draw_curves
from plots.trajectories import draw_trajectories
from plots.weights import draw_products
from report.claims import CLAIMS, RUNS
from report.curves import heat_maps, rows_of
from report.figures import Figure, Plane
from report.ledger import (
    PROFILES,
    VERDICTS,
    WRITER,
    Claim,
    Measurement,
    of_profile,
    read_measurements,
    row,
    verdict,
    write_ledger,
)
from report.page import rendered
from report.remarks import REMARKS
from report.studies import STUDIES
from runners.training import device_text
from store import outputs, rundir
from store.atomic import csv_bytes, json_bytes
from store.provenance import git_commit, now
from sweeps.plan import Cell, cells, plan
from sweeps.status import cell_status

SEEDS = (0, 1, 2)  # of claims that need no training
TABLE, PAGE = "claims.csv", "claims.md"
TEMPLATE = Path(__file__).with_name("claims.md.j2")


@cache  # planning resolves a config for each cell, and every claim that is written asks for those of all
def cells_of(name: str) -> list[Cell]:
    """The cells of one of the ledger's runs, by seed."""
    return cells(plan([RUNS[name].grid]))


def measure(claim: Claim, folder: Path, device: str) -> Measurement | None:
    """A claim's values; None unless all of its runs have ended. A run that diverged has an infinite one."""
    began, commit, date = time.perf_counter(), git_commit() or "unknown", str(now())[:10]
    if not claim.runs:
        values = tuple(float(claim.measure(seed)) for seed in SEEDS)
        return Measurement(values, SEEDS, _minutes_since(began), device, date, commit)
    ended = [_ended(name, folder) for name in (claim.runs, claim.beside) if name]
    seeds = RUNS[claim.runs].seeds
    if any(set(runs) != set(seeds) for runs in ended):
        return None
    values = tuple(_value(claim, [runs[seed] for runs in ended]) for seed in seeds)
    runs = [run for of_name in ended for of_seed in of_name.values() for run in _each(of_seed)]
    metas = [rundir.read_meta(run) for run in runs]
    minutes = sum(map(_minutes, metas)) + _minutes_since(began)
    devices, trained_at = (" and ".join(sorted({str(meta[key]) for meta in metas})) for key in ("device", "git_hash"))
    return Measurement(values, seeds, minutes, devices, date, commit, trained_at, tuple(run.name for run in runs))


def measure_all(claims: Sequence[Claim], folder: Path, out: Path) -> list[Claim]:
    """Measures the claims whose runs have ended, writing each, and gives the others."""
    left, device = [], device_text()
    for number, claim in enumerate(claims, 1):
        found = measure(claim, folder, device)
        if found is None:
            left.append(claim)
            continue
        print(f"{number} of {len(claims)}, {claim.name}: {verdict(claim, found)}", flush=True)
        write(out, {claim.name: found})
    return left


def _each(runs: Path | tuple[Path, ...]) -> tuple[Path, ...]:
    """A seed's runs: one, or those of the axes' points."""
    return (runs,) if isinstance(runs, Path) else runs


def _value(claim: Claim, runs: Sequence[Path | tuple[Path, ...]]) -> float:
    done = all(rundir.read_status(run) == "done" for of_seed in runs for run in _each(of_seed))
    return float(claim.measure(*runs)) if done else float("inf")


def finished(name: str, folder: Path) -> list[Path]:
    """The ledger's runs of a name that are done, or none if any of them is not."""
    runs = [run for of_seed in _ended(name, folder).values() for run in _each(of_seed)]
    done = [run for run in runs if rundir.read_status(run) == "done"]
    return done if len(done) == len(cells_of(name)) else []


def _ended(name: str, folder: Path) -> Mapping[int, Path | tuple[Path, ...]]:
    """The ledger's runs of a name by seed, of the seeds whose runs are all done or have diverged."""
    of_seed: dict[int, list[Cell]] = {}
    for cell in cells_of(name):
        of_seed.setdefault(cell.config.init_seed, []).append(cell)
    ended = {
        seed: tuple(folder / cell.name for cell in found)
        for seed, found in of_seed.items()
        if all(cell_status(cell, folder)[0] in rundir.FINISHED for cell in found)
    }
    return ended if RUNS[name].axes else {seed: runs[0] for seed, runs in ended.items()}


def _minutes(meta: Mapping[str, Any]) -> float:
    """What a run took to compile and train; those of a pack share its time."""
    return (float(meta["run_seconds"]) / int(meta["pack_width"]) + float(meta["compile_seconds"])) / 60


def _minutes_since(began: float) -> float:
    return (time.perf_counter() - began) / 60


def known(out: Path) -> dict[str, Measurement]:
    """The measurements of the ledger there that are of today's runs: a claim whose runs have changed is not run."""
    found = read_measurements(out / TABLE)
    cells = {
        claim.name: {cell.name for name in (claim.runs, claim.beside) if name for cell in cells_of(name)}
        for claim in CLAIMS
    }
    return {name: found[name] for name in cells if name in found and set(found[name].cells) == cells[name]}


def check(study: str, out: Path) -> None:
    """`StoreError` if what a study writes first and last would replace somebody else's work."""
    outputs.check([out / name for name in (TABLE, PAGE, STUDIES[study].page) if name], WRITER)


def write(out: Path, measured: Mapping[str, Measurement]) -> None:
    """Writes the table and the page of all claims: these measurements, and those that are there of the others."""
    together = known(out) | dict(measured)
    rows = [line(claim, together.get(claim.name)) for claim in CLAIMS]
    write_ledger(out / TABLE, rows)
    outputs.write({out / PAGE: page(rows).encode()}, WRITER)


def line(claim: Claim, measurement: Measurement | None) -> dict[str, Any]:
    """A claim's line, with its remark."""
    return row(claim, measurement, REMARKS.get(claim.name, ""))


def write_page(study: str, out: Path) -> None:
    """Writes a study's own page, if it has one."""
    if STUDIES[study].page:
        outputs.write({out / STUDIES[study].page: study_page(study, out).encode()}, WRITER)


def study_page(study: str, out: Path) -> str:
    """A study's own page: its claims with their verdicts, from the ledger there, and the figures that are there."""
    chosen, found = STUDIES[study], known(out)
    rows = [line(claim, found.get(claim.name)) for claim in chosen.claims]
    drawn = [figure for figure in chosen.figures if (out / chosen.folder / f"{figure.name}.png").exists()]
    template = Path(__file__).with_name(f"{chosen.page}.j2")
    counts = {name: sum(row["verdict"] == name for row in rows) for name in VERDICTS}
    return rendered(template, rows=rows, figures=drawn, counts=counts, folder=chosen.folder)


def page(rows: Sequence[dict[str, Any]]) -> str:
    """The ledger as Markdown."""
    counts = {name: sum(found["verdict"] == name for found in rows) for name in VERDICTS}
    return rendered(TEMPLATE, papers=list(dict.fromkeys(line["paper"] for line in rows)), counts=counts, rows=rows)


def draw(study: str, profile: str, folder: Path, out: Path) -> None:
    """Writes a study's figures all of whose runs there are, each with its bundle: CSV, configs of runs, the command."""
    chosen = STUDIES[study]
    for figure in of_profile(chosen.figures, profile):
        runs = {name: finished(name, folder) for name in figure.runs}
        if all(runs.values()):
            source = out / chosen.folder / f"{figure.name}.csv"
            labels = _draw_plane(figure, runs, source) if isinstance(figure, Plane) else _draw(figure, runs, source)
            all_runs = [run for found in runs.values() for run in found]
            _write_bundle(source, _bundle(study, labels, figure.profile, all_runs))
    for name, least in chosen.heat_maps.items():
        if PROFILES.index(least) <= PROFILES.index(profile) and (found := finished(name, folder)):
            source = out / chosen.folder / f"weights_{name}.csv"
            text = f"{name.replace('_', ' ')}, mean over {len(found)} seeds"
            _write_table(source, heat_maps(found))
            _write_bundle(source, _bundle(study, {"title": text}, least, found))
            draw_products(source, text)


def _draw(figure: Figure, runs: Mapping[str, Sequence[Path]], source: Path) -> dict[str, Any]:
    """Draws means over seeds of the curves of single runs, or of seeds where nothing is trained; its labels."""
    labels = {name: getattr(figure, name) for name in ("title", "x_label", "y_label", "log_x", "log_y")}
    if figure.together:
        of_seed: dict[int, list[Path]] = {}
        for run in (run for found in runs.values() for run in found):
            of_seed.setdefault(rundir.read_config(run).init_seed, []).append(run)
        of_runs = [figure.curves(found, "") for found in of_seed.values()]
    else:
        of_runs = [figure.curves(run, name) for name, found in runs.items() for run in found]
    _write_table(source, rows_of(of_runs or [figure.curves(seed, "") for seed in SEEDS], figure.limit))
    draw_curves(source, labels)
    return labels


def _draw_plane(figure: Plane, runs: Mapping[str, Sequence[Path]], source: Path) -> dict[str, Any]:
    """Draws paths in a plane, made of all runs together; its labels."""
    labels = {name: getattr(figure, name) for name in ("title", "x_label", "y_label", "points")}
    _write_table(source, figure.paths([run for found in runs.values() for run in found]))
    draw_trajectories(source, labels)
    return labels


def _write_table(source: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    outputs.write({source: csv_bytes(rows)}, WRITER)


def _write_bundle(source: Path, bundle: Mapping[str, Any]) -> None:
    outputs.write({source.with_suffix(".json"): json_bytes(bundle)}, WRITER)


def _bundle(study: str, labels: Mapping[str, Any], profile: str, runs: Sequence[Path]) -> dict[str, Any]:
    command = f"python -m {study} --profile {profile}"
    return {"labels": labels, "command": command, "configs": [to_dict(rundir.read_config(run)) for run in runs]}
