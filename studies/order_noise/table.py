"""The tables of the study: its cells, where they come from, and the contrasts between its conditions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl_lab.store import outputs, rundir
from icl_lab.store.atomic import csv_bytes, json_bytes
from icl_lab.store.readers import read_csv
from icl_lab.studies.contrast import results
from icl_lab.studies.ledger import WRITER
from icl_lab.studies.order_noise.agreement import AGREEMENT, agreement
from icl_lab.studies.order_noise.measures import CONTRASTS
from icl_lab.studies.order_noise.plateaus import PLATEAUS, plateaus
from icl_lab.studies.order_noise.predictions import FOLDER, PREDICTIONS
from icl_lab.studies.order_noise.runs import grids
from icl_lab.sweeps.plan import plan

if TYPE_CHECKING:
    import pandas as pd

CELLS, PROVENANCE, CONTRASTS_OF = "cells.csv", "provenance.json", "contrasts.csv"
FILES = (CELLS, PROVENANCE, CONTRASTS_OF, AGREEMENT, PLATEAUS)
DIGITS = 7  # of the numbers in the committed table
TEXT = (
    *("exp", "model", "status", "ordering", "noise_mode", "placement", "eval_ordering", "eval_noise_mode"),
    *("eval_placement", "eval_difficulty", "train_ordering", "train_noise_mode", "train_placement", "train_difficulty"),
    "trained",
)
SETTINGS = ("seed", "p", "sigma", "eval_p", "train_p", "train_sigma", "steps", "results_version")
ATTENTION_SCORES = ("attention", "abs_attention", "contribution", "abs_contribution")
NUMBERS = (
    *(
        "test_loss",
        "test_gd_loss",
        "test_gd_tuned_step_loss",
        "test_linear_mmse_loss",
        "test_mask_bayes_loss",
        "test_loss_ratio",
    ),
    *("test_gain", "align_cos", "align_l2", "eval_slope", "gd_tuned_over_clean_step"),
    *("auroc", "auroc_low", "auroc_high", "auroc_raw", "auroc_position", "auroc_first_abs_contribution"),
    *("gd_auroc", "gd_auroc_raw", "twin_change_noisy", "twin_change_clean"),
    *(f"{whose}auroc_{score}" for score in ATTENTION_SCORES for whose in ("", "gd_")),
    *(f"{whose}ood_alpha{alpha}" for whose in ("", "gd_") for alpha in ("1", "1.5", "2", "3")),
)

# numbers that earlier tables do not have
OPTIONAL = ("mask_bayes_auroc", "loo_gd_auroc", "test_gd_positions_loss", "test_gd_positions_trained_loss")


def write(source: Path, runs_dir: Path, folder: Path, seeds: Sequence[int]) -> None:
    """Writes cells.csv and provenance.json from a sweep's table and its runs, and contrasts.csv from these.

    The table may also hold runs that claims are measured on, some of the same settings and seeds, in any order.
    """
    cells, facts, contrasts = (folder / name for name in (CELLS, PROVENANCE, CONTRASTS_OF))
    outputs.check([cells, facts, contrasts], WRITER)
    table = read_csv(source, (*SETTINGS, *NUMBERS), TEXT)
    places = {point.run.name: place for place, point in enumerate(plan(grids(seeds)))}
    table = table[table["exp"].isin(places)].sort_values("exp", key=lambda names: names.map(places), kind="stable")
    columns = [*TEXT, *SETTINGS, *NUMBERS, *(name for name in OPTIONAL if name in table)]
    chosen = [_rounded(row) for row in table[columns].to_dict("records")]
    origins = provenance(runs_dir, table["exp"])
    outputs.write({cells: csv_bytes(chosen), facts: json_bytes(origins)}, WRITER)
    write_contrasts(folder)


def write_contrasts(folder: Path) -> None:
    """Writes contrasts.csv and plateaus.csv from cells.csv, and agreement.csv of these with what is predicted."""
    cells = read_cells(folder)
    rows = {
        CONTRASTS_OF: results(cells, CONTRASTS),
        AGREEMENT: agreement(cells, CONTRASTS, predictions_of(folder)),
        PLATEAUS: plateaus(cells),
    }
    files = {folder / name: csv_bytes([_rounded(row) for row in table]) for name, table in rows.items() if table}
    outputs.write(files, WRITER)


def predictions_of(folder: Path) -> Path:
    """Where the predictions lie, whichever profile's folder is written."""
    return folder.parent / FOLDER / PREDICTIONS


def _rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value for name, value in row.items()}


def read_cells(folder: Path) -> pd.DataFrame:
    """The cells that are done; columns that earlier tables lack have no values."""
    table = read_csv(folder / CELLS, (*SETTINGS, *NUMBERS), TEXT)
    known = [*table.columns, *(name for name in OPTIONAL if name not in table)]
    return table[table["status"] == "done"].reindex(columns=known)


def number_planned(folder: Path) -> int:
    """How many cells the table has, done or not."""
    return len(read_csv(folder / CELLS, (), TEXT))


def provenance(runs_dir: Path, names: Iterable[str]) -> dict[str, Any]:
    """Where the numbers come from: every value that the cells' provenance has, and of how many of them."""
    metas = [rundir.read_meta(runs_dir / name) for name in dict.fromkeys(names)]
    ends = sorted(str(meta["end"]) for meta in metas if meta.get("end"))
    kept = ("git_hash", "git_dirty", "results_version", "versions", "device", "precision", "threads")
    return {name: _counts([meta.get(name) for meta in metas]) for name in kept} | {
        "cells": len(metas),
        "training_minutes": round(sum(float(meta.get("run_seconds") or 0) for meta in metas) / 60),
        "first_end": ends[0] if ends else None,
        "last_end": ends[-1] if ends else None,
    }


def _counts(values: Sequence[Any]) -> list[dict[str, Any]]:
    """Each value once, with how often it is found, the most frequent first."""
    texts = Counter(json.dumps(value, sort_keys=True) for value in values)
    return [{"value": json.loads(text), "cells": count} for text, count in texts.most_common()]
