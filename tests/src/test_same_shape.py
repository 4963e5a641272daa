"""Everything that takes one value for each of the same tasks refuses arrays of two shapes, which would be broadcast.

The table is whole: a test finds every function of the tree whose parameters are such a pair.
"""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.analysis import (
    algorithm_distance,
    comparators,
    layerwise,
    paired_losses,
    paths,
    position_steps,
    separation,
    transience,
    weights,
)
from icl_lab.analysis import algorithm_distance as turn
from icl_lab.analysis import transience as threshold
from icl_lab.analysis.algorithm_distance import Response
from icl_lab.analysis.development import behaviour
from icl_lab.baselines import bayes, comparison, loss_curves
from icl_lab.families.diversity import task as diversity
from icl_lab.families.languages import task as languages
from icl_lab.src import losses, statistics
from icl_lab.src.batch import Batch
from icl_lab.src.checks import same_shape

Pair = Callable[[Any, Any], Any]


def batch_of(targets: Any) -> Batch:
    """A batch whose query labels are these; nothing else is looked at."""
    return Batch(jnp.ones((5, 2, 3)), jnp.ones((5, 2)), jnp.ones((5, 3)), targets, jnp.ones((5, 3)))


def evaluated(targets: Any) -> diversity.EvalSet:
    return diversity.EvalSet(batch_of(targets), targets, {})


def response(predictions: Any) -> Response:
    return Response(predictions, np.ones((5, 3)))


# (module, function) -> a call with two arrays that belong together
TABLE: dict[tuple[Any, str], Pair] = {
    (losses, "half_squared_errors"): losses.half_squared_errors,
    (losses, "absolute_errors"): losses.absolute_errors,
    (losses, "half_mse"): losses.half_mse,
    (losses, "binary_cross_entropies"): losses.binary_cross_entropies,
    (losses, "logistic_losses"): losses.logistic_losses,
    (losses, "cross_entropies"): lambda a, b: losses.cross_entropies(a[..., None], b.astype(int)),
    (statistics, "contrast"): statistics.contrast,
    (statistics, "equivalence"): statistics.equivalence,
    (comparison, "cosine"): comparison.cosine,
    (bayes, "best_smoothing"): lambda a, b: bayes.best_smoothing(batch_of(b)._replace(y=b), a, jnp.ones((2, 3)), 1.0),
    (loss_curves, "prediction_losses"): lambda a, b: loss_curves.prediction_losses(a[None], batch_of(b)),
    (loss_curves, "unstable_share"): lambda a, b: loss_curves.unstable_share(a[None], b[None]),
    (statistics, "ratio_and_error"): statistics.ratio_and_error,
    (paired_losses, "half_squared_errors"): lambda a, b: paired_losses.half_squared_errors(
        {"mine": lambda _: a}, batch_of(b)
    ),
    (comparators, "half_errors"): lambda a, b: comparators.half_errors({"mine": lambda _: a}, batch_of(b)),
    (layerwise, "paired_ratio"): layerwise.paired_ratio,
    (algorithm_distance, "distance"): lambda a, b: algorithm_distance.distance(response(a), response(a), b),
    (position_steps, "agreement"): position_steps.agreement,
    (weights, "relative_distance"): weights.relative_distance,
    (turn, "turn"): lambda a, b: turn.turn(b, a, b),
    (threshold, "crossing"): lambda a, b: threshold.crossing(np.arange(1, 6), a, b),
    (transience, "critical_step"): transience.critical_step,
    (paths, "path"): lambda a, b: paths.path(a, b, np.linspace(0, 1, 3)),
    (separation, "pair_counts"): lambda a, b: separation.pair_counts(a, b > 0, np.ones((5, 1))),
    (separation, "matched_auroc"): lambda a, b: separation.matched_auroc(a, b > 0, np.ones((5, 1))),
    (separation, "raw_auroc"): lambda a, b: separation.raw_auroc(a, b > 0),
    (separation, "position_auroc"): lambda a, b: separation.position_auroc(a, b > 0),
    (separation, "separation"): lambda a, b: separation.separation(a, b > 0, a, 0),
    (behaviour, "position_losses"): behaviour.position_losses,
    (behaviour, "on_sequences"): lambda a, b: behaviour.on_sequences(a, b, a, {}, 1),
    (behaviour, "of_gain"): lambda a, b: behaviour.of_gain(a, b, 3),
    (diversity, "distance"): lambda a, b: diversity.distance(a, b, 1),
    (diversity, "measured"): lambda a, b: diversity.measured(a, evaluated(b), 1),
    (languages, "rights"): languages.rights,
    (languages, "accuracy"): languages.accuracy,
}
PAIRS: tuple[set[str], ...] = (
    {"predictions", "targets"},
    *({"predictions", "labels"}, {"logits", "labels"}, {"numerator", "denominator"}, {"treated", "control"}),
    *({"read", "predicted"}, {"tf", "gd"}, {"scores", "hit"}, {"predictions", "noisy"}, {"matrix", "target"}),
)


@pytest.mark.parametrize(("module", "name"), TABLE, ids=lambda part: getattr(part, "__name__", part))
def test_arrays_of_two_shapes_are_refused(module: Any, name: str) -> None:
    column, row, flat = np.ones((5, 1)), np.ones((1, 5)), np.ones(5)
    for one, other in ((column, flat), (flat, column), (column, row)):
        with pytest.raises(ValueError, match=r"\(\d(, \d)*,?\)"):
            TABLE[module, name](jnp.asarray(one) if module is losses else one, other)


def test_every_function_of_such_a_pair_is_in_the_table() -> None:
    known = {(f"{module.__name__.removeprefix('icl_lab.').replace('.', '/')}.py", name) for module, name in TABLE}
    root = Path(__file__).parent.parent.parent
    for folder in ("src", "baselines", "analysis", "families"):
        for path in (root / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                    names = {argument.arg for argument in node.args.args}
                    if any(pair <= names for pair in PAIRS):
                        assert (path.relative_to(root).as_posix(), node.name) in known


def test_one_shape_passes_and_so_do_axes_in_front_where_they_may() -> None:
    same_shape(a=np.ones((5, 1)), b=jnp.ones((5, 1)), c=np.ones((5, 1)))
    same_shape(leading=True, layers=np.ones((3, 5, 1)), targets=np.ones((5, 1)))
    same_shape(leading=True, layers=np.ones((3, 5)), target=1.0)
    layers, labels = jnp.ones((3, 5)), jnp.ones(5)
    np.testing.assert_array_equal(
        losses.binary_cross_entropies(layers, labels)[1], losses.binary_cross_entropies(layers[1], labels)
    )
