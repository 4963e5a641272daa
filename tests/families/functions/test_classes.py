"""Function classes against their theory: variances, counts, priors, labels, and what a curriculum leaves at 0."""

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.families.functions.function_class import CLASSES, NUMBER, SIGN, FunctionClass
from icl_lab.src.checks import ConfigError
from icl_lab.src.prng import key, purpose_key
from icl_lab.src.registries import FUNCTION_CLASSES

DIM, PAIRS, COUNT = 4, 10, 3000
OTHER = {"sparse_linear": {"sparsity": 2}, "nearest_neighbour": {"landmarks": 4}, "decision_tree": {"depth": 2}}
ALL = {name: FUNCTION_CLASSES[name](**OTHER.get(name, {})) for name in FUNCTION_CLASSES.built_in}
FINITE = {
    "sign_vector": 2**DIM,
    "conjunctions": 3**DIM,
    "disjunctions": 3**DIM,
    "parities": math.comb(DIM, 2),
    "majority": 2 ** (DIM - 1),
}


class Drawn(NamedTuple):
    """Functions and a prompt of each, in NumPy."""

    parameters: Any
    x: np.ndarray
    y: np.ndarray
    target: np.ndarray
    label: np.ndarray


@lru_cache
def drawn(name: str, active: int = DIM, dim: int = DIM, pairs: int = PAIRS) -> Drawn:
    """Many functions of a class, and a prompt of each."""
    function, used = ALL[name], jnp.arange(dim) < active

    def prompt(one: jax.Array) -> tuple[Any, ...]:
        parameters = function.sample(purpose_key(one, 0), used)
        x = jnp.where(used[None], function.inputs(purpose_key(one, 1), parameters, (pairs, dim)), 0)
        y, target = function.labels(purpose_key(one, 2), parameters, x)
        return parameters, x, y, target, function.label(parameters, x)

    keys = jax.random.split(key(0), COUNT)
    return Drawn(*jax.tree.map(np.asarray, jax.jit(jax.vmap(prompt))(keys)))


@pytest.mark.parametrize("name", [name for name in ALL if ALL[name].target == NUMBER and len(ALL[name].members) == 1])
def test_errors_are_divided_by_the_variance_of_noise_free_labels(name: str) -> None:
    """Within 5 standard errors over functions; means are 0."""
    label = drawn(name).label.astype(float)
    of_function = (label**2).mean(axis=1)
    error = of_function.std(ddof=1) / math.sqrt(COUNT)
    assert of_function.mean() == pytest.approx(ALL[name].variance(DIM), abs=5 * error)
    assert abs(label.mean()) < 5 * label.mean(axis=1).std(ddof=1) / math.sqrt(COUNT)


@pytest.mark.parametrize("name", FINITE)
def test_a_finite_class_lists_every_function_once_with_its_probability(name: str) -> None:
    """How often functions are drawn, within 5 standard errors; those of conjunctions follow from the literals."""
    function, count = ALL[name], FINITE[name]
    every = np.asarray(function.every(DIM), float)
    assert function.count(DIM) == len(every) == len(np.unique(every, axis=0)) == count
    probability = np.exp(function.log_prior(DIM))
    assert probability.sum() == pytest.approx(1)
    found = np.asarray(drawn(name).parameters, float)
    share = (found[:, None] == every[None]).all(axis=2).mean(axis=0)
    assert share.sum() == 1
    np.testing.assert_array_less(np.abs(share - probability), 5 * np.sqrt(probability / COUNT) + 1e-12)
    if "junctions" in name:
        literals = np.abs(every).sum(axis=1)
        np.testing.assert_allclose(probability, 0.15**literals * 0.7 ** (DIM - literals), rtol=1e-6)


