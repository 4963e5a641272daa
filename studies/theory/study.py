"""The study theory: its parts put together."""

from __future__ import annotations

from studies.study import Study
from studies.theory.claims import CLAIMS
from studies.theory.figures import FIGURES
from studies.theory.questions import QUESTIONS
from studies.theory.remarks import REMARKS
from studies.theory.runs import RUNS

STUDY = Study("theory", RUNS, CLAIMS, FIGURES, REMARKS, questions=QUESTIONS)
