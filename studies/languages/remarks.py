"""What limits a claim that was not reproduced, by its name: a sentence or two, written after it was measured."""

from __future__ import annotations

# fmt: off
REMARKS: dict[str, str] = {
    "sound_gd_cosine": "An untrained network has .008. That the trained one is no step of gradient descent is shown by what it is instead: `sound_optimum_cosine`.",
    "sound_unseen": "An untrained network has 1.4 times ridge regression's loss on these languages: the trained one is further from it than before training.",
    "published_fitted": "So is an untrained network: its predictions, like the trained one's, have nothing of a fitted step in them.",
    "softmax_unseen": "An untrained network is .25 below ridge regression.",
    "one_language_unseen": "An untrained network has 1.16 times ridge regression's loss, one trained on a single language 1.6 times.",
    "linear_version_space": "An untrained network is .51 above the posterior over the languages; training takes a fifth of that.",
    "linear_memory": "A network that is not trained has the same loss on both, a ratio of 1. That the layer beats ridge regression on unseen languages is claimed apart (`many_languages_unseen`).",
    "softmax_memory_many": "A network that is not trained has the same loss on both, a ratio of 1; after ten languages the trained one has 1.80 (`softmax_memory_few`).",
    "sound_at_optimum": "24 of 40 runs; the others are stuck above it (see the loss over training). Of the first eight seeds six were not.",
    "hash_context_free": "The prototype's parts are not defined in its table. Here the context-free part is the mean over contexts of other tasks, which the labels' term has too.",
    "with_context_accuracy": "Higher than expected, and than with the published negatives (.71): on its own codes the published layer does learn from its context, if the negatives ask for it.",
    "without_query_accuracy": "One of five runs ends at .54: at this initialisation and learning rate the loss falls from 10^6, and not all runs get down.",
    "pools_ratio": "Means over four pools for each seed: 1.06, .93, .93. Runs stick in local minima on some pools, as on the first (`sound_at_optimum`), and three seeds do not average that out.",
    "learned_over_codes": "Three runs, 1.64, .63 and .30 times: an embedding trained with the layer can be far better than fixed codes or worse; three runs of 2000 steps do not say which.",
    "many_languages_unseen": "Every run is below ridge regression, from .93 to .98; the interval's end leaves the range by .005.",
    "states_accuracy": "Two of five runs stay at .92 to .93, local minima; the other three reach .99.",
}
# fmt: on
