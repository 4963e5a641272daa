"""The study solutions: its parts put together."""

from __future__ import annotations

from icl_lab.studies.claim import stating
from icl_lab.studies.solutions.claims import CLAIMS
from icl_lab.studies.solutions.facts import FACTS
from icl_lab.studies.solutions.figures import FIGURES
from icl_lab.studies.solutions.remarks import REMARKS
from icl_lab.studies.solutions.runs import RUNS, SEEDS
from icl_lab.studies.study import Study

STUDY = Study(
    "solutions",
    RUNS,
    stating(CLAIMS, FACTS),
    FIGURES,
    REMARKS,
    sampled_seeds=SEEDS,
)
