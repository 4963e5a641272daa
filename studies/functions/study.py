"""The study functions: its parts put together."""

from __future__ import annotations

from icl_lab.studies.claim import stating
from icl_lab.studies.functions.claims import CLAIMS
from icl_lab.studies.functions.facts import FACTS
from icl_lab.studies.functions.figures import FIGURES
from icl_lab.studies.functions.remarks import REMARKS
from icl_lab.studies.functions.runs import ANALYSES, RUNS
from icl_lab.studies.functions.tables import TABLES
from icl_lab.studies.study import Study

STUDY = Study("functions", RUNS, stating(CLAIMS, FACTS), FIGURES, REMARKS, analyses=ANALYSES, tables=TABLES)
