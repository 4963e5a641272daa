"""What the study's page is made from: its findings, and its contrasts as tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl_lab.families.regression.outputs import ALIGNED, GAIN
from icl_lab.store.readers import read_json
from icl_lab.studies.contrast import by_name, change_of, results
from icl_lab.studies.findings import WrittenFinding, image, numbered, value
from icl_lab.studies.ledger import rows_in
from icl_lab.studies.order_noise.agreement import MARGIN_WORDS, VERDICTS, agreement, predicts_a_change
from icl_lab.studies.order_noise.claims import SHORT
from icl_lab.studies.order_noise.curves import RUN_FIGURES
from icl_lab.studies.order_noise.figures import FIGURES
from icl_lab.studies.order_noise.findings import FINDINGS, TOO_FEW, stated
from icl_lab.studies.order_noise.findings.order import stuck_in_words
from icl_lab.studies.order_noise.findings.wording import Rows
from icl_lab.studies.order_noise.measures import BASELINES, BY_SCORE, CONTRASTS, COPYING
from icl_lab.studies.order_noise.plateaus import plateaus, rejudged
from icl_lab.studies.order_noise.predictions import FOLDER
from icl_lab.studies.order_noise.runs import MODELS, NOISE, RATES
from icl_lab.studies.order_noise.table import PROVENANCE, number_planned, predictions_of, read_cells
from icl_lab.studies.study import load
from icl_lab.studies.words import AS_PREDICTED, CONTRADICTED, MAIN_SEEDS, NO_EFFECT, UNDECIDED, legend, words_of

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
VERDICT = f"verdict (below {MAIN_SEEDS} seeds provisional)"  # of columns with what the numbers say
UNSUPPORTED = ("unsupported_curriculum", "unsupported_attention")  # they have a place of their own


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
    lines = {row["claim"]: row for row in rows_in(folder.parent, [load("order_noise")])}
    steps = _run_figure(folder, "steps_by_position")
    first = leading[0]._replace(
        says=f"{leading[0].says} {_explained(agreed)}".strip(), figures=(*leading[0].figures, steps)
    )
    return {
        "findings": numbered([first, *leading[1:]]),
        "other_findings": [name for name in FINDINGS if name not in (*LEADING, *UNSUPPORTED)],
        "number_of_contrasts": len(rows),
        "provisional": _provisional(rows),
        "legend": legend(words_of([*rows, *agreed])),
        "predictions": predictions_of(folder).parent.name,
        "finding": finding,
        "figure": figure,
        "contrasts": lambda question: _folded(question, [row for row in rows if row["question"] == question]),
        "agreement": _agreement(agreed),
        "predicted": _predicted(agreed),
        "targets": _targets(lines),
        "plateaus": _plateaus(plateaus(table)),
        "aligned": ALIGNED,
        "gain": GAIN,
        "rejudged": rejudged(table, rows),
        "noise_table": _noise_table(named),
        "stuck": stuck_in_words(table),
        "exchangeable": _exchangeable(table),
        "by_score": BY_SCORE,
        "copying": COPYING,
        "provenance": read_json(folder / PROVENANCE),
        "cells": len(table),
        "planned": number_planned(folder),
        "seeds": sorted({int(seed) for seed in table["seed"]}),
    }


def _provisional(rows: Sequence[Mapping[str, Any]]) -> str:
    """That contrasts have too few seeds for verdicts that are more than provisional; "" where one has enough."""
    most = max((row["n"] for row in rows), default=0)
    if most >= MAIN_SEEDS:
        return ""
    return (
        f"Contrasts and predictions have at most {most} seeds, so every verdict on them is provisional: what this page "
        f"says is what the numbers say. A verdict needs {MAIN_SEEDS} seeds."
    )


def _finding(name: str, rows: Rows, table: pd.DataFrame, *figures: str) -> WrittenFinding:
    """A finding, marked where the numbers do not bear it out."""
    sentence, holds = stated(name, rows, table)
    marked = sentence if holds or sentence == TOO_FEW else f"**Not shown by these runs:** {sentence}"
    return WrittenFinding(marked, holds, figures)


def _run_figure(folder: Path, name: str) -> str:
    """A figure of runs, which lies in the folder of the whole study; nothing where it is not drawn."""
    place = folder.parent / FOLDER / f"{name}.png"
    title = next(figure.title for figure in RUN_FIGURES if figure.name == name)
    return f"![{title}]({FOLDER}/{name}.png)" if place.exists() else ""


def _explained(agreed: Sequence[Mapping[str, Any]]) -> str:
    """What a step size for each position predicts, and how many changes it predicts came out as predicted."""
    if not agreed:
        return ""
    predicted = {row["contrast"]: row["predicted"] for row in agreed}
    changes = [predicted[f"twolayer: trained easy2hard, tested {order}"] for order in ("easy2hard", "random")]
    effects = [row for row in agreed if predicts_a_change(row)]
    counts = Counter(row["reading_says"] for row in effects)
    met, undecided, not_met = (counts[name] for name in (AS_PREDICTED, UNDECIDED, CONTRADICTED))
    return (
        f"A step size for each position predicts {100 * changes[0]:+.1f} and {100 * changes[1]:+.1f} %; of "
        f"{len(effects)} predicted changes {met} are as predicted, {undecided} undecided, {not_met} contradicted."
    )


def _predicted(agreed: Sequence[Mapping[str, Any]]) -> str:
    """When a change is as predicted, which are not, and how many contrasts without a predicted change show none."""
    if not agreed:
        return ""
    effects = [row for row in agreed if predicts_a_change(row)]
    missed = "; ".join(
        f"{row['contrast'].replace(': ', ' ')}, {100 * row['predicted']:+.2f} % predicted, "
        f"{100 * row['change']:+.2f} % measured"
        for row in effects
        if row["reading_says"] == CONTRADICTED
    )
    smaller = sum(abs(row["change"]) < abs(row["predicted"]) for row in effects)
    none = Counter(row["reading_says"] for row in agreed)[NO_EFFECT]
    return (
        f"A change is as predicted if its 90 % interval lies within {MARGIN_WORDS} of the predicted one. "
        f"Contradicted: {missed or 'none'}. Of {len(effects)} predicted changes {smaller} are measured smaller. "
        f"Of {len(agreed) - len(effects)} contrasts in which no change is predicted {none} show none."
    )


def _exchangeable(table: pd.DataFrame) -> str:
    """How near the two steps are where no position differs from another; "" in tables that lack one of them."""
    rows = table[(table["eval_ordering"] == "random") & (table["eval_placement"] == "mixed")]
    apart = (rows["test_gd_positions_loss"] / rows["test_gd_tuned_step_loss"] - 1).abs().dropna()
    if apart.empty:
        return ""
    return (
        " In random order with mixed placement the best step sizes are equal: its loss is within "
        f"{100 * apart.max():.2f} % of the tuned step's in {len(apart)} cells, and under noise that step stands for it."
    )


def _verdicts(rows: Sequence[Mapping[str, Any]]) -> str:
    """How many contrasts are as predicted, in words."""
    counts = Counter(row["reading_says"] for row in rows)
    words = ", ".join(f"{counts[name]} {name}" for name in VERDICTS)
    return f"of {len(rows)} contrasts of losses {words}" if rows else "not measured"


def _targets(lines: Mapping[str, Mapping[str, Any]]) -> str:
    """In how many seeds the two numbers that were aimed at are reached, by order; "" where nothing is measured."""

    def reached(kind: str) -> str:
        rows = {order: (lines[f"steps_{kind}_{order}"], words) for order, words in SHORT.items()}
        counts = []
        for row, words in rows.values():
            values = json.loads(row["values"])
            inside = sum(row["low"] <= one <= row["high"] for one in values)
            counts.append(f"{inside} of {len(values)} {words} ({value(row)})")
        return ", ".join(counts)

    if not all(lines[f"steps_{kind}_{order}"]["n"] for kind in ("loss", "read") for order in SHORT):
        return ""
    return (
        f"Trained and tested in the order, the loss ratio is within .02 of the predicted one in {reached('loss')}; "
        f"R² of the step sizes with those predicted is .95 or more in {reached('read')}."
    )


def _folded(question: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """A question's contrasts as a table that opens."""
    if not rows:
        return TOO_FEW
    counts = ", ".join(f"{count} {verdict}" for verdict, count in Counter(row["reading_says"] for row in rows).items())
    summary = f"{question}: {len(rows)} contrasts, {counts}"
    return f"<details><summary>{summary}</summary>\n\n{_table(rows)}\n\n</details>"


