"""A sweep's table: one row for each planned cell, checked before anything is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from icl_lab.lab.configs.columns import has_trained
from icl_lab.plots.sweep_figures import grouping
from icl_lab.plots.sweep_figures.points import PLANNED
from icl_lab.store.readers import StoreError, read_csv

if TYPE_CHECKING:
    import pandas as pd

ALPHAS = ("1", "1.5", "2", "3")  # as the columns' names say them
COMPARATORS = {
    "test_gd_loss": "GD, clean step",
    "test_gd_tuned_step_loss": "GD, tuned step",
    "test_linear_mmse_loss": "linear MMSE",
    "test_mask_bayes_loss": "Bayes over masks",
}
TEXT = (
    *("exp", "model", "ordering", "noise_mode", "placement", "status", "results_version", "eval_difficulty"),
    *("train_ordering", "train_noise_mode", "train_placement", "train_difficulty"),
)
SHARES = ("p", "train_p")
SETTINGS = ("seed", "sigma", "train_sigma", "steps", *SHARES)
MEASURED = (
    *("test_loss", *COMPARATORS, "align_cos", "align_l2", "auroc", "gd_auroc", "auroc_position"),
    *(f"{owner}ood_alpha{alpha}" for owner in ("", "gd_") for alpha in ALPHAS),
)
# columns, if the table has them, of what does not depend on a model: positive controls for `auroc`
DETECTORS = {"mask_bayes_auroc": "Bayes over masks", "loo_gd_auroc": "leave-one-out GD error"}
# measure -> the column, if the table has it, that counts the tasks behind each value; named as in a run's config
TASKS = {
    **{"test_loss": "test_tasks", "ood": "test_tasks"},
    **{"auroc": "eval_tasks", "alignment": "eval_tasks"},
}
SAME = 1e-3  # relative difference up to which two results of one cell are the same result


def read_sweep(path: Path) -> pd.DataFrame:
    """The table, with `done`, `noisy` and `trained` of each row; `StoreError` if it cannot be drawn.

    The detectors' columns are empty in tables that have none.
    """
    table = read_csv(path, (*SETTINGS, *MEASURED), TEXT)
    table["done"] = table["status"] == "done"
    table["noisy"] = (table["noise_mode"] != grouping.CLEAN) & (table["p"] != 0)
    for name in ("seed", *SHARES, "test_loss"):
        if table.loc[table["done"], name].isna().any():
            raise StoreError(f"{path} has rows that are done and have no {name}")
    for name in SHARES:
        if not table[name].dropna().between(0, 1).all():
            raise StoreError(f"{path} has values of {name} that are not between 0 and 1")
    for name in sorted({*TASKS.values()} & {*table.columns}):
        if table[name].dtype.kind not in "iuf":
            raise StoreError(f"{path} has words in {name}, which counts tasks")
    for name in {*DETECTORS} & {*table.columns}:
        if table[name].dtype.kind not in "iuf":
            raise StoreError(f"{path} has words in {name}, which is an AUROC")
    table = table.assign(**{name: float("nan") for name in DETECTORS if name not in table})
    table["trained"] = has_trained(table)
    _check_repeats(path, table)
    table.attrs[PLANNED] = (len(table), int(table["done"].sum()))
    return table


def _check_repeats(path: Path, table: pd.DataFrame) -> None:
    """Cells that mean the same have the same result, or a setting that the table doesn't hold differs."""
    for line in grouping.lines(table[table["done"]]):
        for seed, losses in line.rows.groupby("seed")["test_loss"]:
            if losses.max() - losses.min() > SAME * abs(losses.min()):
                names = " and ".join(line.rows.loc[[losses.idxmin(), losses.idxmax()], "exp"])
                raise StoreError(f"{path} has two results of one setting and seed {seed:g}: {names}")
