"""The order and noise study's page: from the table of its cells to contrasts, figures and report/order_noise.md.

python -m report.order_noise --from runs/study.csv

Given report/order_noise/cells.csv it makes the same page again: every number on the page comes from there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cli
from report.contrasts import has_learnt, results
from report.ledger import WRITER
from report.order_noise_claims import CLAIMS
from report.order_noise_claims.words import in_percent
from report.page import rendered
from report.questions import BY_SCORE, COMPARATORS, CONTRASTS, COPYING
from report.study import MODELS, NOISE, RATES
from src.checks import ConfigError
from store import outputs, rundir
from store.atomic import csv_bytes, json_bytes
from store.readers import StoreError, read_csv, read_json
from sweeps.plan import read_plans

if TYPE_CHECKING:
    import pandas as pd

PAGE = "order_noise.md"
PROVENANCE = "provenance.json"
TEMPLATE = Path(__file__).with_name("order_noise.md.j2")
DIGITS = 7  # of the numbers in the committed table
TEXT = (
    *("exp", "model", "status", "ordering", "noise_mode", "placement", "eval_ordering", "eval_noise_mode"),
    *("eval_placement", "eval_difficulty", "train_ordering", "train_noise_mode", "train_placement", "train_difficulty"),
)
SETTINGS = ("seed", "p", "sigma", "eval_p", "train_p", "train_sigma", "steps", "results_version")
ATTENTION_SCORES = ("attention", "abs_attention", "contribution", "abs_contribution")
NUMBERS = (
    *("test_loss", "gd_loss", "gd_tuned_step_loss", "linear_mmse_loss", "mask_bayes_loss", "loss_ratio"),
    *("align_cos", "align_l2", "slope", "gd_tuned_over_clean_step"),
    *("auroc", "auroc_low", "auroc_high", "auroc_raw", "auroc_position", "auroc_first_abs_contribution"),
    *("gd_auroc", "gd_auroc_raw", "twin_change_noisy", "twin_change_clean"),
    *(f"{whose}auroc_{score}" for score in ATTENTION_SCORES for whose in ("", "gd_")),
    *(f"{whose}ood_alpha{alpha}" for whose in ("", "gd_") for alpha in ("1", "1.5", "2", "3")),
)


def write(source: Path, runs_dir: Path, out: Path) -> Path:
    """Writes the table, the contrasts, where they come from, the figures and the page."""
    folder = out / "order_noise"
    cells = folder / "cells.csv"
    table = read_csv(source, (*SETTINGS, *NUMBERS), TEXT)
    contrasts = folder / "contrasts.csv"
    outputs.check([cells, folder / PROVENANCE, contrasts, out / PAGE], WRITER)
    chosen = [_rounded(row) for row in table[[*TEXT, *SETTINGS, *NUMBERS]].to_dict("records")]
    beside = source.with_name(PROVENANCE)  # of a table that is committed
    facts = read_json(beside) if beside.exists() else provenance(runs_dir)
    outputs.write({cells: csv_bytes(chosen), folder / PROVENANCE: json_bytes(facts)}, WRITER)
    rows = results(read_cells(cells), CONTRASTS)
    outputs.write({contrasts: csv_bytes([_rounded(row) for row in rows])}, WRITER)
    _draw(folder)
    outputs.write({out / PAGE: render(folder).encode()}, WRITER)
    return out / PAGE


def _rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value for name, value in row.items()}


def read_cells(path: Path) -> pd.DataFrame:
    """The committed table, its finished rows."""
    table = read_csv(path, (*SETTINGS, *NUMBERS), TEXT)
    return table[table["status"] == "done"]


def provenance(runs_dir: Path) -> dict[str, Any]:
    """Where the numbers come from: every value that its cells' provenance has, and of how many of them."""
    metas = [rundir.read_meta(runs_dir / row.cell.name) for row in read_plans(runs_dir)]
    ends = sorted(str(meta["end"]) for meta in metas if meta.get("end"))
    kept = ("git_hash", "git_dirty", "results_version", "versions", "device", "precision", "threads")
    return {name: _counts([meta.get(name) for meta in metas]) for name in kept} | {
        "cells": len(metas),
        "training_minutes": round(sum(float(meta.get("run_seconds") or 0) for meta in metas) / 60),
        "first_end": ends[0] if ends else None,
        "last_end": ends[-1] if ends else None,
    }


def _counts(found: Sequence[Any]) -> list[dict[str, Any]]:
    """Each value once, with how often it is found, the most frequent first."""
    texts = Counter(json.dumps(value, sort_keys=True) for value in found)
    return [{"value": json.loads(text), "cells": count} for text, count in texts.most_common()]


# figure of a sweep -> the rows of the table that it shows; all of them at once would be unreadable
SHOWN: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
    "order_sensitivity": lambda table: _is_clean(table, "train") & _is_clean(table, "eval"),
    "noise_robustness": lambda table: (
        has_learnt(table) & _mixed_at_random(table) & (_is_clean(table, "train") | _as_trained(table))
    ),
    "attention_separation": lambda table: has_learnt(table) & _mixed_at_random(table) & ~_is_clean(table, "eval"),
    "alignment_metrics": lambda table: has_learnt(table) & _mixed_at_random(table) & _is_clean(table, "train"),
    "ood_curve": lambda table: (
        has_learnt(table) & _is_clean(table, "train") & _is_clean(table, "eval") & (table["eval_ordering"] == "random")
    ),
}


