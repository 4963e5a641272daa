"""The claims of languages, as data: what a linear layer does with codes of strings. All are this laboratory's.

Ranges were fixed before the runs that they judge were trained. "prototype": numbers of an independent prototype
with another sampler of strings; "ours": our choice after pilot runs of seed 0.
"""

from __future__ import annotations

from typing import Any

from icl_lab.studies.claim import OURS, UNBOUNDED, Claim, Rival, Without
from icl_lab.studies.languages import measures
from icl_lab.studies.languages.runs import CODES, NEGATIVES, NUMBERS, PAIRS

PROTOTYPE, CHOSEN = "prototype", "ours"
BY_US: dict[str, Any] = {"about": "ours", "paper": OURS}
NO_NETWORK: dict[str, Any] = {"control": Without("it compares predictors that are not trained")}


def _grid() -> tuple[Claim, ...]:
    """A claim for each code and number of pairs: the context is used where the negatives ask for it."""
    needed = NEGATIVES.index("other_language")
    return tuple(
        Claim(
            f"grid_{code}_{pairs}",
            "grid",
            f"{code} codes of 8 channels, N = {pairs}, negatives other_language: accuracy less that of a linear classifier without context",
            0.4,
            0.2,
            0.6,
            CHOSEN,
            measures.at(needed, measures.difference("accuracy", "no_context_accuracy")),
            f"grid_{code}_{pairs}",
            "full",
            scale="difference",
            **BY_US,
        )
        for code in CODES
        for pairs in PAIRS
    )


ONE, TEN, MOST = (NUMBERS.index(number) for number in (1, 10, 300))

