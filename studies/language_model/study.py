"""The study language_model: its parts put together."""

from __future__ import annotations

from icl_lab.studies.claim import stating
from icl_lab.studies.language_model.claims import CLAIMS
from icl_lab.studies.language_model.facts import FACTS
from icl_lab.studies.language_model.figures import FIGURES
from icl_lab.studies.language_model.remarks import REMARKS
from icl_lab.studies.language_model.runs import ANALYSES, RUNS
from icl_lab.studies.study import Study

STUDY = Study(
    "language_model",
    RUNS,
    stating(CLAIMS, FACTS),
    FIGURES,
    REMARKS,
    analyses=ANALYSES,
)
