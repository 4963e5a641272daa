"""A study whose claims train nothing: two that take a moment, and two that take seconds."""

import time

import jax

from icl_lab.studies.claim import OURS, Claim
from icl_lab.studies.study import Study

SHORT = ("mean_square_10", "mean_square_25")
LONG = ("slow_10", "slow_25")
SECONDS = 0.5  # of a long one's, for each seed


def study() -> Study:
    """The study, which other processes make by this function."""
    short = [_claim(name, _mean_square(count)) for name, count in zip(SHORT, (10, 25), strict=True)]
    return Study("sampled", claims=[*short, *(_claim(name, _slow) for name in LONG)], again=study)


def _claim(name, measure):
    return Claim(name, "", name, 1.0, 0.5, 2.0, "derived", measure, paper=OURS, about="ours")


def _mean_square(count):
    """The mean square of so many thousand standard normal numbers, which is 1 on average."""
    return lambda seed: float((jax.random.normal(jax.random.key(seed), (1000 * count,)) ** 2).mean())


def _slow(seed):
    time.sleep(SECONDS)
    return 1.0
