"""The claims on which solutions one layer of linear attention finds, with ranges that were fixed before seeds were read.

Pilots were seeds 0 to 63. Shares are over seeds, each a training from its own initial weights. Where the mixed point is
a minimum, and where it is not, follows from its Hessian; that it is then found by some trainings, and else by none, is
the prediction.
"""

from __future__ import annotations

from typing import Any

from icl_lab.src.one_layer import CHANGED, DESCENT, MIXED
from icl_lab.studies.claim import OURS, Claim, Rival, Without
from icl_lab.studies.solutions import measures
from icl_lab.studies.solutions.measures import LEAST_PAIRS, as_derived, finds, over_derived
from icl_lab.studies.solutions.runs import SAMPLED, name_of

DERIVED, CHOSEN = "derived", "ours"
SHARE: dict[str, Any] = {"scale": "share", "about": "ours", "paper": OURS}
BELOW, ABOVE = 0.9, 1.2  # times N*
ROLES_FIXED = Rival(
    "p and b, by which inputs and labels change roles, are 0 at the start", finds(2, 10, MIXED, "roles_fixed")
)
PRESET = Rival("the preset's weights and optimiser", finds(2, 10, DESCENT))


def _beside_least_pairs(dim: int, least: float) -> tuple[Claim, Claim]:
    """Below N* no training finds the mixed minimum, above it some do."""
    fewer, more = round(BELOW * least), round(ABOVE * least)
    profile = "quick" if dim == 3 else "full"
    says = "D = {}, N = {}, {} N* = {}: share of trainings that find the mixed minimum"
    below = Claim(
        f"mixed_below_{dim}",
        "shares",
        says.format(dim, fewer, "below", least),
        0.0,
        0.0,
        0.03,
        DERIVED,
        finds(dim, fewer),
        profile=profile,
        control=Rival(f"N = {more}, above N*", finds(dim, more)),
        tier="main",
        **SHARE,
    )
    above = Claim(
        f"mixed_above_{dim}",
        "shares",
        says.format(dim, more, "above", least),
        0.2,
        0.03,
        1.0,
        DERIVED,
        finds(dim, more),
        profile=profile,
        control=Rival(f"N = {fewer}, below N*", finds(dim, fewer)),
        tier="main",
        **SHARE,
    )
    return below, above


def _of_batches(dim: int, pairs: int) -> Claim:
    """The same prediction for runs that sample batches."""
    says = f"D = {dim}, N = {pairs}, batches of 512: share of runs that find the mixed minimum"
    if pairs < LEAST_PAIRS.get(dim, 0):
        return Claim(
            name_of(dim, pairs),
            "shares",
            says,
            0.0,
            0.0,
            0.1,
            DERIVED,
            measures.run_finds(MIXED),
            name_of(dim, pairs),
            "full",
            control=Without("runs of other N are the control"),
            **SHARE,
        )
    return Claim(
        name_of(dim, pairs),
        "shares",
        says,
        0.3,
        0.03,
        1.0,
        DERIVED,
        measures.run_finds(MIXED),
        name_of(dim, pairs),
        "full",
        control=Without("runs of other N are the control"),
        **SHARE,
    )


