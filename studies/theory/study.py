"""The study theory: its parts put together."""

from __future__ import annotations

from studies.study import Study
from studies.theory import claims, figures, mixtures, questions, remarks, runs

STUDY = Study(
    "theory",
    runs.RUNS | mixtures.RUNS,
    (*claims.CLAIMS, *mixtures.CLAIMS),
    (*figures.FIGURES, *mixtures.FIGURES),
    remarks.REMARKS | mixtures.REMARKS,
    questions=(*questions.QUESTIONS, mixtures.QUESTION),
)
