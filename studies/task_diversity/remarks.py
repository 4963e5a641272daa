"""What limits a claim that was not reproduced, by its name: a sentence or two, written after it was measured."""

from __future__ import annotations

# fmt: off
REMARKS = {
    "quick_dip": "5000 steps are too few to turn far: the losses rise by .007 to .015. After 20 000 steps they do (`transient_8`), and more at a constant learning rate (`transient_long_8`).",
    "some_tasks": "It is on its way: Delta to dMMSE falls to .15 to .2 of the distance between the predictors after 20 000 steps, from .3 to .35 after 5000, and its loss on fresh tasks rises meanwhile.",
    "two_blocks": "Two blocks of 32 channels cannot come as near: four do in a quarter of the steps. So the study's models have four.",
    "exponent": "With 20 000 steps only M = 8, 16 and 32 turn before the end and after the beginning; three points a seed, on a grid of 1000 steps, give .22 to .50.",
    "later": "On the floor of a flat valley noise decides where the least loss is: t_crit is 10 000 to 13 000 for 8 tasks, 7000 to 18 000 for 16. Below them it does grow: 4 tasks never come nearer to ridge.",
    "later_long": "As above: on a grid of 1000 steps and at a constant learning rate the least loss lies where noise puts it.",
    "barrier_few": "The barrier on the line does not tell them apart at this size: a model of 4 tasks is much worse on fresh tasks, so that the chord it is measured from is high; the losses along the lines are in the figure.",
    "smoothing": "With 64 tasks the best smoothing is about 1, the tasks' own scale, which is nearly ridge (a loss of .39 beside ridge's .38); a model of 20 000 steps, at .44, is not that near.",
    "paths_order": "The order of 16 and 256 tasks is not the expected one at this size: both are near ridge halfway.",
    "decay_threshold": "At .1, over 5000 steps, weight decay of the blocks' kernels makes no difference that three seeds would show (4 % either way); the paper goes over three orders of magnitude and a hundred times as many steps.",
    "decay_loss": "As above.",
    "width": "The other way round at this size: after 5000 steps the narrowest model is the furthest from ridge, for it has learnt least.",
    "laplace_infinite": "After 5000 steps the model is further from both than they are from each other, and still nearer to ridge.",
    "components": "With 10 models of 49 records each, most of the variance is that some become dMMSE and others ridge; the paper has more models and records.",
}
# fmt: on
