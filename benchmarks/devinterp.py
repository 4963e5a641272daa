"""Compares our estimates of the LLC with devinterp's: accuracy, and the seconds that it takes.

python -m benchmarks.devinterp --python PYTHON [--models linear,lsa1,tiny] [--turns 3] [--warm 3] [--out docs/llc]

PYTHON is the interpreter of another environment, which has PyTorch and devinterp. Both libraries run in one turn after
the other, so that a slow moment of the machine affects both. Writes devinterp.csv and devinterp.md.
"""

from __future__ import annotations

import os

from icl_lab.benchmarks.devinterp_cases import CASES
from icl_lab.lab import cli
from icl_lab.lab.environment import check_devices, num_threads
from icl_lab.lab.flag_types import Whole
from icl_lab.lab.progress import ConsoleLogger
from icl_lab.src.words import did_you_mean
from icl_lab.store import outputs
from icl_lab.store.atomic import csv_bytes
from icl_lab.store.outputs import out_folder

WRITER = "benchmarks.devinterp"
PAGE, TABLE = "devinterp.md", "devinterp.csv"
FEW = Whole(1, 1000, "more take days")


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser(
        WRITER, "Compares our estimates of the LLC with devinterp's: accuracy, and the seconds that it takes."
    )
    built.add_argument("--python", required=True, metavar="PYTHON", help="interpreter that has PyTorch and devinterp")
    cli.add_list(built, "--models", str, [], f"models; default: {', '.join(CASES)}")
    built.add_argument("--turns", type=FEW, default=3, help="turns, each with fresh processes of both libraries")
    built.add_argument(
        "--warm", type=FEW, default=3, help="further estimates by each library in a turn, in warm processes"
    )
    built.add_argument("--out", type=out_folder, default="docs/llc", help="folder of the table and the page")
    cli.add_quiet(built)
    return built


def main(argv: list[str]) -> None:
    """The command line."""
    flags = parser().parse(argv)
    for name in flags.models:
        if name not in CASES:
            raise cli.UsageError(f"unknown model {name}{did_you_mean(name, CASES)}")
    from icl_lab.benchmarks import devinterp_page as page
    from icl_lab.benchmarks import devinterp_sides as sides

    python = os.path.abspath(flags.python) if os.sep in flags.python else flags.python
    versions = sides.versions_of(python)
    outputs.check([flags.out / name for name in (PAGE, TABLE)], WRITER)
    check_devices()
    from icl_lab.benchmarks import machine

    facts = machine.describe()
    logger = ConsoleLogger(flags.quiet)
    logger.line(f"{facts['machine']}, load average {facts['load_average']:.2f}")
    if facts["load_average"] > machine.BUSY:
        print("warning: the machine is busy, so the times are unreliable", flush=True)
    rows, about = [], []
    for name in [each for each in CASES if each in (flags.models or CASES)]:
        measured = sides.measure(name, python, flags.turns, flags.warm, logger.line)
        rows += page.rows_of(name, measured)
        about.append(page.sentence_of(name, measured))
    facts |= {"theirs": versions, "our_threads": num_threads(), "load_after": os.getloadavg()[0]}
    facts |= {"turns": flags.turns, "warm": flags.warm}
    text = page.page(rows, about, facts)
    outputs.write({flags.out / TABLE: csv_bytes(rows), flags.out / PAGE: text.encode()}, WRITER)
    print(f"{page.tables(rows)}\n\n{flags.out / PAGE}")


if __name__ == "__main__":
    cli.launch(main)
