"""Posteriors of enumerated classes against a loop over their functions, written out; and their calibration."""

from functools import partial
from itertools import combinations, product

import numpy as np
import pytest

from icl_lab.baselines.functions.boolean import (
    Literals,
    conjunction_posterior,
    disjunction_posterior,
    majority_posterior,
    parity_posterior,
)
from icl_lab.baselines.functions.enumerated import sign_vector_posterior
from icl_lab.src.checks import ConfigError

close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)
LITERALS, PUBLISHED = Literals(0.5, 0.3, 0.2), Literals(0.7, 0.15, 0.15)


def conjunctions(dim, wanted=1):
    """(label of x, prior probability, number of literals) of all conjunctions, or, wanted being -1, disjunctions."""
    for literals in product((0, 1, -1), repeat=dim):
        on = [j for j in range(dim) if literals[j]]

        def label(x, on=on, literals=literals):
            holds = [x[j] == literals[j] for j in on]
            return 1 if (all(holds) if wanted == 1 else any(holds)) else -1

        yield label, np.prod([LITERALS[(0, 1, 2)[each]] for each in literals]), len(on)


def parities(dim):
    for chosen in combinations(range(dim), 2):
        yield (lambda x, chosen=chosen: int(np.prod(x[list(chosen)]))), 1.0, 0


def majorities(dim):
    for chosen in product((0, 1), repeat=dim):
        if sum(chosen) % 2:
            yield (lambda x, chosen=chosen: 1 if np.dot(x, chosen) > 0 else -1), 1.0, 0


CLASSES = {
    "conjunctions": (conjunctions, partial(conjunction_posterior, literals=LITERALS), 0.0, 1),
    "planted conjunctions": (conjunctions, partial(conjunction_posterior, literals=LITERALS, planted=0.3), 0.3, 1),
    "planted disjunctions": (
        partial(conjunctions, wanted=-1),
        partial(disjunction_posterior, literals=LITERALS, planted=0.3),
        0.3,
        -1,
    ),
    "parities": (parities, partial(parity_posterior, sparsity=2), 0.0, 1),
    "majorities": (majorities, majority_posterior, 0.0, 1),
}


@pytest.mark.parametrize("name", CLASSES)
def test_it_is_the_sum_over_all_functions(name):
    """Labels are those of a function in the class; weights are products of probabilities, label by label."""
    functions, posterior, planted, wanted = CLASSES[name]
    rng = np.random.default_rng(0)
    x = rng.choice([-1.0, 1.0], size=(3, 5, 3))
    every = list(functions(3))
    truth = [every[each][0] for each in (0, len(every) // 2, -1)]
    y = np.array([[f(each) for each in xs] for f, xs in zip(truth, x, strict=True)], float)
    found = posterior(x, y)
    total = sum(prior for _, prior, _ in every)
    for b, k in product(range(3), range(5)):
        weights = [
            prior
            / total
            * np.prod([float(f(x[b, j]) == y[b, j]) for j in range(k)])
            * np.prod([1 - planted + planted * 2**size * (f(x[b, j]) == wanted) for j in range(k + 1)])
            for f, prior, size in every
        ]
        close(found.mean[b, k], np.dot(weights, [f(x[b, k]) for f, _, _ in every]) / np.sum(weights))
        close(found.log_evidence[b, k], np.log(np.sum(weights)))


def planted_prompts(seed, size, pairs, dim, share):
    """Conjunctions with literals absent .7; a share of the inputs has their literals' values."""
    rng = np.random.default_rng(seed)
    literals = rng.choice([0, 1, -1], p=[0.7, 0.15, 0.15], size=(size, 1, dim))
    x = rng.choice([-1.0, 1.0], size=(size, pairs, dim))
    x = np.where((rng.random((size, pairs, 1)) < share) & (literals != 0), literals, x)
    return x, np.where(((x == literals) | (literals == 0)).all(axis=2), 1.0, -1.0)


def log_loss(mean, y):
    return -np.log(np.maximum((1 + mean * y) / 2, 1e-12))


def test_conjunctions_are_calibrated_and_to_ignore_what_inputs_tell_loses():
    x, y = planted_prompts(1, 3000, 5, 4, 0.3)
    found = conjunction_posterior(x, y, PUBLISHED, planted=0.3).mean[:, 4]
    for low in (-1.0, -0.5, 0.0, 0.5):
        inside = (found >= low) & (found < low + 0.5) & (np.abs(found) < 0.999)
        error = np.sqrt(np.mean(1 - found[inside] ** 2) / inside.sum())
        assert abs(np.mean((y[:, 4] - found)[inside])) < 4 * error
    for other in (0.0, 0.15, 0.6):
        worse = conjunction_posterior(x, y, PUBLISHED, planted=other).mean[:, 4]
        assert log_loss(worse, y[:, 4]).mean() > log_loss(found, y[:, 4]).mean()


def test_any_inputs_count_by_their_signs():
    x = np.random.default_rng(2).normal(size=(4, 6, 4))
    y = np.sign(x[..., 0] * x[..., 2])
    for mine, of_bits in zip(parity_posterior(x, y, 2), parity_posterior(np.sign(x), y, 2), strict=True):
        close(mine, of_bits)
    close(parity_posterior(x, y, 4).mean[:, 0], np.prod(np.sign(x[:, 0]), axis=1))


def test_a_sign_vector_is_known_after_one_pair():
    """Without noise the 2^D values of w.x differ; the prior's mean is 0. In float32, as runs have them."""
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(50, 4, 5)), rng.choice([-1.0, 1.0], size=(50, 1, 5))
    y = (w * x).sum(axis=2)
    found = sign_vector_posterior(x.astype(np.float32), y.astype(np.float32)).mean
    close(found[:, 0], 0, atol=1e-6)
    assert np.mean(np.abs(found - y)[:, 1:] < 1e-3) > 0.98


def test_a_noisy_sign_vector_is_the_sum_over_all():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(1, 3, 3)), rng.normal(size=(1, 3))
    table = np.array(list(product((-1, 1), repeat=3)))
    weights = np.exp(-((y[0, :2] - table @ x[0, :2].T) ** 2).sum(axis=1))
    close(sign_vector_posterior(x, y, 0.5).mean[0, 2], weights @ table @ x[0, 2] / weights.sum())


def test_bad_settings_are_refused():
    x, y = np.ones((1, 2, 3)), np.ones((1, 2))
    with pytest.raises(ConfigError, match="sum to 1"):
        conjunction_posterior(x, y, Literals(0.5, 0.5, 0.5))
    with pytest.raises(ConfigError, match="planted"):
        conjunction_posterior(x, y, LITERALS, planted=1.0)
    with pytest.raises(ConfigError, match="at most the 3"):
        parity_posterior(x, y, 4)
    with pytest.raises(ConfigError, match="enumerated"):
        conjunction_posterior(np.ones((1, 2, 12)), y, LITERALS)
