"""What limits a claim that was not reproduced, by its name: a sentence or two, written after it was measured."""

from __future__ import annotations

# fmt: off
REMARKS: dict[str, str] = {
    "narrow_variance": "In all five runs the first component has more of the variance than in most walks that take the same steps in another order, .80 against .66 on average: training keeps its direction for longer than a walk. With 107 checkpoints instead of 67 the share of walks was .898 [.759, 1], undecided.",
    "linear_llc": "Seed 10 has no checkpoint in the last third whose chains are healthy, so that there is no number for all eight; of the other seven it is 2.53, from 2.28 to 3.00.",
    "linear_alignment_20": "Two of five runs have fewer than five healthy checkpoints at this setting, which was calibrated at N = D = 10; the other three have -.05, -.18 and .58.",
    "regression_stage": "One of three runs has a stage that differs from its nulls at all unsaturated settings; the other two have none. Three seeds of 70 000 steps of 64 sequences; the paper has 500 000 of 256.",
    "decline_is_norm": "The LLC falls by .52, .64 and .67 of what the growth of the weights alone would make of it: the norm explains the direction, and more than the whole fall. Five seeds would decide.",
    "regression_forms": "In two runs a third of random walks with the same steps have as many forms, in one nearly all: no sign that forms are more than a walk's.",
    "linear_layers_stage": "It could not be asked: from step 490 on no checkpoint is healthy at both settings, which were calibrated for one layer, and five of eight runs have fewer than the six that stages need. It wants settings of its own.",
    "linear_layers_turn": "As of its stages: after the largest cosine no checkpoint is healthy at the settings of one layer.",
}
# fmt: on
