"""The study theory: its four parts put together, each a module here."""

from __future__ import annotations

from icl_lab.studies.claim import stating
from icl_lab.studies.study import Study
from icl_lab.studies.theory import higher_order, mixtures, plateaus, preconditioned
from icl_lab.studies.theory.facts import FACTS

PARTS = (preconditioned, higher_order, mixtures, plateaus)

STUDY = Study(
    "theory",
    {name: runs for part in PARTS for name, runs in part.RUNS.items()},
    stating((claim for part in PARTS for claim in part.CLAIMS), FACTS),
    [figure for part in PARTS for figure in part.FIGURES],
    {name: remark for part in PARTS for name, remark in part.REMARKS.items()},
)
