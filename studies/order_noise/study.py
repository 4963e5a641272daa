"""The study order_noise: its parts put together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from icl_lab.lab.configs.columns import has_trained
from icl_lab.studies.claim import stating
from icl_lab.studies.contrast import Cells, by_name, change_by_seed, results
from icl_lab.studies.order_noise import figures, fill_in, predictions, table
from icl_lab.studies.order_noise.agreement import AGREEMENT
from icl_lab.studies.order_noise.claims import CLAIMS
from icl_lab.studies.order_noise.curves import RUN_FIGURES
from icl_lab.studies.order_noise.facts import FACTS
from icl_lab.studies.order_noise.measures import CONTRASTS
from icl_lab.studies.order_noise.plateaus import PLATEAUS
from icl_lab.studies.order_noise.remarks import REMARKS
from icl_lab.studies.order_noise.runs import RUNS, SEEDS, grids
from icl_lab.studies.study import Conditions, Study


def write(source: Path, runs_dir: Path, folder: Path, seeds: Sequence[int]) -> None:
    """Writes tables and figures."""
    table.write(source, runs_dir, folder, seeds)
    figures.draw(folder)


def remake(folder: Path, with_figures: bool) -> None:
    """Writes the contrasts again from the cells."""
    table.write_contrasts(folder)
    if with_figures:
        figures.draw(folder)


def listed(folder: Path) -> dict[str, Any]:
    """Contrasts with their values by seed, and tables, for the index of all results."""
    cells = table.read_cells(folder)
    rows, learnt = by_name(results(cells, CONTRASTS)), Cells(cells[has_trained(cells)])
    return {
        "contrasts": [
            {**rows[contrast.question, contrast.name], "changes": change_by_seed(learnt, contrast)}
            for contrast in CONTRASTS
            if (contrast.question, contrast.name) in rows
        ],
        "tables": {name: caption for name, caption in TABLES.items() if (folder / name).exists()},
    }


TABLES = {
    table.CELLS: "a row for each run: settings, losses, alignment and AUROC",
    table.CONTRASTS_OF: "a row for each contrast: means, change, intervals, p and verdict",
    AGREEMENT: "a row for each contrast that is predicted: predicted and measured change, and a verdict",
    PLATEAUS: "a row for each model: how many runs trained, and Fisher's exact test of each pair",
    **predictions.TABLES,
}
CONDITIONS = Conditions(
    SEEDS,
    grids,
    table.FILES,
    write,
    remake,
    figures.FIGURES,
    listed,
    fill_in.FILLED_IN,
    fill_in.NAMES,
    fill_in.fill_in,
    fill_in.tables,
)
STUDY = Study("order_noise", RUNS, stating(CLAIMS, FACTS), RUN_FIGURES, REMARKS, CONDITIONS)
