"""The study task_diversity: its parts put together."""

from __future__ import annotations

from studies.study import Study
from studies.task_diversity.claims import CLAIMS
from studies.task_diversity.figures import FIGURES
from studies.task_diversity.findings import FINDINGS
from studies.task_diversity.remarks import REMARKS
from studies.task_diversity.runs import RUNS

STUDY = Study("task_diversity", RUNS, CLAIMS, FIGURES, REMARKS, findings=FINDINGS)
