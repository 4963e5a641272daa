"""The study theory: its parts put together."""

from __future__ import annotations

from studies.study import Study
from studies.theory import claims, figures, mixtures, plateaus, questions, remarks, runs

STUDY = Study(
    "theory",
    runs.RUNS | mixtures.RUNS | plateaus.RUNS,
    (*claims.CLAIMS, *mixtures.CLAIMS, *plateaus.CLAIMS),
    (*figures.FIGURES, *mixtures.FIGURES, *plateaus.FIGURES),
    remarks.REMARKS | mixtures.REMARKS | plateaus.REMARKS,
    questions=(*questions.QUESTIONS, mixtures.QUESTION, plateaus.QUESTION),
)
