"""The CSV of a sweep, rebuilt from its cells: every planned point has a row, whatever became of it.

python -m sweeps.collect --runs_dir DIR --out FILE
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import Any

import cli
from analysis import plateau
from configs.identity import RESULTS_VERSION
from configs.regression import RegressionConfig
from src.checks import ConfigError
from src.config import POSTERIOR_MEANS, ContextConfig
from store import layout, outputs, rundir
from store.atomic import naming
from store.lock import locked_file
from store.readers import StoreError, expecting, read_json
from sweeps import table
from sweeps.plan import Row, find_plan, read_plan
from sweeps.status import standing
from sweeps.table import Terms

NOWHERE = ".anew"  # a folder that no sweep has
PATIENCE = 60.0  # seconds that others who write the table are waited for: writing takes one or two

Found = Mapping[str, Any]  # a finished cell's files, by short name

# column -> its value in a finished cell's files
MEASURED: dict[str, Callable[[Found], Any]] = {
    "test_mse": lambda found: _doubled(found["headline"]["tf_loss"]),
    "align_cos": lambda found: found["alignment"]["align_cos"],
    "align_l2": lambda found: found["alignment"]["l2_pred_diff"],
    "auroc": lambda found: found["separation"]["abs_influence"]["auroc"],
    "ood_alpha3": lambda found: _scaled(found, 3.0)["test_mse"],
}
MORE_MEASURED: dict[str, Callable[[Found], Any]] = {
    "left_plateau": lambda found: _left_plateau(found["config"], found),
    "not_defined": lambda found: _not_defined(found["comparators"]),
    "test_loss": lambda found: found["headline"]["tf_loss"],
    "test_loss_se": lambda found: found["headline"]["tf_loss_se"],
    "gd_mse": lambda found: _doubled(found["headline"]["gd_loss"]),
    "gd_loss": lambda found: found["headline"]["gd_loss"],
    "loss_ratio": lambda found: found["headline"]["loss_ratio"],
    "loss_ratio_se": lambda found: found["headline"]["loss_ratio_se"],
    "ridge_loss": lambda found: found["headline"]["ridge_loss"],
    **{
        f"{name}_loss": lambda found, name=name: found["comparators"][name]["loss"]
        for name in ("gd_tuned_step", "linear_mmse", "mask_bayes")
    },
    "gd_tuned_over_clean_step": lambda found: _ratio(
        found["comparators"]["tuned_step_size"], found["alignment"]["eta"]
    ),
    "slope": lambda found: found["alignment"]["slope"],
    "preds_diff": lambda found: found["alignment"]["preds_diff"],
    "auroc_low": lambda found: found["separation"]["abs_influence"]["auroc_interval"][0],
    "auroc_high": lambda found: found["separation"]["abs_influence"]["auroc_interval"][1],
    "auroc_raw": lambda found: found["separation"]["abs_influence"]["auroc_raw"],
    "auroc_position": lambda found: found["separation"]["abs_influence"]["auroc_position"],
    "gd_auroc": lambda found: found["separation"]["gd"]["abs_influence"]["auroc"],
    "gd_auroc_raw": lambda found: found["separation"]["gd"]["abs_influence"]["auroc_raw"],
    "twin_change_noisy": lambda found: found["separation"]["abs_influence"]["twin_change_noisy"],
    "twin_change_clean": lambda found: found["separation"]["abs_influence"]["twin_change_clean"],
    **{
        f"{whose}auroc_{score}": lambda found, whose=whose, score=score: _score(found, whose, score)
        for score in ("influence", "attention", "abs_attention", "contribution", "abs_contribution")
        for whose in ("", "gd_")
    },
    "auroc_first_abs_contribution": lambda found: _of_layer(found, 0, "abs_contribution"),
    **{
        f"{whose}ood_alpha{alpha:g}": lambda found, whose=whose, alpha=alpha: _scaled(found, alpha)[f"{whose}test_mse"]
        for whose in ("", "gd_")
        for alpha in (1.0, 1.5, 2.0, 3.0)
        if whose or alpha != 3.0
    },
}
# family -> the columns it measures, where these are not regression's; the others stay empty
OF_FAMILY: dict[str, dict[str, Callable[[Found], Any]]] = {
    "layerwise": {  # after the last layer, of a roll-out too
        "left_plateau": lambda found: _left_plateau(found["config"], found),
        "test_mse": lambda found: found["layerwise"]["mse"][-1],
        "test_loss": lambda found: _halved(found["layerwise"]["mse"][-1]),
        "test_loss_se": lambda found: _halved(found["layerwise"]["sem"][-1]),
        "gd_mse": lambda found: found["layerwise"]["gd"]["mse"][-1],
        "gd_loss": lambda found: _halved(found["layerwise"]["gd"]["mse"][-1]),
        "ridge_loss": lambda found: _halved(found["layerwise"]["references"]["ridge"]["mse"][-1]),
    },
    "sine": {
        "left_plateau": lambda found: _left_plateau(found["config"], found),
        "test_mse": lambda found: _doubled(found["headline"]["loss"]),
        "test_loss": lambda found: found["headline"]["loss"],
        "test_loss_se": lambda found: found["headline"]["loss_se"],
    },
}
# column of a table of task diversity -> its value in a row's config
POOLS: dict[str, Callable[[RegressionConfig], Any]] = {
    "num_tasks": lambda config: config.data.num_tasks or float("inf"),
    "task_law": lambda config: config.data.task_law,
    "dim": lambda config: config.data.dim,
    "num_pairs": lambda config: config.data.num_pairs,
    "noise_std": lambda config: config.data.noise_std,
    "num_layers": lambda config: config.model.num_layers,
    "num_heads": lambda config: config.model.num_heads,
    "embed_size": lambda config: config.model.embed_size,
    "mlp_width": lambda config: config.model.mlp_width,
    "batch_size": lambda config: config.training.batch_size,
    "steps": lambda config: config.training.steps,
    "lr": lambda config: config.training.lr,
    "weight_decay": lambda config: config.training.weight_decay,
    "schedule": lambda config: "triangle" if config.training.triangle else "constant",
}
POOLS_MEASURED = tuple(
    f"{prefix}_{name}"
    for prefix in ("id", "ood")
    for name in (
        *(f"{who}_loss{se}" for who in ("tf", "ridge", "dmmse", *POSTERIOR_MEANS) for se in ("", "_se")),
        *(f"delta_{who}{se}" for who in ("ridge", "dmmse", *POSTERIOR_MEANS) for se in ("", "_se")),
        "apart",
    )
)
# columns whose values the cells decide; all others say what was asked for
RESULTS = {*MEASURED, *MORE_MEASURED, *POOLS_MEASURED, "status", "verdict", "left_plateau", "not_defined"}


def _left_plateau(config: RegressionConfig, found: Found) -> str | None:
    met = plateau.left_plateau(config, found)["met"]
    return None if met is None else str(met).lower()


def _not_defined(comparators: Mapping[str, Any]) -> str | None:
    """Which comparators have no value, and why."""
    parts = [
        (name, part["reason"]) for name, part in comparators.items() if isinstance(part, Mapping) and "reason" in part
    ]
    return "; ".join(f"{name}: {reason}" for name, reason in parts) or None


def _doubled(value: float | None) -> float | None:
    """What is not finite is null in a cell's files, and empty in its row."""
    return None if value is None else 2 * value


