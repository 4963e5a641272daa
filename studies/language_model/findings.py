"""The findings that the page of sequences of symbols begins with."""

from __future__ import annotations

from icl_lab.studies.findings import Finding, Statement

FINDINGS: tuple[Finding, ...] = (
    Finding(
        "phases",
        "phases",
        (
            Statement(
                "markov_phases",
                "in {value} a decoder is nearest to the uniform distribution, then to the context's unigrams, and "
                "then to Bayes",
                "Phases follow each other",
            ),
            Statement(
                "markov_bigram_step",
                "Bayes is the nearest from step {also} on",
                also=lambda logarithm: 2**logarithm,
            ),
        ),
    ),
    Finding(
        "excess",
        "excess",
        (
            Statement(
                "markov_excess",
                "after 1500 steps the cross-entropy of two layers is {value} nats a symbol above that of Bayes",
                "Two layers are nearly Bayes",
            ),
            Statement(
                "markov_excess_no_start",
                "without a start symbol, which serves as the prior's pseudo-count, it is {value}",
            ),
            Statement("markov_one_layer_excess", "one layer, {value}", "One layer cannot infer transitions"),
        ),
    ),
    Finding(
        "prior",
        "prior",
        (
            Statement(
                "markov_implied_alpha",
                "the prior that predictions imply has alpha {value} where chains had 1",
                "A decoder infers by a prior that is a little flatter than the true one",
            ),
            Statement("markov_implied_alpha_sparse", "{value} where they had .3"),
            Statement("markov_implied_alpha_dense", "{value} where they had 3"),
            Statement(
                "markov_head_is_nearer",
                "KL from Bayes to the model is {value} times that from the best linear induction head with a constant",
                "It is nearer to an induction head than to Bayes",
            ),
        ),
    ),
    Finding(
        "pools",
        "pools",
        (
            Statement(
                "markov_turn_of_pools",
                "a decoder is as near to Bayes as to the posterior of its pool's chains at {also} chains",
                "Few chains are retrieved, many inferred",
                also=lambda logarithm: 2**logarithm,
            ),
        ),
    ),
    Finding(
        "triggers",
        "triggers",
        (
            Statement(
                "triggers_accuracy",
                "after triggers that came before, two layers are right in {value}",
                "Two layers learn an induction head",
            ),
            Statement("triggers_one_layer", "one layer in {value}"),
        ),
    ),
)
