"""The facts that the claims state, each with its claims: those of one fact do not confirm each other."""

from __future__ import annotations

from icl_lab.studies.solutions.measures import LEAST_PAIRS
from icl_lab.studies.solutions.runs import SAMPLED, name_of

FACTS: dict[str, tuple[str, ...]] = {
    "The mixed minimum is found where its Hessian says that it is one, and nowhere else.": (
        *(f"mixed_{side}_{dim}" for dim in LEAST_PAIRS for side in ("below", "above")),
        *(f"mixed_two_{pairs}" for pairs in (2, 10, 40)),
        *(name_of(dim, pairs) for dim, pairs in SAMPLED),
    ),
    "In one dimension half of the runs swap inputs and labels.": ("changed_one",),
    "Every training ends at a solution that is known in closed form.": ("all_are_known",),
    "No scale of the initial weights avoids the mixed minimum.": ("mixed_small", "mixed_large", "mixed_merged"),
    "A layer whose weights cannot swap at the start finds gradient descent, but not always if there is noise on them.": (
        "descent_roles_fixed",
        "mixed_roles_nearly_fixed",
    ),
    "Two heads find gradient descent.": ("descent_two_heads",),
    "The initial weights say when a training leaves the plateau, and which solution it finds.": (
        "sgd_time",
        "sgd_time_error",
        "sgd_as_derived",
        "adam_as_derived",
    ),
}
