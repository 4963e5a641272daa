"""What the page of the study fills in besides claims: contrasts, and the tables that stand below it.

A contrast is named by its question and its name; where too few seeds have trained, an ellipsis stands for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl_lab.lab.configs.columns import has_trained
from icl_lab.src import intervals
from icl_lab.studies.contrast import by_name, results
from icl_lab.studies.order_noise.agreement import MARGIN_WORDS, VERDICTS, agreement, predicts_a_change, read_predictions
from icl_lab.studies.order_noise.measures import BASELINES, CONTRASTS
from icl_lab.studies.order_noise.plateaus import plateaus
from icl_lab.studies.order_noise.runs import MODELS, NOISE, RATE, RATES
from icl_lab.studies.order_noise.table import predictions_of, read_cells
from icl_lab.studies.template import NOT_MEASURED, verdict_in_prose, with_digits_of_interval

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]
Rows = Mapping[tuple[str, str], Row]

# what is filled in -> what its arguments name
FILLED_IN = {
    "change": ("question", "contrast"),
    "predicted": ("question", "contrast"),
    "judged": ("question", "contrast"),
    "largest": ("question",),
    "contrasts": ("question",),
    "trained_on_noise": ("model", "noise", "baseline"),
}
NAMES = {
    "question": list(dict.fromkeys(contrast.question for contrast in CONTRASTS)),
    "contrast": [contrast.name for contrast in CONTRASTS],
    "model": list(MODELS),
    "noise": list(NOISE),
    "baseline": list(BASELINES.values()),
}

# names of baselines, noise modes, orders and placements -> how tables say them
IN_WORDS = {
    "gd_clean_step": "GD, step tuned on clean contexts",
    "gd_tuned_step": "GD, step tuned to the noise",
    "linear_mmse": "best linear predictor that knows the noise",
    "mask_bayes": "Bayes predictor that knows the noise",
    "label_noise": "label noise",
    "random_pairs": "random pairs",
    "smallnorm2largenorm": "small norms first",
    "easy2hard": "easy first",
    "hard2easy": "hard first",
    "clean_first": "clean pairs first",
    "noisy_first": "noisy pairs first",
}


def fill_in(folder: Path) -> dict[str, Callable[..., str]]:
    """By name, what writes a contrast of the study's tables in a folder."""
    cells = read_cells(folder)
    rows = by_name(results(cells, CONTRASTS))
    path = predictions_of(folder)
    predictions = read_predictions(path) if path.exists() else {}

    def of(write: Callable[[Row], str]) -> Callable[[str, str], str]:
        return lambda *key: write(rows[key]) if key in rows else NOT_MEASURED

    def of_all(write: Callable[[Sequence[Row]], str]) -> Callable[[str], str]:
        def written(question: str) -> str:
            asked = [row for (name, _), row in rows.items() if name == question]
            return write(asked) if asked else NOT_MEASURED

        return written

    return {
        "change": of(change),
        "predicted": lambda *key: f"{100 * predictions[key]:+.1f} %" if key in predictions else NOT_MEASURED,
        "judged": of(verdict_in_prose),
        "largest": of_all(largest_end),
        "contrasts": of_all(lambda asked: str(len(asked))),
        "trained_on_noise": lambda *names: trained_on_noise(cells, *names),
    }


def trained_on_noise(cells: pd.DataFrame, model: str, noise: str, baseline: str) -> str:
    """The loss over a baseline's on the same contexts, of runs trained on the noise: mean, 90 % interval, n."""
    asked = has_trained(cells) & (cells["model"] == model)
    for name, value in {"noise_mode": noise, "p": RATE, "placement": "mixed", "ordering": "random"}.items():
        for where in ("train_", "eval_"):
            asked &= cells[f"{where}{name}"] == value
    rows = cells[asked]
    if len(rows) < 2:
        return NOT_MEASURED
    columns = {name: column for column, name in BASELINES.items()}
    *ends, n = intervals.of((rows["test_loss"] / rows[columns[baseline]]).to_numpy(), "log")
    mean, low, high = with_digits_of_interval(*ends)
    return f"{mean} [{low}, {high}; n = {n}]"


