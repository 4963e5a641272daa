"""What limits a claim that was not reproduced, by its name: a sentence or two, written after it was measured."""

from __future__ import annotations

# fmt: off
REMARKS: dict[str, str] = {
    "steps_loss_easy2hard": "After 5000 steps the loss lies .013 to .028 above the prediction: the step sizes are a little flatter than the best ones.",
    "steps_read_deeper": "Three layers do more than one step: one with a size for each position explains .59 to .94 of their predictions. In four of eight runs its sizes are the predicted ones (R^2 .95 to .99), in four they are not (-.55 to .71).",
    "steps_read_smallnorm2largenorm": "The predicted step sizes differ less by position than in the other orders, so that deviations of .06 weigh more; the first positions take smaller steps than predicted.",
}
# fmt: on
