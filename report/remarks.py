"""What limits a claim that was not reproduced, by its name: a sentence or two, written after it was measured."""

from __future__ import annotations

# fmt: off
STUCK_20 = "Two of three seeds are there by step 500. The third shrinks to the saddle at zero weights and stays at .82; trained on, it leaves between steps 16 000 and 16 500 and is at .416."
STUCK_SOFTMAX = "One of three seeds does what the paper shows (.288, cosine .71). The other two stay on the plateau at .40 for all 5000 steps; trained on, one is at .31 by step 20 000 and falling, the other still at .405. Two heads have no such plateau."

REMARKS: dict[str, str] = {
    "size_20_loss": STUCK_20,
    "size_20_level": STUCK_20,
    "softmax_1_head_loss": STUCK_SOFTMAX,
    "softmax_1_head_cosine": STUCK_SOFTMAX,
    "condition_explodes": "The median context's condition number grows by less than was accepted; a tenth of the contexts' grow thirtyfold, and the mean by more than a thousand.",
}
# fmt: on
