"""The figures of sequences of symbols: which runs each is of, and what of them it shows."""

from __future__ import annotations

from icl_lab.studies.dot_figure import Dots
from icl_lab.studies.figure import AnyFigure, Figure
from icl_lab.studies.language_model import curves

STEP, KL = "training step + 1", "KL (nats)"
DEPTHS = {"markov": "two layers", "markov_one_layer": "one layer"}
SETTINGS = {
    "markov": "two layers, start symbol",
    "no_start": "two layers, no start symbol",
    "markov_one_layer": "one layer",
}
TABLES = {"small_tables": "tables of .02", "large_tables": "tables of 1/√d"}
PRIORS = {"sparse_chains": "alpha = .3", "markov": "alpha = 1", "dense_chains": "alpha = 3"}
TEXTS = {"text": "text", "text_long": "text, longer", "text_repeats": "half random symbols that repeat"}
OF_TEXT = {
    **dict.fromkeys(("positional ablation (nats)", "ICL score less Kneser-Ney 4's (nats)"), "linear"),
    "copy accuracy": "fraction",
}
TRIGGERS = {"triggers": "two layers", "triggers_one_layer": "one layer"}

# fmt: off
FIGURES: tuple[AnyFigure, ...] = (
    Figure("phases", "Markov chains of 3 symbols: how far a decoder is from exact predictors", tuple(DEPTHS), curves.distances(DEPTHS), STEP, KL, log_x=True, log_y=True),
    Dots("excess", "Markov chains of 3 symbols, 1500 steps", SETTINGS, curves.of_setting),
    Figure("plateau", "Markov chains, layer norm: how far a decoder is from Bayes", tuple(TABLES), curves.from_bayes(TABLES), STEP, KL, log_x=True, log_y=True, profile="full", means=False, by_seed=True),
    Dots("prior", "The alpha that predictions imply lies above that of the training", PRIORS, curves.of_prior, "full", scale="log"),
    Figure("pools", "Pools of M chains, 3000 steps", ("pools_of_chains",), curves.of_pools, "chains in the pool, M", KL, log_x=True, log_y=True, profile="full"),
    Figure("text", "Text: bigrams, then positions and longer n-grams; only repeated random symbols teach copying", tuple(TEXTS), curves.stages(TEXTS), STEP, "", log_x=True, profile="full", means=False, by_seed=True, scale=OF_TEXT),
    Dots("triggers", "After triggers that came before: two layers are right more often than one", TRIGGERS, curves.of_triggers, "full", scale="fraction"),
)
# fmt: on
