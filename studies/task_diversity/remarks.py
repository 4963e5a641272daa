"""What limits a claim that was not reproduced, by its name: a sentence or two, written after it was measured."""

from __future__ import annotations

# fmt: off
REMARKS = {
    "transient_long_64": "A network that is not trained has no dip either, so the absence of one says nothing by itself. Pools of 8 and 16 tasks at this learning rate do dip (`transient_long_8`, `transient_long_16`).",
    "transient_long_512": "As with 64 tasks: an untrained network has no dip either.",
    "transient_long_infinite": "As with 64 tasks: an untrained network has no dip either.",
    "nearest_ridge_8": "The dip is partial: where the network is nearest to ridge, its distance is .70 of that of dMMSE, and the rule asks for .25. An untrained network is further from ridge than dMMSE is.",
    "nearest_ridge_16": "The dip is partial: where the network is nearest to ridge, its distance is .43 of that of dMMSE, and the rule asks for .25.",
    "quick_dip": "5000 steps are too few to turn far; see `transient_8` (20 000 steps) and `transient_long_8` (constant learning rate).",
    "beyond_the_threshold": "Two networks that are not trained have a ratio of 1 too. That both are near ridge is claimed apart (`many_tasks`, `infinite_tasks`).",
    "quick_infinite": "After the quick profile's 5000 steps one of eight seeds is at .28, the others at .02 to .07; after 20 000 all are near ridge (claim infinite_tasks).",
    "more_training_few_tasks": "Four of five seeds move away from ridge, by 1 to 9 %, one moves closer by 4 %.",
    "transient_16": "Three of five seeds rise by .028 or more, two by .007 and .010; at a constant learning rate all eight do (`transient_long_16`).",
    "paths_fall": "Seeds differ: -.14, .43, .49, .64 and 1.69.",
    "laplace_few": "Eight seeds at .04 to .10 after 5000 steps.",
    "some_tasks": "It is on its way to dMMSE after 20 000 steps: Δ to it was larger after 5000, and the loss on fresh tasks still rises.",
    "two_blocks": "Two blocks of 32 channels come no nearer to ridge, so the study's models have four.",
    "transient_8_smoothed": "Two of five seeds reach .02, the others .005 to .018. At a constant learning rate all eight do (`transient_long_8_smoothed`).",
    "transient_16_smoothed": "One of five seeds reaches .02, the others .003 to .019. At a constant learning rate all eight do (`transient_long_16_smoothed`).",
    "exponent": "Seeds have .22 to .50. Only M = 8, 16 and 32 are nearest to ridge between the first and the last record: three points a seed, 1000 steps apart.",
    "later": "The minimum is flat, so noise decides where the least loss is. Below M = 8 it is different: M = 4 is never nearer to ridge than at its start.",
    "barrier_few": "Seeds have .39 to 1.51, and the same seeds with other rounding .36 to 1.50. A model of 4 tasks is much worse on fresh tasks, so the interpolated endpoint loss that the barrier is measured from is high.",
    "barrier_many": "Lines between untrained networks have no barrier, a ratio of 1, within the range; five seeds have .38 to 1.43.",
    "smoothing": "With 64 tasks the best smoothing is about 1, the tasks' own scale, which makes dMMSE nearly ridge; the model is not that near.",
    "paths_few": "Seeds differ: -.05, .64, .70, .75 and 1.93.",
    "paths_many": "Seeds have .06 to .26; the mean is nearer to ridge than to dMMSE.",
    "paths_order": "At this size models of 16 and of 256 tasks are both near ridge halfway.",
    "recipe": "Training again on other tasks, with the same schedule, changes Δ to ridge more (|log2| .19 against .08), so the number says nothing of the schedule.",
    "decay_threshold": "One weight decay and 5000 steps; the paper's spans three orders of magnitude and a hundred times as many steps.",
    "decay_loss": "One weight decay and 5000 steps; the paper's spans three orders of magnitude and a hundred times as many steps.",
    "width": "After 5000 steps the narrowest model has learnt least, and is the furthest from ridge.",
    "laplace_infinite": "After 5000 steps the model is further from both predictors than they are from each other.",
    "component_of_ood_loss": "The losses of another seed correlate as much, .91: the components follow M and the step, which seeds have in common.",
    "components": "Ten models of 49 records: most of the variance separates models that become dMMSE from those that become ridge. The paper has more models and records.",
}
# fmt: on
