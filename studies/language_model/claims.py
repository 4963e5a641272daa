"""The claims of sequences of symbols: Edelman et al. 2024, Bietti et al. 2023, Hoogland et al. 2024, and ours, as data.

Ranges were fixed before the runs that they judge were trained, after pilot runs of seeds 0 to 5.
"""

from __future__ import annotations

from typing import Any

from icl_lab.studies.claim import OURS, UNBOUNDED, Claim, Rival, Without
from icl_lab.studies.language_model import measures
from icl_lab.studies.language_model.runs import CHAINS

EDELMAN = "Edelman et al. 2024, arXiv 2402.11004"
BIETTI = "Bietti et al. 2023, arXiv 2306.00802"
CHOSEN, TEXT = "ours", "text"

BY_EDELMAN: dict[str, Any] = {"paper": EDELMAN, "smaller": "sequences of 64 symbols; the paper's have 100"}
BY_BIETTI: dict[str, Any] = {"paper": BIETTI, "smaller": "sequences of 128 symbols and 64 channels"}
HOOGLAND = "Hoogland et al. 2024, arXiv 2402.02364"
BY_HOOGLAND: dict[str, Any] = {
    "paper": HOOGLAND,
    "smaller": "7 million symbols and 410 000 weights; the paper has 5 billion and 3 million",
}
BY_US: dict[str, Any] = {"about": "ours", "paper": OURS}
ONE_LAYER = Rival("one layer, trained as long", runs=("markov_one_layer",))
IS_OVER_TRAINING: dict[str, Any] = {"control": Without("a network that is not trained has no phases")}

value = measures.value
FEW, MANY = CHAINS.index(4), CHAINS.index(64)

