"""Forms of a training's trajectory: bends that its planes of principal components share, and those of random walks.

A row of a trajectory is a checkpoint's outputs on one fixed batch, flattened: T checkpoints, P outputs. A form is a
time at which the curves in two of the three planes of the first three components have a sharp vertex or a cusp at once,
with the point that their osculating circles have for a centre (Hoogland et al. 2024, arXiv v2, there found by eye).
The components of any smooth random walk are cosines, whose planes have such bends too: a count or a share of variance
is evidence about the model only where it lies outside those of `walk_like`.

A point's index is its parameter, and derivatives are central differences: r' = (r[t+1] - r[t-1]) / 2 and
r'' = r[t+1] - 2 r[t] + r[t-1]. Vertices and cusps are those of the drawn curve, which has no unit of time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from icl_lab.analysis.development.trajectory_pca import fit

LEAST = 5  # points that a curvature can have an extremum on, with a neighbour on each side
COMPONENTS = 3
PLANES = tuple(combinations(range(COMPONENTS), 2))
SHARED = 2  # planes of three that a form bends
WINDOW = 0.02  # of the checkpoints, either way: how far apart the bends of a form may be
FEWEST = math.ceil(1 / WINDOW)  # checkpoints that forms are sought in: with fewer the window is narrower than one
WIDEST = 0.06  # of the checkpoints: the width of the smoothing at the end
REACH = 4  # widths at which the kernel ends


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


class Form(NamedTuple):
    """A bend that planes share: its checkpoint, its point [3], nan in a component that no shared plane has.

    strength: the least of their vertices' prominences, in nats; spread: of the point, the largest distance between what
    two planes say of one component; planes: how many.
    """

    checkpoint: int
    point: np.ndarray
    strength: float
    spread: float
    planes: int


class Dynamics(NamedTuple):
    """A trajectory's scores [T, 3], smoothed and raw, the shares of variance [3], its forms from the strongest.

    curvatures [3, T]: of the smoothed curve in each of `PLANES`, nan at both ends.
    """

    scores: np.ndarray
    raw: np.ndarray
    explained: np.ndarray
    forms: list[Form]
    curvatures: np.ndarray


class Null(NamedTuple):
    """What random walks of the same steps have: shares of variance [N, 3], numbers of forms and strengths [N].

    strongest: of each walk's strongest form; 0 where it has none. example: the first walk.
    """

    explained: np.ndarray
    forms: np.ndarray
    strongest: np.ndarray
    example: Dynamics


def dynamics(rows: np.ndarray, widest: float = WIDEST, window: float = WINDOW) -> Dynamics:
    """PCA of a trajectory [T, P], smoothed, with its forms; below fifty checkpoints none are sought.

    `ValueError` for fewer than five checkpoints.
    """
    if len(rows) < LEAST:
        raise ValueError(f"a trajectory needs {LEAST} checkpoints or more, not {len(rows)}")
    joint = fit(rows, COMPONENTS)
    return of_scores(joint.scores, joint.explained, widest, window)


def of_scores(scores: np.ndarray, explained: np.ndarray, widest: float = WIDEST, window: float = WINDOW) -> Dynamics:
    """The same of scores [T, 3] and their shares of variance."""
    smoothed = smooth_growing(scores, widest * len(scores))
    curvatures = np.stack([geometry(smoothed[:, list(plane)]).curvature for plane in PLANES])
    detected_forms = forms(smoothed, window * len(scores)) if len(scores) >= FEWEST else []
    return Dynamics(smoothed, scores, explained, detected_forms, curvatures)


def smooth_growing(scores: np.ndarray, widest: float) -> np.ndarray:
    """Scores [T, C] averaged by a Gaussian whose width grows evenly from 0 at the first to `widest` at the last row.

    In rows, cut at four widths, reflected at the ends: early checkpoints change much from one to the next and late ones
    little (Hoogland et al. 2024). 0 changes nothing.
    """
    if not 0 <= widest < np.inf:
        raise ValueError(f"the widest smoothing is {widest}; it must be at least 0 checkpoints and finite")
    count = len(scores)
    widths = np.linspace(0, widest, count)
    reach = min(int(np.ceil(REACH * widest)), count)
    offsets = np.arange(-reach, reach + 1)
    smoothed = np.empty((count, scores.shape[1]))
    for t, width in enumerate(widths):
        inside = offsets[np.abs(offsets) <= REACH * width]
        weights = np.exp(-0.5 * (inside / width) ** 2) if width > 0 else np.ones(1)
        smoothed[t] = weights @ scores[_reflected(t + inside, count)] / weights.sum()
    return smoothed


def _reflected(places: np.ndarray, count: int) -> np.ndarray:
    """Places beyond the ends, reflected about the edges: -1 is 0, and count is count - 1."""
    folded = places % (2 * count)
    return np.where(folded < count, folded, 2 * count - 1 - folded)


def forms(scores: np.ndarray, window: float) -> list[Form]:
    """The forms of smoothed scores [T, 3]: sharp vertices of different planes within `window` checkpoints, by strength.

    A vertex belongs to one form at most, the strongest that it can be a part of. A cusp is a vertex of which the
    smoothed curve has a large curvature.
    """
    candidates = [(plane, vertex) for plane in PLANES for vertex in vertices(scores[:, list(plane)]) if vertex.sharp]
    candidates.sort(key=lambda one: -one[1].prominence)
    places = np.array([vertex.place for _, vertex in candidates], int)
    planes = np.array([PLANES.index(plane) for plane, _ in candidates], int)
    free, chosen = np.ones(len(candidates), bool), []
    for index in range(len(candidates)):
        if not free[index]:
            continue
        near = free & (np.abs(places - places[index]) <= window) & (planes != planes[index])
        others = [int(np.flatnonzero(of_plane)[0]) for of_plane in _by_plane(near, planes)]
        group = [index, *others]
        free[index] = False
        if len(group) >= SHARED:
            free[group] = False
            chosen.append(_form([candidates[one] for one in group]))
    return sorted(chosen, key=lambda form: -form.strength)


def _by_plane(chosen: np.ndarray, planes: np.ndarray) -> list[np.ndarray]:
    """Which of the chosen vertices are of each plane that has one; the most prominent is the first."""
    return [of_plane for plane in range(len(PLANES)) if (of_plane := chosen & (planes == plane)).any()]


def _form(group: Sequence[tuple[tuple[int, int], Vertex]]) -> Form:
    said: dict[int, list[float]] = {}
    for plane, vertex in group:
        for component, value in zip(plane, vertex.centre, strict=True):
            said.setdefault(component, []).append(float(value))
    point = np.array([np.mean(said[axis]) if axis in said else np.nan for axis in range(COMPONENTS)])
    return Form(
        group[0][1].place,
        point,
        min(vertex.prominence for _, vertex in group),
        max(max(values) - min(values) for values in said.values()),
        len(group),
    )


# --- the null ---


def walk_like(gram: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The Gram matrix [T, T] of a random walk with a trajectory's steps, each with a random sign.

    gram [T - 1, T - 1]: of the observed steps. The walk's steps have their lengths and directions, in their order, and
    their covariance sum_t s_t s_t' exactly; only the agreement between steps is destroyed. A trajectory of
    independent steps that are as likely to go either way is one of these walks, however their lengths and directions
    change over training.
    """
    signs = rng.choice([-1.0, 1.0], len(gram))
    walked = np.zeros((len(gram) + 1,) * 2)
    walked[1:, 1:] = (gram * np.outer(signs, signs)).cumsum(axis=0).cumsum(axis=1)
    return walked


