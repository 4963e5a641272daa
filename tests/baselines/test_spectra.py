"""The spectrum of the paper's contexts, and a step of GD++ on it: the paper's numbers, and NumPy's on the inputs."""

from functools import cache

import jax
import numpy as np
import pytest

from icl_lab.baselines.step_sizes import after_a_step, condition_number, eigenvalues
from icl_lab.src.data import sample_batch
from icl_lab.src.data_config import DataConfig

CONTEXTS, BLOCKS = 10_000, 8  # the paper's number of contexts, and so many times as many of ours
sample = jax.jit(sample_batch, static_argnums=(1, 2))


def spectra(num_pairs: int, block: int) -> np.ndarray:
    """Eigenvalues [CONTEXTS, 10] of one seed's contexts."""
    key = jax.random.fold_in(jax.random.key(0), block)
    return eigenvalues(np.asarray(sample(key, DataConfig(num_pairs=num_pairs), CONTEXTS).x, float))


@cache
def extremes(num_pairs: int) -> dict[str, float]:
    """The smallest and the largest eigenvalue of a block, geometric means over blocks."""
    blocks = [spectra(num_pairs, block) for block in range(BLOCKS)]
    ends = {"min": [block.min() for block in blocks], "max": [block.max() for block in blocks]}
    return {name: float(np.exp(np.mean(np.log(values)))) for name, values in ends.items()}


@pytest.mark.parametrize(
    ("num_pairs", "which", "value"),
    [
        (10, "max", 4.6),
        (25, "max", 7.712),
        pytest.param(50, "max", 10.845, marks=pytest.mark.slow),
        pytest.param(50, "min", 0.666, marks=pytest.mark.slow),
        pytest.param(100, "max", 17.196, marks=pytest.mark.slow),
        pytest.param(100, "min", 2.87, marks=pytest.mark.slow),
    ],
)
def test_extreme_eigenvalues_of_ten_thousand_contexts_are_the_papers(num_pairs: int, which: str, value: float) -> None:
    """Von Oswald et al. 2023, App. A.10, Fig. 13, one draw each of an extreme: ours differ by up to 12 % by block, the
    smallest at N = 50 most, and their mean over eight blocks by 4 %; the range is 15 %.
    """
    assert extremes(num_pairs)[which] == pytest.approx(value, rel=0.15)


@pytest.mark.parametrize(
    ("gamma", "expected"),
    [
        # of the edges of Marchenko and Pastur's law, .28 and 5.55, it is .285: the limit of many inputs; at D = 10 .360
        (0.099, 0.360),
        # the paper says that condition numbers explode: their median grows by a third, less than 1.5 times, and a tenth
        # of them 27-fold
        (0.2, 1.372),
    ],
)
def test_a_step_of_gd_plus_plus_changes_the_condition_number_as_it_does_in_numpy(gamma: float, expected: float) -> None:
    """The median ratio at N = 25: of 40 000 contexts whose inputs NumPy moves, x - gamma S x, and takes the SVD of.

    Within three standard errors of our median, by its order statistics, and of NumPy's, from half as far.
    """
    values = spectra(25, 0)
    after = condition_number(np.abs(after_a_step(values, gamma)))
    ratios = np.sort(after / condition_number(values))
    middle, three_errors = CONTEXTS // 2, int(3 * np.sqrt(CONTEXTS) / 2)
    low, high = ratios[middle - three_errors], ratios[middle + three_errors]
    slack = 0.5 * (high - low) / 2
    assert low - slack < expected < high + slack


def test_condition_numbers_explode_in_the_tail() -> None:
    """At gamma = .2: a tenth grow at least 27-fold, in NumPy; the share of so many contexts is known to .009."""
    values = spectra(25, 0)
    after = condition_number(np.abs(after_a_step(values, 0.2)))
    assert np.mean(after / condition_number(values) > 26.8) == pytest.approx(0.1, abs=0.009)
