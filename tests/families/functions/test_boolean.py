"""Posteriors of Boolean classes and of sign vectors against a loop over their functions, written out; calibration."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from icl_lab.families.functions import exact, task
from icl_lab.families.functions.classes.boolean import Conjunctions, Disjunctions, Majority, Parities
from icl_lab.families.functions.classes.linear import SignVector
from icl_lab.families.functions.config import FunctionModel, FunctionsConfig, PromptData
from icl_lab.src.prng import Purpose

ABSENT, PLANTED = 0.6, 0.3
Described = Iterator[tuple[Callable[[np.ndarray], float], float, int]]  # label of x, prior, number of literals


def mean_of(function: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The posterior's mean labels [B, N], over all functions of the class."""
    dim = x.shape[-1]
    return exact.posterior_over(function, function.every(dim), np.asarray(function.log_prior(dim)), x, y)


def juntas(dim: int, of_all: bool) -> Described:
    """All conjunctions or, of any literal, all disjunctions."""
    for literals in product((0, 1, -1), repeat=dim):
        on = [j for j in range(dim) if literals[j]]

        def label(x: np.ndarray, on: list[int] = on, literals: tuple[int, ...] = literals) -> float:
            holds = [x[j] == literals[j] for j in on]
            return 1.0 if (all(holds) if of_all else any(holds)) else -1.0

        yield label, float(np.prod([(1 - ABSENT) / 2 if each else ABSENT for each in literals])), len(on)


def parities(dim: int) -> Described:
    for chosen in combinations(range(dim), 2):
        yield (lambda x, chosen=chosen: float(np.prod(x[list(chosen)]))), 1.0, 0


def majorities(dim: int) -> Described:
    for chosen in product((0, 1), repeat=dim):
        if sum(chosen) % 2:
            yield (lambda x, chosen=chosen: 1.0 if np.dot(x, chosen) > 0 else -1.0), 1.0, 0


# class -> its functions written out, the planted share of its inputs, and their label
CLASSES: dict[str, tuple[Any, Described, float, int]] = {
    "conjunctions": (Conjunctions(absent=ABSENT, planted_share=0.0), juntas(3, True), 0.0, 1),
    "planted conjunctions": (Conjunctions(absent=ABSENT, planted_share=PLANTED), juntas(3, True), PLANTED, 1),
    "planted disjunctions": (Disjunctions(absent=ABSENT, planted_share=PLANTED), juntas(3, False), PLANTED, -1),
    "parities": (Parities(), parities(3), 0.0, 1),
    "majority": (Majority(), majorities(3), 0.0, 1),
}


@pytest.mark.parametrize("name", CLASSES)
def test_it_is_the_sum_over_all_functions(name: str) -> None:
    """Labels are those of a function in the class; weights are products of probabilities, label by label."""
    function, described, planted, wanted = CLASSES[name]
    rng, every = np.random.default_rng(0), list(described)
    x = rng.choice([-1.0, 1.0], size=(3, 5, 3))
    truth = [every[each][0] for each in (0, len(every) // 2, -1)]
    y = np.array([[f(each) for each in xs] for f, xs in zip(truth, x, strict=True)])
    found = mean_of(function, x, y)
    for b, k in product(range(3), range(5)):
        weights = [
            prior
            * np.prod([float(f(x[b, j]) == y[b, j]) for j in range(k)])
            * np.prod([1 - planted + planted * 2**size * (f(x[b, j]) == wanted) for j in range(k + 1)])
            for f, prior, size in every
        ]
        expected = np.dot(weights, [f(x[b, k]) for f, _, _ in every]) / np.sum(weights)
        assert found[b, k] == pytest.approx(expected, abs=1e-5)  # inputs' densities are in float32


def test_a_sign_vector_is_the_sum_over_all_and_known_after_one_pair() -> None:
    """Without noise the 2^D values of w.x differ; the prior's mean is 0. In float32, as runs have them."""
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(50, 4, 5)).astype(np.float32), rng.choice([-1.0, 1.0], size=(50, 1, 5))
    y = (w * x).sum(axis=2)
    found = mean_of(SignVector(), x, y)
    np.testing.assert_allclose(found[:, 0], 0, atol=1e-5)
    assert np.mean(np.abs(found - y)[:, 1:] < 1e-3) > 0.98


def test_prompts_are_drawn_as_the_posterior_says_and_to_ignore_what_inputs_tell_loses() -> None:
    """Of conjunctions: E[y - mean] is 0 wherever the mean lies, within 4 standard errors; other shares lose."""
    data, model = PromptData(dim=4, num_pairs=5), FunctionModel(d_model=8, mlp_width=8)
    config = replace(FunctionsConfig(data=data, model=model), function=Conjunctions(absent=0.7, planted_share=PLANTED))
    batch = task.prompts(config, Purpose.TEST_SET, 3000)
    x, y = np.asarray(batch.x, float), np.asarray(batch.y, float)

    def last(share: float) -> np.ndarray:
        return mean_of(Conjunctions(absent=0.7, planted_share=share), x, y)[:, 4]

    def log_loss(mean: np.ndarray) -> float:
        return float(-np.log(np.maximum((1 + mean * y[:, 4]) / 2, 1e-12)).mean())

    found = last(PLANTED)
    for low in (-1.0, -0.5, 0.0, 0.5):
        inside = (found >= low) & (found < low + 0.5) & (np.abs(found) < 0.999)
        error = np.sqrt(np.mean(1 - found[inside] ** 2) / inside.sum())
        assert abs(np.mean((y[:, 4] - found)[inside])) < 4 * error
    for other in (0.0, 0.15, 0.6):
        assert log_loss(last(other)) > log_loss(found)
