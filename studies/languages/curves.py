"""What the figures of languages show of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from icl_lab.store import layout
from icl_lab.store.metrics import read_metrics
from icl_lab.store.readers import read_npz
from icl_lab.store.rundir import read_config
from icl_lab.studies.curve_rows import Series
from icl_lab.studies.dot_figure import Numbers
from icl_lab.studies.languages.measures import value
from icl_lab.studies.runs import summary_part

Curves = Callable[[Path, str], Series]
NO_CONTEXT, RIDGE, TRAINED = "linear, no context", "ridge", "trained model"


def over_training(fields: Mapping[str, str], panel: str = "") -> Curves:
    """Fields of the metrics over training, a series each."""

    def curves(run: Path, name: str) -> Series:
        records = read_metrics(run, list(fields))
        steps = [record["step"] for record in records]
        return {(panel, label): (steps, [record[field] for record in records]) for field, label in fields.items()}

    return curves


def of_setting(run: Path) -> Numbers:
    """A run's accuracies, and how its predictions agree with one step of gradient descent."""
    return {
        ("accuracy", TRAINED): value("accuracy")(run),
        ("accuracy", NO_CONTEXT): value("no_context_accuracy")(run),
        ("accuracy", RIDGE): value("ridge_accuracy")(run),
        ("accuracy", "labels shuffled"): value("shuffled_accuracy")(run),
        ("cosine of sensitivities", "one step of GD"): value("gd_cosine")(run),
        ("cosine of sensitivities", "optimum of one layer"): value("optimum_cosine")(run),
    }


def of_grid(run: Path) -> Numbers:
    """The accuracies of a point of the grid, its negatives being the panel."""
    negatives = read_config(run).data.negatives
    return {
        (negatives, TRAINED): value("accuracy")(run),
        (negatives, NO_CONTEXT): value("no_context_accuracy")(run),
        (negatives, RIDGE): value("ridge_accuracy")(run),
        (negatives, "optimum of one layer"): value("optimum_accuracy")(run),
    }


def singular_values(runs: Path, name: str) -> Series:
    """The singular values of Sigma^1/2 A Sigma^1/2, largest first."""
    labels = {"model": "Trained Transformer", "optimum": "optimum of one layer", "gd": "Gradient descent"}
    spectra = summary_part(runs, "layer")["singular_values"]
    return {("", labels[who]): (np.arange(1, len(values) + 1), values) for who, values in spectra.items()}


def of_numbers(who: Mapping[str, str]) -> Curves:
    """Losses against the number of languages trained on: on unseen strings of these, and on unseen languages."""

    def curves(run: Path, name: str) -> Series:
        x = [read_config(run).data.num_languages]
        parts = {"trained languages": "headline", "unseen languages": "unseen"}
        losses: Series = {(panel, who[name]): (x, [value("loss", part)(run)]) for panel, part in parts.items()}
        if name != "random_linear":
            return losses
        others = {"optimum of one layer": "optimum_loss", "Ridge": "ridge_loss", "version space": "version_space_loss"}
        return {
            **losses,
            **{
                (panel, label): (x, [value(field, part)(run)])
                for panel, part in parts.items()
                for label, field in others.items()
            },
        }

    return curves


def product(name: str) -> Callable[[Path], np.ndarray]:
    """A weight product of a run's first layer and head, or of the construction, from weights.npz."""
    return lambda run: np.asarray(read_npz(run / layout.WEIGHTS, (name,))[name][0, 0], np.float64)
