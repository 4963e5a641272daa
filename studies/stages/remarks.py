"""What limits a claim that was not reproduced, by its name: a sentence or two, written after it was measured."""

from __future__ import annotations

# fmt: off
REMARKS: dict[str, str] = {
    "measured_by_loss_linear": "The mean of other seeds at the same step explains as much, for all seeds develop alike.",
    "measured_curvatures_one_task": "By seed .2 to .83 of five to seven usable checkpoints.",
    "measured_by_curvature_one_task": "In six seeds .94 to .997, in seeds 2415 and 2417 .63 and .77.",
    "measured_by_loss_one_task": "Other seeds' mean LLC at the same step explains .69 of it, with an interval from .48 to .90 that reaches into the range: seeds develop alike.",
    "measured_annealed_one_task": "In seven seeds the change is the rise from an early checkpoint, whose LLC is below zero in six (-15 to -1), so it is no minimum; once the rate has fallen to 0, .03 to .21 of the rise is left in six and .76 in one. In seed 2415 it is the later fall, of which .79 is left.",
    "measured_curvatures_two_tasks": "By seed 0 to .5 of 4 to 7 usable checkpoints; where the verdict is another, the intervals are too wide to say.",
    "measured_by_curvature_two_tasks": "In seven seeds .69 to .997; in seed 2425 five of fourteen checkpoints were sampled, and six are needed.",
    "measured_beyond_two_tasks": "Seed 2427 alone has such changes, two that begin at step 50: the LLC is -16.6 there and the prediction -27.8, so the checkpoint is no minimum.",
    "measured_false_by_loss_linear": "By seed 0 to 2 of 25 curves.",
    "two_tasks_cost": "At the end two tasks have 1.09 to 1.32 times the LLC of one; at its largest, near step 400, it is 2.5 times.",
    "narrow_variance": "In seven of eight runs the first component has more of the variance than in 97 % of walks that take the same steps with random signs, .78 against .66 on average: steps agree with those before them. It is no walk, which is not to say that it has stages.",
    "narrow_forms": "The runs have 12 to 16 forms and walks of their steps 11 to 12 on average: a few more, and too few to tell the two apart.",
    "linear_alignment": "Runs approach gradient descent along nearly the same curve, so another seed's cosine predicts the LLC nearly as well as the run's own.",
    "linear_layers_turn": "In six of eight runs the LLC rises while the cosine falls more than it does beside another seed's cosine; in seeds 11 and 14 it does not.",
    "linear_alignment_20": "As with ten inputs: another seed's cosine predicts the LLC as well as the run's own.",
    "decline_is_norm": "The LLC falls by .39, .61 and .70 of the fall that weight growth alone predicts (trained on a CPU, with other records: .52, .64 and .67): the norm explains the sign and overpredicts the size.",
    "decline_is_norm_and_loss": "By .48, .76 and .82 of what the norm and the loss predict, which is nearer to 1 and still less.",
    "regression_variance": "The first component has .81 to .84 of the variance, walks of the same steps .75: steps agree with those before them. It is no walk, which is not to say that it has stages.",
    "decline": "The fall does not need the schedule: at a constant rate of the same mean the LLC falls by .20 to .26 of its largest, with the schedule by .20 to .33.",
    "decline_without_norms": "Without layer norms all chains diverge at the published setting, within 39 to 90 draws, so that there is no LLC to fall.",
    "icl_score": "The last position's loss is .40 to .54 and the first's 3.84 to 4.14. Seed 0, with 3.30, is alone below the range.",
    "last_llc": "The LLC is near the published curve until step 80 000 and then falls to 90 to 99, below all of the paper's seeds (116 to 141). Batches have 64 sequences; the paper's 256 are not run yet.",
    "losses_by_position": "Seeds differ from the one seed that is published by 8 to 18 %, three of five most at the last position, which has .40 to .54 and the paper's seed .48.",
    "peak_moves": "The largest LLC is at step 10 622 to 14 544, 21 400 and 25 983 to 45 237, at .21, .11 and .09 of the schedule: later in steps, earlier in share. The curve is flat there and its checkpoints a factor of 1.5 apart, so that one more decides the exponent.",
    "icl_moves": "Half of the score is reached at step 1886 to 2207, 3229 to 3835 and 5923: as at equal integrals of the learning rate. A third seed that differed by one record widens the interval.",
    "llc_orders_tasks": "In two seeds the LLC rises with M up to 64; in the third 16 tasks have 9.3 and 64 have 9.1. From 16 tasks on LLCs differ by less than seeds do.",
    "llc_with_distance": "One of three runs has four usable checkpoints, too few for a partial correlation; the others have -.37 and .24.",
    "llc_of_few": "By seed .37, .55 and .86 of it, each on four tasks of its own.",
    "llc_of_some": "By seed .86, .97 and 1.00: 64 tasks have about the LLC of infinitely many.",
}
# fmt: on