# fmt: off
CLAIMS: tuple[Claim, ...] = (
    # the sound setting: members of other languages as negatives, which need the context
    Claim("sound_over_no_context", "accuracy", "negatives other_language: accuracy of one linear layer less that of a linear classifier without context", 0.44, 0.4, 0.506, PROTOTYPE, measures.difference("accuracy", "no_context_accuracy"), "sound_main", scale="difference", **BY_US, control=Rival("ridge regression", measures.difference("ridge_accuracy", "no_context_accuracy")), tier="main"),
    Claim("sound_over_ridge", "accuracy", "negatives other_language: accuracy of one linear layer less ridge regression's", 0.1, 0.05, 0.5, CHOSEN, measures.difference("accuracy", "ridge_accuracy"), "sound", scale="difference", **BY_US),
    Claim("sound_over_shuffled", "accuracy", "negatives other_language: accuracy of one linear layer less that with the context's labels in another order", 0.3, 0.2, 0.6, CHOSEN, measures.difference("accuracy", "shuffled_accuracy"), "sound", scale="difference", **BY_US),
    Claim("sound_at_optimum", "optimum", "negatives other_language: share of runs whose loss is at most 1.02 times that of the optimum of one layer", 0.7, 0.5, 1.0, CHOSEN, measures.reaches("optimum_ratio", 1.02), "sound_main", scale="share", **BY_US, control=Rival("gradient descent, fitted step", measures.reaches_over("gd_loss", "optimum_loss", 1.02)), tier="main"),
    Claim("sound_gd_cosine", "match", "negatives other_language: cosine of sensitivities with one step of gradient descent, fitted step", 0.65, 0.0, 0.8, CHOSEN, measures.value("gd_cosine"), "sound", scale="fisher", **BY_US),
    Claim("sound_optimum_cosine", "match", "negatives other_language: cosine of sensitivities with the optimum of one layer", 0.98, 0.95, 1.0, CHOSEN, measures.value("optimum_cosine"), "sound_main", scale="fisher", **BY_US, cut=0.983),
    Claim("sound_way", "match", "negatives other_language: share of the way from gradient descent's loss to that of the optimum of one layer", 1.0, 0.9, 1.2, CHOSEN, measures.value("way_to_optimum"), "sound", scale="linear", **BY_US),
    Claim("sound_unseen", "unseen", "trained on three languages, tested on three others: loss of one linear layer over ridge regression's", 1.5, 1.1, UNBOUNDED, CHOSEN, measures.over("loss", "ridge_loss", "unseen"), "sound", **BY_US),
    # the published negatives, which need none
    Claim("hash_no_context", "accuracy", "negatives random_hash: accuracy of a linear classifier without context less ridge regression's", 0.095, 0.05, 0.2, PROTOTYPE, measures.difference("no_context_accuracy", "ridge_accuracy"), "hash", scale="difference", **BY_US | NO_NETWORK),
    Claim("hash_shuffled", "accuracy", "negatives random_hash: accuracy of one linear layer with the context's labels in another order", 0.864, 0.8, 0.92, PROTOTYPE, measures.value("shuffled_accuracy"), "hash", scale="fraction", **BY_US),
    Claim("hash_context_free", "parts", "negatives random_hash: root mean square of the context-free part of predictions over that of the contextual part", 2.27, 1.5, 3.5, PROTOTYPE, measures.over("context_free", "contextual"), "hash", **BY_US),
    Claim("sound_context_free", "parts", "negatives other_language: root mean square of the context-free part of predictions over that of the contextual part", 0.1, 0.0, 0.3, CHOSEN, measures.over("context_free", "contextual"), "sound", **BY_US),
    # the published setting
    Claim("published_accuracy", "accuracy", "published setting: accuracy", 0.75, 0.65, 0.8, PROTOTYPE, measures.value("accuracy"), "published", scale="fraction", **BY_US),
    Claim("published_no_context", "accuracy", "published setting: accuracy less that of a linear classifier without context, on the same codes", 0.0, -0.05, 0.05, CHOSEN, measures.difference("accuracy", "no_context_accuracy"), "published", scale="difference", **BY_US),
    Claim("published_construction", "match", "published setting: root mean square difference of predictions from the published construction's, over their own root mean square", 300.0, 30.0, UNBOUNDED, PROTOTYPE, measures.published_match, "published", **BY_US),
    Claim("published_fitted", "match", "published setting: root mean square difference of predictions from those of gradient descent with a fitted step, over their own root mean square", 1.0, 0.7, 1.4, CHOSEN, measures.fitted_match, "published", **BY_US),
    Claim("published_gd_cosine", "match", "published setting: cosine of sensitivities with one step of gradient descent, fitted step", 0.1, -0.3, 0.5, CHOSEN, measures.value("gd_cosine"), "published", "full", scale="fisher", control=Rival("the same with negatives that need the context", runs=("sound",)), **BY_US),
    Claim("with_context_accuracy", "flaws", "published setting with negatives that need the context: accuracy", 0.6, 0.5, 0.7, CHOSEN, measures.value("accuracy"), "with_context", "full", scale="fraction", **BY_US),
    Claim("without_index_accuracy", "flaws", "published setting with whitened one-hot codes: accuracy", 0.88, 0.82, 0.95, CHOSEN, measures.value("accuracy"), "without_index", "full", scale="fraction", **BY_US),
    Claim("without_hash_accuracy", "flaws", "published setting without pads inside negatives: accuracy", 0.65, 0.55, 0.75, CHOSEN, measures.value("accuracy"), "without_hash", "full", scale="fraction", **BY_US),
    Claim("without_query_accuracy", "flaws", "published setting, the query not among keys: accuracy", 0.72, 0.65, 0.8, CHOSEN, measures.value("accuracy"), "without_query", "full", scale="fraction", **BY_US),
    Claim("without_swing_accuracy", "flaws", "published setting, one cosine schedule instead of a swinging warm-up: accuracy", 0.75, 0.65, 0.82, CHOSEN, measures.value("accuracy"), "without_swing", "full", scale="fraction", **BY_US),
    # the sound setting with other strings, codes, depths and another model
    Claim("near_miss_labels", "accuracy", "negatives near_miss: accuracy less that with the context's labels in another order", 0.0, -0.02, 0.05, CHOSEN, measures.difference("accuracy", "shuffled_accuracy"), "near_miss", "full", scale="difference", control=Rival("the same with negatives that need the context", runs=("sound",)), **BY_US),
    Claim("pools_ratio", "optimum", "strings of four other pools, means: loss of one linear layer over that of the optimum of one layer", 1.0, 0.85, 1.05, CHOSEN, measures.mean_over(measures.value("optimum_ratio")), "pools", "full", **BY_US),
    Claim("autoencoder_over_ridge", "codes", "codes of an autoencoder, negatives other_language: accuracy of one linear layer less ridge regression's", 0.1, 0.03, 0.5, CHOSEN, measures.difference("accuracy", "ridge_accuracy"), "autoencoder", "full", scale="difference", **BY_US),
    Claim("states_accuracy", "codes", "codes that are states of the languages' automata, negatives other_language: accuracy", 1.0, 0.98, 1.0, CHOSEN, measures.value("accuracy"), "states", "full", scale="fraction", **BY_US),
    Claim("learned_over_codes", "codes", "a learned embedding of symbols: loss over that of one linear layer on whitened one-hot codes", 1.5, 1.0, UNBOUNDED, CHOSEN, measures.over_paired("loss"), "learned", "full", paired="sound", **BY_US),
    Claim("two_layers", "layers", "two linear layers: loss over that of one", 0.8, 0.5, 0.95, CHOSEN, measures.one_over_paired(0, measures.value("loss")), "layers", "full", "sound", **BY_US),
    Claim("three_layers", "layers", "three linear layers: loss over that of one", 0.7, 0.4, 0.95, CHOSEN, measures.one_over_paired(1, measures.value("loss")), "layers", "full", "sound", **BY_US),
    Claim("softmax_accuracy", "softmax", "softmax transformer with MLPs, negatives other_language: accuracy less that of the optimum of one linear layer", 0.03, 0.0, 0.07, CHOSEN, measures.difference("accuracy", "optimum_accuracy"), "softmax", "full", scale="difference", **BY_US),
    Claim("softmax_unseen", "softmax", "softmax transformer with MLPs: accuracy on languages that were not trained on less ridge regression's", -0.2, -0.5, -0.05, CHOSEN, measures.difference("accuracy", "ridge_accuracy", "unseen"), "softmax", "full", scale="difference", **BY_US),
    Claim("autoencoder_accuracy", "codes", "autoencoder: share of the symbols of unseen strings that are decoded as they were", 0.999, 0.99, 1.0, CHOSEN, measures.value("symbol_accuracy"), "autoencoder_itself", scale="fraction", **BY_US),
    *_grid(),
    # how many languages are trained on
    Claim("one_language_unseen", "M", "one random language trained on: loss of one linear layer on unseen languages over ridge regression's", 1.5, 1.1, UNBOUNDED, PROTOTYPE, measures.at(ONE, measures.over("loss", "ridge_loss", "unseen")), "random_linear", "full", **BY_US),
    Claim("many_languages_unseen", "M", "300 random languages trained on: loss of one linear layer on unseen languages over ridge regression's", 0.91, 0.8, 0.98, PROTOTYPE, measures.at(MOST, measures.over("loss", "ridge_loss", "unseen")), "random_linear", "full", **BY_US),
    Claim("linear_memory", "M", "300 random languages: loss of one linear layer on unseen languages over that on the trained ones", 1.01, 0.97, 1.05, PROTOTYPE, measures.at(MOST, measures.unseen_over_trained), "random_linear", "full", **BY_US),
    Claim("linear_version_space", "M", "300 random languages: loss of one linear layer on the trained ones less that of the posterior over them", 0.4, 0.2, 0.6, PROTOTYPE, measures.at(MOST, measures.difference("loss", "version_space_loss")), "random_linear", "full", scale="linear", **BY_US),
    Claim("softmax_memory_few", "M", "ten random languages: loss of the softmax transformer on unseen languages over that on the trained ones", 3.0, 1.5, UNBOUNDED, CHOSEN, measures.at(TEN, measures.unseen_over_trained), "random_softmax", "full", **BY_US),
    Claim("softmax_memory_many", "M", "300 random languages: loss of the softmax transformer on unseen languages over that on the trained ones", 1.05, 0.95, 1.2, CHOSEN, measures.at(MOST, measures.unseen_over_trained), "random_softmax", "full", **BY_US),
)
# fmt: on
