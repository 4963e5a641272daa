"""Reproduces the paper's results as a ledger: trains what its claims need, measures them, writes claims.csv and .md.

python -m report.reproduce --profile quick

Claims are written one by one as they are measured; those that are not measured again keep what they had.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import cli
from plots.curves import draw_curves
from report.claims import CLAIMS, PAPER, RUNS
from report.curves import FIGURES, Figure, condition_numbers, table
from report.ledger import PROFILES, VERDICTS, Claim, Measurement, of_profile, read_measurements, row, write_ledger
from report.page import rendered
from src.config import ConfigError, to_dict
from store import rundir
from store.atomic import write_bytes, write_csv, write_json
from store.provenance import git_commit, now
from store.readers import StoreError
from sweeps.collect import standing
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
        if standing(cell, folder)[0] == "done":
            meta = rundir.read_meta(folder / cell.name)
            yield cell, (float(meta["run_seconds"]) + float(meta["compile_seconds"])) / 60


def write(out: Path, measured: dict[str, Measurement]) -> None:
    """Writes the table and the page of all claims, with the measurements there are."""
    rows = [line(claim, measured.get(claim.name)) for claim in CLAIMS]
    write_ledger(out / TABLE, rows)
    write_bytes(out / PAGE, page(rows).encode())


def line(claim: Claim, measurement: Measurement | None) -> dict[str, Any]:
    """A claim's line, with the command that measures it."""
    return row(claim, measurement, f"make reproduce PROFILE={claim.profile}")


def page(rows: Sequence[dict[str, Any]]) -> str:
    """The ledger as Markdown."""
    counts = {name: sum(found["verdict"] == name for found in rows) for name in VERDICTS}
    return rendered(TEMPLATE, paper=PAPER, counts=counts, rows=rows)


def draw(chosen: Sequence[Figure], folder: Path, out: Path) -> None:
    """Writes each figure whose runs there are, with its bundle: CSV, the configs of its runs, the command."""
    for figure in chosen:
        runs = {name: [cell for cell in cells_of(name) if standing(cell, folder)[0] == "done"] for name in figure.runs}
        if not any(runs.values()):
            continue
        labels = {name: getattr(figure, name) for name in ("title", "x_label", "y_label", "log_x", "log_y")}
        paths = {name: [folder / cell.name for cell in found] for name, found in runs.items()}
        write_csv(out / f"{figure.name}.csv", table(figure, paths))
        configs = [to_dict(cell.config) for found in runs.values() for cell in found]
        command = f"python -m report.reproduce --profile {figure.profile}"
        write_json(out / f"{figure.name}.json", {"labels": labels, "command": command, "configs": configs})
        draw_curves(out / f"{figure.name}.csv", labels)
    labels = {"title": "Condition numbers", "x_label": "gamma", "y_label": "median condition number"}
    labels |= {"log_x": False, "log_y": True}
    write_csv(out / "condition_numbers.csv", condition_numbers(SEEDS))
    write_json(out / "condition_numbers.json", {"labels": labels, "command": "python -m report.reproduce"})
    draw_curves(out / "condition_numbers.csv", labels)


def named(names: Sequence[str]) -> list[Claim]:
    """The claims of these names; `UsageError` for one that is none."""
    known = {claim.name: claim for claim in CLAIMS}
    for name in names:
        if name not in known:
            raise cli.UsageError(f"there is no claim {name!r}{cli.did_you_mean(name, known)}")
    return [known[name] for name in names]


def main(argv: list[str]) -> int:
    """The command line."""
    built = cli.Parser("report.reproduce", "Trains what the ledger's claims need, measures them and writes the ledger.")
    built.add_argument("--profile", choices=PROFILES, default="quick", help="how much")
    cli.add_list(built, "--claims", str, (), "these claims alone, whatever the profile")
    built.add_argument("--ledger", type=Path, default=Path("report"), help="folder of claims.csv and claims.md")
    add_execution_flags(built, "runs/reproduce.csv", "runs/reproduce")
    flags = built.parse(argv)
    chosen = named(flags.claims) if flags.claims else of_profile(CLAIMS, flags.profile)
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
            print(f"{claim.name}: {line(claim, found)['verdict']}")
            write(flags.ledger, measured)
    write(flags.ledger, measured)
    if not flags.claims:
        draw(of_profile(FIGURES, flags.profile), flags.runs_dir, flags.ledger / "reproduction")
    return status


if __name__ == "__main__":
    cli.launch(main, StoreError, ConfigError)
