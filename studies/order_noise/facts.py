"""The facts that the claims state, each with its claims: those of one fact do not confirm each other."""

from __future__ import annotations

from icl_lab.studies.order_noise.runs import SORTED

# fmt: off
FACTS: dict[str, tuple[str, ...]] = {
    "Trained in an order, twolayer is gradient descent with a step size for each position.": tuple(f"steps_explain_{order}" for order in SORTED),
    "Trained in an order, twolayer takes the step sizes that are best for it.": (*(f"steps_{what}_{order}" for order in SORTED for what in ("read", "loss")), "steps_differentiated"),
    "Most runs of twolayer in an order train.": ("steps_easy2hard_trained",),
    "Trained in random order, twolayer takes one step size at all positions.": ("steps_flat_random",),
    "Most runs of a linear layer with positional encodings train.": ("steps_flat_linear_left_plateau",),
    "Trained in an order, a linear layer with positional encodings takes one step size at all positions.": ("steps_flat_linear", "steps_explain_linear"),
    "Trained in an order, three layers take the step sizes that are best for one step.": ("steps_explain_deeper", "steps_read_deeper"),
    "What order does reaches the closed form after longer training.": tuple(f"closing_{what}_{arm}" for arm in ("short", "long") for what in ("share", "excess", "steps")),
    "What order does reaches the closed form once the rate is annealed.": tuple(f"closing_{what}_annealed" for what in ("share", "excess", "steps")),
    "Most runs of the arms train in all orders.": tuple(f"closing_trained_{arm}" for arm in ("short", "long", "annealed")),
}
# fmt: on
