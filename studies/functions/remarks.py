"""What limits a claim that was not reproduced, by its name: a sentence or two, written after it was measured."""

from __future__ import annotations

# fmt: off
REMARKS: dict[str, str] = {
    "linear_error": "In the last 5000 of 20 000 steps the error still falls, to .48 to .77 of what it was. Seeds end at .017 to .054.",
    "linear_error_late": "The error still falls when training ends (`linear_error`). It is largest after D + 2 pairs: .054 to .117.",
    "noisy_excess": "The excess is largest after six pairs, and .026 to .031 after ten.",
    "sparse_over_lasso": "The model's errors are those of least squares, which knows nothing of sparsity: .52 and .50 to .53 after five pairs. It is better than the lasso only after one pair and two.",
    "tree_over_boosting": "In the last 5000 of 20 000 steps the error falls from .26 to .29 to .20 to .25. Boosted trees on the inputs themselves, as the paper has them, err more than the model: .37 to .45.",
    "tree_excess": "The error still falls when training ends (`tree_over_boosting`).",
    "network_over_adam": "The model's error is .075 to .089 after 40 pairs, that of the network by Adam .02 to .03, as of arc-cosine regression. In the last 5000 steps the model's falls by a tenth or less.",
    "conjunctions_excess": "The excess is .04 to .06 after five pairs and .07 to .11 from eight on. The paper says near to the optimum; our range is narrow.",
    "further_least_gain": "The least is that of quadratic functions. The other seven classes have .76 (sign vectors) to .99 (prototypes).",
    "parities_learnt": "On the 24 parities of training the runs gain .05 of what Bayes gains: these are not learnt either.",
    "shift_quadrants": "Three of eight seeds are below .1, the others at .10 to .15.",
    "shift_subspace": "The excess is as large as without the shift. Our inputs lie in two of five dimensions.",
    "shift_skewed": "The excess is twice as large as without the shift. Two of eight seeds are above .1.",
    "curriculum_sooner": "Six of eight runs on all inputs come to the error in 10 000 steps, three of eight with a curriculum. All inputs are in use from step 4000 on. Runs with D = 10 have a short plateau: the errors of most fall before step 2500. The paper's have D = 20.",
    "half_quadratic": "The quotient is lowest with 16 or 64 functions, .53 to .69 by seed. With 16 or more models gain .44 to .62 of what Bayes gains.",
}
# fmt: on
