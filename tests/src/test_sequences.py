"""Pools are nested, tasks and noise follow their laws, and how many tasks count changes nothing but the tasks."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2

from icl_lab.src.batch import Batch
from icl_lab.src.data_config import PoolData
from icl_lab.src.prng import key
from icl_lab.src.registries import TASK_DISTRIBUTIONS
from icl_lab.src.sequences import sample_sequences, task_pool, tokenise
from icl_lab.src.tasks import centres

DATA = PoolData(dim=3, num_pairs=4, input_distribution="gaussian", weight_scale=2.0, noise_std=0.5)
ON_SPHERE = replace(DATA, task_distribution="sphere", noise_std=0.0)
SIZE = 20_000  # of every pool and every batch: one program serves most tests
ULPS = 5e-7  # what a sum of 3 squares, a root and a division round to in float32, in whatever order XLA takes them

# Programs that run a few times: compiling them for speed would take most of the time.
compiled = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
pool_of = compiled(task_pool, static_argnums=(1, 2))
drawn = compiled(sample_sequences, static_argnums=(2, 3))


def pool(seed, law="gaussian", num_tasks=SIZE):
    return np.asarray(pool_of(key(seed), replace(DATA, task_distribution=law), num_tasks))


def sequences(num_tasks, seed=0, data=DATA):
    """Sequences of the pool with key 9, M a runtime value, and the numbers of their tasks."""
    return drawn(key(seed), key(9), data, SIZE, jnp.uint32(num_tasks))


def in_float64(batch):
    return Batch(*(np.asarray(part, np.float64) for part in batch))


def noiseless(batch):
    return np.einsum("bkd,bd->bk", batch.x, batch.w)


def count_different(*tasks):
    return len(np.unique(np.concatenate(tasks), axis=0))


# Pools


@pytest.mark.parametrize("law", TASK_DISTRIBUTIONS)
def test_pools_are_nested(law):
    """Bit for bit (on the sphere, but for rounding), root task included; another seed's have no task in common."""
    large, small = pool(1, law), pool(1, law, 7)
    np.testing.assert_allclose(small, large[:7], rtol=ULPS if law == "sphere" else 0)
    both = np.concatenate([large[:1000], pool(2, law)[:1000]])
    some = both[both.any(axis=1)]  # a sparse task may be 0, whoever draws it
    assert count_different(some) == len(some)
    assert law == "sparse" or len(some) == 2000


# variance 1; E x^4, and the variance of its estimate, (E x^8 - 4 m E x^6 + 4 m^3 - m^2) / count for m = E x^4: moments
# of a Gaussian are 1, 3, 15, 105, those of a Laplace law of variance 1 are (2n)! / 2^n = 1, 6, 90, 2520
KURTOSIS = {"gaussian": (3.0, 24.0), "laplace": (6.0, 1188.0)}


@pytest.mark.parametrize("law", KURTOSIS)
def test_coordinates_have_the_moments_of_their_law(law):
    """Within 4 standard errors, those of the population: 60 000 independent coordinates, uncorrelated in a task."""
    tasks = pool(1, law).astype(float) / DATA.weight_scale
    fourth, spread = KURTOSIS[law]
    values, count = tasks.ravel(), tasks.size
    assert abs(values.mean()) < 4 / np.sqrt(count)
    assert abs((values**2).mean() - 1) < 4 * np.sqrt((fourth - 1) / count)
    assert abs((values**4).mean() / (values**2).mean() ** 2 - fourth) < 4 * np.sqrt(spread / count)
    assert np.abs(np.corrcoef(tasks.T) - np.eye(3)).max() < 4 / np.sqrt(len(tasks))


def test_tasks_on_the_sphere_have_one_norm_and_every_direction():
    """E u = 0 and E u u' = I/D; an entry of u has variance 1/D, one of u u' at most 1/5 - 1/9. Within 4 errors."""
    tasks = pool(1, "sphere").astype(float)
    np.testing.assert_allclose(np.linalg.norm(tasks, axis=1), DATA.weight_scale, rtol=ULPS)
    directions = tasks / DATA.weight_scale
    assert np.abs(directions.mean(axis=0)).max() < 4 / np.sqrt(3 * SIZE)
    assert np.abs(directions.T @ directions / SIZE - np.eye(3) / 3).max() < 4 * np.sqrt((1 / 5 - 1 / 9) / SIZE)


