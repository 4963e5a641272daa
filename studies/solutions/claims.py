"""The claims on which solutions one layer of linear attention finds, with ranges that were fixed before seeds were read.

Pilots were seeds 0 to 63. Shares are over seeds, each a run from its own initial weights. Where the mixed point is
a minimum, and where it is not, follows from its Hessian; that it is then found by some runs, and else by none, is
the prediction.
"""

from __future__ import annotations

from typing import Any

from icl_lab.src.solutions import DESCENT, MIXED, SWAPPED
from icl_lab.studies.claim import OURS, Claim, Rival, Without
from icl_lab.studies.solutions import measures
from icl_lab.studies.solutions.measures import LEAST_PAIRS, as_derived, finds, over_derived
from icl_lab.studies.solutions.runs import SAMPLED, name_of

DERIVED, CHOSEN = "derived", "ours"
SHARE: dict[str, Any] = {"scale": "share", "about": "ours", "paper": OURS}
BELOW, ABOVE = 0.9, 1.2  # times N*
NO_SWAP = Rival("p and b, by which inputs and labels are swapped, are 0 at the start", finds(2, 10, MIXED, "no_swap"))
PRESET = Rival("the preset's weights and optimiser", finds(2, 10, DESCENT))


# fmt: off
RANGES = {"below": (0.0, 0.0, 0.03), "above": (0.2, 0.03, 1.0)}  # of the share, beside N*: expected, low, high


def _beside_least_pairs(dim: int, least: float, side: str) -> Claim:
    """Below N* no run finds the mixed minimum, above it some do; the control is the other side."""
    pairs = {"below": round(BELOW * least), "above": round(ABOVE * least)}
    (other,) = {*pairs} - {side}
    says = f"D = {dim}, N = {pairs[side]}, {side} N* = {least}: share of runs that find the mixed minimum"
    control = Rival(f"N = {pairs[other]}, {other} N*", finds(dim, pairs[other]))
    profile = "quick" if dim == 3 else "full"
    return Claim(f"mixed_{side}_{dim}", "shares", says, *RANGES[side], DERIVED, finds(dim, pairs[side]), profile=profile, control=control, tier="main", **SHARE)


def _of_batches(dim: int, pairs: int) -> Claim:
    """The same prediction for runs that sample batches."""
    name = name_of(dim, pairs)
    says = f"D = {dim}, N = {pairs}, batches of 512: share of runs that find the mixed minimum"
    accepted = (0.0, 0.0, 0.1) if pairs < LEAST_PAIRS.get(dim, 0) else (0.3, 0.03, 1.0)
    control = Without("runs of other N are the control")
    return Claim(name, "shares", says, *accepted, DERIVED, measures.run_finds(MIXED), name, "full", control=control, **SHARE)


CLAIMS: tuple[Claim, ...] = (
    # where the mixed minimum is
    *(_beside_least_pairs(dim, least, side) for dim, least in LEAST_PAIRS.items() for side in ("below", "above")),
    Claim("mixed_two_2", "shares", "D = 2, N = 2: share of runs that find the mixed minimum", 0.4, 0.03, 1.0, DERIVED, finds(2, 2), control=Without("no weights lead there where p and b are 0"), **SHARE),
    Claim("mixed_two_10", "shares", "D = 2, N = 10: share of runs that find the mixed minimum", 0.45, 0.3, 0.6, CHOSEN, finds(2, 10), control=NO_SWAP, tier="main", **SHARE),
    Claim("mixed_two_40", "shares", "D = 2, N = 40: share of runs that find the mixed minimum", 0.4, 0.03, 1.0, DERIVED, finds(2, 40), control=Without("no weights lead there where p and b are 0"), **SHARE),
    Claim("changed_one", "shares", "D = 1, N = 10: share of runs that swap inputs and labels", 0.5, 0.35, 0.65, DERIVED, finds(1, 10, SWAPPED), control=Without("by symmetry it is one half"), **SHARE),
    Claim("all_are_known", "shares", "D = 2, N = 10: share of runs that end at a solution or on a plateau of the closed forms", 1.0, 0.97, 1.0, CHOSEN, measures.is_known, control=Without("what is no solution is the control"), **SHARE),
    # what a user can change
    Claim("mixed_small", "arms", "D = 2, N = 10, initial variance a tenth of the preset's: share of runs that find the mixed minimum", 0.45, 0.25, 0.65, CHOSEN, finds(2, 10, MIXED, "small"), control=NO_SWAP, **SHARE),
    Claim("mixed_large", "arms", "D = 2, N = 10, initial variance a hundred times the preset's: share of runs that find the mixed minimum", 0.45, 0.25, 0.65, CHOSEN, finds(2, 10, MIXED, "large"), control=NO_SWAP, **SHARE),
    Claim("mixed_merged", "arms", "D = 2, N = 10, merged matrices: share of runs that find the mixed minimum", 0.85, 0.65, 1.0, CHOSEN, finds(2, 10, MIXED, "merged"), control=Rival("four factors", finds(2, 10)), **SHARE),
    Claim("descent_roles_fixed", "arms", "D = 2, N = 10, p and b 0 at the start: share of runs that find gradient descent", 1.0, 0.97, 1.0, DERIVED, finds(2, 10, DESCENT, "no_swap"), control=PRESET, **SHARE),
    Claim("mixed_roles_nearly_fixed", "arms", "D = 2, N = 10, p and b at the start noise of .001: share of runs that find the mixed minimum", 0.25, 0.05, 0.45, CHOSEN, finds(2, 10, MIXED, "noisy_swap"), control=NO_SWAP, **SHARE),
    Claim("descent_two_heads", "arms", "D = 2, N = 10, two heads: share of runs that find gradient descent", 1.0, 0.95, 1.0, CHOSEN, finds(2, 10, DESCENT, "two_heads"), control=PRESET, tier="main", **SHARE),
    # which one, from the initial weights
    Claim("sgd_time", "paths", "D = 2, N = 10, SGD: step at which a run leaves the plateau of zero, over that at which the flow of fourth order diverges from its initial weights, every seed's", 1.0, 0.95, 1.05, DERIVED, over_derived(), control=Rival("the same over the step derived from another seed's weights", over_derived(measures.another)), every=True, spacing=0.03, about="ours", paper=OURS),
    Claim("sgd_time_error", "paths", "D = 2, N = 10, SGD: relative distance of the step at which a run leaves the plateau of zero from that at which the flow of fourth order diverges from its initial weights, every seed's", 0.0, 0.0, 0.05, DERIVED, measures.distance_from_derived(), control=Rival("the same from the step derived from another seed's weights", measures.distance_from_derived(measures.another), later=True), scale="nonnegative", every=True, spacing=0.03, about="ours", paper=OURS),
    Claim("sgd_as_derived", "paths", "D = 2, N = 10, SGD: share of runs that find gradient descent, or do not, as the flow of fourth order from their initial weights says", 1.0, 0.95, 1.0, DERIVED, as_derived(measures.SGD), control=Rival("the same from another seed's weights", as_derived(measures.SGD, measures.another)), tier="main", **SHARE),
    Claim("adam_as_derived", "paths", "D = 2, N = 10, Adam: share of runs that find gradient descent, or do not, as the flow of fourth order from their initial weights says", 0.83, 0.65, 1.0, CHOSEN, as_derived("preset"), control=Rival("the same from another seed's weights", as_derived("preset", measures.another)), **SHARE),
    # sampled batches
    *(_of_batches(dim, pairs) for dim, pairs in SAMPLED),
)
# fmt: on
