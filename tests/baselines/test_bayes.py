"""The Bayes predictors of a sequence, against NumPy from the definitions, scikit-learn, quadrature and theory."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from icl_lab.baselines import bayes, linear_mmse
from icl_lab.src import prng
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError
from tests import reference

NOISE = 0.3  # the variance, not the deviation
DIM, PAIRS, SIZE = 3, 6, 5

close = partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-10)


def compiled(function, **options):
    """The function under jit, its result in NumPy."""
    program = jax.jit(function, **options)
    return lambda *args: np.asarray(program(*args))


ridge, dmmse, smoothed = (compiled(f) for f in (bayes.ridge, bayes.dmmse, bayes.smoothed_dmmse))
laplace = compiled(bayes.laplace_mean, static_argnums=4)
laplace_of_keys = compiled(jax.vmap(bayes.laplace_mean, in_axes=(None, None, None, 0, None)), static_argnums=4)


def sequences(seed, tasks=None, size=SIZE, pairs=PAIRS, dim=DIM, noise=NOISE):
    """Standard normal inputs and noisy labels of tasks drawn from a pool, or without one from N(0, I); float64."""
    rng = np.random.default_rng([seed, size])
    x = rng.normal(size=(size, pairs, dim))
    w = rng.normal(size=(size, dim)) if tasks is None else tasks[rng.integers(len(tasks), size=size)]
    y = np.einsum("bkd,bd->bk", x, w) + np.sqrt(noise) * rng.normal(size=(size, pairs))
    return Batch(x, y, x, y, w)


def pool(seed, count=7, dim=DIM):
    return np.random.default_rng(seed).normal(size=(count, dim))


def in_float32(batch):
    return Batch(*(jnp.asarray(part, jnp.float32) for part in batch))


def prefixes(predict, batch):
    """Predictions [B, K] of predict(earlier x [k - 1, D], earlier y [k - 1], x_k [D]), pair by pair."""
    return np.array(
        [[predict(x[:k], y[:k], x[k]) for k in range(batch.x.shape[1])] for x, y in zip(batch.x, batch.y, strict=True)]
    )


def numpy_dmmse(batch, tasks, noise):
    def predict(x, y, query):
        scores = np.sum((y - tasks @ x.T) ** 2, axis=1) / (2 * noise)
        return reference.softmax(-scores) @ (tasks @ query)

    return prefixes(predict, batch)


def numpy_smoothed(batch, tasks, noise, smoothing):
    """In closed form, from A = X'X + (sigma^2 / e^2) I and the residuals r_i = y - X w_i of all earlier pairs at once.

    log pi_i = -(|r_i|^2 - (X'r_i)' A^-1 (X'r_i)) / (2 sigma^2), and w = wbar + A^-1 X'(y - X wbar).
    """

    def predict(x, y, query):
        inverse = np.linalg.inv(x.T @ x + noise / smoothing**2 * np.eye(x.shape[1]))
        residuals = [y - x @ w for w in tasks]
        scores = np.array([r @ r - (r @ x) @ inverse @ (x.T @ r) for r in residuals]) / (2 * noise)
        mean = reference.softmax(-scores) @ tasks
        return query @ (mean + inverse @ x.T @ (y - x @ mean))

    return prefixes(predict, batch)


# against independent computations


@pytest.mark.parametrize("noise", [0.01, NOISE, 10.0])
@pytest.mark.parametrize("count", [1, 7])
def test_dmmse_is_the_mean_over_the_pool(count, noise, x64):
    batch, tasks = sequences(1), pool(2, count)
    close(dmmse(batch, tasks, noise), numpy_dmmse(batch, tasks, noise))


@pytest.mark.parametrize("smoothing", [0.01, 0.5, 4.0])
@pytest.mark.parametrize("count", [1, 7])
def test_smoothed_dmmse_is_its_closed_form(count, smoothing, x64):
    batch, tasks = sequences(3), pool(4, count)
    close(smoothed(batch, tasks, NOISE, smoothing), numpy_smoothed(batch, tasks, NOISE, smoothing))


@pytest.mark.parametrize("penalty", [1e-4, 0.3, 30.0])
def test_ridge_is_that_of_every_prefix(penalty, x64):
    """By scikit-learn, and by this project's ridge of one query; with fewer and with more pairs than dimensions."""
    batch = sequences(5)
    found = ridge(batch, penalty)
    close(found[:, 0], 0)
    model = Ridge(alpha=penalty, fit_intercept=False, solver="svd")
    scikit_learn = prefixes(lambda x, y, q: model.fit(x, y).predict(q[None])[0] if len(y) else 0.0, batch)
    close(found, scikit_learn, atol=1e-9)
    for k in (2, PAIRS - 1):
        one = Batch(batch.x[:, :k], batch.y[:, :k], batch.x[:, k], batch.y[:, k], batch.w)
        close(found[:, k], linear_mmse.ridge(one, penalty), atol=1e-9)


def laplace_by_quadrature(batch, scale, noise, points):
    """The posterior mean on an even grid of up to 10 deviations, with the kink of the prior on it; D = 1 or 2."""
    dim = batch.x.shape[-1]
    axis = np.linspace(-10 * scale, 10 * scale, points)
    w = np.stack(np.meshgrid(*[axis] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    log_prior = -np.abs(w).sum(axis=1) * np.sqrt(2) / scale

    def predict(x, y, query):
        log_weights = log_prior - np.sum((y - w @ x.T) ** 2, axis=1) / (2 * noise)
        return reference.softmax(log_weights) @ (w @ query)

    return prefixes(predict, batch)


@pytest.mark.parametrize(("dim", "points"), [(1, 20_001), (2, 601)])
def test_laplace_mean_is_that_of_quadrature(dim, points, x64):
    """The mean over 24 keys, within 4.5 of its standard errors; they are below 1 % of what is predicted."""
    batch = sequences(6, size=3, pairs=4, dim=dim)
    expected = laplace_by_quadrature(batch, 0.8, NOISE, points)[:, 1:]
    found = laplace_of_keys(batch, 0.8, NOISE, jax.random.split(prng.key(7), 24), 2560)[:, :, 1:]
    standard_errors = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - expected) < 4.5 * standard_errors).all()
    assert standard_errors.max() < 0.01 * np.abs(expected).max()


def test_laplace_errors_fall_as_the_root_of_the_samples(x64):
    """64 times the samples, an eighth of the error."""
    batch = sequences(6, size=3, pairs=4, dim=1)
    expected, keys = laplace_by_quadrature(batch, 0.8, NOISE, 20_001), jax.random.split(prng.key(8), 24)
    few, many = (np.std(laplace_of_keys(batch, 0.8, NOISE, keys, n) - expected) for n in (40, 2560))
    assert 5 < few / many < 13


def test_float32_and_the_default_blocks_and_chunks():
    """Several blocks and chunks, none of them full, at the paper's sizes; rounding is all that differs from NumPy."""
    tasks = pool(8, 1300, 8)
    batch = sequences(9, tasks, size=140, pairs=16, dim=8, noise=0.25)
    assert len(batch.y) > bayes.SEQUENCES
    assert len(tasks) > 2 * bayes.TASKS
    found = dmmse(in_float32(batch), jnp.asarray(tasks, jnp.float32), 0.25)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, numpy_dmmse(batch, tasks, 0.25), rtol=0, atol=3e-5)


# special cases and limits


def test_first_predictions_know_the_prior_alone(x64):
    batch, tasks = sequences(10), pool(11)
    mean = batch.x[:, 0] @ tasks.mean(axis=0)
    close(dmmse(batch, tasks, NOISE)[:, 0], mean)
    close(smoothed(batch, tasks, NOISE, 0.4)[:, 0], mean)
    close(laplace(batch, 1.0, NOISE, prng.key(0), 50)[:, 0], 0)


@pytest.mark.parametrize("smoothing", [0.1, 1.0, 2.0])
def test_one_smoothed_task_at_zero_is_ridge(smoothing, x64):
    """At penalty sigma^2 / e^2, so it is the Bayes ridge at e = the scale of tasks only."""
    batch, nought = sequences(12), np.zeros((1, DIM))
    close(smoothed(batch, nought, NOISE, smoothing), ridge(batch, NOISE / smoothing**2))
    distance = np.abs(smoothed(batch, nought, NOISE, smoothing) - ridge(batch, NOISE)).max()
    assert distance < 1e-10 if smoothing == 1 else distance > 0.01


def test_smoothing_vanishes_as_its_square(x64):
    batch, tasks = sequences(13), pool(14)
    sharp, sizes = dmmse(batch, tasks, NOISE), np.geomspace(1e-4, 1e-3, 5)
    distances = [np.std(smoothed(batch, tasks, NOISE, e) - sharp) for e in sizes]
    slope = np.polyfit(np.log(sizes), np.log(distances), 1)[0]
    np.testing.assert_allclose(slope, 2, atol=0.01)


def test_a_smoothing_too_small_for_float32_is_none():
    """Its square underflows, and the filter's penalty is infinite."""
    batch, tasks = in_float32(sequences(15)), jnp.asarray(pool(16, 40), jnp.float32)
    np.testing.assert_allclose(smoothed(batch, tasks, NOISE, 1e-30), dmmse(batch, tasks, NOISE), rtol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_tiny_noise_finds_the_nearest_task(scale):
    """Log weights of -1e10 and less, in float32. Labels of no task in the pool: the least sum of squares decides."""
    tasks = pool(17, 40)
    batch = sequences(18, scale * pool(19, 30))

    def predict(x, y, query):
        return query @ tasks[np.argmin([np.sum((y - x @ w) ** 2) for w in tasks])]

    for found in (
        dmmse(in_float32(batch), jnp.asarray(tasks, jnp.float32), 1e-10),
        smoothed(in_float32(batch), jnp.asarray(tasks, jnp.float32), 1e-10, 1e-12),
    ):
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found[:, 1:], prefixes(predict, batch)[:, 1:], rtol=1e-4, atol=1e-4)


def test_tiny_noise_leaves_ridge_and_laplace_finite():
    batch = in_float32(sequences(20, noise=0))
    np.testing.assert_allclose(ridge(batch, 1e-10)[:, DIM:], batch.y[:, DIM:], rtol=1e-3, atol=1e-3)
    assert np.isfinite(laplace(batch, 1.0, 1e-10, prng.key(1), 50)).all()


# symmetries

PREDICTORS = {
    "ridge": lambda batch: ridge(batch, NOISE),
    "dmmse": lambda batch: dmmse(batch, pool(21), NOISE),
    "smoothed": lambda batch: smoothed(batch, pool(21), NOISE, 0.5),
    "laplace": lambda batch: laplace(batch, 1.0, NOISE, prng.key(2), 50),
}


@pytest.mark.parametrize("name", PREDICTORS)
def test_a_prediction_knows_earlier_pairs_only_in_no_order(name, x64):
    predict, batch, other = PREDICTORS[name], sequences(22), sequences(23)
    found = predict(batch)
    y = np.concatenate([batch.y[:, :3], other.y[:, 3:]], axis=1)
    x = np.concatenate([batch.x[:, :4], other.x[:, 4:]], axis=1)
    changed = predict(Batch(x, y, other.x, other.y, other.w))
    close(changed[:, :4], found[:, :4])
    assert np.abs(changed[:, 4:] - found[:, 4:]).min() > 1e-6
    order = [2, 0, 3, 1, 4, 5]
    permuted = predict(batch._replace(x=batch.x[:, order], y=batch.y[:, order]))
    close(permuted[:, 4:], found[:, 4:])
    assert np.abs(permuted[:, 1:3] - found[:, 1:3]).min() > 1e-6


def test_order_and_copies_of_the_pool_do_not_matter(x64):
    batch, tasks = sequences(24), pool(25)
    permuted = tasks[np.random.default_rng(26).permutation(len(tasks))]
    for other in (permuted, np.concatenate([tasks, permuted])):
        close(dmmse(batch, other, NOISE), dmmse(batch, tasks, NOISE))
        close(smoothed(batch, other, NOISE, 0.5), smoothed(batch, tasks, NOISE, 0.5))


@pytest.mark.parametrize(("count", "chunk", "block"), [(1, 4, 2), (13, 1, 1), (13, 4, 3)])
def test_blocks_and_chunks_do_not_matter(count, chunk, block, monkeypatch, x64):
    """Also chunks that are not full. A program of its own reads the sizes."""
    monkeypatch.setattr(bayes, "TASKS", chunk)
    monkeypatch.setattr(bayes, "SEQUENCES", block)
    batch, tasks = sequences(27), pool(28, count)
    found = compiled(lambda *args: bayes.dmmse(*args))(batch, tasks, NOISE)
    close(found, numpy_dmmse(batch, tasks, NOISE))


def test_chunks_of_samples_do_not_matter(monkeypatch, x64):
    batch, expected = sequences(29), laplace(sequences(29), 1.0, NOISE, prng.key(2), 50)
    monkeypatch.setattr(bayes, "SAMPLES", 3)
    close(compiled(lambda batch: bayes.laplace_mean(batch, 1.0, NOISE, prng.key(2), 50))(batch), expected)


@given(st.integers(0, 10**6), st.floats(0.01, 100), st.floats(0.01, 10))
def test_units_and_axes_do_not_matter(seed, unit, noise):
    """Labels, tasks, smoothing in another unit, inputs in other axes: predictions in that unit; as do sigma and e."""
    with jax.enable_x64(True):
        batch, tasks = sequences(seed, noise=noise), pool(seed + 1)
        rotation = np.linalg.qr(pool(seed + 2, DIM))[0]
        turned = batch._replace(x=batch.x @ rotation, y=unit * batch.y)
        other, same = unit * tasks @ rotation, partial(close, rtol=1e-8, atol=1e-8 * unit)
        same(dmmse(turned, other, unit**2 * noise), unit * dmmse(batch, tasks, noise))
        same(smoothed(turned, other, unit**2 * noise, unit * 0.5), unit * smoothed(batch, tasks, noise, 0.5))
        same(ridge(turned, noise), unit * ridge(batch, noise))


@given(st.integers(0, 10**6), st.floats(1e-6, 1e3))
def test_dmmse_stays_among_the_predictions_of_the_tasks(seed, noise):
    with jax.enable_x64(True):
        batch, tasks = sequences(seed), pool(seed + 1)
        single = np.einsum("bkd,md->bkm", batch.x, tasks)
        found = dmmse(batch, tasks, noise)
        assert (found > single.min(axis=-1) - 1e-10).all()
        assert (found < single.max(axis=-1) + 1e-10).all()


# optimality


def gains(predictions, best, targets):
    """Of a predictor over the best one: L - L_best - mean squared distance, and that distance, each [B]."""
    distance = np.mean((predictions - best) ** 2, axis=1)
    return np.mean((predictions - targets) ** 2 - (best - targets) ** 2, axis=1) - distance, distance


@pytest.mark.parametrize("law", ["pool", "gaussian"])
def test_bayes_is_best_in_expectation(law):
    """E(f - t)^2 - E(g - t)^2 = E(f - g)^2 for the posterior mean g and every f: within 3 paired standard errors."""
    tasks, noise = pool(30, 16, 4), 0.125
    batch = sequences(31, tasks if law == "pool" else None, 20_000, 8, 4, noise)
    targets, batch, tasks = np.einsum("bkd,bd->bk", batch.x, batch.w), in_float32(batch), jnp.asarray(tasks, "float32")
    found = {
        "ridge": ridge(batch, noise),
        "dmmse": dmmse(batch, tasks, noise),
        "smoothed": smoothed(batch, tasks, noise, 0.3),
        "zero": np.zeros_like(targets),
    }
    found = {name: np.asarray(predictions, np.float64) for name, predictions in found.items()}
    best = found.pop("dmmse" if law == "pool" else "ridge")
    for predictions in found.values():
        excess, distance = gains(predictions, best, targets)
        assert abs(excess.mean()) < 3 * excess.std() / np.sqrt(len(excess))
        assert distance.mean() > 10 * excess.std() / np.sqrt(len(excess))  # the test can tell


def test_laplace_mean_is_best_in_expectation():
    """On Laplace tasks, over ridge at the same variance, which is the best linear predictor."""
    rng, noise, size = np.random.default_rng(32), 0.5, 6000
    batch = sequences(33, rng.laplace(scale=1 / np.sqrt(2), size=(10**5, 2)), size, 4, 2, noise)
    targets, batch = np.einsum("bkd,bd->bk", batch.x, batch.w), in_float32(batch)
    best, linear = (
        np.asarray(f, np.float64) for f in (laplace(batch, 1.0, noise, prng.key(3), 500), ridge(batch, noise))
    )
    excess, distance = gains(linear, best, targets)
    assert abs(excess.mean()) < 3 * excess.std() / np.sqrt(size)
    assert distance.mean() > 5 * excess.std() / np.sqrt(size)


def noiseless_loss(predict, batch):
    """Per dimension, of predictions of the noiseless labels."""
    return np.mean((predict(in_float32(batch)) - np.einsum("...kd,...d->...k", batch.x, batch.w)) ** 2) / 4


def test_the_loss_of_ridge_on_gaussian_tasks():
    """The mean of tr (I + X'X / sigma^2)^-1 / D: .3835 at D = 4, K = 8, sigma^2 = .125, NumPy on 400 000 contexts."""
    batch = sequences(34, None, 50_000, 8, 4, 0.125)
    np.testing.assert_allclose(noiseless_loss(lambda batch: ridge(batch, 0.125), batch), 0.3835, rtol=0.01)


# M: dMMSE's loss out of and in distribution by another program, on 4 pools; what 12 others may differ by, relatively
TABLE = {16: (0.803, 0.213, 0.12), 128: (0.544, 0.306, 0.06), 2048: (0.407, 0.361, 0.03)}


@pytest.mark.parametrize("count", TABLE)
def test_the_loss_falls_to_that_of_ridge_with_the_size_of_the_pool(count):
    """D = 4, K = 8, sigma^2 = .125, on Gaussian tasks and on the pool's own."""
    tasks = np.stack([pool([35, count, i], count, 4) for i in range(12)])
    predict = compiled(jax.vmap(lambda batch, tasks: bayes.dmmse(batch, tasks, 0.125)))
    losses = []
    for sources in ([None] * 12, tasks):
        several = [sequences(36 + i, source, 800, 8, 4, 0.125) for i, source in enumerate(sources)]
        batch = Batch(*(np.stack(parts) for parts in zip(*several, strict=True)))
        losses.append(noiseless_loss(lambda batch: predict(batch, jnp.asarray(tasks, jnp.float32)), batch))
    np.testing.assert_allclose(losses, TABLE[count][:2], rtol=TABLE[count][2])


# the best smoothing


def gaussian_problem(seed, scale=1.0):
    """A batch of tasks from N(0, scale^2 I) and its noiseless labels."""
    batch = sequences(seed, scale * pool(seed + 1, 1000, 4), 1000, 8, 4, 0.125)
    return in_float32(batch), np.einsum("bkd,bd->bk", batch.x, batch.w).astype("float32")


def test_the_best_smoothing_is_the_least_of_a_grid():
    (batch, targets), tasks = gaussian_problem(37), jnp.asarray(pool(39, 8, 4), jnp.float32)
    grid = np.geomspace(0.01, 10, 25).tolist()
    losses = [np.mean((smoothed(batch, tasks, 0.125, e) - targets) ** 2) for e in grid]
    best = bayes.best_smoothing(batch, targets, tasks, 0.125)
    least = int(np.argmin(losses))
    assert grid[least - 1] < best < grid[least + 1]
    assert np.mean((smoothed(batch, tasks, 0.125, best) - targets) ** 2) < losses[least] + 1e-6


def test_the_best_smoothing_of_tasks_at_zero_is_the_scale_of_the_tasks(monkeypatch):
    """It is one program whatever is tried: at most one trace, none where another test has left it."""
    traces, original = [], bayes.smoothed_dmmse
    monkeypatch.setattr(bayes, "smoothed_dmmse", lambda *args: traces.append(1) or original(*args))
    best = bayes.best_smoothing(*gaussian_problem(40, 2.0), jnp.zeros((8, 4)), 0.125)
    np.testing.assert_allclose(best, 2, rtol=0.1)
    assert len(traces) <= 1


# resources and errors


def test_memory_does_not_grow_with_the_pool():
    """A million tasks and 4096 sequences have 10^10 products x_k.w_i for K = 16: 270 GB, of which few are held."""

    def bytes_beside(count):
        shapes = ((4096, 16, 8), (4096, 16), (4096, 16, 8), (4096, 16), (4096, 8))
        batch = Batch(*(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes))
        program = jax.jit(bayes.dmmse).lower(batch, jax.ShapeDtypeStruct((count, 8), jnp.float32), 0.25)
        return program.compile().memory_analysis().temp_size_in_bytes

    small, large = bytes_beside(2**10), bytes_beside(2**20)
    assert large < small + 3 * 2**20 * 8 * 4  # copies of the pool
    assert small < 2**24


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda b, w: bayes.dmmse(b, w[:, :2], 1.0), r"shape \(7, 2\); it must be \[M, 3\].* have 3 dimensions"),
        (lambda b, w: bayes.dmmse(b, w[:0], 1.0), r"shape \(0, 3\).* M at least 1"),
        (lambda b, w: bayes.dmmse(b, w[0], 1.0), r"shape \(3,\); it must be \[M, 3\]"),
        (lambda b, w: bayes.smoothed_dmmse(b, w[:, :2], 1.0, 0.1), r"\(7, 2\)"),
        (lambda b, w: bayes.best_smoothing(b, b.y, w[:, :2], 1.0), r"\(7, 2\)"),
        (lambda b, w: bayes.best_smoothing(b, b.y[:, 1:], w, 1.0), r"targets has shape \(5, 5\) .* \(5, 6\)"),
        (lambda b, w: bayes.dmmse(b, w, 0.0), "noise_variance is 0.0; it must be above 0"),
        (lambda b, w: bayes.dmmse(b, w, float("nan")), "noise_variance is nan"),
        (lambda b, w: bayes.smoothed_dmmse(b, w, -1.0, 0.1), "noise_variance is -1.0"),
        (lambda b, w: bayes.best_smoothing(b, b.y, w, 0.0), "noise_variance is 0.0"),
        (lambda b, w: bayes.smoothed_dmmse(b, w, 1.0, 0.0), "smoothing is 0.0; it must be above 0"),
        (lambda b, w: bayes.ridge(b, 0.0), "penalty is 0.0; it must be above 0"),
        (lambda b, w: bayes.ridge(b, jnp.float32(-2)), "penalty is -2.0"),
        (lambda b, w: bayes.laplace_mean(b, 0.0, 1.0, prng.key(0), 9), "scale is 0.0; it must be above 0"),
        (lambda b, w: bayes.laplace_mean(b, 1.0, 0.0, prng.key(0), 9), "noise_variance is 0.0"),
        (lambda b, w: bayes.laplace_mean(b, 1.0, 1.0, prng.key(0), 0), "num_samples is 0; it must be at least 1"),
    ],
)
def test_what_cannot_be_used_is_said_in_a_sentence(call, sentence):
    with pytest.raises(ConfigError, match=sentence):
        call(sequences(40), pool(41))
