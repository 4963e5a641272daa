from dataclasses import replace

import jax
import numpy as np
import pytest

from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import (
    batched,
    batches,
    corrupted_step_size_batch,
    evaluation_context,
    make_test_batch,
    of_fields,
    step_size_batch,
)
from icl_lab.families.task import task_key
from icl_lab.src.config import ContextConfig, TrainConfig
from icl_lab.src.data_config import DataConfig
from icl_lab.src.prng import Purpose, key

NOISE = ContextConfig(noise_mode="label_noise", noise_p=0.5, noise_sigma=0.5)
CONFIG = RegressionConfig(
    data=DataConfig(dim=3, num_pairs=4),
    training=TrainConfig(batch_size=32),
    eval_tasks=32,
    test_tasks=32,
    step_size_tasks=32,
    train=NOISE,
    eval=NOISE,
)


def training_batches(config):
    """The batch of a key and a step, with the batched hyperparameters that the engine gives to the run."""
    return lambda data_key, step: batches(config)(data_key, step, batched(config), {})


def sets_of_tasks(config):
    """One batch from every source of tasks that a run has."""
    draw = training_batches(config)
    data_key = task_key(config, Purpose.TRAIN)
    return {
        "step 0": draw(data_key, 0),
        "step 1": draw(data_key, 1),
        "evaluation": evaluation_context(config).batch,
        "headline": make_test_batch(config),
        "step size": step_size_batch(config),
        "corrupted step size": corrupted_step_size_batch(config),
    }


def numbers(batch):
    return {float(value) for value in np.concatenate([np.ravel(batch.x), np.ravel(batch.w)])}


def test_no_two_sets_of_tasks_share_a_number():
    """Of two runs as well. Two of some 480 float32 values a set may be equal by chance."""
    sets = [numbers(batch) for seed in (0, 1) for batch in sets_of_tasks(replace(CONFIG, data_seed=seed)).values()]
    for index, first in enumerate(sets):
        for second in sets[index + 1 :]:
            assert len(first & second) <= 2


def test_the_same_seed_and_step_give_the_same_bits():
    for first, second in zip(sets_of_tasks(CONFIG).values(), sets_of_tasks(CONFIG).values(), strict=True):
        for a, b in zip(first, second, strict=True):
            np.testing.assert_array_equal(a, b)


def test_training_batches_are_the_same_in_and_out_of_a_compiled_loop():
    draw, data_key = training_batches(CONFIG), key(4)
    inside = jax.jit(lambda step: draw(data_key, step))(7)
    for a, b in zip(inside, draw(data_key, 7), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)  # fused programs may round a product differently


def test_evaluation_noise_depends_on_the_seed():
    first, second = (np.asarray(evaluation_context(replace(CONFIG, data_seed=seed)).hit) for seed in (0, 1))
    assert (first != second).mean() == pytest.approx(0.5, abs=0.2)  # two fair coins, 128 pairs


def test_noise_of_train_and_eval_are_set_apart():
    clean = ContextConfig()
    only_train = replace(CONFIG, eval=clean)
    assert not np.asarray(evaluation_context(only_train).hit).any()
    told = np.einsum("bnd,bd->bn", *[sets_of_tasks(only_train)["step 0"]._asdict()[name] for name in ("x", "w")])
    assert np.abs(told - sets_of_tasks(only_train)["step 0"].y).max() > 0.1
    only_eval = sets_of_tasks(replace(CONFIG, train=clean))["step 0"]
    np.testing.assert_allclose(np.einsum("bnd,bd->bn", only_eval.x, only_eval.w), only_eval.y, atol=1e-5)


def test_every_set_of_tasks_follows_its_own_settings():
    """Training batches those of training; the evaluation and the headline those of evaluation."""
    sorted_by_norm = ContextConfig(ordering="smallnorm2largenorm")
    for train, eval_, expected in (
        (sorted_by_norm, NOISE, {"step 0", "step 1"}),
        (NOISE, sorted_by_norm, {"evaluation", "headline"}),
    ):
        sets = sets_of_tasks(replace(CONFIG, train=train, eval=eval_))
        norms = {name: np.linalg.norm(batch.x, axis=2) for name, batch in sets.items()}
        assert {name for name, values in norms.items() if (np.diff(values, axis=1) >= -1e-6).all()} == expected


def test_lane_values_stand_in_for_the_settings():
    """What differs within a pack reaches the batch as an argument, with the same bits as from the settings."""
    pack = replace(CONFIG, train=replace(NOISE, noise_p=0.0, noise_sigma=0.0))
    together = batches(pack)(key(1), 3, batched(CONFIG), {})
    for a, b in zip(together, training_batches(CONFIG)(key(1), 3), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(together.y, training_batches(pack)(key(1), 3).y)


def test_step_sizes_are_searched_on_clean_tasks():
    batch = step_size_batch(CONFIG)
    np.testing.assert_allclose(np.einsum("bnd,bd->bn", batch.x, batch.w), batch.y, atol=1e-6)


def test_step_sizes_of_a_corruption_are_searched_on_tasks_of_it():
    """The evaluation's p and sigma, not those of training: p of the labels are off, by sigma on average."""
    batch = corrupted_step_size_batch(replace(CONFIG, train=ContextConfig(), step_size_tasks=2000))
    error = np.einsum("bnd,bd->bn", batch.x, batch.w) - np.asarray(batch.y)
    hit = np.abs(error) > 1e-5
    assert hit.mean() == pytest.approx(NOISE.noise_p, abs=4 * 0.5 / np.sqrt(hit.size))
    assert error[hit].std() == pytest.approx(NOISE.noise_sigma, rel=4 / np.sqrt(2 * hit.sum()))


def test_step_sizes_of_a_corruption_do_not_depend_on_order_and_placement():
    """Which do not matter to gradient descent: they share one program and one step size."""
    placed = replace(NOISE, ordering="easy2hard", noise_placement="clean_first")
    for a, b in zip(
        corrupted_step_size_batch(replace(CONFIG, eval=placed)), corrupted_step_size_batch(CONFIG), strict=True
    ):
        np.testing.assert_array_equal(a, b)


def test_what_runs_share_of_large_contexts_does_not_take_more_tasks_than_these_allow() -> None:
    """65 536 tasks, the default, are too many for contexts of 512 pairs of 128 inputs."""
    config = replace(
        CONFIG, data=replace(CONFIG.data, num_pairs=512, dim=128), eval_tasks=8, test_tasks=16, step_size_tasks=32
    )
    kept = of_fields(config, "data", "data_seed", "eval_tasks")
    assert (kept.eval_tasks, kept.test_tasks, kept.step_size_tasks) == (8, 2, 2)
