"""Geometry of a plane curve that is known at T points: curvature, osculating circles, evolute, vertices and cusps.

A point's index is its parameter, and derivatives are central differences: r' = (r[t+1] - r[t-1]) / 2 and
r'' = r[t+1] - 2 r[t] + r[t-1]. Nothing here has a unit of time: vertices and cusps are those of the drawn curve.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

LEAST = 5  # points that a curvature can have an extremum on, with a neighbour on each side


class Geometry(NamedTuple):
    """Of each point [T], nan at both ends: signed curvature, speed |r'|, and the osculating circle's centre [T, 2].

    curvature k = (x' y'' - y' x'') / |r'|^3; centre = r + (-y', x') |r'|^2 / (x' y'' - y' x''), whose path is the
    evolute. Both are infinite where r' and r'' are parallel, as on a line.
    """

    curvature: np.ndarray
    speed: np.ndarray
    centre: np.ndarray


class Vertex(NamedTuple):
    """An extremum of the curvature, where the evolute has a cusp: its place in the curve, k, the circle's centre [2].

    sharp: |curvature| is largest there, not least. prominence: by how many nats log |curvature| stands above the higher
    of the two troughs beside it; 0 where the vertex is not sharp.
    """

    place: int
    curvature: float
    centre: np.ndarray
    sharp: bool
    prominence: float


def geometry(curve: np.ndarray) -> Geometry:
    """The geometry of a curve [T, 2]; `ValueError` for fewer than five points, or non-finite ones."""
    if curve.ndim != 2 or curve.shape[1] != 2 or len(curve) < LEAST:
        raise ValueError(f"a curve of shape {curve.shape} has no vertices: it takes [T, 2] with T at least {LEAST}")
    if not np.isfinite(curve).all():
        raise ValueError("the curve's points are not all finite")
    first, second = (curve[2:] - curve[:-2]) / 2, curve[2:] - 2 * curve[1:-1] + curve[:-2]
    squared = np.sum(first**2, axis=1)
    cross = first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):  # where the curve does not move, or is a line
        curvature = cross / squared**1.5
        normal = np.stack([-first[:, 1], first[:, 0]], axis=1)
        centre = curve[1:-1] + normal * (squared / cross)[:, None]
    return Geometry(*(_ends(values) for values in (curvature, np.sqrt(squared), centre)))


def vertices(curve: np.ndarray) -> list[Vertex]:
    """The vertices of a curve [T, 2] in order: strict extrema of the signed curvature between two neighbours.

    Where the curvature crosses 0 there is an inflection and no vertex: an extremum of the same sign as its curvature is
    sharp, one of the other sign is the least curved place between two bends.
    """
    local_geometry = geometry(curve)
    k = local_geometry.curvature
    with np.errstate(invalid="ignore"):
        largest = np.flatnonzero((k[1:-1] > k[:-2]) & (k[1:-1] > k[2:])) + 1
        least = np.flatnonzero((k[1:-1] < k[:-2]) & (k[1:-1] < k[2:])) + 1
    sizes = np.abs(k)
    extrema = np.concatenate([largest[k[largest] > 0], least[k[least] < 0]])
    sharp = {*extrema[(sizes[extrema] > sizes[extrema - 1]) & (sizes[extrema] > sizes[extrema + 1])]}
    prominences = _prominences(sizes, sorted(sharp))
    return [
        Vertex(int(t), float(k[t]), local_geometry.centre[t], t in sharp, prominences.get(t, 0.0))
        for t in sorted({*largest, *least})
    ]


def cusps(curve: np.ndarray) -> np.ndarray:
    """The indices at which a curve [T, 2] turns back: consecutive chords of more than a right angle to each other.

    At a cusp r' = r'' = 0 and the direction reverses. Where a chord has no length none is found.
    """
    chords = np.diff(curve, axis=0)
    turned: np.ndarray = np.flatnonzero(np.sum(chords[1:] * chords[:-1], axis=1) < 0) + 1
    return turned


def _ends(values: np.ndarray) -> np.ndarray:
    """Values of the points between the ends, with nan at these."""
    return np.concatenate([values[:1] * np.nan, values, values[:1] * np.nan])


def _prominences(sizes: np.ndarray, peaks: list[int]) -> dict[int, float]:
    """Topographic prominences of log sizes at these peaks, by SciPy; sizes of 0 or nan are below all others."""
    from scipy.signal import peak_prominences

    if not peaks:
        return {}
    known = np.isfinite(sizes) & (sizes > 0)
    logs = np.log(sizes, where=known, out=np.full(len(sizes), -np.inf))
    logs[~known] = logs[known].min()
    values, _, _ = peak_prominences(logs, peaks)
    return dict(zip(peaks, map(float, values), strict=True))