def test_mixtures_are_four_gaussians_about_the_ends_of_two_axes():
    """Each component 1/4 by Pearson's chi-square; about its centre N(0, I/64); within 4 standard errors."""
    tasks = pool(1, "mixture").astype(float) / DATA.weight_scale
    distances = np.linalg.norm(tasks[:, None] - np.asarray(centres(3)), axis=2)
    component = distances.argmin(axis=1)
    counts = np.bincount(component, minlength=4)
    assert ((counts - SIZE / 4) ** 2).sum() / (SIZE / 4) < chi2.ppf(0.999, 3)
    left = 8 * (tasks - np.asarray(centres(3))[component])
    assert np.abs(left.mean(axis=0)).max() < 4 / np.sqrt(SIZE)
    assert np.abs(left.T @ left / SIZE - np.eye(3)).max() < 4 * np.sqrt(2 / SIZE)
    assert (distances.min(axis=1) * 8 < 6).all()
    np.testing.assert_array_equal(centres(3), [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]])


def test_sparse_tasks_have_a_normal_coordinate_three_times_in_ten():
    """Independently of the others: 0.3 of them, and the others' moments are those of N(0, 1/.3)."""
    tasks = pool(1, "sparse").astype(float) / DATA.weight_scale
    on = tasks != 0
    assert np.abs(on.mean(axis=0) - 0.3).max() < 4 * np.sqrt(0.21 / SIZE)
    assert np.abs(np.corrcoef(on.T) - np.eye(3)).max() < 4 / np.sqrt(SIZE)
    values = tasks[on] * np.sqrt(0.3)
    for power, (moment, spread) in {1: (0, 1), 2: (1, 2), 4: (3, 96)}.items():
        assert abs((values**power).mean() - moment) < 4 * np.sqrt(spread / len(values))


@pytest.mark.parametrize("law", ["mixture", "sparse"])
def test_the_registered_variance_is_the_mean_square_of_a_coordinate(law):
    data = replace(DATA, task_distribution=law)
    squares = np.mean(pool(1, law).astype(float) ** 2, axis=1)
    assert abs(squares.mean() - data.task_variance) < 4 * squares.std() / np.sqrt(SIZE)


# Sequences


@pytest.mark.parametrize("num_tasks", [1, 5, 1000])
def test_a_sequences_task_is_the_one_of_its_number(num_tasks):
    batch, numbers = sequences(num_tasks)
    assert set(numbers.tolist()) == set(range(num_tasks))
    np.testing.assert_array_equal(batch.w, pool(9)[numbers])


def test_numbers_are_uniform():
    """Pearson's chi-square of 13 equally likely numbers, in the middle 99.8 % of its law; no drift within the batch."""
    numbers = np.asarray(sequences(13)[1])
    counts = np.bincount(numbers, minlength=13)
    statistic = ((counts - SIZE / 13) ** 2).sum() / (SIZE / 13)
    assert len(counts) == 13
    assert chi2.ppf(0.001, 12) < statistic < chi2.ppf(0.999, 12)
    assert abs(np.corrcoef(numbers, np.arange(SIZE))[0, 1]) < 4 / np.sqrt(SIZE)


def test_infinitely_many_tasks_are_fresh_ones():
    """None comes twice, in a batch or in that of another key, and none is of the pool."""
    assert count_different(sequences(0, 0)[0].w, sequences(0, 1)[0].w, pool(9)) == 3 * SIZE


def test_fresh_tasks_have_the_law_of_the_pools():
    w = in_float64(sequences(0, data=ON_SPHERE)[0]).w
    np.testing.assert_allclose(np.linalg.norm(w, axis=1), 2.0, rtol=ULPS)
    assert count_different(w) == SIZE


