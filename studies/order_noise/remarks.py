"""What limits a claim that was not reproduced, by its name: a sentence or two, written after it was measured."""

from __future__ import annotations

# fmt: off
REMARKS: dict[str, str] = {
    "steps_loss_easy2hard": "After 5000 steps the loss lies .013 to .028 above the prediction: the step sizes are a little flatter than the best ones.",
    "steps_read_smallnorm2largenorm": "The predicted step sizes differ less by position than in the other orders, so that deviations of .06 weigh more; the first positions take smaller steps than predicted.",
}
# fmt: on
