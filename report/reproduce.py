"""Reproduces the paper's results as a ledger: trains what its claims need, measures them, writes claims.csv and .md.

python -m report.reproduce --profile quick

Claims whose runs there are already come first, the others once these are trained. They are written one by one as they
are measured; those that are not measured again keep what they had.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import cli
from report.ledger import PROFILES, of_profile
from src.checks import ConfigError
from store.readers import StoreError
from sweeps.collect import check_out
from sweeps.command import add_execution_flags, carry_out, execution
from sweeps.plan import plan

T = TypeVar("T")


def named(names: Iterable[str], known: Mapping[str, T]) -> list[T]:
    """The claims of these names; `UsageError` for one that is none."""
    for name in names:
        if name not in known:
            raise cli.UsageError(f"there is no claim {name!r}{cli.did_you_mean(name, known)}")
    return [known[name] for name in names]


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("report.reproduce", "Trains what the ledger's claims need, measures them and writes the ledger.")
    built.add_argument("--profile", choices=PROFILES, default="quick", help="how much")
    cli.add_list(built, "--claims", str, (), "these claims alone, whatever the profile")
    built.add_argument("--ledger", type=Path, default=Path("report"), help="folder of claims.csv and claims.md")
    add_execution_flags(built, "runs/reproduce.csv", "runs/reproduce")
    return built


def main(argv: list[str]) -> int:
    """The command line."""
    flags = parser().parse(argv)
    from report import measuring  # imports JAX
    from report.claims import CLAIMS, RUNS

    chosen = named(flags.claims, {claim.name: claim for claim in CLAIMS}) or of_profile(CLAIMS, flags.profile)
    names = dict.fromkeys(name for claim in chosen for name in (claim.runs, claim.beside) if name)
    rows, how = plan([RUNS[name].grid for name in names]), execution(flags)
    check_out(how.out, how.folder)  # before minutes of measuring, not after
    at_once = not (how.dry_run or how.overwrite)
    left = measuring.measure_all(chosen, how.folder, flags.ledger) if at_once else chosen
    status = carry_out(rows, how)
    if how.dry_run or status > 128:
        return status
    measuring.measure_all(left, how.folder, flags.ledger)
    if not flags.claims:
        measuring.draw(flags.profile, how.folder, flags.ledger / "reproduction")
    return status


if __name__ == "__main__":
    cli.launch(main, StoreError, ConfigError)