def null(
    rows: np.ndarray,
    draws: int,
    rng: np.random.Generator,
    widest: float = WIDEST,
    window: float = WINDOW,
) -> Null:
    """The same of so many random walks like a trajectory [T, P]; `ValueError` for no draw."""
    if draws < 1:
        raise ValueError(f"draws is {draws}; it must be at least 1")
    samples = [of_scores(*walk, widest, window) for walk in walks(rows, draws, rng)]
    return Null(
        np.stack([one.explained for one in samples]),
        np.array([len(one.forms) for one in samples]),
        np.array([max((form.strength for form in one.forms), default=0.0) for one in samples]),
        samples[0],
    )


def walks(rows: np.ndarray, draws: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Scores [T, 3] and shares of variance [3] of random walks like a trajectory [T, P], each a PCA of its own."""
    moved = np.diff(np.asarray(rows, float), axis=0)
    gram = moved @ moved.T
    for _ in range(draws):
        yield _scores(walk_like(gram, rng))


def _scores(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first scores and shares of variance of points with this Gram matrix, by classical scaling."""
    from scipy.linalg import eigh

    centred = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, None] + gram.mean()
    count = len(gram)
    squares, axes = eigh(centred, subset_by_index=(count - COMPONENTS, count - 1))
    squares, axes = squares[::-1], axes[:, ::-1]
    return axes * np.sqrt(squares), squares / np.trace(centred)
