"""Claims on what order does: position-weighted gradient descent, predicted and read from trained models.

A layer that knows positions takes a step size c_k for each, the least-squares fit on contexts of its training
(`baselines.position_weighted`). The predictions lie in report/order_noise/predictions.csv.
"""

from __future__ import annotations

from typing import Any

from icl_lab.studies.claim import OURS, Claim, Rival, Without
from icl_lab.studies.order_noise import closing, step_sizes
from icl_lab.studies.order_noise.runs import SORTED
from icl_lab.studies.runs import has_trained

SHORT = {"easy2hard": "easy first", "hard2easy": "hard first", "smallnorm2largenorm": "small norms first"}

# of the three orders, easy first is a main result: the nearest rival is the step sizes that another order predicts
MAIN_RUNS = {"easy2hard": "twolayer_easy2hard_main"}
MAIN: dict[str, dict[str, Any]] = {
    "easy2hard": {
        "control": Rival(
            "the step sizes predicted for small norms first", step_sizes.agreement_of_order("smallnorm2largenorm")
        ),
        "among": has_trained,
        "tier": "main",
    }
}

# arm -> what it is, and the accepted share of the predicted changes and excess over the best step sizes
ARMS: dict[str, tuple[str, tuple[float, float], tuple[float, float]]] = {
    "short": ("twolayer, 5000 steps", (0.7, 0.95), (0.01, 0.04)),
    "long": ("twolayer, 15 000 steps", (0.95, 1.05), (0.0, 0.005)),
    "annealed": ("twolayer, 15 000 steps, rate annealed", (0.95, 1.05), (0.0, 0.005)),
}
OF_ARMS: dict[str, Any] = {"profile": "full", "about": "ours", "paper": OURS}


# fmt: off
def _of_an_arm(arm: str) -> tuple[Claim, ...]:
    words, share, excess = ARMS[arm]
    first = arm == "short"
    control = Without("the others are compared with it") if first else Rival("5000 steps", runs=("closing_short",))
    origin, runs = "ours" if first else "expectation", f"closing_{arm}"
    of_trained = OF_ARMS | {"scale": "linear", "among": closing.have_trained, "control": control}
    return (
        Claim(f"closing_share_{arm}", "", f"{words}: slope of the changes that orders make on those that the best step sizes make", sum(share) / 2, *share, origin, closing.share_of_the_prediction, runs, **of_trained),
        Claim(f"closing_excess_{arm}", "", f"{words}, trained and tested in an order: loss over that of the best step sizes, less 1", sum(excess) / 2, *excess, origin, closing.excess, runs, **of_trained),
        Claim(f"closing_steps_{arm}", "", f"{words}: share of that excess which the step sizes read from the model have", 0.75, 0.5, 1.0, origin, closing.share_of_the_steps, runs, **of_trained),
        Claim(f"closing_trained_{arm}", "", f"{words}: share of seeds whose runs train in all orders", 1.0, 0.5, 1.0, origin, closing.have_trained, runs, scale="share", **OF_ARMS),
    )


CLAIMS: tuple[Claim, ...] = (
    *(
        claim
        for order in SORTED
        for claim in (
            Claim(f"steps_explain_{order}", "", f"twolayer trained {SHORT[order]}: R^2 of its predictions on GD with a step size for each position", 0.98, 0.95, 1.0, "ours", step_sizes.variance_explained, f"twolayer_{order}", "full", scale="fraction", about="ours", paper=OURS),
            Claim(f"steps_read_{order}", "", f"twolayer trained {SHORT[order]}: R^2 over positions of its step sizes, read by regression, on those predicted", 0.97, 0.95, 1.0, "ours", step_sizes.agreement("regressed"), MAIN_RUNS.get(order, f"twolayer_{order}"), "full", scale="complement", about="ours", paper=OURS, **MAIN.get(order, {})),
            Claim(f"steps_loss_{order}", "", f"twolayer trained and tested {SHORT[order]}: loss ratio to one tuned step of GD less the predicted ratio", 0.0, -0.02, 0.02, "ours", step_sizes.beyond_the_prediction, f"twolayer_{order}", "full", scale="linear", about="ours", paper=OURS),
        )
    ),
    Claim("steps_easy2hard_trained", "", "twolayer trained easy first: share of runs that train", 1.0, 0.5, 1.0, "ours", has_trained, "twolayer_easy2hard_main", "full", scale="share", about="ours", paper=OURS),
    Claim("steps_differentiated", "", "twolayer trained easy first: R^2 over positions of its step sizes, read from derivatives in the labels, on those predicted", 0.97, 0.95, 1.0, "ours", step_sizes.agreement("differentiated"), "twolayer_easy2hard", "full", scale="complement", about="ours", paper=OURS),
    Claim("steps_flat_random", "", "twolayer trained in random order: standard deviation over positions of its step sizes over their mean", 0.0, 0.0, 0.05, "ours", step_sizes.spread, "twolayer_random", "full", about="ours", paper=OURS, control=Rival("twolayer trained easy first", runs=("twolayer_easy2hard",))),
    Claim("steps_flat_linear_left_plateau", "", "lsa1_pe trained easy first: share of runs that trained", 1.0, 0.5, 1.0, "ours", has_trained, "lsa1_pe_easy2hard", "full", scale="share", about="ours", paper=OURS),
    Claim("steps_flat_linear", "", "lsa1_pe trained easy first, runs that trained: standard deviation over positions of its step sizes over their mean", 0.0, 0.0, 0.05, "ours", step_sizes.spread, "lsa1_pe_easy2hard", "full", about="ours", paper=OURS, control=Rival("twolayer trained easy first", runs=("twolayer_easy2hard",)), among=has_trained),
    Claim("steps_explain_linear", "", "lsa1_pe trained easy first, runs that trained: R^2 of its predictions on GD with a step size for each position", 0.98, 0.95, 1.0, "ours", step_sizes.variance_explained, "lsa1_pe_easy2hard", "full", scale="fraction", about="ours", paper=OURS, among=has_trained),
    Claim("steps_explain_deeper", "", "three layers trained easy first: R^2 of their predictions on GD with a step size for each position", 0.8, 0.5, 1.0, "ours", step_sizes.variance_explained, "three_layers_easy2hard", "full", scale="fraction", about="ours", paper=OURS),
    Claim("steps_read_deeper", "", "three layers trained easy first: R^2 over positions of their step sizes, read by regression, on those predicted", 0.97, 0.95, 1.0, "ours", step_sizes.agreement("regressed"), "three_layers_easy2hard", "full", scale="complement", about="ours", paper=OURS),
    *(claim for arm in ARMS for claim in _of_an_arm(arm)),
)
# fmt: on