@pytest.mark.parametrize("name", ["conjunctions", "disjunctions", "parities", "majority"])
def test_boolean_functions_that_are_listed_are_different(name: str) -> None:
    """Over all 2^D inputs no two have the same labels; a conjunction without literals is the only one that is so."""
    inputs = 1 - 2 * ((np.arange(2**DIM)[:, None] >> np.arange(DIM)) % 2).astype(np.float32)
    labels = jax.vmap(ALL[name].label, in_axes=(0, None))(jnp.asarray(ALL[name].every(DIM)), jnp.asarray(inputs))
    assert len(np.unique(np.asarray(labels), axis=0)) == FINITE[name]


@pytest.mark.parametrize(("name", "sign"), [("conjunctions", 1), ("disjunctions", -1)])
def test_labels_of_literals_are_what_logic_says_and_half_of_them_true(name: str, sign: int) -> None:
    found = drawn(name, dim=8, active=8)
    literals, x = found.parameters[:, None], found.x
    holds = (literals != 0) & (x == literals)
    expected = holds.any(axis=2) if sign < 0 else (holds | (literals == 0)).all(axis=2)
    np.testing.assert_array_equal(found.label, np.where(expected, 1.0, -1.0))
    assert 0.4 < expected.mean() < 0.6
    assert {*np.unique(x)} == {-1.0, 1.0}


def test_planted_inputs_have_the_density_that_the_posterior_counts() -> None:
    """Of one conjunction of two literals: p(x) of all 16 inputs, by counting."""
    function = ALL["conjunctions"]
    literals = jnp.array([1.0, -1.0, 0.0, 0.0])
    x = np.asarray(function.inputs(key(3), literals, (40_000, DIM)))
    inputs = 1 - 2 * ((np.arange(2**DIM)[:, None] >> np.arange(DIM)) % 2).astype(np.float32)
    share = (x[:, None] == inputs[None]).all(axis=2).mean(axis=0)
    density = np.exp(function.log_density(literals, jnp.asarray(inputs))) / 2**DIM
    assert density.sum() == pytest.approx(1, rel=1e-5)
    np.testing.assert_allclose(share, density, atol=5 * np.sqrt(0.2 / 40_000))


def test_parities_and_majorities_are_products_and_signs_of_sums() -> None:
    for name in ("parities", "majority"):
        found = drawn(name)
        chosen = found.parameters[:, None]
        expected = np.where(chosen, found.x, 1).prod(axis=2) if name == "parities" else None
        sums = np.where(chosen, found.x, 0).sum(axis=2)
        np.testing.assert_array_equal(found.label, np.sign(sums) if expected is None else expected)
    assert {*drawn("parities").parameters.sum(axis=1)} == {2}
    assert {*drawn("majority").parameters.sum(axis=1)} == {1, 3}


def test_linear_classes_are_what_their_equations_say() -> None:
    linear, quadratic = drawn("linear"), drawn("quadratic")
    np.testing.assert_allclose(linear.label, np.einsum("bnd,bd->bn", linear.x, linear.parameters), rtol=2e-5, atol=1e-5)
    squares = np.einsum("bnd,bd->bn", quadratic.x**2, quadratic.parameters) / math.sqrt(3)
    np.testing.assert_allclose(quadratic.label, squares, rtol=1e-4, atol=1e-4)
    assert {*np.count_nonzero(drawn("sparse_linear").parameters, axis=1)} == {2}
    noise = drawn("noisy_linear").y - drawn("noisy_linear").label
    assert noise.std() == pytest.approx(0.5, rel=5 / math.sqrt(2 * noise.size))
    np.testing.assert_array_equal(drawn("noisy_linear").target, drawn("noisy_linear").y)


