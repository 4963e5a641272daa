"""The turn from gradient descent to GD++ and the plateaus before it: runs, claims and figures.

Ranges were fixed before seeds 0 to 9 were trained; they were chosen from the closed forms and from pilots of seed 99,
the shares from pilots of seeds 90 to 99. The comment above each claim gives the alternative that it could have shown,
and how many half-widths of the range it is away.

Near zero the loss of one layer is its value at zero plus kappa (c_y tr M_xx + c_x . m_y), kappa = N v^2 s^2, with
M = W_Q W_K^T and c the label's column of W_V P: v is the variance of an input's coordinate, s^2 that of a task's. Merged
matrices grow as exp(lr kappa sqrt(D) t), so a factor e of the initial scale costs 1/log(1 + lr kappa sqrt(D)) steps, and
the step size of the descent that the layer takes follows the logistic equation. For four factors the loss is of fourth
order: from a deviation d they take d^-2 steps, with a constant that is the time at which the flow from the given weights
diverges. It diverges in tr M_xx, which becomes gradient descent, or in c_x . m_y, of rank one: then the layer predicts
along one direction of the inputs, makes 1/D of the way, and stays on a second plateau. Merged matrices do not, for their
trace grows sqrt(D) times as fast. Adam takes steps of its rate whatever the gradient's size, so the scale does not
matter, down to where gradients are below its epsilon: there it is SGD of rate lr/epsilon, and d^-2 again.
"""

from __future__ import annotations

from typing import Any

from icl_lab.studies.claim import OURS, UNBOUNDED, Claim, Rival, Without
from icl_lab.studies.dot_figure import Dots
from icl_lab.studies.figure import AnyFigure, Figure
from icl_lab.studies.theory import plateau_measures as measures
from icl_lab.studies.theory.plateau_runs import CHANGED, FLOOR, RUNS, SIZES

__all__ = ("CLAIMS", "FIGURES", "REMARKS", "RUNS")

DERIVED, CHOSEN = "derived", "ours"
BY_US: dict[str, Any] = {"about": "ours", "paper": OURS, "profile": "full"}
SAME_WEIGHTS = BY_US | {"control": Without("what it is compared with is derived from the same initial weights")}
SAME_SEED = BY_US | {"control": Without("the run that it is compared with differs in one setting alone")}
OWN_TRAINING = BY_US | {"control": Without("it is a step of the training, of which an untrained network has none")}

