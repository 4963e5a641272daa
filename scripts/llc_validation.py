"""Validates the LLC estimator where the answer is known, and shows what wrong estimators give; `make llc-validation`.

python -m scripts.llc_validation [--quick] [--out docs/llc]

Writes validation.csv, wrong_estimators.csv and validation.md, which has both as tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from icl_lab.lab import cli
from icl_lab.store import outputs
from icl_lab.store.atomic import csv_bytes
from icl_lab.store.outputs import out_folder

if TYPE_CHECKING:
    from icl_lab.analysis.llc.checks import Check
    from icl_lab.analysis.llc.wrong_estimators import Wrong

WRITER = "scripts.llc_validation"
PAGE, TABLE, WRONG = "validation.md", "validation.csv", "wrong_estimators.csv"
HEAD = """# The LLC estimator where the answer is known

<!-- Made by python -m scripts.llc_validation (make llc-validation): not edited by hand. -->
"""
LEGEND = """A target is a relative error, and for exact values at the same settings 3 standard errors too. Intervals
are t over chains, 95 %. lambda is the value at infinite nbeta. Quadratics are compared at their eps; crossings and
matrices are extrapolated from eps and eps / 2 to 0. The verdict is about the number. Reasons to distrust the chains
stand beside it: a trend beyond two standard errors is one, which one estimate in twenty or so has by chance."""
WRONG_HEAD = """## Estimators that are wrong, and in use

Least squares with 1000 tasks and 10 parameters, and for the saturated setting a bounded loss. `has to give` is the
closed form of the wrong estimator."""


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser(WRITER, "Validates the LLC estimator where the answer is known.")
    built.needs("blackjax")
    built.add_argument("--quick", action="store_true", help="the first case of each section: a minute, not ten")
    built.add_argument("--out", type=out_folder, default="docs/llc", help="folder of the tables")
    return built


def main(argv: list[str]) -> int:
    """The command line; 1 if a target is missed."""
    flags = parser().parse(argv)
    outputs.check([flags.out / name for name in (PAGE, TABLE, WRONG)], WRITER)
    checks = list(_printed(flags.quick))
    wrong = list(_wrong())
    write(flags.out, checks, wrong)
    missed = [check for check in checks if not check.met]
    print(f"{len(checks) - len(missed)} of {len(checks)} targets are met; the tables are in {flags.out}")
    return 0 if checks and not missed else 1


def write(out: Path, checks: Sequence[Check], wrong: Sequence[Wrong]) -> None:
    """The tables and the page, which nobody else may have changed."""
    files = {
        TABLE: csv_bytes([check._asdict() for check in checks]),
        WRONG: csv_bytes([row._asdict() for row in wrong]),
        PAGE: page(checks, wrong).encode(),
    }
    outputs.write({out / name: content for name, content in files.items()}, WRITER)


def page(checks: Iterable[Check], wrong: Iterable[Wrong]) -> str:
    """The page: targets by case, then the wrong estimators."""
    return (
        "\n\n".join([HEAD + LEGEND, _table(map(_cells, checks)), WRONG_HEAD, _table(map(_wrong_cells, wrong))]) + "\n"
    )


def _cells(check: Check) -> dict[str, str]:
    settings = (check.nbeta, check.gamma, check.eps, check.chains, check.steps)
    return {
        "section": check.section,
        "case": check.case,
        "lambda": _number(check.coefficient),
        "compared with": f"{_number(check.known)} ({check.source})",
        "estimate": f"{_number(check.estimate)} [{_number(check.low)}, {_number(check.high)}]",
        "off": _percent(check.estimate / check.known - 1),
        "target": f"{check.within:.0%}",
        "nbeta, gamma, eps, chains, steps": ", ".join(_number(value) for value in settings),
        "reasons": check.reasons,
        "verdict": "met" if check.met else "**missed**",
    }


def _wrong_cells(row: Wrong) -> dict[str, str]:
    return {
        "estimator": row.estimator,
        "right": _number(row.right),
        "has to give": _number(row.expected),
        "gives": f"{_number(row.estimate)} [{_number(row.low)}, {_number(row.high)}]",
        "reasons": row.reasons,
        "what is wrong": row.why,
    }


def _table(rows: Iterable[dict[str, str]]) -> str:
    cells = list(rows)
    lines = [list(cells[0]), ["---"] * len(cells[0]), *(list(row.values()) for row in cells)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.4g}"


def _percent(value: float) -> str:
    return "" if math.isnan(value) else f"{value:+.1%}"


def _printed(quick: bool) -> Iterator[Check]:
    """The checks, each printed as it is made."""
    from icl_lab.analysis.llc.validation import SECTIONS
    from icl_lab.src.precision import use_highest_precision

    use_highest_precision()
    for section in SECTIONS.values():
        for checks in section():
            for check in checks:
                print("  ".join(filter(None, _cells(check).values())), flush=True)
            yield from checks
            if quick:
                break


def _wrong() -> Iterator[Wrong]:
    from icl_lab.analysis.llc.wrong_estimators import wrong_estimators

    for row in wrong_estimators():
        print("  ".join(filter(None, _wrong_cells(row).values())), flush=True)
        yield row


if __name__ == "__main__":
    cli.launch(main)
