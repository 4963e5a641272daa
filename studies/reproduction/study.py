"""The study reproduction: its parts put together."""

from __future__ import annotations

from studies.reproduction.claims import CLAIMS
from studies.reproduction.figures import FIGURES
from studies.reproduction.findings import FINDINGS
from studies.reproduction.remarks import REMARKS
from studies.reproduction.runs import RUNS
from studies.study import Study

STUDY = Study("reproduction", RUNS, CLAIMS, FIGURES, REMARKS, findings=FINDINGS)
