"""What the study's page is made from: its findings, and its contrasts as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from configs.regression import ALIGNED
from store.readers import read_json
from studies.contrast import by_name, results
from studies.findings import Told, image, numbered
from studies.order_noise.agreement import agreement
from studies.order_noise.curves import RUN_FIGURES
from studies.order_noise.figures import FIGURES
from studies.order_noise.findings import FINDINGS, TOO_FEW, stated
from studies.order_noise.findings.order import stuck_in_words
from studies.order_noise.findings.wording import Rows, in_percent
from studies.order_noise.measures import BY_SCORE, COMPARATORS, CONTRASTS, COPYING
from studies.order_noise.plateaus import plateaus
from studies.order_noise.predictions import FOLDER
from studies.order_noise.runs import MODELS, NOISE, RATES
from studies.order_noise.table import PROVENANCE, number_planned, predictions_of, read_cells

if TYPE_CHECKING:
    import pandas as pd

# the findings that the page begins with, and the figure of each
LEADING = {
    "learns_the_order": "agreement",
    "order_alone": "order_sensitivity",
    "noise_like_descent": "noise_robustness",
    "shorter_steps": "effects_the_step_a_model_takes",
    "no_detection": "attention_separation",
}
UNSUPPORTED = ("unsupported_curriculum", "unsupported_attention")  # they have a place of their own
SMALLEST = 0.002  # of a loss: predicted changes below it have no row on the page


def values(folder: Path) -> dict[str, Any]:
    """The values of the page's template."""
    table = read_cells(folder)
    rows = results(table, CONTRASTS)
    named = by_name(rows)

    def finding(name: str) -> str:
        return _finding(name, named, table).says

    def figure(name: str) -> str:
        return image(folder.parent, f"{folder.name}/{name}.png", FIGURES[name])

    agreed = agreement(table, CONTRASTS, predictions_of(folder))
    leading = [_finding(name, named, table, figure(of)) for name, of in LEADING.items()]
    explained = f" Predicted from tasks alone, by a step size for each position: {_verdicts(agreed)}."
    steps = _run_figure(folder, "steps_by_position")
    first = leading[0]._replace(says=leading[0].says + explained, figures=(*leading[0].figures, steps))
    return {
        "findings": numbered([first, *leading[1:]]),
        "other_findings": [name for name in FINDINGS if name not in (*LEADING, *UNSUPPORTED)],
        "number_of_contrasts": len(rows),
        "predictions": predictions_of(folder).parent.name,
        "finding": finding,
        "figure": figure,
        "contrasts": lambda question: _folded(question, [row for row in rows if row["question"] == question]),
        "agreement": _agreement(agreed),
        "plateaus": _plateaus(plateaus(table)),
        "aligned": ALIGNED,
        "noise_table": _noise_table(named),
        "stuck": stuck_in_words(table),
        "by_score": BY_SCORE,
        "copying": COPYING,
        "provenance": read_json(folder / PROVENANCE),
        "cells": len(table),
        "planned": number_planned(folder),
        "seeds": sorted({int(seed) for seed in table["seed"]}),
    }


def _finding(name: str, rows: Rows, table: pd.DataFrame, *figures: str) -> Told:
    """A finding, marked where the numbers do not bear it out."""
    sentence, holds = stated(name, rows, table)
    marked = sentence if holds or sentence == TOO_FEW else f"**Not shown by these runs:** {sentence}"
    return Told(marked, holds, figures)


def _run_figure(folder: Path, name: str) -> str:
    """A figure of runs, which lies in the folder of the whole study; nothing where it is not drawn."""
    place = folder.parent / FOLDER / f"{name}.png"
    title = next(figure.title for figure in RUN_FIGURES if figure.name == name)
    return f"![{title}]({FOLDER}/{name}.png)" if place.exists() else ""


def _verdicts(rows: Sequence[Mapping[str, Any]]) -> str:
    """How many contrasts are as predicted, in words."""
    counts = Counter(row["verdict"] for row in rows)
    words = ", ".join(f"{counts[name]} {name}" for name in ("as predicted", "undecided", "not as predicted"))
    return f"of {len(rows)} contrasts of losses {words}" if rows else "not measured"