def test_how_many_tasks_count_changes_neither_inputs_nor_noise():
    """Labels up to 40 are rounded at 2e-6, and so are their distances from w.x."""
    finite, other, infinite = (in_float64(sequences(num_tasks)[0]) for num_tasks in (4, 1000, 0))
    for batch in (other, infinite):
        np.testing.assert_array_equal(batch.x, finite.x)
        assert (batch.w != finite.w).all(axis=1).mean() > 0.9
        np.testing.assert_allclose(batch.y - noiseless(batch), finite.y - noiseless(finite), atol=1e-5)


def test_inputs_and_noise_are_independent_gaussians():
    """Means, variances and correlations within 4 standard errors of 80 000 pairs; so are a sequence's four noises."""
    batch = in_float64(sequences(0)[0])
    noise = (batch.y - noiseless(batch)) / DATA.noise_std
    task = np.repeat(batch.w[:, 0], 4) / DATA.weight_scale
    values = np.stack([noise.ravel(), *batch.x.reshape(-1, 3).T, task])
    error = 1 / np.sqrt(noise.size)
    assert np.abs(values[:4].mean(axis=1)).max() < 4 * error
    assert np.abs(values[:4].var(axis=1) - 1).max() < 4 * np.sqrt(2) * error
    assert np.abs(np.corrcoef(values) - np.eye(5)).max() < 4 * error
    assert np.abs(np.corrcoef(noise.T) - np.eye(4)).max() < 4 / np.sqrt(SIZE)


def test_without_noise_labels_are_those_of_the_task():
    batch = in_float64(sequences(5, data=ON_SPHERE)[0])
    np.testing.assert_allclose(batch.y, noiseless(batch), atol=5e-6)  # sums of terms up to 10
    assert batch.y.std() == pytest.approx(2.0, rel=0.05)  # they are not zero: |w| = 2


def test_every_pair_is_a_query():
    batch, _ = sequences(5)
    np.testing.assert_array_equal(batch.x_query, batch.x)
    np.testing.assert_array_equal(batch.y_query, batch.y)
    assert (batch.x.shape, batch.y.shape) == ((SIZE, 4, 3), (SIZE, 4))


def test_a_batch_is_a_function_of_its_key():
    once, again, other = (sequences(5, seed)[0] for seed in (3, 3, 4))
    jax.tree.map(np.testing.assert_array_equal, once, again)
    assert not any(np.array_equal(one, another) for one, another in zip(once, other, strict=True))


def test_the_number_of_tasks_may_be_an_integer_or_differ_between_lanes():
    """Traced, under vmap, and as Python's 5: the same numbers, tasks and inputs to the bit; labels are sums w.x, which
    programs may take in any order.
    """

    def of(num_tasks):
        return sample_sequences(key(0), key(9), DATA, SIZE, num_tasks)

    counts = (5, 0, 1000)
    together, plain = compiled(lambda each: (jax.vmap(of)(each), of(5)))(jnp.array(counts, jnp.uint32))
    found = [*(jax.tree.map(lambda part, index=index: part[index], together) for index in range(3)), plain]
    for (batch, numbers), num_tasks in zip(found, [*counts, 5], strict=True):
        expected, expected_numbers = sequences(num_tasks)
        np.testing.assert_array_equal(numbers, expected_numbers)
        np.testing.assert_array_equal(batch.w, expected.w)
        np.testing.assert_array_equal(batch.x, expected.x)
        np.testing.assert_allclose(batch.y, expected.y, atol=1e-5)


# Tokens


def test_tokens_are_inputs_and_labels_in_turns():
    """Rows (0, x_1), (y_1, 0, 0), (0, x_2), ..., value for value."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 3, 2)).astype(np.float32), rng.normal(size=(2, 3)).astype(np.float32)
    tokens = np.asarray(tokenise(Batch(x, y, x + 1, y + 1, x[:, 0])))
    assert tokens.shape == (2, 6, 3)
    for sequence in range(2):
        for pair in range(3):
            assert tokens[sequence, 2 * pair].tolist() == [0.0, *x[sequence, pair].tolist()]
            assert tokens[sequence, 2 * pair + 1].tolist() == [y[sequence, pair], 0.0, 0.0]
