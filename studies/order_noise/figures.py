"""The study's figures: those of a sweep, from its cells, and the changes of each question, from its contrasts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from icl_lab.lab.configs.columns import has_trained
from icl_lab.studies.drawing import DRAWN
from icl_lab.studies.order_noise.agreement import AGREEMENT
from icl_lab.studies.order_noise.table import CELLS, CONTRASTS_OF
from icl_lab.studies.study import figures_shown

if TYPE_CHECKING:
    import pandas as pd

# file -> caption
FIGURES = {
    "agreement": 'Changes of the loss, measured against computed ("predicted"); on the diagonal they agree',
    "noise_robustness": "Test loss against the share of noisy pairs: models follow gradient descent, not the Bayes predictor",
    "effects_order_at_evaluation": "changes of the loss by order at evaluation",
    "order_sensitivity": "Loss ratio to gradient descent, by order: only two layers trained on ordered contexts depend on it",
    "effects_order_in_training": "changes of the loss by order in training",
    "effects_a_step_size_for_each_position": "losses against one step with a step size for each position",
    "effects_noise_at_evaluation": "changes of the loss by noise at evaluation",
    "effects_noise_in_training": "changes of the loss by noise in training",
    "effects_the_step_a_model_takes": "Trained on noise, models take smaller steps",
    "effects_noise_and_the_size_of_influence": "differences of AUROC from gradient descent's, |influence|",
    "effects_noise_and_the_size_of_contribution": "differences of AUROC from gradient descent's, |contribution|",
    "effects_noise_and_the_size_of_attention": "differences of AUROC from gradient descent's, |attention|",
    "effects_noise_and_the_copying_layer": "differences of AUROC from gradient descent's, the copying layer",
    "attention_separation": "AUROC of the models and of gradient descent, and of two detectors that do tell the pairs apart",
    "effects_attention_after_training_on_noise": "differences of AUROC trained on the noise from trained clean",
    "effects_attention_and_placement": "differences of AUROC from gradient descent's, raw and within positions",
    "effects_placement": "changes of the loss by placement",
    "effects_order_x_noise": "changes of the loss by order under noise",
    "alignment_metrics": "cosine of sensitivities and distance of predictions",
    "ood_curve": "errors on inputs of other scales",
}

# figure of a sweep -> the rows of the table that it shows; all of them at once would be unreadable
SHOWN: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
    "order_sensitivity": lambda table: _is_clean(table, "train") & _is_clean(table, "eval"),
    "noise_robustness": lambda table: (
        has_trained(table) & _mixed_at_random(table) & (_is_clean(table, "train") | _as_trained(table))
    ),
    "attention_separation": lambda table: has_trained(table) & _mixed_at_random(table) & ~_is_clean(table, "eval"),
    "alignment_metrics": lambda table: has_trained(table) & _mixed_at_random(table) & _is_clean(table, "train"),
    "ood_curve": lambda table: (
        has_trained(table) & _is_clean(table, "train") & _is_clean(table, "eval") & (table["eval_ordering"] == "random")
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


def draw(folder: Path) -> None:
    """Draws them from the tables there: those that the page does not show apart, in a folder `DRAWN`."""
    from icl_lab.plots import fig_templates
    from icl_lab.plots.effects import draw_effects
    from icl_lab.plots.predictions import draw_predictions

    shown = figures_shown(Path(__file__).with_name("page.md"))
    places = {name: folder if name in shown else folder / DRAWN for name in FIGURES}
    fig_templates.draw_sweep(folder / CELLS, folder, SHOWN, pictures=places)
    draw_effects(folder / CONTRASTS_OF, folder, places)
    if (folder / AGREEMENT).exists():
        draw_predictions(folder / AGREEMENT, folder)
