"""Prompts: fresh or of pools, which are nested, or of functions outside of a pool; and the curriculum."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.families.functions import task
from icl_lab.families.functions.classes.boolean import Conjunctions, Parities
from icl_lab.families.functions.classes.linear import Linear, NoisyLinear, SparseLinear
from icl_lab.families.functions.classes.mixtures import TwoNoiseLevels
from icl_lab.families.functions.config import Curriculum, FunctionModel, FunctionsConfig, PromptData
from icl_lab.families.functions.sequences import active_inputs, counted_points
from icl_lab.src.checks import ConfigError
from icl_lab.src.config import TrainConfig
from icl_lab.src.prng import Purpose, key

COUNT = 300
BASE = FunctionsConfig(
    data=PromptData(dim=4, num_pairs=6),
    model=FunctionModel(d_model=8, mlp_width=8),
    eval_tasks=COUNT,
    test_tasks=COUNT,
    training=TrainConfig(batch_size=COUNT, steps=1000),
)


def config_of(function: Any = Linear(), curriculum: Any = BASE.curriculum, **data: Any) -> FunctionsConfig:
    return replace(BASE, function=function, curriculum=curriculum, data=replace(BASE.data, **data))


def rows(values: Any) -> set[bytes]:
    return {row.tobytes() for row in np.asarray(values)}


def weights(batch: Any) -> np.ndarray:
    """The weights of linear functions, from more pairs than dimensions."""
    found = [np.linalg.lstsq(x, y, rcond=None)[0] for x, y in zip(batch.x, batch.y, strict=True)]
    return np.round(np.array(found, float), 3) + 0.0


def test_prompts_of_a_purpose_are_the_same_and_of_others_different() -> None:
    first, again = (task.prompts(BASE, Purpose.EVAL, COUNT) for _ in range(2))
    np.testing.assert_array_equal(first.x, again.x)
    other = task.prompts(BASE, Purpose.TEST_SET, COUNT)
    assert not rows(first.x) & rows(other.x)
    np.testing.assert_array_equal(first.x, first.x_query)
    assert (np.asarray(first.counted) == 1).all()
    assert (np.asarray(first.member) == 0).all()


def test_pools_are_nested_and_functions_outside_are_none_of_theirs() -> None:
    small, large = (config_of(num_functions=size) for size in (3, 8))
    of_small, of_large = (np.asarray(task.functions_of_pool(config)) for config in (small, large))
    np.testing.assert_array_equal(of_small, of_large[:3])
    inside = weights(task.prompts(large, Purpose.EVAL, COUNT))
    assert len(rows(inside)) == 8
    np.testing.assert_allclose(np.unique(inside, axis=0), np.unique(np.round(of_large, 3), axis=0), atol=2e-3)
    assert len(rows(task.prompts(large, Purpose.EVAL, COUNT).x)) == COUNT  # inputs are fresh
    outside = weights(task.prompts(large, Purpose.LATENT, COUNT, outside=True))
    assert len(rows(outside)) == COUNT
    assert not rows(outside) & rows(inside)


def test_pools_of_a_finite_class_have_different_functions_and_the_others_are_outside() -> None:
    """Of 6 parities of 4 inputs. Fresh functions are the two that a pool of four lacks."""
    config = config_of(Parities(), num_functions=4)
    pool = rows(task.functions_of_pool(config))
    assert len(pool) == 4
    assert task.has_outside(config)
    assert not task.has_outside(config_of(Parities(), num_functions=6))
    every = {row.tobytes(): row for row in Parities().every(4)}
    outside = task.prompts(config, Purpose.LATENT, COUNT, outside=True)
    told = set()
    for x, y in zip(np.asarray(outside.x), np.asarray(outside.y), strict=True):
        fitting = [name for name, chosen in every.items() if (np.where(chosen, x, 1).prod(axis=1) == y).all()]
        told |= {*fitting} if len(fitting) == 1 else set()
    assert told == {*every} - pool


def test_likely_functions_stand_first_in_pools() -> None:
    """Sampling without replacement from the prior: the first has .3 D literals in the mean."""
    function, first = Conjunctions(), []
    for seed in range(40):
        config = replace(config_of(function, num_functions=1), data_seed=seed)
        first.append(int(np.abs(np.asarray(task.functions_of_pool(config))).sum()))
    assert abs(np.mean(first) - 4 * 0.3) < 5 * np.sqrt(4 * 0.3 * 0.7 / 40)


def test_whole_prompts_repeat() -> None:
    config = config_of(num_prompts=5)
    seen = task.prompts(config, Purpose.EVAL, COUNT)
    assert len(rows(seen.x)) == len(rows(np.concatenate([seen.x.reshape(COUNT, -1), seen.y], axis=1))) == 5
    other = task.prompts(config, Purpose.TEST_SET, COUNT)
    assert rows(seen.x) == rows(other.x)
    assert len(rows(task.prompts(config, Purpose.LATENT, COUNT, outside=True).x)) == COUNT


def test_a_curriculum_is_a_function_of_the_step_that_ends_at_all_inputs_and_pairs() -> None:
    curriculum = Curriculum(start_dims=2, dims_every=10, start_points=3, points_by=2, points_every=5)
    for step, dims, points in ((0, 2, 3), (4, 2, 3), (5, 2, 5), (9, 2, 5), (10, 3, 6), (20, 4, 6), (999, 4, 6)):
        assert int(active_inputs(curriculum, 4, jnp.int32(step)).sum()) == dims
        assert int(counted_points(curriculum, 6, jnp.int32(step)).sum()) == points
    config = config_of(SparseLinear(sparsity=2), curriculum)
    draw = jax.jit(task.batches(config))
    batch = draw(key(0), jnp.int32(5), task.batched(config), {})
    assert (np.asarray(batch.x)[..., 2:] == 0).all()
    assert (np.asarray(batch.x)[..., :2] != 0).all()
    np.testing.assert_array_equal(np.asarray(batch.counted)[0], [1, 1, 1, 1, 1, 0])
    evaluated = task.prompts(config, Purpose.EVAL, COUNT)
    assert (np.asarray(evaluated.x) != 0).all()


def test_points_grow_with_a_pool_too() -> None:
    config = config_of(curriculum=Curriculum(start_points=3, points_every=10), num_functions=2)
    batch = task.batches(config)(key(0), jnp.int32(10), task.batched(config), {})
    assert len(rows(weights(batch))) == 2
    np.testing.assert_array_equal(np.asarray(batch.counted)[0], [1, 1, 1, 1, 1, 0])


def test_predictions_that_do_not_count_change_no_loss() -> None:
    model = task.make_model(BASE)
    params = jax.jit(model.init)(key(0))
    batch = task.first(task.prompts(BASE, Purpose.EVAL, COUNT), 8)
    batch = batch._replace(counted=jnp.broadcast_to(jnp.array([1.0, 1, 0, 0, 0, 0])[None], (8, 6)))
    errors = (np.asarray(model.predict(params, batch)) - np.asarray(batch.y_query)) ** 2 / 2
    assert float(model.loss(params, batch)) == pytest.approx(errors[:, :2].mean(), rel=1e-5)
    np.testing.assert_allclose(model.losses(params, batch), errors[:, :2].mean(axis=1), rtol=1e-5)
    changed = batch._replace(y_query=batch.y_query.at[:, 2:].set(9.0))
    assert float(model.loss(params, changed)) == float(model.loss(params, batch))


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: config_of(Parities(), num_functions=7), "num_functions is 7, but there are 6 functions of the class"),
        (lambda: config_of(TwoNoiseLevels(), num_functions=7), "a mixture, two_noise_levels, has no pool"),
        (lambda: config_of(curriculum=Curriculum(start_dims=5)), "start_dims is 5; it must be at most dim, 4"),
        (
            lambda: config_of(curriculum=Curriculum(start_dims=2, dims_every=500)),
            "the curriculum reaches dim 4 after 1000 steps, and training ends after 1000",
        ),
        (
            lambda: config_of(curriculum=Curriculum(start_dims=2, dims_every=5), num_functions=4),
            "a pool has functions and prompts of all inputs",
        ),
        (
            lambda: config_of(SparseLinear(sparsity=3), Curriculum(start_dims=2, dims_every=5)),
            "start_dims is 2; functions of the class sparse_linear need 3 inputs",
        ),
        (
            lambda: config_of(Parities(), Curriculum(start_dims=1, dims_every=5)),
            "start_dims is 1; functions of the class parities need 2 inputs",
        ),
        (
            lambda: config_of(Conjunctions(), dim=11, num_functions=4),
            "num_functions is 4, but a pool of different functions is drawn from a list",
        ),
        (
            lambda: replace(config_of(Parities()), model=replace(BASE.model, loss="absolute_error")),
            "loss is 'absolute_error', which does not fit the labels of parities; it must be class or logistic_loss",
        ),
        (lambda: NoisyLinear(noise_std=0.0), "noise_std is 0.0; it must be above 0"),
    ],
)
def test_what_cannot_be_trained_is_refused(made: Any, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        made()