def test_networks_and_series_are_what_their_equations_say() -> None:
    found = drawn("relu_network")
    into, out = found.parameters
    hidden = np.maximum(np.einsum("bnd,brd->bnr", found.x, into), 0)
    expected = math.sqrt(2 / out.shape[1]) * np.einsum("bnr,br->bn", hidden, out)
    np.testing.assert_allclose(found.label, expected, rtol=1e-4, atol=1e-4)
    found = drawn("fourier")
    of_input = found.parameters[:, 1:].reshape(COUNT, 2, DIM, 3)
    angles = np.pi / 5 * found.x[..., None] * np.arange(1, 4)
    waves = np.stack([np.cos(angles), np.sin(angles)], axis=2)
    expected = found.parameters[:, :1] + np.einsum("bncdk,bcdk->bn", waves, of_input)
    np.testing.assert_allclose(found.label, expected, rtol=1e-4, atol=1e-4)


def test_a_tree_is_walked_from_its_root() -> None:
    found = drawn("decision_tree")
    for nodes, leaves, x, label in list(zip(*found.parameters, found.x, found.label, strict=True))[:50]:
        for one, expected in zip(x, label, strict=True):
            first = int(one[nodes[0]] > 0)
            second = int(one[nodes[1 + first]] > 0)
            assert leaves[2 * first + second] == expected


def test_classification_labels() -> None:
    found = drawn("linear_classification")
    np.testing.assert_array_equal(found.label, np.sign(np.einsum("bnd,bd->bn", found.x, found.parameters)))
    found = drawn("logistic_regression")
    probability = 1 / (1 + np.exp(-found.label))
    residual = (found.y + 1) / 2 - probability
    assert abs((residual * found.label).mean()) < 5 * (residual * found.label).std() / math.sqrt(found.y.size)
    found = drawn("nearest_neighbour")
    for x, y in zip(found.x[:50], found.y[:50], strict=True):
        for k in range(4, PAIRS):
            assert y[k] == y[:4][((x[:4] - x[k]) ** 2).sum(axis=1).argmin()]
    found = drawn("prototypes")
    assert {*np.unique(found.y)} == {0.0, 1.0, 2.0}
    centred = found.x - np.take_along_axis(found.parameters, found.y.astype(int)[..., None], axis=1)
    assert centred.var() == pytest.approx(1, rel=0.02)  # inputs are N(centre, I), though labels are drawn after them


@pytest.mark.parametrize("name", ALL)
def test_targets_are_of_their_kind_and_inputs_beyond_the_curriculum_are_0(name: str) -> None:
    function, found = ALL[name], drawn(name, active=2)
    assert (found.x[..., 2:] == 0).all()
    assert (found.x[..., :2] != 0).any()
    for number, member in enumerate(function.members):
        of_member = found.target if len(function.members) == 1 else found.target[found.parameters[0] == number]
        if member.target == SIGN:
            assert {*np.unique(of_member)} == {-1.0, 1.0}
        if member.target == CLASSES:
            assert {*np.unique(of_member)} == {*range(function.num_classes)}
    if name == "sparse_linear":
        assert (found.parameters[:, 2:] == 0).all()
        assert (found.parameters[:, :2] != 0).all()
    if name == "parities":
        assert found.parameters[:, :2].all()
    if name == "decision_tree":
        assert found.parameters[0].max() == 1


@pytest.mark.parametrize(
    ("name", "fields", "sentence"),
    [
        ("sparse_linear", {"sparsity": 5}, "sparsity is 5; it must be at most dim, 4"),
        ("parities", {"parity_size": 5}, "parity_size is 5; it must be at most dim, 4"),
        ("nearest_neighbour", {"landmarks": 10}, "landmarks is 10; it must be below num_pairs, 10"),
        ("decision_tree", {"depth": 13}, "depth is 13; it must be at most 12"),
    ],
)
def test_sizes_that_a_class_does_not_have_are_refused(name: str, fields: dict[str, int], sentence: str) -> None:
    function: FunctionClass = replace(ALL[name], **fields)
    with pytest.raises(ConfigError, match=sentence):
        function.check(DIM, PAIRS)


def test_noise_levels_are_in_order() -> None:
    with pytest.raises(ConfigError, match="low_noise is 2"):
        FUNCTION_CLASSES["two_noise_levels"](low_noise=2.0)