# fmt: off
CLAIMS: tuple[Claim, ...] = (
    # Markov chains: phases
    Claim("markov_phases", "phases", "chains of 3 symbols: a decoder is nearest to uniform, then to the context's unigrams, then to Bayes, in this order", 1.0, 1.0, 1.0, TEXT, measures.phases_in_order, "markov", scale="fraction", every=True, **BY_EDELMAN, **IS_OVER_TRAINING),
    Claim("markov_bigram_step", "phases", "chains of 3 symbols: log2 of the step from which on Bayes is the nearest", 7.9, 6.6, 8.65, CHOSEN, measures.log2_bigram_step, "markov", scale="linear", spacing=0.2, infinite="Bayes never is the nearest", **BY_EDELMAN, **IS_OVER_TRAINING),
    Claim("markov_excess", "excess", "chains of 3 symbols, start symbol: cross-entropy less that of Bayes, nats a symbol", 0.01, 0.0, 0.02, CHOSEN, value("excess"), "markov", scale="nonnegative", control=ONE_LAYER, tier="main", **BY_EDELMAN),
    Claim("markov_excess_no_start", "excess", "chains of 3 symbols, no start symbol: cross-entropy less that of Bayes", 0.036, 0.02, 0.05, CHOSEN, value("excess"), "no_start", scale="nonnegative", control=ONE_LAYER, **BY_US),
    Claim("markov_one_layer_excess", "excess", "chains of 3 symbols, one layer: cross-entropy less that of Bayes", 0.105, 0.08, 0.13, TEXT, value("excess"), "markov_one_layer", scale="nonnegative", control=Rival("two layers", runs=("markov",)), **BY_EDELMAN),
    Claim("markov_small_tables_later", "plateau", "layer norm, tables of standard deviation .02: log2 of the step from which on Bayes is the nearest, less that at 1/sqrt(d)", 1.0, 0.3, UNBOUNDED, CHOSEN, measures.log2_later_bigrams, "small_tables", "full", "large_tables", scale="linear", spacing=0.2, infinite="Bayes never is the nearest by the end", **BY_US, **IS_OVER_TRAINING),
    # is it Bayes, and with which prior?
    Claim("markov_implied_alpha", "prior", "trained on chains of alpha = 1: the alpha that predictions imply", 1.4, 1.1, 1.8, CHOSEN, measures.implied_alpha, "markov", control=Rival("trained on chains of alpha = .3", runs=("sparse_chains",)), **BY_US),
    Claim("markov_implied_alpha_sparse", "prior", "trained on chains of alpha = .3: the alpha that predictions imply", 0.45, 0.25, 0.8, CHOSEN, measures.implied_alpha, "sparse_chains", "full", control=Rival("trained on chains of alpha = 1", runs=("markov",)), **BY_US),
    Claim("markov_implied_alpha_dense", "prior", "trained on chains of alpha = 3: the alpha that predictions imply", 3.5, 2.4, 6.0, CHOSEN, measures.implied_alpha, "dense_chains", "full", control=Rival("trained on chains of alpha = 1", runs=("markov",)), **BY_US),
    Claim("markov_head_is_nearer", "prior", "KL from Bayes to the model over that from the best linear induction head with a constant", 1.6, 1.1, 3.0, CHOSEN, measures.distance_over("induction_constant"), "markov", control=Without("two predictors are compared on the same model"), **BY_US),
    Claim("markov_other_prior_sparse", "prior", "on chains of alpha = .3: excess over Bayes of alpha = 1, the trained one, over that over Bayes of alpha = .3", 0.5, 0.0, 0.8, CHOSEN, measures.own_over_theirs("0.3"), "markov", scale="nonnegative", control=Rival("trained on chains of alpha = .3, which are its own: 1", runs=("sparse_chains",)), **BY_US),
    Claim("markov_longer_contexts", "longer", "sequences of twice the trained length: excess over Bayes at later positions over that at trained ones", 1.7, 1.0, 3.0, CHOSEN, measures.beyond_over_trained, "markov", control=Without("positions of one model are compared"), **BY_US),
    # phases and the local learning coefficient
    Claim("markov_llc_plateaus", "llc", "chains of 3 symbols, over training: share of LLCs that depend neither on the pull to the weights nor on the temperature", 0.0, 0.0, 0.2, CHOSEN, measures.plateau_share, "developing", "full", scale="fraction", control=Without("it says of estimates whether another claim may be made of them"), **BY_US),
    Claim("markov_llc_phases", "llc", "chains of 3 symbols, over training, of LLCs that depend on neither: distance of their changes to the phases' boundaries, in log2 of the step, less that of changes placed by chance", -0.5, -UNBOUNDED, -0.1, "expectation", measures.change_beyond_chance, "developing", "full", scale="linear", control=Without("what chance gives is taken off"), **BY_US),
    # pools of chains
    Claim("markov_turn_of_pools", "pools", "log2 of the number of chains at which a decoder is as near to Bayes as to the pool's posterior", 3.1, 2.0, 4.0, CHOSEN, measures.log2_turn, "pools_of_chains", "full", scale="linear", infinite="it never infers", control=Without("pools of other sizes are the control"), **BY_US),
    Claim("markov_few_chains", "pools", "4 chains: log of KL from the pool's posterior to the model over KL from Bayes", -0.8, -UNBOUNDED, -0.2, CHOSEN, measures.at(FEW, measures.log_ratio), "pools_of_chains", "full", scale="linear", control=Rival("64 chains", measure=measures.at(MANY, measures.log_ratio)), **BY_US),
    # triggers
    Claim("triggers_accuracy", "triggers", "language with triggers: accuracy after triggers that came before", 0.87, 0.75, 0.98, TEXT, value("trigger_accuracy"), "triggers", "full", scale="fraction", control=Rival("one layer, trained as long", runs=("triggers_one_layer",)), tier="main", **BY_BIETTI),
    Claim("triggers_one_layer", "triggers", "language with triggers, one layer: accuracy after triggers that came before", 0.42, 0.1, 0.6, TEXT, value("trigger_accuracy"), "triggers_one_layer", "full", scale="fraction", control=Rival("two layers", runs=("triggers",)), **BY_BIETTI),
    # text
    Claim("text_bigrams", "text", "text: least bigram divergence over training, nats", 0.38, 0.25, 0.5, TEXT, measures.least_bigram_divergence, "text", "full", **BY_HOOGLAND, **IS_OVER_TRAINING),
    Claim("text_positions", "text", "text: first step at which positions matter by .05 nats, over that of the least bigram divergence", 1.3, 0.5, 2.0, TEXT, measures.positions_over_bigrams, "text", "full", infinite="positions never matter", **BY_HOOGLAND, **IS_OVER_TRAINING),
    Claim("text_ngrams", "text", "text: score of 4-grams at the end over that at the least bigram divergence", 1.6, 1.2, UNBOUNDED, TEXT, measures.score_since_bigrams(4), "text", "full", **BY_HOOGLAND, **IS_OVER_TRAINING),
    Claim("text_kneser_ney", "text", "text: cross-entropy less that of Kneser-Ney of order 3, nats a symbol", 0.17, 0.0, 0.35, CHOSEN, measures.over_kneser_ney(3), "text", "full", scale="linear", control=Rival("Kneser-Ney of order 2", measure=measures.over_kneser_ney(2)), **BY_US),
    Claim("text_icl", "text", "text: ICL score less that of Kneser-Ney of order 4 on the same windows, nats", -0.04, -0.1, 0.02, CHOSEN, measures.last("icl_score_minus_kneser_ney_4"), "text", "full", scale="linear", **BY_US, control=Without("the null, that of Kneser-Ney, is taken off")),
    Claim("text_prefix", "text", "text: prefix matching of the best head", 0.02, 0.0, 0.1, CHOSEN, measures.best_head("prefix_matching"), "text", "full", scale="fraction", control=Rival("text with random symbols that come again after 8 to 65 others", runs=("text_repeats",), later=True), **BY_US),
    Claim("control_prefix", "text", "text with random symbols that come twice: prefix matching of the best head", 0.9, 0.8, 1.0, CHOSEN, measures.best_head("prefix_matching"), "text_control", "full", scale="fraction", control=Rival("text alone", runs=("text",)), tier="main", **BY_US),
    Claim("repeats_prefix", "text", "text with random symbols that come again after 8 to 65 others: prefix matching of the best head", 0.87, 0.8, 1.0, CHOSEN, measures.best_head("prefix_matching"), "text_repeats", "full", scale="fraction", control=Rival("text alone", runs=("text",)), **BY_US),
    Claim("repeats_copies", "text", "text with random symbols that come again after 8 to 65 others: share of the symbols that come again that are the most likely", 0.99, 0.9, 1.0, CHOSEN, measures.last("copy_accuracy"), "text_repeats", "full", scale="fraction", control=Rival("text alone", runs=("text",)), **BY_US),
    # the open question
    Claim("long_prefix", "long", "text, 68 million symbols: prefix matching of the best head", 0.05, 0.0, 0.2, CHOSEN, measures.best_head("prefix_matching"), "text_long", "full", scale="fraction", control=Rival("text with random symbols that come again after 8 to 65 others", runs=("text_repeats",)), **BY_US),
    Claim("long_previous", "long", "text, 68 million symbols: attention to the previous symbol of the best head, on random symbols", 0.3, 0.15, 0.6, CHOSEN, measures.best_head("previous_token"), "text_long", "full", scale="fraction", control=Rival("uniform attention", measure=measures.last("null_previous_token")), **BY_US),
    Claim("long_icl", "long", "text, 68 million symbols: ICL score less that of Kneser-Ney of order 4 on the same windows, nats", -0.05, -0.15, 0.02, CHOSEN, measures.last("icl_score_minus_kneser_ney_4"), "text_long", "full", scale="linear", **BY_US, control=Without("the null, that of Kneser-Ney, is taken off")),
)
# fmt: on
