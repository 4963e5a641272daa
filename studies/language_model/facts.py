"""The facts that the claims state, each with its claims: those of one fact do not confirm each other."""

from __future__ import annotations

# fmt: off
FACTS: dict[str, tuple[str, ...]] = {
    "A decoder of Markov chains passes through phases: uniform, unigrams, bigrams.": ("markov_phases", "markov_bigram_step"),
    "With a start symbol two layers are nearly as good as Bayes, and without it less.": ("markov_excess", "markov_excess_no_start"),
    "Small tables of symbols and positions lengthen the plateau of the unigrams.": ("markov_small_tables_later",),
    "One layer of attention does not infer transitions.": ("markov_one_layer_excess",),
    "The prior that a decoder infers by is near the one it was trained on, and a little flatter.": ("markov_implied_alpha", "markov_implied_alpha_sparse", "markov_implied_alpha_dense"),
    "A decoder keeps its prior on chains of another, and is farther from Bayes beyond the trained length.": ("markov_other_prior_sparse", "markov_longer_contexts"),
    "A decoder is nearer to a linear induction head than to Bayes.": ("markov_head_is_nearer",),
    "While a decoder passes through its phases, no LLC is on a plateau.": ("markov_llc_plateaus",),
    "The LLC changes where a phase ends.": ("markov_llc_phases",),
    "A decoder of few chains retrieves them, and one of many infers.": ("markov_turn_of_pools", "markov_few_chains"),
    "Two layers learn what triggers are followed by, one layer does not.": ("triggers_accuracy", "triggers_one_layer"),
    "On text bigrams come first, then positions and longer n-grams.": ("text_bigrams", "text_positions", "text_ngrams"),
    "At the end a decoder of text is behind counts of three symbols.": ("text_kneser_ney",),
    "Where random symbols come again after as many others always, a head looks at what followed before.": ("control_prefix",),
    "Where random symbols come again after varying numbers of others, a head looks at what followed before.": ("repeats_prefix", "repeats_copies"),
    "On text no induction appears after a few passes through it.": ("text_icl", "text_prefix"),
    "On text no induction appears after ten times as many symbols.": ("long_prefix", "long_icl"),
    "On text a head comes to attend to the previous symbol.": ("long_previous",),
}
# fmt: on
