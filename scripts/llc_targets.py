"""Computes the LLC values that estimates are validated against, in closed form, by quadrature and HMC.

python -m scripts.llc_targets [--out docs/llc]

Writes targets.csv, which scripts.llc_validation compares the estimator with, and any other estimator can be.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from icl_lab.lab import cli
from icl_lab.store import outputs
from icl_lab.store.atomic import csv_bytes
from icl_lab.store.outputs import out_folder

if TYPE_CHECKING:
    from icl_lab.analysis.llc.validation.targets import Target

WRITER = "scripts.llc_targets"
TABLE = "targets.csv"


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser(WRITER, "Computes the LLC values that estimates are validated against, in some minutes.")
    built.add_argument("--out", type=out_folder, default="docs/llc", help="folder of the table")
    return built


def main(argv: list[str]) -> int:
    """The command line."""
    flags = parser().parse(argv)
    outputs.check([flags.out / TABLE], WRITER)
    rows = list(_printed())
    outputs.write({flags.out / TABLE: csv_bytes([row._asdict() for row in rows])}, WRITER)
    print(f"{len(rows)} targets are in {flags.out / TABLE}")
    return 0


def _printed() -> Iterable[Target]:
    """The rows, each printed as it is made."""
    from icl_lab.analysis.llc.validation.targets import targets

    for row in targets():
        print(f"{row.model}  nbeta {row.nbeta:g}  gamma {row.gamma:g}  {row.answer:g} ({row.by})", flush=True)
        yield row


if __name__ == "__main__":
    cli.launch(main)
