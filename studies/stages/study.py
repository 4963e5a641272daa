"""The study stages: its parts put together."""

from __future__ import annotations

from studies.stages.claims import CLAIMS
from studies.stages.figures import FIGURES
from studies.stages.findings import FINDINGS
from studies.stages.remarks import REMARKS
from studies.stages.runs import ANALYSES, RUNS
from studies.study import Study

STUDY = Study("stages", RUNS, CLAIMS, FIGURES, REMARKS, findings=FINDINGS, analyses=ANALYSES)