def change(row: Row) -> str:
    """The mean relative change over seeds that trained, with its 90 % interval and n; of an AUROC, the difference."""
    low, high = row["equivalence_low"], row["equivalence_high"]
    if row["unit"] == "auroc":
        return f"{(low + high) / 2:+.4f} [{low:+.4f}, {high:+.4f}; n = {row['n']}]"
    return f"{50 * (low + high):+.2f} % [{100 * low:+.2f}, {100 * high:+.2f}; n = {row['n']}]"


def largest_end(rows: Sequence[Row]) -> str:
    """The end of a 90 % interval that is farthest from no change, of all these."""
    end = max(max(abs(row["equivalence_low"]), abs(row["equivalence_high"])) for row in rows)
    return f"{end:.4f}" if rows[0]["unit"] == "auroc" else f"{100 * end:.2f} %"


def tables(folder: Path) -> str:
    """Predicted changes, losses under noise and runs that did not train, as tables that open."""
    cells = read_cells(folder)
    agreed = agreement(cells, CONTRASTS, predictions_of(folder))
    counts = Counter(row["reading_says"] for row in agreed)
    verdicts = ", ".join(f"{counts[name]} {name}" for name in VERDICTS)
    changes = f'Computed ("predicted") and measured changes of losses: {len(agreed)} comparisons, {verdicts}'
    opened = {
        changes: _agreement(agreed),
        "Losses under noise, each model trained clean / trained on that noise": _noise(
            by_name(results(cells, CONTRASTS))
        ),
        "How many runs trained": _plateaus(plateaus(cells)),
    }
    return "\n\n".join(f"<details><summary>{title}</summary>\n\n{text}\n\n</details>" for title, text in opened.items())


def _agreement(rows: Sequence[Row]) -> str:
    """The predictions of an effect, and what is measured of it."""
    lines = [
        f"A change is as predicted if its 90 % interval lies within {MARGIN_WORDS}; other comparisons are predicted "
        "to show no larger change.\n",
        "| contrast | predicted, % | measured, % [90 %] | n | margin, % | verdict by these numbers |",
        "|---|---|---|---|---|---|",
    ]
    for row in filter(predicts_a_change, rows):
        low, high = (f"{100 * row[name]:+.2f}" for name in ("change_low", "change_high"))
        measured = f"{100 * row['change']:+.2f} [{low}, {high}]"
        numbers = f"{100 * row['predicted']:+.2f} | {measured} | {row['n']} | {100 * row['margin']:.2f}"
        lines.append(f"| {in_words(row['contrast'])} | {numbers} | {row['reading_says']} |")
    return "\n".join(lines)


def in_words(name: str) -> str:
    """A contrast's name with the words of tables for the names in it."""
    for plain, words in IN_WORDS.items():
        name = name.replace(plain, words)
    return name


def _plateaus(rows: Sequence[Row]) -> str:
    """How many runs of each model trained, and p of each pair of models."""
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


def _noise(rows: Rows) -> str:
    """Losses by corruption: of the baselines, and of each model trained clean / trained on that noise."""
    names = list(BASELINES.values())
    header = [*(IN_WORDS[name] for name in names), *MODELS]
    lines = [f"| noise, p | {' | '.join(header)} |", f"|---|{'---|' * len(header)}"]
    for mode in NOISE:
        for p in RATES:
            compared = [rows.get(("noise at evaluation", f"{MODELS[0]}: {mode} {p:g} / {name}")) for name in names]
            trained = [rows.get(("noise in training", f"{model}: {mode} {p:g}, tested on it")) for model in MODELS]
            cells = [f"{row['control']:.4f}" if row else "" for row in compared]
            cells += [_losses_of(row) if row else "" for row in trained]
            lines.append(f"| {IN_WORDS[mode]}, {p:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _losses_of(row: Row) -> str:
    """The means of control and treated; how many seeds they are of, where some did not train."""
    of_some = f" ({row['n']} of {row['n_all']} seeds)" if row["n"] < row["n_all"] else ""
    return f"{row['control']:.4f} / {row['treated']:.4f}{of_some}"
