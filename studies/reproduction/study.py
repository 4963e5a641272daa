"""The study reproduction: its parts put together."""

from __future__ import annotations

from icl_lab.studies.claim import stating
from icl_lab.studies.reproduction.claims import CLAIMS
from icl_lab.studies.reproduction.facts import FACTS
from icl_lab.studies.reproduction.figures import FIGURES
from icl_lab.studies.reproduction.remarks import REMARKS
from icl_lab.studies.reproduction.runs import RUNS
from icl_lab.studies.study import Study

STUDY = Study("reproduction", RUNS, stating(CLAIMS, FACTS), FIGURES, REMARKS)
