"""Cases that a rule for what an estimate measures has been seen to get wrong, each with the verdicts that are right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from icl_lab.analysis.llc.validation.checks import Answers, Check, Steps, at_its_eps, known_answer, with_verdict
from icl_lab.analysis.llc.validation.targets import COLD
from icl_lab.store.llc_rows import AT_THIS_NBETA, LLC, NONE, UNDECIDED


class Trap(NamedTuple):
    """A formula at (nbeta, gamma), what is wrong to say of it, its chains, and the verdicts that are right."""

    formula: str
    why: str
    steps: Steps
    right: tuple[str, ...]


TRAPS = (
    Trap(
        "quartic(0.001)",
        "regular, but the quartic is what the chain sees: stable in gamma, and not lambda = 1/2",
        Steps(1e-4, COLD, 0.1, 1024, 300, 600, 20),
        (AT_THIS_NBETA, UNDECIDED),
    ),
    Trap(
        "generic((5, 3, 5), 0)",
        "stable, but the chain has left w* for the global value",
        Steps(5e-6, COLD, 10.0, 64, 300, 600, 27, "sghmc"),
        (UNDECIDED, NONE),
    ),
    Trap(
        "generic((5, 3, 5), 0)",
        "near w*: the local value",
        Steps(5e-6, COLD, 100.0, 64, 300, 600, 4, "sghmc"),
        (LLC,),
    ),
    Trap(
        "well(10)",
        "saturated: stable in gamma, and nbeta (L_null - L(w*))",
        Steps(1e-2, 10.0, 0.01, 16, 200, 800, 100),
        (NONE,),
    ),
    Trap(
        "sphere(2)",
        "Morse-Bott: it equals its quadratic value, and is right",
        Steps(1e-5, 1e3, 10.0, 256, 300, 600, 15, "sghmc"),
        (LLC,),
    ),
    Trap(
        "deep_linear((5, 3, 5), 0)",
        "the Hessian is 0, every direction is flatter than the pull, and the estimate is right",
        Steps(1e-5, COLD, 5.0, 68, 300, 600, 27, "sghmc"),
        (AT_THIS_NBETA, UNDECIDED),
    ),
    Trap(
        "quadratic((1.0, 10.0, 0.0, 0.0))",
        "frozen: the chains do not leave w*",
        Steps(1e-13, 1e3, 10.0, 16, 200, 600, 1),
        (NONE,),
    ),
    Trap(
        "saddle()",
        "a saddle, where there is no posterior of the Hessian",
        Steps(5e-5, 100.0, 10.0, 64, 200, 600, 20),
        (NONE,),
    ),
)


def traps(answers: Answers) -> Iterator[list[Check]]:
    """The estimate of each, and whether its verdict is right; the number is judged where one is right.

    A verdict may be undecided where the derivatives in nbeta and gamma are known too badly, but not another one.
    """
    for trap in TRAPS:
        model, answer = known_answer(answers, trap.formula, trap.steps.nbeta, trap.steps.gamma)
        check = at_its_eps("traps", model, trap.steps, answer, 0.05)
        yield [with_verdict(check._replace(case=f"{model.name}: {trap.why}"), *trap.right)]
