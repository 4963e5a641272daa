"""The study languages: its parts put together."""

from __future__ import annotations

from studies.languages.claims import CLAIMS
from studies.languages.figures import FIGURES
from studies.languages.findings import FINDINGS
from studies.languages.remarks import REMARKS
from studies.languages.runs import RUNS
from studies.study import Study

STUDY = Study("languages", RUNS, CLAIMS, FIGURES, REMARKS, findings=FINDINGS)
