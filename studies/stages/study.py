"""The study stages: its parts put together."""

from __future__ import annotations

from icl_lab.studies.claim import stating
from icl_lab.studies.stages.claims import CLAIMS
from icl_lab.studies.stages.facts import FACTS
from icl_lab.studies.stages.figures import FIGURES
from icl_lab.studies.stages.remarks import REMARKS
from icl_lab.studies.stages.runs import ANALYSES, RUNS
from icl_lab.studies.study import Study

STUDY = Study(
    "stages",
    RUNS,
    stating(CLAIMS, FACTS),
    FIGURES,
    REMARKS,
    analyses=ANALYSES,
)