def _halved(value: float | None) -> float | None:
    return None if value is None else value / 2


def _ratio(value: float | None, of: float | None) -> float | None:
    return None if value is None or not of else value / of


def _scaled(found: Found, alpha: float) -> Mapping[str, Any]:
    return next(row for row in found["ood"] if row["alpha"] == alpha)


def _score(found: Found, whose: str, score: str) -> Any:
    """A score's AUROC: gradient descent's; the model's influence; or of its last layer's heads, their mean."""
    separation = found["separation"]
    if whose or score == "influence":
        return (separation["gd"] if whose else separation)[score]["auroc"]
    return _of_layer(found, -1, score)


def _of_layer(found: Found, layer: int, score: str) -> float | None:
    values = [head["scores"][score]["auroc"] for head in found["separation"]["layers"][layer]["heads"]]
    return None if None in values else sum(values) / len(values)


def row_values(row: Row, folder: Path, failed: Container[str] = ()) -> dict[str, Any]:
    """A row of the CSV: what was asked for, what became of it, and its numbers if it is done.

    `failed` names cells that are known to have failed: where nothing can be written, they cannot say so themselves.
    """
    asked = row.asked
    status, _ = standing(row.cell, folder)
    if status not in rundir.FINISHED and row.cell.name in failed:
        status = "failed"
    if asked.family == "diversity":
        return _pool_values(row, folder, status)
    measured = OF_FAMILY.get(asked.family, MEASURED | MORE_MEASURED) if status == "done" else {}
    found = {**_found(folder / row.cell.name, asked.family), "config": asked} if measured else {}
    numbers = {name: value(found) for name, value in measured.items()}
    trained, evaluated = _settings(asked.train), _settings(asked.eval)
    return {
        "exp": row.cell.name,
        "model": asked.name,
        **evaluated,
        "seed": asked.data_seed,
        **{name: numbers.get(name) for name in MEASURED},
        "status": status,
        **{f"train_{name}": value for name, value in trained.items()},
        "train_difficulty": asked.train.difficulty,
        **{f"eval_{name}": value for name, value in evaluated.items()},
        "eval_difficulty": asked.eval.difficulty,
        "steps": asked.training.steps,
        **{name: numbers.get(name) for name in MORE_MEASURED},
        "results_version": RESULTS_VERSION,
    }


def _pool_values(row: Row, folder: Path, status: str) -> dict[str, Any]:
    """A row of a table of task diversity."""
    summary = _found(folder / row.cell.name, row.asked.family) if status == "done" else {}
    found = summary.get("headline", {})
    return {
        "exp": row.cell.name,
        "model": row.asked.name,
        **{name: value(row.asked) for name, value in POOLS.items()},
        "seed": row.asked.data_seed,
        "status": status,
        "verdict": found.get("verdict"),
        "left_plateau": _left_plateau(row.asked, summary) if summary else None,
        "not_defined": f"ridge: {found['id_ridge_loss_reason']}" if "id_ridge_loss_reason" in found else None,
        **{name: found.get(name) for name in POOLS_MEASURED},
        "results_version": RESULTS_VERSION,
    }


