"""The levels of studies that are read several times, by an independent simulation: SciPy's t tests, study by study."""

import math

import numpy as np
import pytest
from scipy import stats

from icl_lab.studies import looks

STUDIES = 20_000
THREE_ERRORS = 3 * math.sqrt(0.05 * 0.95 / STUDIES)


def outcomes(at: tuple[int, ...], alpha: float) -> tuple[float, float]:
    """How often a true mean at the lower end of a range is wrongly inside, and wrongly outside."""
    values = np.random.default_rng(11).normal(0.3, 2.0, (STUDIES, at[-1]))
    verdicts = np.zeros(STUDIES)
    for n in at:
        above = stats.ttest_1samp(values[:, :n], 0.3, axis=1, alternative="greater").pvalue <= alpha
        below = stats.ttest_1samp(values[:, :n], 0.3, axis=1, alternative="less").pvalue <= alpha
        verdicts = np.where(verdicts == 0, above.astype(float) - below, verdicts)
    return float((verdicts == 1).mean()), float((verdicts == -1).mean())


@pytest.mark.parametrize("at", [(8,), *looks.ALPHAS, (8, 16)])
def test_a_study_read_several_times_errs_in_5_percent_on_either_side(at: tuple[int, ...]) -> None:
    assert outcomes(at, looks.alpha_of(at)) == pytest.approx((0.05, 0.05), abs=THREE_ERRORS)


def test_three_looks_at_5_percent_err_twice_as_often() -> None:
    assert min(outcomes((3, 5, 8), 0.05)) > 0.1


def test_levels_are_those_of_the_rule() -> None:
    assert looks.alpha_of((3, 5, 8)) == pytest.approx(0.021, abs=5e-4)
    assert round(100 * looks.level_of((3, 5, 8)), 1) == 95.8
    assert looks.level_of((8,)) == pytest.approx(0.9)
    assert looks.alpha_of((3, 5)) < looks.alpha_of((5, 8)) < looks.alpha_of((5,))


@pytest.mark.parametrize("at", list(looks.ALPHAS))
def test_the_table_is_what_the_simulation_gives(at: tuple[int, ...]) -> None:
    """The standard error of a level is that of the error's share, 3.4e-4 at 4e5 draws, over its slope of at least 1."""
    assert looks._simulated(at) == pytest.approx(looks.ALPHAS[at], abs=3 * 3.4e-4)


@pytest.mark.parametrize("at", [(), (1, 3), (5, 3), (3, 3)])
def test_looks_that_do_not_grow_are_an_error(at: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="increasing numbers"):
        looks.alpha_of(at)