# fmt: off
# spacing: times are known to half the distance of records; what both times of a ratio or an exponent make of it is added
CLAIMS: tuple[Claim, ...] = (
    # alternative: the slope of kappa in place of kappa sqrt(D), 3.16 (43 half-widths); weights^-1, 1000 and more
    Claim("merged_slope", "escape_times", "merged matrices, SGD, deviations of .003 to 3e-6: slope of the step at which they leave the plateau on log(1/deviation), over 1/log(1 + lr kappa sqrt(D))", 1.0, 0.95, 1.05, DERIVED, measures.slope_over_derived, "plateau_merged_1e-10", paired="plateau_merged_1e-4", spacing=0.03, **SAME_SEED),
    # alternative: the slower rate kappa, 3.16 (43)
    Claim("merged_time", "escape_times", "merged matrices, SGD, deviation 3e-6: step at which they leave the plateau over that of the logistic equation from their initial weights", 1.0, 0.95, 1.05, DERIVED, measures.over_derived, "plateau_merged_1e-10", spacing=0.01, **SAME_WEIGHTS),
    # alternative: growth as of merged matrices, whose step depends on the logarithm: at most .2 (12)
    Claim("factors_exponent", "escape_times", "four factors, SGD, deviations of .043 and .0135: exponent of the step at which they leave the plateau in 1/deviation", 2.0, 1.85, 2.15, DERIVED, measures.exponent, "plateau_factors_2e-3", paired="plateau_factors_2e-2", scale="linear", spacing=0.046, **SAME_SEED),
    # alternative: a time that weights of this scale have in common; between seeds the derived steps differ by a factor of 4
    Claim("factors_time", "escape_times", "four factors, SGD, deviation .0135: step at which they leave the plateau over that at which the flow of fourth order diverges from their initial weights, every seed's", 1.0, 0.93, 1.07, DERIVED, measures.over_derived, "plateau_factors_2e-3_main", every=True, spacing=0.02, **BY_US, control=Rival("the same over the step derived from another seed's weights", measures.over_derived_of_another)),
    # alternative: the step derived from another seed's weights, whose mean is 1 too but which is .23 away on the mean
    Claim("factors_time_error", "escape_times", "four factors, SGD, deviation .0135: relative distance of the step at which they leave the plateau from that at which the flow of fourth order diverges from their initial weights, every seed's", 0.0, 0.0, 0.07, DERIVED, measures.distance_from_derived, "plateau_factors_2e-3_error", scale="nonnegative", every=True, spacing=0.02, **BY_US, control=Rival("the same from the step derived from another seed's weights", measures.distance_from_derived_of_another), tier="main"),
    Claim("five_time", "second_plateau", "four factors, SGD, D = 5: step at which they leave the plateau over that at which the flow of fourth order diverges from their initial weights, every seed's", 1.0, 0.93, 1.07, DERIVED, measures.over_derived, "plateau_five", every=True, spacing=0.025, **SAME_WEIGHTS),
    # alternative: a coin, .5; nearly half of all seeds have a flow of rank one (17 of 40 drawn), so the constant answer does no better
    Claim("factors_second_plateau", "second_plateau", "four factors, SGD, D = 5: share of runs that stay on a second plateau, or do not, as the flow of fourth order from their initial weights says", 1.0, 0.55, 1.0, DERIVED, measures.plateau_is_derived, "plateau_five", scale="share", **SAME_WEIGHTS),
    # alternative: all D directions at once, 5 (20); none, 0, is 5 away
    Claim("second_plateau_level", "second_plateau", "four factors, SGD, D = 5, runs that stay on a second plateau: how far below the loss of predicting zero, in units of 1/D of the way to gradient descent's", 1.0, 0.8, 1.2, DERIVED, measures.second_plateau, "plateau_five", scale="linear", among=measures.stays, **SAME_WEIGHTS),
    # alternative: SGD's exponent, 2 (20)
    Claim("adam_exponent", "escape_times", "four factors, Adam, deviations of .043 to .00135: exponent of the step at which they leave the plateau in 1/deviation", 0.0, -0.1, 0.1, CHOSEN, measures.exponent, "plateau_adam_2e-5", paired="plateau_adam_2e-2", scale="linear", spacing=0.046, **SAME_SEED),
    # alternative: no dependence on the scale here either, 200 steps of 6700 and more, .03 (10)
    Claim("adam_floor", "escape_times", "four factors, Adam, deviation 3e-5, gradients below its epsilon: step at which they leave the plateau over that at which the flow of fourth order diverges at the rate lr/epsilon", 1.03, 0.94, 1.12, DERIVED, measures.over_derived, FLOOR, spacing=0.016, **SAME_WEIGHTS),
    # alternative: GD++ from the start, below 1 (on the logarithm; pilot 11)
    Claim("gd_after_the_plateau", "two_layers_turning", "two recurrent layers between learning and the turn, at the geometric mean of these steps: 1 - cosine with GD++ over 1 - cosine with GD", 10.0, 3.0, UNBOUNDED, CHOSEN, measures.lead_of_gd, "plateau_two_layers", **OWN_TRAINING),
    # alternative: the plateau ends with the turn, 1 (2.6 half-widths on the logarithm); records are 100 steps apart, so no range is narrower
    Claim("turn_after_escape", "two_layers_turning", "two recurrent layers: step of the turn to GD++ over the step at which half of the way to gradient descent's loss is made", 6.0, 3.0, 12.0, CHOSEN, measures.turn_over_learnt, "plateau_two_layers", spacing=2.7, **OWN_TRAINING),
    # alternative: none does, 0
    Claim("twenty_learnt", "shares", "one layer, N = D = 20, default recipe in batches of 512: share of runs that have learnt by step 5000", 1.0, 0.5, 1.0, CHOSEN, measures.learnt_by(), "plateau_20_20", scale="share", **OWN_TRAINING),
    Claim("ten_learnt", "shares", "one layer, N = D = 10, default recipe in batches of 512: share of runs that have learnt by step 5000", 1.0, 0.5, 1.0, CHOSEN, measures.learnt_by(), "plateau_10_10_decided", scale="share", **OWN_TRAINING),
    # alternative: the rate does nothing, 1 (6); steps in proportion to it, 1/3
    Claim("rate_faster", "shares", "one layer, N = D = 20, learning rate 3e-3: step at which it leaves the plateau over that at 1e-3", 0.45, 0.3, 0.6, CHOSEN, measures.faster, "plateau_rate", paired="plateau_20_20", spacing=0.09, **SAME_SEED),
    # alternative: the scale matters as under SGD, a hundredth (over 10)
    Claim("scale_no_faster", "shares", "one layer, N = D = 20, initial scale .02 instead of .002: step at which it leaves the plateau, over that of the default", 1.0, 0.8, 1.25, CHOSEN, measures.faster, "plateau_scale_decided", paired="plateau_20_20_decided", spacing=0.12, **SAME_SEED),
)

