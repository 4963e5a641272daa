"""The study task_diversity: its parts put together."""

from __future__ import annotations

from icl_lab.studies.claim import stating
from icl_lab.studies.study import Study
from icl_lab.studies.task_diversity.claims import CLAIMS
from icl_lab.studies.task_diversity.facts import FACTS
from icl_lab.studies.task_diversity.figures import FIGURES
from icl_lab.studies.task_diversity.remarks import REMARKS
from icl_lab.studies.task_diversity.runs import RUNS
from icl_lab.studies.task_diversity.tables import TABLES

STUDY = Study("task_diversity", RUNS, stating(CLAIMS, FACTS), FIGURES, REMARKS, tables=TABLES)
