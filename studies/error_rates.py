"""Simulates how often each decision rule wrongly calls a claim reproduced or contradicted.

python -m studies.error_rates

Simulates every rule at its worst case, for "reproduced" and for "contradicted" said wrongly: each in at most 5 % of
studies. Writes report/ledger/error_rates.csv. It also has the methods that the rules replace, which err more often.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from icl_lab.lab import cli
from icl_lab.store import outputs
from icl_lab.store.atomic import csv_bytes
from icl_lab.store.outputs import out_folder
from icl_lab.studies.ledger import ERROR_RATES, WRITER
from icl_lab.studies.looks import ERROR, alpha_of
from icl_lab.studies.worst_cases import Case, Draw, cases

DRAWS = 10_000


def rates(draws: int = DRAWS) -> list[dict[str, Any]]:
    """A row for each case and its looks: the shares of simulated studies with each wrong verdict."""
    return [row for case in cases() for row in rows(case, draws)]


def rows(case: Case, draws: int) -> list[dict[str, Any]]:
    """The seeds of a study are the same for all looks: the first of the most."""
    most = max(map(max, case.looks))
    values, true = (_values(draw, (draws, most)) for draw in (case.draw, case.true or case.draw))
    return [
        {
            "rule": case.rule,
            "distribution": case.distribution,
            "looks": " ".join(map(str, looks)),
            "alpha": case.alpha or alpha_of(looks),
            "reproduced_wrongly": float(np.mean(case.decide(case.claim, values, looks) == 1)),
            "contradicted_wrongly": float(np.mean(case.decide(case.claim, true, looks) == -1)),
            "allowed": allowed(draws, case.error),
            "draws": draws,
            "used": int(case.is_used),
        }
        for looks in case.looks
    ]


def _values(draw: Draw, shape: tuple[int, int]) -> np.ndarray:
    return draw(np.random.default_rng(0), shape)


def exceeds(row: dict[str, Any]) -> bool:
    """Whether a rule in use errs more often than it may, beyond what the simulation's own error explains."""
    return bool(row["used"] and max(row["reproduced_wrongly"], row["contradicted_wrongly"]) > row["allowed"])


def allowed(draws: int, error: float = ERROR) -> float:
    """The error, and three standard errors of a share of simulated studies that is as large."""
    return error + 3 * float(np.sqrt(error * (1 - error) / draws))


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser(
        "studies.error_rates",
        "Simulates how often each decision rule wrongly calls a claim reproduced or contradicted.",
    )
    built.add_argument("--report", type=out_folder, default="report", help="folder of the results")
    return built


def main(argv: list[str]) -> int:
    """The command line; 1 if a rule in use errs more often than it may."""
    path = parser().parse(argv).report / ERROR_RATES
    outputs.check([path], WRITER)
    found = rates()
    outputs.write({path: csv_bytes(found)}, WRITER)
    for row in found:
        wrong = (
            f"{100 * row[name]:.2f} % wrongly {name[:-8]}" for name in ("reproduced_wrongly", "contradicted_wrongly")
        )
        print(f"{row['rule']}, {row['distribution']}, looks at {row['looks']} seeds: {', '.join(wrong)}")
    return int(any(map(exceeds, found)))


if __name__ == "__main__":
    cli.launch(main)