SGD, ADAM = "SGD", "Adam (derived: below its epsilon)"
ARMS = {
    "plateau_merged": (SGD, "merged"),
    "plateau_factors": (SGD, "four factors"),
    "plateau_adam_merged": (ADAM, "merged"),
    "plateau_adam": (ADAM, "four factors"),
}
OF_SCALES = tuple(name for name in RUNS if name.startswith(tuple(ARMS)))
DERIVED_OF = {name: (SGD, "merged, derived") for name in OF_SCALES if name.startswith("plateau_merged")}
DERIVED_OF |= {name: (SGD, "four factors, derived") for name in OF_SCALES if name.startswith("plateau_factors")}
DERIVED_OF |= {FLOOR: (ADAM, "four factors, derived")}
SHARES = {
    **{name: f"D = {dim}, N = {pairs}" for name, (_, dim, pairs) in {name: name.split("_") for name in SIZES}.items()},
    **dict(zip(CHANGED, ("D = N = 20, scale x 10", "D = N = 20, rate x 3", "D = N = 20, no clip"), strict=True)),
}

FIGURES: tuple[AnyFigure, ...] = (
    Figure("escape_times", "Smaller initial weights: a longer plateau, as derived", OF_SCALES, measures.times(ARMS, DERIVED_OF), "standard deviation of initial weights", "step", log_x=True, log_y=True, profile="full", limit=float("inf")),
    Figure("two_layers_turning", "Two recurrent layers: gradient descent first, then GD++", ("plateau_two_layers",), measures.turning, "training step", "", profile="full", means=False, by_seed=True, scale="fisher"),
    Figure("second_plateau", "Four factors under SGD, D = 5: one direction of the inputs first", ("plateau_five",), measures.way, "training step", "way to gradient descent's loss, in units of 1/D", profile="full", means=False, by_seed=True, scale="linear"),
    Dots("plateau_shares", "One layer: runs that have learnt", SHARES, measures.shares, "full", scale="share"),
)
# fmt: on

REMARKS: dict[str, str] = {
    "factors_time": "All eight runs lie within 2.2 % of the derived step. Over another seed's derived step they range from .69 to 1.51, but their mean is 1 too: the mean over seeds does not tell the two apart.",
    "ten_learnt": "Eight of ten runs have learnt by step 5000; seeds 3 and 9 are on the plateau still. At N = D = 20 all ten have.",
    "scale_no_faster": "Records are 25 steps apart and the plateau ends after some 350, which widens the ratio of two such steps by .06 at either end.",
}
