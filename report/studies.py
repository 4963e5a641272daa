"""The studies whose claims are in the ledger: each has a command, its claims, its figures and the folder of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from report.claims import task_diversity as diversity_claims
from report.claims import von_oswald as descent_claims
from report.figures import Figure, Plane
from report.figures import task_diversity as diversity_figures
from report.figures import von_oswald as descent_figures
from report.ledger import Claim


class Study(NamedTuple):
    """What a command measures and draws.

    heat_maps: runs whose products are drawn, and from which profile on; page: the page it has beside the ledger.
    """

    claims: Sequence[Claim]
    figures: Sequence[Figure | Plane]
    folder: str
    heat_maps: Mapping[str, str] = {}
    page: str = ""


STUDIES = {
    "report.reproduce": Study(
        descent_claims.CLAIMS, descent_figures.FIGURES, "reproduction", descent_figures.HEAT_MAPS
    ),
    "report.diversity": Study(
        diversity_claims.CLAIMS, diversity_figures.FIGURES, "task_diversity", page="task_diversity.md"
    ),
}