def _agreement(rows: Sequence[Mapping[str, Any]]) -> str:
    """The predictions' verdicts, and those of an effect as a table; "" where none is predicted."""
    if not rows:
        return ""
    lines = [
        f"| contrast | predicted, % | measured, % [90 %] | n | margin, % | {VERDICT} |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        if predicts_a_change(row):
            low, high = (f"{100 * row[name]:+.2f}" for name in ("change_low", "change_high"))
            measured = f"{100 * row['change']:+.2f} [{low}, {high}]"
            numbers = f"{100 * row['predicted']:+.2f} | {measured} | {row['n']} | {100 * row['margin']:.2f}"
            lines.append(f"| {row['contrast']} | {numbers} | {row['reading_says']} |")
    summary = f"predictions: {_verdicts(rows)}; here those of a change beyond the margin"
    return f"<details><summary>{summary}</summary>\n\n" + "\n".join(lines) + "\n\n</details>"


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Contrasts as a Markdown table."""
    change, margin = ("difference", "±.01") if rows[0]["unit"] == "auroc" else ("change, %", "±1 %")
    lines = [
        f"| contrast | {change} [95 %], all seeds | n | trained | n | treated | control | d_z | p (Holm) "
        f"| p ({margin}) | {VERDICT} |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [
            row["contrast"].replace("|", r"\|"),
            _with_ends(row, *(row[f"change_all{end}"] for end in ("", "_low", "_high"))),
            f"{row['n_all']}",
            "the same" if row["n"] == row["n_all"] else _with_ends(row, *change_of(row)),
            f"{row['n']}",
            f"{row['treated']:.4f}",
            f"{row['control']:.4f}",
            "" if row["d_z"] != row["d_z"] else f"{row['d_z']:+.1f}",
            "" if row["p_holm"] is None else f"{row['p_holm']:.2g}",
            f"{row['p_equivalence']:.2g}",
            f"{row['reading_says']}, {row['because']}" if row["because"] else row["reading_says"],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _with_ends(row: Mapping[str, Any], change: float, low: float, high: float) -> str:
    """A change with the ends of its interval, in percent; of an AUROC, the difference."""
    scale, form = (1, "+.4f") if row["unit"] == "auroc" else (100, "+.2f")
    first, *ends = (format(scale * number, form) for number in (change, low, high))
    return f"{first} [{', '.join(ends)}]"


def _plateaus(rows: Sequence[Mapping[str, Any]]) -> str:
    """How many runs of each model trained, and p of each pair of models, as a Markdown table."""
    models = [row["model"] for row in rows]
    lines = [
        f"| model | trained | share [90 %] | {' | '.join(f'p against {model}' for model in models)} |",
        f"|---|---|---|{'---|' * len(models)}",
    ]
    for row in rows:
        share = f"{row['share']:.2f} [{row['share_low']:.2f}, {row['share_high']:.2f}]"
        p_values = ["" if row[f"p_{other}"] is None else f"{row[f'p_{other}']:.2g}" for other in models]
        cells = [row["model"], f"{row['trained']} of {row['trainings']}", share, *p_values]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _noise_table(rows: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    """Losses by corruption: of the baselines, and of each model trained clean / trained on that noise."""
    names = list(BASELINES.values())
    header = [*names, *MODELS]
    lines = [f"| noise, p | {' | '.join(header)} |", f"|---|{'---|' * len(header)}"]
    for mode in NOISE:
        for p in RATES:
            compared = [rows.get(("noise at evaluation", f"{MODELS[0]}: {mode} {p:g} / {name}")) for name in names]
            trained = [rows.get(("noise in training", f"{model}: {mode} {p:g}, tested on it")) for model in MODELS]
            cells = [f"{row['control']:.4f}" if row else "" for row in compared]
            cells += [_losses_of(row) if row else "" for row in trained]
            lines.append(f"| {mode}, {p:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _losses_of(row: Mapping[str, Any]) -> str:
    """The means of control and treated; how many seeds they are of, where some did not train."""
    of_some = f" ({row['n']} of {row['n_all']} seeds)" if row["n"] < row["n_all"] else ""
    return f"{row['control']:.4f} / {row['treated']:.4f}{of_some}"
