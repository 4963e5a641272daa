"""The claims on what the LLC over training measures: the same questions of six models, as data.

Ranges were fixed before the runs that they judge were trained: what is expected if an LLC over training is a sum over
the curvatures at the checkpoint. Pilot runs had seeds 3 to 5: three of the linear layer, and one on two tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from icl_lab.studies.claim import OURS, Claim, Rival, Without
from icl_lab.studies.stages import measured

# runs -> what is trained
MODELS = {
    "linear": "one linear layer",
    "one_task": "16 channels, one task",
    "two_tasks": "16 channels, two tasks",
    "few_tasks": "16 channels, a pool of 4 tasks",
    "regression": "16 channels, infinitely many tasks",
}
BY_US: dict[str, Any] = {"about": "ours", "paper": OURS}
OVER_TRAINING = Without("a network that is not trained has no trajectory")
SIMULATED = ("linear", "two_tasks")  # of which whole curves are simulated


class Question(NamedTuple):
    """What is asked of every model: what the claim says, the expected number, its range, how it is measured."""

    says: str
    expected: float
    low: float
    high: float
    measure: Callable[..., float]
    scale: str
    control: Rival | Without = OVER_TRAINING


QUESTIONS = {
    "curvatures": Question(
        "share of usable checkpoints whose LLC is a curvature", 0.75, 0.5, 1.0, measured.curvatures, "fraction"
    ),
    "plateaus": Question(
        "share of usable checkpoints whose LLC is on a plateau", 0.0, 0.0, 0.05, measured.plateaus, "fraction"
    ),
    "by_curvature": Question(
        "share of the LLC's variance over training that the quadratic prediction explains",
        0.97,
        0.9,
        1.0,
        measured.by_curvature,
        "linear",
        Rival("nβ times the fall of the loss", measured.by_rescaled_loss),
    ),
    "by_loss": Question(
        "share of the LLC's variance over training that a function of the loss, fitted to other seeds, explains",
        0.9,
        0.75,
        1.0,
        measured.by_loss,
        "linear",
        Rival("other seeds' mean LLC at the same step", measured.by_step),
    ),
    "annealed": Question(
        "largest change of the LLC, once the rate has fallen to 0 at both ends, over the change itself",
        1.0,
        0.8,
        1.25,
        measured.annealed_over,
        "log",
    ),
    "beyond": Question(
        "changes, the largest and those over stages, that differ from all nulls: none, curvature, loss and rate",
        0.0,
        0.0,
        0.0,
        measured.beyond,
        "nonnegative",
    ),
}
FALSE = {
    "by_curvature": ("the quadratic prediction", measured.false_by_curvature),
    "by_loss": ("a function of the loss", measured.false_by_loss),
}


def _of_all(measure: Callable[..., float]) -> Callable[[Sequence[Path]], float]:
    """The measure of a seed's run, with those of all other seeds behind it."""
    return lambda runs: measure(*runs)


def _claim(name: str, of: str, question: Question) -> Claim:
    control = question.control
    if isinstance(control, Rival) and control.measure:
        control = control._replace(measure=_of_all(control.measure))
    return Claim(
        f"measured_{name}_{of}",
        f"measured_{of}",
        f"{MODELS[of]}: {question.says}",
        question.expected,
        question.low,
        question.high,
        "expectation",
        _of_all(question.measure),
        f"measured_{of}",
        "quick" if of == "linear" else "full",
        scale=question.scale,
        control=control,
        every=name == "beyond",
        tier="main" if (name, of) == ("by_curvature", "linear") else "supporting",
        **BY_US,
    )


def _false(name: str, of: str) -> Claim:
    truth, measure = FALSE[name]
    says = f"share of simulated curves of which a change is claimed, where {truth} is the truth"
    return _claim(f"false_{name}", of, Question(says, 0.0, 0.0, 0.05, measure, "fraction"))


CLAIMS: tuple[Claim, ...] = (
    *(_claim(name, of, question) for of in MODELS for name, question in QUESTIONS.items()),
    *(_false(name, of) for of in SIMULATED for name in FALSE),
)
# the facts that they state
FACTS: dict[str, tuple[str, ...]] = {
    "The LLC over training is what the Hessian at the checkpoint makes of it.": tuple(
        f"measured_{name}_{of}" for of in MODELS for name in ("curvatures", "by_curvature")
    ),
    "No LLC over training is on a plateau.": tuple(f"measured_plateaus_{of}" for of in MODELS),
    "What the loss is says most of what the LLC is.": tuple(f"measured_by_loss_{of}" for of in MODELS),
    "Changes of the LLC do not come from the learning rate.": tuple(f"measured_annealed_{of}" for of in MODELS),
    "No change of the LLC is more than curvature, loss and rate.": tuple(f"measured_beyond_{of}" for of in MODELS),
    "Changes are rarely claimed where a null is true.": tuple(
        f"measured_false_{name}_{of}" for of in SIMULATED for name in FALSE
    ),
}