def _settings(context: ContextConfig) -> dict[str, Any]:
    """What is in force: without noise, p and sigma are 0 whatever was asked for the other context."""
    clean = context.noise_mode == "clean"
    return {
        "ordering": context.ordering,
        "noise_mode": context.noise_mode,
        "p": 0.0 if clean else context.noise_p,
        "sigma": 0.0 if clean else context.noise_sigma,
        "placement": context.noise_placement,
    }


def _found(run: Path, family: str) -> Found:
    """The files of a finished cell that its row is made of."""
    summary: Found = read_json(run / layout.SUMMARY)
    if family != "regression":
        return summary
    with expecting(run / layout.SUMMARY, "a run's summary"):
        parts = {name: summary[name] for name in ("headline", "alignment", "ood")}
    return parts | {
        "separation": read_json(run / layout.ATTENTION_STATS),
        "comparators": read_json(run / layout.COMPARATORS),
    }


def rows_now(
    rows: Sequence[Row], folder: Path, out: Path, failed: Container[str] = (), anew: Container[str] = ()
) -> list[dict[str, Any]]:
    """The rows of a table as its plan and its cells have them now; those `anew` as if they had not begun."""
    values, name = [], table.folder_of(folder, out)
    for row in rows:
        place = folder / NOWHERE if row.cell.name in anew else folder
        with expecting(folder / row.cell.name, "a finished cell of a sweep; --overwrite trains it anew"):
            values.append(row_values(row, place, failed) | {table.FOLDER: name})
    return values


def collect(rows: Sequence[Row], folder: Path, out: Path, failed: Container[str] = ()) -> list[dict[str, Any]]:
    """Writes a plan's rows into the table, beside those of others, and gives them. The caller holds the table."""
    values = rows_now(rows, folder, out, failed)
    if values:
        table.write(out, values, settings_of(values))
    return values


def start(
    rows: Sequence[Row], folder: Path, out: Path, terms: Terms, anew: Container[str] = ()
) -> list[dict[str, Any]]:
    """The first writing of a table: `StoreError` if anything in it would be lost that the terms do not let go of."""
    values = rows_now(rows, folder, out, anew=anew)
    if values:
        table.check(out, values, settings_of(values), terms)
        table.write(out, values, settings_of(values), alone=terms.replace)
    return values


def settings_of(values: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns that say what was asked for."""
    return [name for name in values[0] if name not in RESULTS] if values else []


def check_out(out: Path, folder: Path) -> None:
    """Raises unless a CSV can be written there: a new file, or a sweep's CSV. Leaves nothing behind."""
    place = Path(os.path.realpath(out.parent), out.name)
    own = os.path.realpath(folder)
    is_own = place.name.startswith(".") or (place.name.startswith("plan") and place.suffix == ".json")
    if place.is_relative_to(own) and (place.parent != Path(own) or is_own):
        raise StoreError(f"{out} is where the sweep's own files go; choose another --out")
    if out.is_dir():
        raise StoreError(f"{out} is a folder, not a file")
    outputs.check_free(out, "sweeps")
    table.read(out)
    check_writable(out, out.parent)


def check_writable(path: Path, folder: Path) -> None:
    """An `OSError` that names `path` unless files can be made in a folder, or where it will be made."""
    nearest = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    with naming(path), tempfile.TemporaryFile(dir=nearest):
        pass


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("sweeps.collect", "Writes the CSV of a sweep from what its cells hold now.")
    built.add_argument("--runs_dir", type=Path, required=True, help="the sweep's folder")
    built.add_argument("--out", type=Path, required=True, help="the CSV")
    built.add_argument("--plan", type=Path, help="the plan in that folder; the table's own if not given")
    add_table_flags(built)
    return built


def add_table_flags(built: cli.Parser) -> None:
    """The flags that say what becomes of rows in the table that are not planned."""
    kept = built.add_mutually_exclusive_group()
    kept.add_argument("--append", action="store_true", help="leave the rows in the CSV that are not planned here")
    kept.add_argument("--replace_table", action="store_true", help="drop them; nothing is trained again")


def main(argv: list[str]) -> None:
    """The command line."""
    flags = parser().parse(argv)
    plan = flags.plan or find_plan(flags.runs_dir, flags.out)
    rows = read_plan(plan)
    check_out(flags.out, flags.runs_dir)
    with locked_file(flags.out, PATIENCE):
        values = start(rows, flags.runs_dir, flags.out, Terms(flags.append, flags.replace_table, trains=False))
    done = sum(row["status"] == "done" for row in values)
    print(f"{cli.printable(flags.out)}: {done} of {len(values)} planned rows are done")


if __name__ == "__main__":
    cli.launch(main, StoreError, ConfigError)
