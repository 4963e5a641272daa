"""The facts that the claims state, each with its claims: those of one fact do not confirm each other."""

from __future__ import annotations

from icl_lab.studies.languages.runs import CODES, PAIRS

FLAWS = ("with_context", "without_index", "without_hash", "without_query", "without_swing")

# fmt: off
FACTS: dict[str, tuple[str, ...]] = {
    # negatives that need the context
    "A linear layer uses its context where the negatives need it.": ("sound_over_no_context", "sound_over_shuffled", "sound_context_free"),
    "A linear layer uses its context with every code and number of pairs.": tuple(f"grid_{code}_{pairs}" for code in CODES for pairs in PAIRS),
    "On trained languages a linear layer is better than ridge regression.": ("sound_over_ridge",),
    "A linear layer becomes the optimum of one layer.": ("sound_at_optimum", "sound_optimum_cosine", "sound_way", "pools_ratio"),
    "A linear layer on strings is no step of gradient descent.": ("sound_gd_cosine",),
    "On unseen languages a linear layer trained on three is worse than ridge regression.": ("sound_unseen",),
    # published negatives, published setting
    "The published negatives need no context.": ("hash_no_context", "hash_shuffled", "hash_context_free"),
    "The published layer is no better than a classifier without context.": ("published_accuracy", "published_no_context"),
    "The published layer is no step of gradient descent.": ("published_construction", "published_fitted", "published_gd_cosine"),
    "The published code of symbols, and no other flaw, limits the accuracy.": tuple(f"{flaw}_accuracy" for flaw in FLAWS),
    # other strings, codes, depths and models
    "Near misses are not told apart by the context.": ("near_miss_labels",),
    "On an autoencoder's codes a linear layer is better than ridge regression.": ("autoencoder_over_ridge",),
    "The autoencoder decodes unseen strings.": ("autoencoder_accuracy",),
    "On codes that are states of automata a linear layer is nearly always right.": ("states_accuracy",),
    "A learned embedding is worse than fixed codes.": ("learned_over_codes",),
    "More linear layers have a lower loss.": ("two_layers", "three_layers"),
    "A softmax transformer is slightly better than the optimum of one linear layer.": ("softmax_accuracy",),
    "On unseen languages a softmax transformer is worse than ridge regression.": ("softmax_unseen",),
    # how many languages are trained on
    "On unseen languages a linear layer trained on one is worse than ridge regression.": ("one_language_unseen",),
    "On unseen languages a linear layer trained on many is better than ridge regression.": ("many_languages_unseen",),
    "A linear layer does not memorise many languages.": ("linear_memory",),
    "A linear layer is far from the posterior over the trained languages.": ("linear_version_space",),
    "A softmax transformer memorises few languages.": ("softmax_memory_few",),
    "A softmax transformer does not memorise many languages.": ("softmax_memory_many",),
}
# fmt: on
