"""Extrapolation of an estimate to infinite nbeta: to the global coefficient, and only from chains that stand still."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from icl_lab.analysis.llc.mixing import trend
from icl_lab.analysis.llc.validation import known
from icl_lab.analysis.llc.validation.checks import Answers, Check, Found, Steps, estimated, judged
from icl_lab.analysis.llc.validation.models import KnownLoss, made
from icl_lab.analysis.llc.validation.quadrature import Answer
from icl_lab.analysis.llc.validation.targets import COLD
from icl_lab.store.llc_rows import NOT_MIXED

TRENDING = 2.0  # standard errors between the last two quarters, beyond which nothing is extrapolated
NBETAS, HOTTER = (1e3, COLD), (1e2, COLD)


def in_nbeta(nbetas: Sequence[float], estimates: Sequence[np.ndarray]) -> tuple[np.ndarray, float]:
    """The limit [C] of estimates [C, T] by a line in 1 / log nbeta, and the largest trend of their last two quarters.

    nbeta E[L] = lambda - (m - 1) / log nbeta + ... (Watanabe 2013), which holds only for equilibrated draws; at one
    gamma lambda is that of all solutions, not that at w*.
    """
    trends = np.array([trend(values, since=-2) for values in estimates])
    means = np.stack([values.mean(axis=1) for values in estimates])
    return _line(nbetas, means), float(trends[np.argmax(np.abs(trends))])


def _line(nbetas: Sequence[float], means: np.ndarray) -> np.ndarray:
    """Where the line in 1 / log nbeta through means [number of nbetas, ...] ends."""
    design = np.stack([np.ones(len(nbetas)), 1 / np.log(nbetas)], axis=1)
    return np.asarray(np.linalg.lstsq(design, means, rcond=None)[0][0])


def moving(trend: float, limit: float = TRENDING) -> str:
    """The reason of a trend beyond its limit, in standard errors; "" within it."""
    return "" if abs(trend) <= limit else f"{NOT_MIXED}: {trend:+.1f} standard errors between quarters of the draws"


def limits(_: Answers) -> Iterator[list[Check]]:
    """Made for HMC on a crossing, whose line still ends below lambda; refused to short SGLD on matrices."""
    model = made("crossing(1, 1)")
    runs = [Steps(0.1 / math.sqrt(nbeta + 1), nbeta, 1.0, 1024, 80, 160, 1, "hmc") for nbeta in HOTTER]
    means, moved = in_nbeta(HOTTER, [_draws(model, steps) for steps in runs])
    exact = [known.crossing((1, 1), nbeta, 1.0) for nbeta in HOTTER]
    line = Answer(float(_line(HOTTER, np.array(exact))), 0.0, "a line through two quadratures")
    yield [judged("to infinite nbeta", model, runs[-1], Found(means, "", moving(moved)), line)]
    model = made("deep_linear((8, 8, 8, 8), 0)")
    runs = [Steps(1e-6, nbeta, 1.0, 16, 50, 400, 20) for nbeta in NBETAS]
    moved = in_nbeta(NBETAS, [_draws(model, steps) for steps in runs])[1]
    refused = _check(model, runs[-1], Found(np.full(runs[-1].chains, np.nan), "", moving(moved)), "Aoyagi")
    yield [refused._replace(met=math.isfinite(moved) and bool(refused.reasons))]


def _draws(model: KnownLoss, steps: Steps) -> np.ndarray:
    """nbeta (L(w) - L(w*)) of each draw [C, T]."""
    return np.asarray(steps.nbeta * estimated(model, steps, predict=False).excess)


def _check(model: KnownLoss, steps: Steps, found: Found, by: str) -> Check:
    """Compared with lambda, within a tenth and whatever the standard error."""
    answer = Answer(model.whole.value, math.inf, by)
    return judged("to infinite nbeta", model, steps, found, answer, 0.1)._replace(answer_error=math.nan, gap=math.nan)