def _is_clean(table: pd.DataFrame, context: str) -> pd.Series:
    return table[f"{context}_noise_mode"] == "clean"


def _as_trained(table: pd.DataFrame) -> pd.Series:
    return (table["train_noise_mode"] == table["noise_mode"]) & (table["train_p"] == table["p"])


def _mixed_at_random(table: pd.DataFrame) -> pd.Series:
    """Rows in random order with the noisy pairs anywhere."""
    kept = (table["train_ordering"] == "random") & (table["eval_ordering"] == "random")
    for context in ("train", "eval"):
        kept &= (table[f"{context}_placement"] == "mixed") | _is_clean(table, context)
    return kept


def _draw(folder: Path) -> None:
    from plots import fig_templates
    from plots.effects import draw_effects

    fig_templates.draw_sweep(folder / "cells.csv", folder, SHOWN)
    draw_effects(folder / "contrasts.csv", folder)


def render(folder: Path) -> str:
    """The page. `StoreError` names a claim that the numbers do not bear out."""
    table = read_cells(folder / "cells.csv")
    rows = results(table, CONTRASTS)
    by_name = {(row["question"], row["contrast"]): row for row in rows}

    def claim(name: str) -> str:
        sentence, holds = CLAIMS[name](by_name, table)
        if not holds:
            raise StoreError(f"the numbers do not bear out the claim {name!r}: {sentence}")
        return sentence

    return rendered(
        TEMPLATE,
        claim=claim,
        contrasts=lambda question, *models: _table([r for r in rows if r["question"] == question], models),
        noise_table=_noise_table(by_name),
        by_score=BY_SCORE,
        copying=COPYING,
        provenance=read_json(folder / PROVENANCE),
        cells=len(table),
        planned=len(read_csv(folder / "cells.csv", (), TEXT)),
        seeds=sorted({int(seed) for seed in table["seed"]}),
    )


def _table(rows: Sequence[Mapping[str, Any]], models: Sequence[str]) -> str:
    """Contrasts as a Markdown table; with models, those whose names begin with one of them."""
    change, margin = ("difference", "±.01") if rows[0]["unit"] == "auroc" else ("change, %", "±1 %")
    lines = [
        f"| contrast | treated | control | n | {change} [95 %] | d_z | p (Holm) | p ({margin}) | verdict |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if models and row["contrast"].partition(": ")[0] not in models:
            continue
        cells = [
            row["contrast"],
            f"{row['treated']:.4f}",
            f"{row['control']:.4f}",
            f"{row['n']}",
            in_percent(row).replace(" %", "") + _with_all_seeds(row),
            "" if row["d_z"] != row["d_z"] else f"{row['d_z']:+.1f}",
            "" if row["p_holm"] is None else f"{row['p_holm']:.2g}",
            f"{row['p_equivalence']:.2g}",
            row["verdict"],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _with_all_seeds(row: Mapping[str, Any]) -> str:
    """The change with the seeds that the contrast leaves out, if there are any."""
    if row["n"] == row["n_all"]:
        return ""
    scale, form = (1, "+.4f") if row["unit"] == "auroc" else (100, "+.2f")
    change, low, high = (format(scale * row[f"change_all{end}"], form) for end in ("", "_low", "_high"))
    return f"; all {row['n_all']}: {change} [{low}, {high}]"


def _noise_table(rows: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    """Losses by corruption: of the comparators, and of each model trained clean / trained on that noise."""
    names = list(COMPARATORS.values())
    header = [*names, *MODELS]
    lines = [f"| noise, p | {' | '.join(header)} |", f"|---|{'---|' * len(header)}"]
    for mode in NOISE:
        for p in RATES:
            cells = [
                f"{rows['noise at evaluation', f'{MODELS[0]}: {mode} {p:g} / {name}']['control']:.4f}" for name in names
            ]
            for model in MODELS:
                trained = rows["noise in training", f"{model}: {mode} {p:g}, tested on it"]
                cells.append(f"{trained['control']:.4f} / {trained['treated']:.4f}")
            lines.append(f"| {mode}, {p:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("report.order_noise", "Makes the page of the order and noise study from the table of its cells.")
    built.add_argument("--from", dest="source", metavar="FROM", type=Path, required=True, help="the table of the cells")
    built.add_argument("--runs_dir", type=Path, default=Path("runs/study"), help="the cells, for where they come from")
    built.add_argument("--out", type=Path, default=Path("report"), help="folder of the page")
    return built


def main(argv: list[str]) -> None:
    """The command line."""
    flags = parser().parse(argv)
    print(cli.printable(write(flags.source, flags.runs_dir, flags.out)))


if __name__ == "__main__":
    cli.launch(main, StoreError, ConfigError)
