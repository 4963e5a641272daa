"""The study languages: its parts put together."""

from __future__ import annotations

from icl_lab.studies.claim import stating
from icl_lab.studies.languages.claims import CLAIMS
from icl_lab.studies.languages.facts import FACTS
from icl_lab.studies.languages.figures import FIGURES
from icl_lab.studies.languages.remarks import REMARKS
from icl_lab.studies.languages.runs import RUNS
from icl_lab.studies.study import Study

STUDY = Study("languages", RUNS, stating(CLAIMS, FACTS), FIGURES, REMARKS)