# fmt: off
CLAIMS: tuple[Claim, ...] = (
    # where the mixed minimum is
    *(claim for dim, least in LEAST_PAIRS.items() for claim in _beside_least_pairs(dim, least)),
    Claim("mixed_two_2", "shares", "D = 2, N = 2: share of trainings that find the mixed minimum", 0.4, 0.03, 1.0, DERIVED, finds(2, 2), control=Without("no weights lead there where p and b are 0"), **SHARE),
    Claim("mixed_two_10", "shares", "D = 2, N = 10: share of trainings that find the mixed minimum", 0.45, 0.3, 0.6, CHOSEN, finds(2, 10), control=ROLES_FIXED, tier="main", **SHARE),
    Claim("mixed_two_40", "shares", "D = 2, N = 40: share of trainings that find the mixed minimum", 0.4, 0.03, 1.0, DERIVED, finds(2, 40), control=Without("no weights lead there where p and b are 0"), **SHARE),
    Claim("changed_one", "shares", "D = 1, N = 10: share of trainings in which inputs and labels have changed roles", 0.5, 0.35, 0.65, DERIVED, finds(1, 10, CHANGED), control=Without("by the symmetry of both roles it is one half"), **SHARE),
    Claim("all_are_known", "shares", "D = 2, N = 10: share of trainings that end at a solution or on a plateau of the closed forms", 1.0, 0.97, 1.0, CHOSEN, measures.is_known, control=Without("what is no solution is the control"), **SHARE),
    # what a user can change
    Claim("mixed_small", "arms", "D = 2, N = 10, initial weights a tenth of the preset's: share of trainings that find the mixed minimum", 0.45, 0.25, 0.65, CHOSEN, finds(2, 10, MIXED, "small"), control=ROLES_FIXED, **SHARE),
    Claim("mixed_large", "arms", "D = 2, N = 10, initial weights a hundred times the preset's: share of trainings that find the mixed minimum", 0.45, 0.25, 0.65, CHOSEN, finds(2, 10, MIXED, "large"), control=ROLES_FIXED, **SHARE),
    Claim("mixed_merged", "arms", "D = 2, N = 10, merged matrices: share of trainings that find the mixed minimum", 0.85, 0.65, 1.0, CHOSEN, finds(2, 10, MIXED, "merged"), control=Rival("four factors", finds(2, 10)), **SHARE),
    Claim("descent_roles_fixed", "arms", "D = 2, N = 10, p and b 0 at the start: share of trainings that find gradient descent", 1.0, 0.97, 1.0, DERIVED, finds(2, 10, DESCENT, "roles_fixed"), control=PRESET, **SHARE),
    Claim("mixed_roles_nearly_fixed", "arms", "D = 2, N = 10, p and b at the start noise of .001: share of trainings that find the mixed minimum", 0.25, 0.05, 0.45, CHOSEN, finds(2, 10, MIXED, "roles_nearly_fixed"), control=ROLES_FIXED, **SHARE),
    Claim("descent_two_heads", "arms", "D = 2, N = 10, two heads: share of trainings that find gradient descent", 1.0, 0.95, 1.0, CHOSEN, finds(2, 10, DESCENT, "two_heads"), control=PRESET, tier="main", **SHARE),
    # which one, from the initial weights
    Claim("sgd_time", "paths", "D = 2, N = 10, SGD: step at which a training leaves the plateau of zero, over that at which the flow of fourth order diverges from its initial weights, every seed's", 1.0, 0.95, 1.05, DERIVED, over_derived(), control=Rival("the same over the step derived from another seed's weights", over_derived(measures.another)), every=True, spacing=0.03, about="ours", paper=OURS),
    Claim("sgd_time_error", "paths", "D = 2, N = 10, SGD: relative distance of the step at which a training leaves the plateau of zero from that at which the flow of fourth order diverges from its initial weights, every seed's", 0.0, 0.0, 0.05, DERIVED, measures.distance_from_derived(), control=Rival("the same from the step derived from another seed's weights", measures.distance_from_derived(measures.another), later=True), scale="nonnegative", every=True, spacing=0.03, about="ours", paper=OURS),
    Claim("sgd_as_derived", "paths", "D = 2, N = 10, SGD: share of trainings that find gradient descent, or do not, as the flow of fourth order from their initial weights says", 1.0, 0.95, 1.0, DERIVED, as_derived(measures.SGD), control=Rival("the same from another seed's weights", as_derived(measures.SGD, measures.another)), tier="main", **SHARE),
    Claim("adam_as_derived", "paths", "D = 2, N = 10, Adam: share of trainings that find gradient descent, or do not, as the flow of fourth order from their initial weights says", 0.83, 0.65, 1.0, CHOSEN, as_derived("preset"), control=Rival("the same from another seed's weights", as_derived("preset", measures.another)), **SHARE),
    # sampled batches
    *(_of_batches(dim, pairs) for dim, pairs in SAMPLED),
)
# fmt: on
