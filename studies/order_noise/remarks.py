"""What limits a claim that was not reproduced, by its name: a sentence or two, written after it was measured."""

from __future__ import annotations

# fmt: off
REMARKS: dict[str, str] = {
    "steps_loss_easy2hard": "After 5000 steps the loss lies .013 to .028 above the prediction: the step sizes are a little flatter than the best ones.",
    "steps_read_deeper": "Three layers do more than one step: one with a size for each position explains .59 to .94 of their predictions. In four of eight runs its sizes are the predicted ones (R^2 .95 to .99), in four they are not (-.55 to .71).",
    "steps_read_smallnorm2largenorm": "The predicted step sizes differ less by position than in the other orders, so that deviations of .06 weigh more; the first positions take smaller steps than predicted.",
    "closing_steps_short": "The step sizes read from the models have a seventh of the excess: the models take nearly the best ones, and lose elsewhere.",
    "closing_share_long": "At a constant rate models go on: after 15 000 steps each of eight seeds changes more than the best step sizes, by 7 to 13 %.",
    "closing_excess_long": "All eight seeds are better than any step with a size for each position, by 1.3 to 2.3 %: they do more than such a step.",
    "closing_steps_long": "There is no excess to be shared: the models are better than the best step sizes.",
    "closing_steps_annealed": "The excess is about 0, so a share of it says nothing.",
}
# fmt: on
