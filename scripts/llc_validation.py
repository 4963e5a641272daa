"""Validates the LLC estimator where the answer is known, and shows what wrong estimators give.

python -m scripts.llc_validation [--quick] [--targets docs/llc/targets.csv] [--out docs/llc]

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
from icl_lab.store.outputs import in_path, out_folder

if TYPE_CHECKING:
    from icl_lab.analysis.llc.validation.checks import Check
    from icl_lab.analysis.llc.validation.wrong_estimators import Wrong

WRITER = "scripts.llc_validation"
PAGE, TABLE, WRONG = "validation.md", "validation.csv", "wrong_estimators.csv"
HEAD = """# The LLC estimator where the answer is known

<!-- Made by python -m scripts.llc_validation (make llc-validation): not edited by hand. -->
"""
LEGEND = """lambda is the learning coefficient at w*, with its multiplicity m where that is above 1. The answer is
nbeta E[L(w) - L(w*)] at this nbeta and gamma, by a closed form, quadrature or HMC in NumPy
([targets.csv](targets.csv)); the gap between the two, answer / lambda - 1, is no error of an estimator. A target is
within 3 or 5 % of the answer and 3 standard errors, of answer and estimate together, and within 10 % of lambda: this
is not asked where m is above 1, where there is no lambda, or where the answer itself is further than 5 % from it
(`10 % of lambda` says which). Quadratics are compared at their eps; singular losses are extrapolated from eps and
eps / 2 to 0. Intervals are t over chains, 95 %. `says` is the estimate's own verdict, with the reasons against it; a
trend beyond its limit is one in twenty by chance. In the traps the verdict is a part of the target, and the number
is to be within 5 % where one of the verdicts that are right has one."""
WRONG_HEAD = """## Estimators that are wrong, and in use

Least squares with 1000 tasks and 10 parameters, and for the saturated setting a bounded loss. `has to give` is the
closed form of the wrong estimator."""


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser(WRITER, "Validates the LLC estimator where the answer is known.")
    built.needs("blackjax")
    built.add_argument("--quick", action="store_true", help="the first case of each section: a minute, not ten")
    built.add_argument(
        "--targets", type=in_path, default="docs/llc/targets.csv", help="CSV of the right values, from llc_targets"
    )
    built.add_argument("--out", type=out_folder, default="docs/llc", help="folder of the tables")
    return built


def main(argv: list[str]) -> int:
    """The command line; 1 if a target is missed."""
    flags = parser().parse(argv)
    outputs.check([flags.out / name for name in (PAGE, TABLE, WRONG)], WRITER)
    checks = list(_printed(flags.targets, flags.quick))
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
    multiplicity = f", m = {check.multiplicity}" if check.multiplicity > 1 else ""
    error = f" ± {check.answer_error:.1g}" if check.answer_error > 0 and check.by == "HMC" else ""
    return {
        "section": check.section,
        "case": check.case,
        "lambda": f"{_number(check.coefficient)}{multiplicity}",
        "answer": f"{_number(check.answer)}{error} ({check.by})",
        "gap": _percent(check.gap),
        "estimate": f"{_number(check.estimate)} [{_number(check.low)}, {_number(check.high)}]",
        "off": _percent(check.estimate / check.answer - 1),
        "within": f"{check.within:.0%}",
        "10 % of lambda": check.of_lambda,
        "target": "met" if check.met else "**missed**",
        "says": ": ".join(filter(None, (check.verdict, check.reasons))),
        "sampler; nbeta, gamma, eps, chains, steps": f"{check.sampler}; {', '.join(map(_number, settings))}",
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
    return "" if math.isnan(value) else f"{value + 0:+.1%}"


def _printed(targets: Path, quick: bool) -> Iterator[Check]:
    """The checks, each printed as it is made."""
    from icl_lab.analysis.llc.validation.sections import SECTIONS
    from icl_lab.analysis.llc.validation.targets import read
    from icl_lab.src.precision import use_highest_precision

    answers = {(row.formula, row.nbeta, row.gamma): row for row in read(targets)}
    use_highest_precision()
    for section in SECTIONS.values():
        for checks in section(answers):
            for check in checks:
                print("  ".join(filter(None, _cells(check).values())), flush=True)
            yield from checks
            if quick:
                break


def _wrong() -> Iterator[Wrong]:
    from icl_lab.analysis.llc.validation.wrong_estimators import wrong_estimators

    for row in wrong_estimators():
        print("  ".join(filter(None, _wrong_cells(row).values())), flush=True)
        yield row


if __name__ == "__main__":
    cli.launch(main)
