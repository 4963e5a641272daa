"""The sets of sequences of a run: apart from each other, of one pool, and paired between runs that differ in M."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest

from icl_lab.families.diversity import task as diversity
from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.families.diversity.task import (
    batches,
    latent_sequences,
    make_test_sequences,
    pool_of,
    pool_sequences,
    root_sequences,
)
from icl_lab.runners.pack import batched_hyperparameters
from icl_lab.src.config import TrainConfig
from icl_lab.src.data_config import PoolData

COUNT, DIM, PAIRS, TASKS = 32, 3, 4, 16
CONFIG = DiversityConfig(
    data=PoolData(dim=DIM, num_pairs=PAIRS, input_distribution="gaussian", noise_std=0.5, num_tasks=TASKS),
    training=TrainConfig(batch_size=COUNT),
    eval_tasks=COUNT,
    test_tasks=COUNT,
)
INFINITE = 0

# Programs that run a few times: compiling them for speed, which rounds otherwise, would take most of the time.
compiled = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
draw = compiled(batches(CONFIG))


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        draw_a_set = compiled(diversity._sample.__wrapped__, static_argnames=("data", "count"))
        patch.setattr(diversity, "_sample", draw_a_set)
        yield


def of(num_tasks, **parts):
    """The config with M tasks."""
    return replace(CONFIG, data=replace(CONFIG.data, num_tasks=num_tasks), **parts)


def training_sequences(config, step):
    """A training batch, with the keys and the batched hyperparameters that the engine gives to the run."""
    run = jax.tree.map(lambda leaf: leaf[0], batched_hyperparameters([config], 1))
    return draw(run.data_key, step, run.batched, {})


def sets_of_sequences(config):
    """One batch from every source of sequences that a run has."""
    inside, outside = make_test_sequences(config)
    return {
        "step 0": training_sequences(config, 0),
        "step 1": training_sequences(config, 1),
        "in distribution": pool_sequences(config),
        "latent": latent_sequences(config),
        "headline": inside,
        "latent headline": outside,
        "root": root_sequences(config, COUNT),
    }


FRESH = ("latent", "latent headline")


def rows(tasks):
    return {row.tobytes() for row in np.asarray(tasks)}


def noise(batch):
    x, y, w = (np.asarray(part, np.float64) for part in (batch.x, batch.y, batch.w))
    return y - np.einsum("bkd,bd->bk", x, w)


def test_no_two_sets_share_an_input():
    """Of two data seeds as well: no two of all inputs are within 1e-4 of each other, as one would be but for rounding.
    Two Gaussians are by chance with probability 4/3 pi 1e-12 / (4 pi)^1.5 = 1e-13, and there are 1.6e6 pairs of them.
    """
    inputs = np.concatenate(
        [
            np.asarray(batch.x, np.float64).reshape(-1, DIM)
            for seed in (0, 1)
            for batch in sets_of_sequences(replace(CONFIG, data_seed=seed)).values()
        ]
    )
    assert len(inputs) == 14 * COUNT * PAIRS
    apart = np.linalg.norm(inputs[:, None] - inputs[None], axis=2)
    assert apart[~np.eye(len(inputs), dtype=bool)].min() > 1e-4


@pytest.mark.parametrize("num_tasks", [1, TASKS])
def test_tasks_in_distribution_are_the_pools_and_latent_ones_are_not(num_tasks):
    """Those of training too: all are rows of the pool that dMMSE is given, but for rounding by other programs."""
    config = of(num_tasks)
    pool = np.asarray(pool_of(config))
    assert (pool.shape, len(rows(pool))) == ((num_tasks, DIM), num_tasks)
    seen = set()
    for name, batch in sets_of_sequences(config).items():
        apart = np.abs(np.asarray(batch.w)[:, None] - pool[None]).max(axis=2)  # [B, M]
        if name in FRESH:
            assert apart.min() > 1e-4
        else:
            assert apart.min(axis=1).max() < 1e-6
            seen |= set(apart.argmin(axis=1).tolist())
    assert seen == set(range(num_tasks))  # each is missed by 128 draws with probability e^-8


def test_an_infinite_pool_has_no_tasks_and_its_sequences_fresh_ones():
    config = of(INFINITE)
    assert pool_of(config).shape == (0, DIM)
    fresh = [rows(batch.w) for name, batch in sets_of_sequences(config).items() if name != "root"]
    assert len(set.union(*fresh)) == len(fresh) * COUNT


def test_pools_of_one_seed_are_nested():
    large, small = pool_of(of(4 * TASKS)), pool_of(CONFIG)
    np.testing.assert_array_equal(large[:TASKS], small)
    np.testing.assert_array_equal(pool_of(CONFIG, 5), small[:5])
    np.testing.assert_array_equal(pool_of(of(INFINITE), TASKS), small)
    assert not rows(small) & rows(pool_of(replace(CONFIG, data_seed=1)))
    np.testing.assert_array_equal(pool_of(replace(CONFIG, init_seed=1)), small)


@pytest.mark.parametrize("other", [1, 4, 4 * TASKS, INFINITE])
def test_runs_that_differ_in_m_are_looked_at_with_the_same_sequences(other):
    """Latent sequences and those of the root task to the bit; elsewhere inputs, and noise but for rounding at 1e-6."""
    ours, theirs = sets_of_sequences(CONFIG), sets_of_sequences(of(other))
    for name, batch in ours.items():
        if name in (*FRESH, "root"):
            jax.tree.map(np.testing.assert_array_equal, batch, theirs[name])
        else:
            np.testing.assert_array_equal(batch.x, theirs[name].x)
            np.testing.assert_allclose(noise(batch), noise(theirs[name]), atol=3e-6)
            assert not np.array_equal(batch.w, theirs[name].w)


def test_root_sequences_are_of_the_task_that_all_pools_hold():
    batch = root_sequences(of(INFINITE), COUNT)
    np.testing.assert_allclose(batch.w, np.repeat(pool_of(of(1)), COUNT, axis=0), rtol=1e-6)


def test_the_same_seed_and_step_give_the_same_bits():
    once, again = sets_of_sequences(CONFIG), sets_of_sequences(replace(CONFIG, init_seed=7))
    jax.tree.map(np.testing.assert_array_equal, once, again)
