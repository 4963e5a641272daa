"""Validates the LLC estimator: which losses it is checked on, with a target that it meets or misses.

A target is about the number, and in the section of traps about the verdict too; what the estimate says of itself is
reported with each. Answers are those of the table of targets, which NumPy computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from icl_lab.analysis.llc.validation import known, models, traps
from icl_lab.analysis.llc.validation.checks import (
    Answers,
    Check,
    Steps,
    at_its_eps,
    chains_for,
    estimated,
    extrapolated,
    found_by,
    halved,
    judged,
    known_answer,
)
from icl_lab.analysis.llc.validation.coverage import coverages
from icl_lab.analysis.llc.validation.limits import limits
from icl_lab.analysis.llc.validation.models import hessian, made
from icl_lab.analysis.llc.validation.quadrature import Answer
from icl_lab.analysis.llc.validation.targets import COLD, REGULAR, TEN, of_quadratic


class Matrices(NamedTuple):
    """A formula of matrices, and the gamma and eps at nbeta = 1e4 at which its chains forget w* in time.

    gamma is as large as lambda allows: more of it relaxes chains faster, and takes more from the estimate. sampler:
    with friction .1 chains relax in a tenth of the steps.
    """

    formula: str
    gamma: float
    eps: float
    sampler: str = "sghmc"


MATRICES = (
    *(
        Matrices("deep_linear((4, 4, 4), 2)", 10, 1.5e-5, "sgld"),
        Matrices("deep_linear((5, 3, 5), 0)", 5, 5e-5, "sgld"),
    ),
    *(Matrices("deep_linear((5, 4, 5), 0)", 10, 5e-5, "sgld"), Matrices("deep_linear((4, 3, 8), 0)", 10, 5e-5, "sgld")),
    *(
        Matrices("deep_linear((8, 3, 4), 0)", 10, 5e-5, "sgld"),
        Matrices("deep_linear((3, 8, 4), 0)", 10, 2.5e-5, "sgld"),
    ),
    *(Matrices("deep_linear((8, 8, 8, 8), 0)", 6, 1e-5), Matrices("deep_linear((8, 8, 8, 8), 4)", 20, 5e-6)),
    *(Matrices("deep_linear((10, 10, 10), 3)", 10, 7e-6), Matrices("deep_linear((2, 2, 2), 0)", 3, 5e-5, "sgld")),
    *(Matrices("deep_linear((6, 2, 6), 1)", 10, 1.5e-5), Matrices("deep_linear((3, 5, 4), 1)", 10, 1.5e-5)),
    *(Matrices("deep_linear((5, 5, 5), 2)", 10, 1.2e-5), Matrices("deep_linear((6, 4, 3), 3)", 10, 1e-5)),
    *(Matrices("deep_linear((6, 3, 6), 2)", 10, 1.2e-5), Matrices("deep_linear((6, 5, 4, 3), 0)", 5, 3e-5)),
    *(Matrices("deep_linear((4, 4, 4, 4), 1)", 5, 7e-6), Matrices("deep_linear((5, 3, 4, 5), 1)", 5, 7e-6)),
    Matrices("deep_linear((8, 4, 4, 6), 2)", 10, 5e-6),
)
FURTHER = (  # shapes and points that no earlier table had, of multiplicity 1 all but the last four
    *(Matrices("deep_linear((7, 3, 5), 2)", 10, 1.2e-5), Matrices("deep_linear((3, 3, 3), 1)", 10, 1.5e-5)),
    *(Matrices("deep_linear((6, 3, 4), 1)", 10, 1.5e-5), Matrices("deep_linear((4, 6, 4), 2)", 10, 1.2e-5)),
    *(Matrices("deep_linear((5, 5, 5), 1)", 10, 1.2e-5), Matrices("deep_linear((6, 5, 6), 1)", 10, 1.2e-5)),
    *(Matrices("deep_linear((8, 3, 8), 1)", 10, 1.2e-5), Matrices("deep_linear((6, 6, 6), 2)", 10, 1e-5)),
    *(Matrices("deep_linear((6, 4, 4, 6), 2)", 10, 6e-6), Matrices("deep_linear((6, 2, 3, 6), 1)", 5, 8e-6)),
    *(Matrices("deep_linear((4, 5, 6, 4), 1)", 5, 7e-6), Matrices("deep_linear((4, 2, 4), 0)", 5, 5e-5)),
    *(Matrices("deep_linear((7, 2, 4), 0)", 5, 5e-5), Matrices("deep_linear((3, 4, 3), 0)", 5, 5e-5)),
    *(Matrices("generic((5, 3, 5), 0)", 100, 1.5e-5), Matrices("generic((7, 3, 5), 2)", 100, 1e-5)),
    *(Matrices("generic((4, 4, 4, 4), 1)", 100, 7e-6), Matrices("generic((6, 3, 4), 1, 2)", 100, 1e-5)),
    *(Matrices("deep_linear((3, 3, 3), 0)", 5, 5e-5), Matrices("deep_linear((2, 1, 2), 0)", 1, 1e-4)),
    *(Matrices("deep_linear((6, 4, 6), 1)", 10, 1.2e-5), Matrices("deep_linear((4, 4, 4), 1)", 10, 1.5e-5)),
)
CROSSINGS = ((1, 1), (0, 1), (0, 2), (1, 2), (2, 2), (1, 3))
BY_RANK = (10, 5, 10)  # widths of the regression whose rank goes from 0 to 5
EXACT = 0.03  # of a closed form at the same eps
NEARLY = 0.02  # of the answer, by which RMSprop differs where its step sizes are nearly constant


# --- sections: the checks of one case after the other ---


def quadratics(_: Answers) -> Iterator[list[Check]]:
    """Minima of full and of lower rank, at a small and a large gamma / nbeta, and off a minimum: at their eps."""
    for formula, nbeta, gamma, eps in (
        (f"quadratic({REGULAR})", 100.0, 10.0, 5e-5),
        (f"quadratic({REGULAR})", 100.0, 10.0, 9e-5),
        (f"quadratic({REGULAR})", 133.3, 1333.0, 1e-5),
        ("quadratic((1.0, 10.0, 0.0, 0.0))", 1e3, 10.0, 5e-5),
        (f"quadratic({TEN})", 1e4, 1.0, 1e-5),
        (f"quadratic({TEN}, 0.1)", 1e3, 1e3, 1e-4),
    ):
        model, steps = made(formula), Steps(eps, nbeta, gamma, chains=128)
        answer = Answer(of_quadratic(model, nbeta, gamma, eps), 0.0, "closed form")
        yield [at_its_eps("quadratic", model, steps, answer, EXACT)]


def data_sets(answers: Answers) -> Iterator[list[Check]]:
    """Least squares: minibatches, all data, a strong pull, a part of the weights, and losses of a second data set."""
    formula = "regression(1000, 10)"
    for gamma, nbeta, eps, batch_size in ((1.0, 144.8, 5e-5, None), (1333.0, 133.3, 1e-5, 64)):
        model, answer = known_answer(answers, formula, nbeta, gamma)
        steps = Steps(eps, nbeta, gamma, chains=64, batch_size=batch_size, thin=10)
        yield [at_its_eps("data", model, steps, answer, 0.05)]
    model, steps = made(formula), Steps(5e-5, 144.8, 1.0, chains=64, thin=10)
    h, moves = hessian(model), np.arange(10) < 4
    part = Answer(known.quadratic(np.linalg.eigvalsh(h[:4, :4]), 144.8, 1.0, 5e-5), 0.0, "closed form")
    masked = model._replace(name=f"{model.name}, 4 of which move", local=known.regular(4))
    yield [at_its_eps("mask", masked, steps, part, EXACT, mask=moves)]
    second = models.regression_data(1000, 10, 0.7, seed=1)
    other = hessian(model._replace(data=second))
    spread = np.linalg.inv(144.8 * h + np.eye(10))  # the variance of w, of which the second set's losses are a trace
    there = Answer(float(144.8 * np.trace(other @ spread) / 2), 0.0, "closed form")
    found = estimated(model, steps, measured_on=tuple(map(np.float32, second)))
    means = 144.8 * found.traces["measured"].mean(axis=1, where=_late(found.traces["measured"], steps))
    measured = model._replace(name=f"{model.name}, on a second set")
    yield [judged("second data set", measured, steps, found_by(found)._replace(means=means), there)]


def _late(checks: np.ndarray, steps: Steps) -> np.ndarray:
    """Which checks [C, K] are after the burn-in."""
    share = steps.burn_in / (steps.burn_in + steps.draws)
    return np.broadcast_to(np.arange(checks.shape[1]) >= share * checks.shape[1], checks.shape)


def samplers(answers: Answers) -> Iterator[list[Check]]:
    """The samplers on quadratics, a crossing and matrices, at a step that biases them little.

    RMSprop is asked where its step sizes are nearly constant: gradients well below its damping of .1. Where they are
    not it draws from another posterior, however small eps is (`wrong_estimators`).
    """
    steep, ten = f"quadratic({REGULAR})", f"quadratic({TEN})"
    crossing, matrices = "crossing(0, 2)", "deep_linear((4, 2, 4), 0)"
    for formula, nbeta, gamma, chains, sampler, eps, thin in (
        (steep, 100.0, 10.0, 128, "sgld", 1e-5, 60),
        (steep, 100.0, 10.0, 128, "sghmc", 1e-5, 15),
        (steep, 100.0, 10.0, 128, "hmc", 1e-2, 1),
        (ten, COLD, 1.0, 64, "rmsprop", 5e-7, 20),
        (crossing, 145.0, 1.0, 256, "sgld", 2e-4, 60),
        (crossing, 145.0, 1.0, 256, "sghmc", 2e-4, 15),
        (crossing, 145.0, 1.0, 256, "hmc", 1e-2, 1),
        (matrices, COLD, 5.0, 32, "sgld", 8e-6, 160),
        (matrices, COLD, 5.0, 32, "rmsprop", 8e-7, 160),
        (matrices, COLD, 5.0, 32, "sghmc", 8e-6, 30),
        (matrices, COLD, 5.0, 64, "hmc", 1e-3, 1),
    ):
        model, answer = known_answer(answers, formula, nbeta, gamma)
        if sampler == "rmsprop":
            answer = answer._replace(error=NEARLY * answer.value)
        burn_in, draws = (100, 200) if sampler == "hmc" else (300, 600)
        yield [at_its_eps("samplers", model, Steps(eps, nbeta, gamma, chains, burn_in, draws, thin, sampler), answer)]


def rescalings(_: Answers) -> Iterator[list[Check]]:
    """A ReLU unit whose weights are scaled by c and 1 / c: the function is the same, and so is the coefficient."""
    for scale in (1.0, 0.25, 4.0):
        model, steps = models.relu_unit(scale), Steps(1e-6, COLD, 1.0, chains=128)
        steepest = np.array([2 * model.null_loss * (scale**2 + scale**-2)])
        answer = Answer(known.quadratic(steepest, COLD, 0.0, steps.eps), 0.0, "closed form")
        yield [at_its_eps("rescaling", model, steps, answer, EXACT)]


def crossings(answers: Answers) -> Iterator[list[Check]]:
    """Losses without a Hessian at w*, or with one of lower rank, compared with quadrature."""
    plain = [(f"crossing({a}, {b})", 145.0, 1.0, 8e-4, 512) for a, b in CROSSINGS]
    for formula, nbeta, gamma, eps, chains in (
        *plain,
        ("powers(2, 10)", 145.0, 1.0, 8e-4, 64),
        ("crossing(2, 1, (1.0, 0.0))", COLD, 100.0, 2e-5, 512),
        ("crossing(2, 1, (1.0, 0.0))", COLD, 10.0, 1e-5, 512),
        ("line_and_dot(1, 2, True)", COLD, 100.0, 1e-5, 512),
        ("sphere(2)", 1e3, 10.0, 4e-5, 512),
        ("sphere(10)", COLD, 10.0, 4e-6, 256),
    ):
        model, answer = known_answer(answers, formula, nbeta, gamma)
        yield [extrapolated("crossing", model, halved(eps, nbeta, gamma, chains), answer)]


def matrices(answers: Answers) -> Iterator[list[Check]]:
    """Reduced-rank regression and deep linear networks: at the most degenerate solutions and at generic ones."""
    for shape in MATRICES + FURTHER:
        model, answer = known_answer(answers, shape.formula, COLD, shape.gamma)
        section = "matrices" if shape in MATRICES else "further matrices"
        pair = halved(shape.eps, COLD, shape.gamma, chains_for(model), shape.sampler)
        yield [extrapolated(section, model, pair, answer)]


def ranks(_: Answers) -> Iterator[list[Check]]:
    """The LLC rises with the rank of the solution: 100 parameters, one setting for all, at one eps.

    Compared with lambda alone, within a tenth and whatever the standard error.
    """
    highest = -math.inf
    for rank in range(min(BY_RANK) + 1):
        model = models.deep_linear(BY_RANK, rank)
        steps = Steps(4e-6, COLD, 5.0, chains=16, burn_in=250, draws=500, thin=40, sampler="sghmc")
        answer = Answer(model.local.value, math.inf, "Aoyagi")
        check = at_its_eps("by rank", model, steps, answer, 0.1)
        yield [check._replace(met=check.met and check.estimate > highest, answer_error=math.nan, gap=math.nan)]
        highest = check.estimate


SECTIONS: Mapping[str, Callable[[Answers], Iterator[list[Check]]]] = {
    "quadratic": quadratics,
    "data": data_sets,
    "samplers": samplers,
    "rescaling": rescalings,
    "crossing": crossings,
    "matrices": matrices,
    "by rank": ranks,
    "coverage": coverages,
    "to infinite nbeta": limits,
    "traps": traps.traps,
}
