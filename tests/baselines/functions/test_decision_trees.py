"""The posterior of decision trees against a sum over all trees, one leaf at a time, and against other methods."""

from functools import cache, partial
from itertools import product

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from icl_lab.baselines.functions.decision_trees import cubes_of, tree_posterior
from icl_lab.baselines.functions.linear import least_squares
from icl_lab.baselines.functions.nearest import nearest_neighbours
from icl_lab.src.checks import ConfigError

close = partial(np.testing.assert_allclose, rtol=1e-8, atol=1e-8)


def prompts(seed, size, pairs, dim, depth):
    """Standard normal inputs, and labels of full trees drawn node by node."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(size, pairs, dim))
    nodes = rng.integers(dim, size=(size, 2**depth - 1))
    leaves = rng.normal(size=(size, 2**depth))
    y = np.empty((size, pairs))
    for b, n in product(range(size), range(pairs)):
        node = 0
        for _ in range(depth):
            node = 2 * node + 1 + int(x[b, n, nodes[b, node]] > 0)
        y[b, n] = leaves[b, node - (2**depth - 1)]
    return x, y


def trees(dim, depth):
    """All full trees as functions of an input: its path of tested coordinates and signs, a leaf's name."""
    for nodes in product(range(dim), repeat=2**depth - 1):

        def leaf(x, nodes=nodes):
            node = 0
            for _ in range(depth):
                node = 2 * node + 1 + int(x[nodes[node]] > 0)
            return node

        yield leaf


def sum_over_trees(x, y, query, depth, noise):
    """The evidence of y and the mean of the query's leaf, from the definition: each tree's leaves in turn."""
    evidence, means = [], []
    for leaf in trees(x.shape[1], depth):
        of_pairs = np.array([leaf(each) for each in x])
        log = 0.0
        for name in set(of_pairs):
            labels = y[of_pairs == name]
            covariance = np.ones((len(labels), len(labels))) + noise * np.eye(len(labels))
            log += multivariate_normal.logpdf(labels, np.zeros(len(labels)), covariance)
        mine = y[of_pairs == leaf(query)]
        evidence.append(np.exp(log))
        means.append(mine.sum() / (len(mine) + noise))
    return np.log(np.mean(evidence)), np.average(means, weights=evidence)


@pytest.mark.parametrize("depth", [1, 2])
def test_it_is_the_sum_over_all_trees(depth):
    rng = np.random.default_rng(depth)
    x, y = rng.normal(size=(2, 6, 3)), rng.normal(size=(2, 6))
    found = tree_posterior(x, y, depth, noise_variance=0.3)
    for b, k in product(range(2), (1, 3, 5)):
        evidence, mean = sum_over_trees(x[b, :k], y[b, :k], x[b, k], depth, 0.3)
        close((found.log_evidence[b, k], found.mean[b, k]), (evidence, mean))
    close((found.mean[:, 0], found.log_evidence[:, 0]), 0)


def exact(signs, y, query, depth):
    """Noise-free labels: Z counts trees whose leaves have one label each, no label in two leaves; (Z, Z m)."""
    dim = len(query)

    @cache
    def evidence(inside, depth, with_query):
        labels = {y[i] for i in inside}
        if depth == 0 or not inside:
            return float(len(labels) < 2), (labels.pop() if len(labels) == 1 else 0.0)
        total = mean = 0.0
        for j in range(dim):
            right = tuple(i for i in inside if signs[i][j])
            left = tuple(i for i in inside if not signs[i][j])
            if {y[i] for i in right} & {y[i] for i in left}:
                continue
            mine, other = (right, left) if query[j] else (left, right)
            z, m = evidence(mine, depth - 1, with_query)
            rest = evidence(other, depth - 1, False)[0]
            total, mean = total + z * rest / dim, mean + z * m * rest / dim
        return total, mean / total if total else 0.0

    return evidence(tuple(range(len(y))), depth, True)


@pytest.mark.parametrize("depth", [2, 3])
def test_without_noise_it_counts_the_trees_that_fit(depth):
    """A noise of 1e-9 stands for none, so a value on both sides of a split weighs 1e-4 and not 0."""
    x, y = prompts(depth, 4, 25, 4, depth)
    found = tree_posterior(x, y, depth).mean
    for b, k in product(range(4), (3, 10, 24)):
        signs = [tuple(each) for each in x[b] > 0]
        z, mean = exact(signs[:k], y[b, :k], signs[k], depth)
        assert z > 0
        close(found[b, k], mean, atol=2e-3)


def test_on_trees_nothing_loses_less_and_it_is_calibrated():
    x, y = prompts(5, 800, 13, 4, 3)
    mean = tree_posterior(x, y, 3).mean
    target, found = y[:, 12], mean[:, 12]
    for other in (least_squares(x, y), nearest_neighbours(x, y), tree_posterior(x, y, 2).mean):
        excess = (other[:, 12] - target) ** 2 - (found - target) ** 2
        assert excess.mean() > 3 * excess.std() / np.sqrt(len(excess))
    assert abs(found @ target / (found @ found) - 1) < 4 * np.std(target - found) / np.sqrt(found @ found)


def test_cubes_are_those_of_at_most_so_many_signs():
    cubes = cubes_of(3, 2)
    assert len(cubes.fixed) == 1 + 6 + 12 == cubes.up_to[-1]
    np.testing.assert_array_equal(cubes.fixed[cubes.low[0]], -np.eye(3))
    assert cubes_of(2, 4).up_to[-1] == 9  # no more than two signs can be fixed


def test_too_many_cubes_are_refused():
    with pytest.raises(ConfigError, match="sub-cubes"):
        tree_posterior(np.zeros((1, 2, 20)), np.zeros((1, 2)), 4)
