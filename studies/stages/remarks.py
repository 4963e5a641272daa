"""What limits a claim that was not reproduced, by its name: a sentence or two, written after it was measured."""

from __future__ import annotations

# fmt: off
REMARKS: dict[str, str] = {
    "one_task_stage": "In four runs the fitted curve has no plateau between its ends: the LLC falls slowly from step 250 on. The other four rise by 2.4 to 4.5 until step 250 or 400 and then fall by 2.1 to 2.9.",
    "two_tasks_cost": "At the end two tasks have 1.09 to 1.32 times the LLC of one; at its largest, near step 400, it is 2.5 times.",
    "narrow_variance": "In seven of eight runs the first component has more of the variance than in 97 % of walks that take the same steps with random signs, .78 against .66 on average: steps agree with those before them. It is no walk, which is not to say that it has stages.",
    "narrow_forms": "The runs have 12 to 16 forms and walks of their steps 11 to 12 on average: a few more, and too few to tell the two apart.",
    "linear_stage_end": "In five seeds the plateau begins at step 516 to 730, in two at 1320 and 2470, where the fitted curve still rises or falls too steeply before, and in one, whose loss stays on its plateau until step 1500, at 2830.",
    "linear_stage_support": "In two seeds only .46 and .66 of the curves that the LLCs allow have a plateau there: the others go over into the slow fall after it.",
    "linear_alignment": "Runs approach gradient descent along nearly the same curve, so another seed's cosine predicts the LLC nearly as well as the run's own.",
    "linear_layers_stage": "Six of eight runs have one. In seed 9 the fitted curve has no plateau, and in seed 11 a change at one setting is not told from its nulls.",
    "linear_layers_turn": "In six of eight runs the LLC rises while the cosine falls more than it does beside another seed's cosine; in seeds 11 and 14 it does not.",
    "linear_alignment_20": "As with ten inputs: another seed's cosine predicts the LLC as well as the run's own.",
    "decline_is_norm": "The LLC falls by .52, .64 and .67 of the fall that weight growth alone predicts: the norm explains the sign and overpredicts the size. The fall of the loss, which raises the LLC at this setting, is taken into account in `decline_is_norm_and_loss`.",
}
# fmt: on
