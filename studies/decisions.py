"""The verdicts of many simulated studies at once: what `verdict_of` says of each, for simulations.

Values are [S, n], a row for each study; decisions [S] are 1 for reproduced, -1 for contradicted, 0 for undecided.
"""

from __future__ import annotations

import numpy as np

from icl_lab.src import intervals
from icl_lab.src.intervals import LEVEL, SCALES, clopper_pearson
from icl_lab.src.statistics import mean_and_interval
from icl_lab.studies import two_kinds
from icl_lab.studies.claim import Claim
from icl_lab.studies.looks import level_of
from icl_lab.studies.verdict import MAJORITY, NEAR_ONE, SKEWED


def after_looks(claim: Claim, values: np.ndarray, looks: tuple[int, ...], level: float | None = None) -> np.ndarray:
    """The decisions of studies that are read at these numbers of their first seeds, and stop at the first verdict.

    level: of the intervals, None for that of these looks.
    """
    found = np.zeros(len(values), int)
    for n in looks:
        found = np.where(found == 0, decisions(claim, values[:, :n], level or level_of(looks)), found)
    return found


def decisions(claim: Claim, values: np.ndarray, level: float = LEVEL) -> np.ndarray:
    """The decisions by the first reading; nan is a run that a claim on those that learnt leaves out."""
    ordered, found = np.sort(values, axis=1), np.zeros(len(values), int)  # nan last
    counted = (~np.isnan(ordered)).sum(axis=1)
    for n in np.unique(counted[counted > 0]):
        found[counted == n] = _of_as_many(claim, ordered[counted == n, :n], level)
    return found


def _of_as_many(claim: Claim, ordered: np.ndarray, level: float) -> np.ndarray:
    n = ordered.shape[1]
    if claim.every or claim.scale == "share":
        hits = (claim.low <= ordered) & (ordered <= claim.high) if claim.every else ordered > 0
        by_hits = np.array([_of_hits(claim, int(k), n, level) for k in range(n + 1)])
        return np.asarray(by_hits[hits.sum(axis=1)])
    found, scales = np.zeros(len(ordered), int), _scales(claim, ordered)
    for scale in np.unique(scales):
        mine = scales == scale
        low, high, is_number = _ends(ordered[mine], str(scale), claim, level)
        inside, outside = (claim.low <= low) & (high <= claim.high), (high < claim.low) | (low > claim.high)
        decided = (inside & is_number).astype(int) - outside
        found[mine] = np.where(_have_gap(ordered[mine], str(scale), claim.spacing), 0, decided)
    return found if n > 1 else np.zeros_like(found)


def _have_gap(ordered: np.ndarray, scale: str, spacing: float) -> np.ndarray:
    """Which studies' runs are of two kinds [S]; the floor of the deviation is asked of the few that may be."""
    found, n = np.zeros(len(ordered), bool), ordered.shape[1]
    if n >= two_kinds.FEWEST and scale != "median":
        gaps, _, deviations = two_kinds.largest_gaps(intervals.transformed(ordered, SCALES[scale]))
        for study in np.flatnonzero(gaps > two_kinds.critical(n) * deviations):
            gap = two_kinds.gap(ordered[study], scale, spacing)
            found[study] = gap is not None and gap.found
    return found


def _of_hits(claim: Claim, hits: int, n: int, level: float) -> int:
    share = clopper_pearson(hits, n, level)
    if claim.every:
        return -1 if hits < n else int(share.low > MAJORITY)
    return int(claim.low <= share.low and share.high <= claim.high) - int(
        share.high < claim.low or share.low > claim.high
    )


def _scales(claim: Claim, ordered: np.ndarray) -> np.ndarray:
    """The scale of each study's interval, and "median" where a run diverged."""
    scales = np.full(len(ordered), claim.scale, dtype="<U12")
    if claim.scale == "fraction" and claim.low > NEAR_ONE:
        scales[ordered[:, -1] < 1] = "complement"
    if claim.high < SKEWED.get(claim.scale, -np.inf):
        scales[ordered[:, 0] > 0] = "log"
    scales[np.isinf(ordered[:, -1])] = "median"
    return scales


def _ends(ordered: np.ndarray, scale: str, claim: Claim, level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The intervals' ends [S] within what is possible, and whether the estimates are finite."""
    bounds, n = SCALES[claim.scale], ordered.shape[1]
    if scale == "median":
        k = intervals.rank(n, level)
        low = ordered[:, k - 1] if k else np.full(len(ordered), -np.inf)
        high = ordered[:, -k] if k else np.full(len(ordered), np.inf)
        is_number = np.isfinite(ordered[:, (n - 1) // 2])
    else:
        mean, half = mean_and_interval(intervals.transformed(ordered, SCALES[scale]).T, level)
        low, high = (SCALES[scale].inverse(end) for end in (mean - half, mean + half))
        is_number = np.ones(len(ordered), bool)
    low, high = np.clip(low - claim.spacing / 2, bounds.lowest, bounds.highest), high + claim.spacing / 2
    return low, np.where(np.isinf(high), high, np.clip(high, bounds.lowest, bounds.highest)), is_number
