"""Reproduces the paper's results as a ledger: trains what its claims need, measures them, writes claims.csv and .md.

python -m report.reproduce --profile quick

Claims are written one by one as they are measured; those that are not measured again keep what they had.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import cli
from report.claims import CLAIMS, PAPER, RUNS
from report.ledger import PROFILES, VERDICTS, Claim, Measurement, of_profile, read_measurements, row, write_ledger
from report.page import rendered
from src.config import ConfigError
from store import rundir
from store.atomic import write_bytes
from store.provenance import git_commit, now
from store.readers import StoreError
from sweeps.collect import status_of
from sweeps.command import add_execution_flags, carry_out, execution
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
        facts = {
            cell.config.data_seed: (claim.measure(folder / cell.name), minutes)
            for cell, minutes in _done(claim, folder)
        }
    if not facts:
        return None
    values, minutes_each = zip(*facts.values(), strict=True)
    commit = git_commit() or "unknown"
    return Measurement(tuple(map(float, values)), tuple(facts), sum(minutes_each), device, str(now())[:10], commit)


def _done(claim: Claim, folder: Path) -> Iterator[tuple[Cell, float]]:
    """The finished cells of a claim, and the minutes that each was trained."""
    for cell in cells_of(claim.runs):
        if status_of(cell, folder) == "done":
            meta = rundir.read_meta(folder / cell.name)
            yield cell, (float(meta["run_seconds"]) + float(meta["compile_seconds"])) / 60


def write(out: Path, measured: dict[str, Measurement]) -> None:
    """Writes the table and the page of all claims, with the measurements there are."""
    rows = [row(claim, measured.get(claim.name), f"make reproduce PROFILE={claim.profile}") for claim in CLAIMS]
    write_ledger(out / TABLE, rows)
    write_bytes(out / PAGE, page(rows).encode())


def page(rows: Sequence[dict[str, Any]]) -> str:
    """The ledger as Markdown."""
    counts = {name: sum(line["verdict"] == name for line in rows) for name in VERDICTS}
    return rendered(TEMPLATE, paper=PAPER, counts=counts, rows=rows)


def main(argv: list[str]) -> int:
    """The command line."""
    built = cli.Parser("report.reproduce", "Trains what the ledger's claims need, measures them and writes the ledger.")
    built.add_argument("--profile", choices=PROFILES, default="quick", help="how much")
    built.add_argument("--ledger", type=Path, default=Path("report"), help="folder of claims.csv and claims.md")
    add_execution_flags(built, "runs/reproduce.csv", "runs/reproduce")
    flags = built.parse(argv)
    chosen = of_profile(CLAIMS, flags.profile)
    measured = read_measurements(flags.ledger / TABLE)
    names = dict.fromkeys(claim.runs for claim in chosen if claim.runs)
    status = carry_out(plan([RUNS[name].grid for name in names]), execution(flags))
    if flags.dry_run or status > 128:
        return status
    from runners.common import device_text

    for claim in chosen:
        found = measure(claim, flags.runs_dir, device_text())
        if found is not None:
            measured[claim.name] = found
            print(f"{claim.name}: {row(claim, found, '')['verdict']}")
            write(flags.ledger, measured)
    write(flags.ledger, measured)
    return status


if __name__ == "__main__":
    cli.launch(main, StoreError, ConfigError)