def _folded(question: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """A question's contrasts as a table that opens."""
    if not rows:
        return TOO_FEW
    counts = ", ".join(f"{count} {verdict}" for verdict, count in Counter(row["verdict"] for row in rows).items())
    summary = f"{question}: {len(rows)} contrasts, {counts}"
    return f"<details><summary>{summary}</summary>\n\n{_table(rows)}\n\n</details>"


def _agreement(rows: Sequence[Mapping[str, Any]]) -> str:
    """The predictions' verdicts, and those of an effect as a table; "" where none is predicted."""
    if not rows:
        return ""
    lines = [
        "| contrast | predicted, % | measured, % [90 %] | n | margin, % | verdict |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        if abs(row["predicted"]) >= SMALLEST:
            low, high = (f"{100 * row[name]:+.2f}" for name in ("change_low", "change_high"))
            measured = f"{100 * row['change']:+.2f} [{low}, {high}]"
            numbers = f"{100 * row['predicted']:+.2f} | {measured} | {row['n']} | {100 * row['margin']:.2f}"
            lines.append(f"| {row['contrast']} | {numbers} | {row['verdict']} |")
    summary = f"predictions: {_verdicts(rows)}; here those of {100 * SMALLEST:g} % and more"
    return f"<details><summary>{summary}</summary>\n\n" + "\n".join(lines) + "\n\n</details>"


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Contrasts as a Markdown table."""
    change, margin = ("difference", "±.01") if rows[0]["unit"] == "auroc" else ("change, %", "±1 %")
    lines = [
        f"| contrast | {change} [95 %], all seeds | n | off the plateau | n | treated | control | d_z | p (Holm) "
        f"| p ({margin}) | verdict |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [
            row["contrast"].replace("|", r"\|"),
            _of_all_seeds(row),
            f"{row['n_all']}",
            "the same" if row["n"] == row["n_all"] else in_percent(row).replace(" %", ""),
            f"{row['n']}",
            f"{row['treated']:.4f}",
            f"{row['control']:.4f}",
            "" if row["d_z"] != row["d_z"] else f"{row['d_z']:+.1f}",
            "" if row["p_holm"] is None else f"{row['p_holm']:.2g}",
            f"{row['p_equivalence']:.2g}",
            row["verdict"],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _of_all_seeds(row: Mapping[str, Any]) -> str:
    """The change of all seeds, with those whose trainings stayed on the plateau."""
    scale, form = (1, "+.4f") if row["unit"] == "auroc" else (100, "+.2f")
    change, low, high = (format(scale * row[f"change_all{end}"], form) for end in ("", "_low", "_high"))
    return f"{change} [{low}, {high}]"


def _plateaus(rows: Sequence[Mapping[str, Any]]) -> str:
    """How many trainings of each model left the plateau, and p of each pair of models, as a Markdown table."""
    models = [row["model"] for row in rows]
    lines = [
        f"| model | left the plateau | share [90 %] | {' | '.join(f'p against {model}' for model in models)} |",
        f"|---|---|---|{'---|' * len(models)}",
    ]
    for row in rows:
        share = f"{row['share']:.2f} [{row['share_low']:.2f}, {row['share_high']:.2f}]"
        p_values = ["" if row[f"p_{other}"] is None else f"{row[f'p_{other}']:.2g}" for other in models]
        cells = [row["model"], f"{row['left_plateau']} of {row['trainings']}", share, *p_values]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _noise_table(rows: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    """Losses by corruption: of the comparators, and of each model trained clean / trained on that noise."""
    names = list(COMPARATORS.values())
    header = [*names, *MODELS]
    lines = [f"| noise, p | {' | '.join(header)} |", f"|---|{'---|' * len(header)}"]
    for mode in NOISE:
        for p in RATES:
            compared = [rows.get(("noise at evaluation", f"{MODELS[0]}: {mode} {p:g} / {name}")) for name in names]
            trained = [rows.get(("noise in training", f"{model}: {mode} {p:g}, tested on it")) for model in MODELS]
            cells = [f"{row['control']:.4f}" if row else "" for row in compared]
            cells += [f"{row['control']:.4f} / {row['treated']:.4f}" if row else "" for row in trained]
            lines.append(f"| {mode}, {p:g} | {' | '.join(cells)} |")
    return "\n".join(lines)
