"""What the figures of sequences of symbols show of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from icl_lab.store.metrics import read_metrics
from icl_lab.store.rundir import read_config
from icl_lab.studies.curve_rows import Series
from icl_lab.studies.dot_figure import Numbers
from icl_lab.studies.language_model import measures

Curves = Callable[[Path, str], Series]
PREDICTORS = {
    "uniform": "uniform",
    "unigram": "unigrams of the context",
    "induction_constant": "induction head with a constant",
    "bayes": "Bayes",
}
OF_POOLS = {
    "pool": "posterior of the pool's chains",
    "pool_unigram": "the same, of unigrams",
    "unigram": "unigrams of the context",
    "bayes": "Bayes",
}


def distances(panels: Mapping[str, str]) -> Curves:
    """KL from each predictor to the model over training, a panel for each runs' name."""

    def curves(run: Path, name: str) -> Series:
        found = read_metrics(run, [f"{measures.KL}{each}" for each in PREDICTORS])
        steps = [record["step"] + 1 for record in found]
        return {
            (panels[name], label): (steps, [record[f"{measures.KL}{each}"] for record in found])
            for each, label in PREDICTORS.items()
        }

    return curves


def from_bayes(labels: Mapping[str, str]) -> Curves:
    """KL from Bayes to the model over training, a series for each runs' name."""

    def curves(run: Path, name: str) -> Series:
        found = read_metrics(run, [f"{measures.KL}bayes"])
        steps = [record["step"] + 1 for record in found]
        return {("", labels[name]): (steps, [record[f"{measures.KL}bayes"] for record in found])}

    return curves


def of_setting(run: Path) -> Numbers:
    """A run's excess over Bayes."""
    return {("cross-entropy less that of Bayes (nats)", "trained model"): measures.value("excess")(run)}


def of_prior(run: Path) -> Numbers:
    """The alpha that a run's predictions imply, and the one it was trained on."""
    return {
        ("alpha", "implied by predictions"): measures.implied_alpha(run),
        ("alpha", "trained on"): float(read_config(run).data.concentration),
    }


def of_pools(run: Path, name: str) -> Series:
    """KL from each predictor to the model at the end, against the number of chains."""
    (last,) = read_metrics(run, [f"{measures.KL}{each}" for each in OF_POOLS])[-1:]
    x = [float(read_config(run).data.num_chains)]
    return {("", label): (x, [last[f"{measures.KL}{each}"]]) for each, label in OF_POOLS.items()}


STAGES = {
    "bigram_divergence": "bigram divergence (nats)",
    "positional_ablation": "positional ablation (nats)",
    "ngram_score_4": "score of 4-grams",
    "icl_score_minus_kneser_ney_4": "ICL score less Kneser-Ney 4's (nats)",
    "copy_accuracy": "copy accuracy",
}


def stages(labels: Mapping[str, str]) -> Curves:
    """Metrics of text over training, a panel each; a series for each runs' name."""

    def curves(run: Path, name: str) -> Series:
        rows = measures.developed(run)
        steps = (rows["step"] + 1).to_numpy(float)
        return {(panel, labels[name]): (steps, rows[column].to_numpy(float)) for column, panel in STAGES.items()}

    return curves


def of_triggers(run: Path) -> Numbers:
    """A run's accuracy after triggers, and that of Bayes."""
    return {
        ("accuracy after triggers", "trained model"): measures.value("trigger_accuracy")(run),
        ("accuracy after triggers", "Bayes"): measures.value("bayes_trigger_accuracy")(run),
    }
