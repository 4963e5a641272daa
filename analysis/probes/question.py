"""What is asked of linear probes: activations, targets, rows, steps; its flags, and its checks before any work."""

from __future__ import annotations

import argparse
import math
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.analysis.probes.features import has_pairs
from icl_lab.analysis.probes.scores import FOLDS, fitted_on
from icl_lab.analysis.probes.targets import TARGETS, Row
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.lab import cli
from icl_lab.lab.flag_types import POSITIVE, TASKS, Either, Whole
from icl_lab.src.activations import CONTEXT, POSITION, axes_of
from icl_lab.src.checks import require
from icl_lab.src.words import did_you_mean
from icl_lab.store.outputs import in_path
from icl_lab.store.readers import read_npz, reading

DEFAULT = ("embed", "blocks.*.resid_post")
ALL = "all"
MOST_STEPS = 10_000


class Question(NamedTuple):
    """What is asked of a run: activations by their patterns, and targets by name; no names: all that it has.

    own: targets of one's own by name, [contexts, ...]; flags are numbers of type bool. positions: rows of tokens, below
    0 from the end, or "all"; none: the last query's. steps: of gradient descent; None: as many as layers up to the
    activation. eta: its step size; None: the run's. tasks: contexts drawn; None: the evaluation batch.
    """

    activations: tuple[str, ...] = DEFAULT
    targets: tuple[str, ...] = ()
    own: Mapping[str, np.ndarray] = {}
    positions: tuple[int | str, ...] = ()
    steps: int | None = None
    eta: float | None = None
    tasks: int | None = None


def check(config: Any, question: Question) -> None:
    """`ConfigError` for targets that a run has not, and for arrays that are not one for each of its contexts."""
    for name in question.targets:
        require(name in TARGETS, f"no target is called {name!r}{_known(name)}")
    if question.targets and not has_pairs(config):
        require(False, f"{question.targets[0]} is a target of pairs, which the family {config.family} does not have")
    masked = isinstance(config, RegressionConfig) and config.eval.hit_rate > 0
    require(masked or "noise_mask" not in question.targets, "noise_mask needs corrupted contexts, but these are clean")
    file = getattr(config, "data_file", "")
    drawn = not (file and question.tasks)
    require(drawn, f"the contexts of {file} are fixed, so no others can be drawn; leave --tasks out")
    contexts = question.tasks or count(config)
    for name, values in question.own.items():
        require(name not in TARGETS, f"{name} is already the name of a target; give the array another name")
        fits = values.ndim > 0 and values.size > 0 and len(values) == contexts
        require(
            fits, f"the target {name} has the shape {values.shape}; it must be [{contexts}, ...], one entry per context"
        )
        numbers = values.dtype.kind in "biuf" and bool(np.isfinite(values.astype(np.float64)).all())
        require(numbers, f"the target {name} has values that are not finite numbers")


def count(config: Any) -> int:
    """How many contexts a run is evaluated on."""
    shapes: Mapping[str, tuple[int, ...]] = config.batch_shapes()
    return next(iter(shapes.values()))[0]


def _known(name: str) -> str:
    return did_you_mean(name, TARGETS) or f"; the targets are {', '.join(TARGETS)}"


def places(positions: Sequence[int | str], rows: Sequence[Row]) -> list[int]:
    """The rows that are probed, by number from 0."""
    most = len(rows)
    if ALL in positions:
        return [*range(most)]
    for place in positions:
        require(-most <= int(place) < most, f"there are {most} rows of tokens, so there is no row {place}")
    queries = [number for number, row in enumerate(rows) if row.query is not None] or [most - 1]
    return sorted({int(place) % most for place in positions}) or queries[-1:]


def check_features(shapes: Mapping[str, Any], contexts: int) -> None:
    """`ConfigError` where an activation has as many features at a row as there are contexts to fit a probe on."""
    for at, shape in shapes.items():
        sizes = zip(axes_of(at), shape.shape, strict=True)
        features = math.prod(size for axis, size in sizes if axis not in (CONTEXT, POSITION))
        enough = features < fitted_on(contexts)
        least = -(-(features + 1) * FOLDS // (FOLDS - 1))
        remedy = f"give --tasks {least} or more, or other --activations"
        said = f"{at} has {features} features, and of {contexts} contexts a probe is fitted on {fitted_on(contexts)}"
        require(enough, f"{said}; {remedy}")


# --- flags ---


def read_targets(path: Path | None) -> dict[str, np.ndarray]:
    """The arrays of an NPZ file, by name; none without a file."""
    if path is None:
        return {}
    with reading(path), zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
    return read_npz(path, names)


def question_of(flags: argparse.Namespace) -> Question:
    """What the flags of a command line ask."""
    chosen, targets, positions = (tuple(part) for part in (flags.activations, flags.targets, flags.positions))
    return Question(chosen, targets, read_targets(flags.target), positions, flags.steps, flags.eta, flags.tasks)


def add_flags(parser: cli.Parser) -> None:
    """What is probed, for what, where, and on how many contexts."""
    known = ", ".join(TARGETS)
    cli.add_list(parser, "--activations", str, DEFAULT, "addresses; * stands for anything")
    cli.add_list(parser, "--targets", str, (), f"targets: {known} (default: all that the contexts have)")
    parser.add_argument("--target", type=in_path, help="NPZ file of targets of your own, each [contexts, ...]")
    rows = Either((ALL,), ALL, Whole(-100_000, 100_000))
    cli.add_list(
        parser,
        "--positions",
        rows,
        (),
        "rows of tokens, from 0 or, if negative, from the end, or all (default: the last query's)",
    )
    parser.add_argument(
        "--steps",
        type=Whole(0, MOST_STEPS),
        help="steps of gradient descent (default: the number of layers up to the activation)",
    )
    parser.add_argument(
        "--eta",
        type=POSITIVE,
        help="step size of gradient descent, eta/N (default: the run's, or the best for its contexts)",
    )
    parser.add_argument(
        "--tasks", type=TASKS, help="number of contexts to draw like the evaluation set (default: that set itself)"
    )
