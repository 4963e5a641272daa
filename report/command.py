"""The command of a study of the ledger: trains what its claims need, measures them, writes claims.csv and .md, draws.

Claims whose runs there are already come first, the others once these are trained. They are written one by one as they
are measured; those that are not measured again keep what they had.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import cli
from environment import check_devices
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


def parser(study: str, runs_dir: str) -> cli.Parser:
    """The flags of a study's command."""
    built = cli.Parser(study, "Trains what the study's claims need, measures them and writes the ledger of claims.")
    built.add_argument("--profile", choices=PROFILES, default="quick", help="how much")
    cli.add_list(built, "--claims", str, (), "these claims alone, whatever the profile")
    built.add_argument("--ledger", type=Path, default=Path("report"), help="folder of claims.csv and claims.md")
    add_execution_flags(built, f"{runs_dir}.csv", runs_dir)
    return built


def run(study: str, runs_dir: str) -> None:
    """A study's command on this process's arguments."""
    cli.launch(lambda argv: main(study, runs_dir, argv), StoreError, ConfigError)


def main(study: str, runs_dir: str, argv: list[str]) -> int:
    """Trains what is left to train, measures, writes the ledger, and draws the study's figures; the exit status."""
    flags = parser(study, runs_dir).parse(argv)
    check_devices()
    from report import measuring  # imports JAX
    from report.claims import RUNS
    from report.studies import STUDIES

    claims = STUDIES[study].claims
    chosen = named(flags.claims, {claim.name: claim for claim in claims}) or of_profile(claims, flags.profile)
    drawn = [] if flags.claims else of_profile(STUDIES[study].figures, flags.profile)
    names = [name for claim in chosen for name in (claim.runs, claim.beside) if name]
    names += [name for figure in drawn for name in figure.runs]
    rows = plan([RUNS[name].grid for name in dict.fromkeys(names)])
    how = execution(flags)._replace(append=True)  # the table holds the cells of all claims, whichever are chosen
    check_out(how.out, how.folder)  # this and the next before minutes of measuring, not after
    measuring.check(study, flags.ledger)
    at_once = not (how.dry_run or how.overwrite)
    left = measuring.measure_all(chosen, how.folder, flags.ledger) if at_once else chosen
    status = carry_out(rows, how)
    if how.dry_run or status > 128:
        return status
    measuring.measure_all(left, how.folder, flags.ledger)
    if not flags.claims:
        measuring.draw(study, flags.profile, how.folder, flags.ledger)
    measuring.write_page(study, flags.ledger)
    return status
