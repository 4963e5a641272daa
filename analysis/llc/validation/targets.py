"""What an estimate of the LLC has to give: models, data, points, lambda and the answer at (nbeta, gamma), as a table.

The answer is nbeta E[L(w) - L(w*)] under exp(-nbeta L - gamma/2 |w - w*|^2), by a closed form, by quadrature or by HMC,
all in NumPy: any estimator can be run on `models.made(formula)` and compared. lambda is the limit at large nbeta of the
chain that stays near w*; no finite nbeta reaches it, and the gap says by how much: answer / lambda - 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.analysis.llc.validation import hmc, known
from icl_lab.analysis.llc.validation.models import KnownLoss, gradient, hessian, made, parsed
from icl_lab.analysis.llc.validation.quadrature import Answer, even_axis, integrated, log_axis, radial, rank_regression
from icl_lab.src.checks import ConfigError, require

TABLE = "targets.csv"
ALONG_NO_AXIS = (
    "line_and_dot",
    "sphere",
    "relu_unit",
    "saddle",
)  # solutions that an axis spaced by logarithms would miss
REGULAR, TEN = (1.0, 10.0, 100.0), (1.0,) * 10
COLD = 1e4  # nbeta of matrices
OFF = ((1e4, 1.0), (1e4, 10.0), (1e4, 100.0), (1e10, 10.0), (1e10, 100.0))
CROSSINGS = ((1, 1), (0, 1), (0, 2), (1, 2), (2, 2), (1, 3))
CLOSED: dict[str, tuple[tuple[float, float], ...]] = {  # formula -> the (nbeta, gamma) asked
    f"quadratic({REGULAR})": ((100.0, 10.0), (1e4, 1.0), (133.3, 1333.0)),
    "quadratic((1.0, 10.0, 0.0, 0.0))": ((1e3, 10.0),),
    f"quadratic({TEN})": ((1e4, 1.0), (1e3, 1e3)),
    f"quadratic({TEN}, 0.1)": ((1e3, 1e3),),
    "regression(1000, 10)": ((144.8, 1.0), (133.3, 1333.0)),
}
BY_QUADRATURE: dict[str, tuple[tuple[float, float], ...]] = {
    **{f"crossing({a}, {b})": ((30.0, 1.0), (145.0, 1.0), (1e4, 1.0)) for a, b in CROSSINGS},
    "crossing(2, 3)": ((1e4, 1.0),),
    "crossing(3, 3)": ((1e4, 1.0),),
    "crossing(2, 1, (1.0, 0.0))": OFF,
    "crossing(1, 2, (1.0, 0.0))": ((1e4, 100.0),),
    "crossing(1, 2, (0.0, 1.0))": ((1e4, 100.0),),
    "powers(2, 10)": ((145.0, 1.0), (1e4, 1.0)),
    "powers(3, 4)": ((1e4, 1.0),),
    "quartic(0.001)": ((1e4, 0.1), (1e4, 1.0)),
    "line_and_dot(1, 2)": ((1e4, 10.0),),
    "line_and_dot(1, 2, True)": ((1e4, 10.0), (1e4, 100.0)),
    "sphere(2)": ((1e3, 10.0), (1e4, 10.0)),
    "saddle()": ((100.0, 10.0),),
    "well(10)": ((10.0, 0.01), (1e3, 10.0)),
    **{f"relu_unit({scale})": ((1e4, 1.0),) for scale in (1.0, 0.25, 4.0)},
    **{
        f"deep_linear({widths}, 0)": ((COLD, gamma),)
        for widths, gamma in (
            *(((2, 2, 2), 3.0), ((4, 3, 8), 10.0), ((8, 3, 4), 10.0), ((3, 8, 4), 10.0)),
            *(((4, 2, 4), 5.0), ((7, 2, 4), 5.0), ((3, 4, 3), 5.0), ((3, 3, 3), 5.0), ((2, 1, 2), 1.0)),
        )
    },
    "deep_linear((5, 3, 5), 0)": ((COLD, 5.0), (COLD, 1.0)),
}
BY_HMC: dict[str, tuple[tuple[float, float], ...]] = {
    "sphere(10)": ((COLD, 10.0),),
    **{
        f"deep_linear({widths}, {rank})": ((COLD, gamma),)
        for widths, rank, gamma in (
            *(((4, 4, 4), 2, 10.0), ((5, 4, 5), 0, 10.0), ((8, 8, 8, 8), 0, 6.0), ((8, 8, 8, 8), 4, 20.0)),
            *(((10, 10, 10), 3, 10.0), ((6, 2, 6), 1, 10.0), ((3, 5, 4), 1, 10.0), ((5, 5, 5), 2, 10.0)),
            *(((6, 4, 3), 3, 10.0), ((6, 3, 6), 2, 10.0), ((6, 5, 4, 3), 0, 5.0), ((4, 4, 4, 4), 1, 5.0)),
            *(((5, 3, 4, 5), 1, 5.0), ((8, 4, 4, 6), 2, 10.0)),
            *(((7, 3, 5), 2, 10.0), ((3, 3, 3), 1, 10.0), ((6, 3, 4), 1, 10.0), ((4, 6, 4), 2, 10.0)),
            *(((5, 5, 5), 1, 10.0), ((6, 5, 6), 1, 10.0), ((8, 3, 8), 1, 10.0), ((6, 6, 6), 2, 10.0)),
            *(((6, 4, 4, 6), 2, 10.0), ((6, 2, 3, 6), 1, 5.0), ((4, 5, 6, 4), 1, 5.0), ((3, 3, 3, 3), 0, 3.0)),
            *(((6, 4, 6), 1, 10.0), ((4, 4, 4), 1, 10.0), ((3, 3, 3, 3), 1, 5.0)),
        )
    },
    "generic((5, 3, 5), 0)": ((COLD, 100.0), (COLD, 10.0)),
    "generic((7, 3, 5), 2)": ((COLD, 100.0),),
    "generic((4, 4, 4, 4), 1)": ((COLD, 100.0),),
    "generic((6, 3, 4), 1, 2)": ((COLD, 100.0),),
}
ASKED = [
    (formula, by, nbeta, gamma)
    for by, formulas in (("closed form", CLOSED), ("quadrature", BY_QUADRATURE), ("HMC", BY_HMC))
    for formula, settings in formulas.items()
    for nbeta, gamma in settings
]


class Target(NamedTuple):
    """A row: the model, its data and how many parameters; w* in words and by the formula that gives it; the answer.

    lambda_local at w*, of this multiplicity; lambda_global, the smallest of all solutions, to which a chain tends that
    leaves w*. gap = answer / lambda_local - 1.
    """

    model: str
    data: str
    parameters: int
    point: str
    formula: str
    lambda_local: float
    lambda_global: float
    multiplicity: int
    nbeta: float
    gamma: float
    answer: float
    answer_error: float
    by: str
    gap: float


def targets(asked: Iterable[tuple[str, str, float, float]] = tuple(ASKED)) -> Iterator[Target]:
    """The rows of (formula, by, nbeta, gamma)."""
    for formula, by, nbeta, gamma in asked:
        model, found = made(formula), answer(formula, by, nbeta, gamma)
        yield Target(
            model=model.name,
            data=model.given,
            parameters=len(model.point),
            point=model.at,
            formula=formula,
            lambda_local=float(f"{model.local.value:.12g}"),
            lambda_global=float(f"{model.whole.value:.12g}"),
            multiplicity=model.local.multiplicity,
            nbeta=nbeta,
            gamma=gamma,
            answer=float(f"{found.value:.6g}"),
            answer_error=float(f"{found.error:.1g}"),
            by=found.by,
            gap=float(f"{found.value / model.local.value - 1:.3g}"),
        )


def answer(formula: str, by: str, nbeta: float, gamma: float) -> Answer:
    """nbeta E[L(w) - L(w*)] of a formula's model by a closed form, by quadrature or by HMC."""
    model, (name, arguments) = made(formula), parsed(formula)
    if by == "HMC":
        return hmc.answer(model, nbeta, gamma)
    if by == "closed form":
        require(name in ("quadratic", "regression"), f"{formula} has no closed form")
        return Answer(of_quadratic(model, nbeta, gamma), 0.0, by)
    if name == "deep_linear":
        require(arguments[1] == 0 and len(arguments[0]) == 3, f"{formula} is not by quadrature: ask for HMC")
        inputs, hidden, outputs = arguments[0]
        return rank_regression(inputs, hidden, outputs, nbeta, gamma)
    if name == "well":
        return radial(model, nbeta, gamma)
    if name == "powers":  # a sum over weights that know nothing of each other
        one = integrated(made(f"powers({arguments[0]}, 1)"), nbeta, gamma, log_axis)
        return one._replace(value=arguments[1] * one.value, error=arguments[1] * one.error)
    return integrated(model, nbeta, gamma, even_axis if name in ALONG_NO_AXIS else log_axis)


def of_quadratic(model: KnownLoss, nbeta: float, gamma: float, eps: float = 0.0) -> float:
    """`known.quadratic` of the Hessian and the slope at w*, of a loss that is quadratic: by SGLD of this step."""
    h, vectors = np.linalg.eigh(hessian(model))
    return known.quadratic(h, nbeta, gamma, eps, gradient(model, model.point) @ vectors)


def read(path: Path) -> list[Target]:
    """The rows of a table; `ConfigError` if it is none."""
    import pandas as pd

    table = pd.read_csv(path)
    if list(table.columns) != list(Target._fields):
        raise ConfigError(f"{path} is not a table of targets; python -m scripts.llc_targets writes one")
    rows: list[dict[Any, Any]] = table.to_dict("records")
    return [Target(**row) for row in rows]
