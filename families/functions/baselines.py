"""What decoders are compared with on prompts of functions: each predicts label k from the pairs before it.

Predictions are what a model gives: numbers, logits of labels -1 and 1, or C logits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from icl_lab.baselines.functions import adam_network, gaussian, lasso, linear, nearest, trees
from icl_lab.families.functions import exact, task
from icl_lab.families.functions.batch import FunctionBatch
from icl_lab.families.functions.config import FunctionsConfig
from icl_lab.families.functions.exact import ORACLE, Predict, Predictor, Shown, as_predictions
from icl_lab.families.functions.function_class import CLASSES, SIGN, FunctionClass
from icl_lab.lab.environment import UnusableEnvironment
from icl_lab.src.checks import ConfigError
from icl_lab.src.prng import Purpose

CHOOSING_PROMPTS = 1000  # at most, that penalties are chosen on
FITTED_POSITIONS = 8  # at which methods are fitted anew
NEIGHBOURS = 3
PRIOR, BAYES, POOL = "prior", "bayes", "pool"


class Asked(NamedTuple):
    """What baselines are made for: a run, on prompts as in training, unless the others say otherwise.

    positions: where methods are fitted anew. chosen_on: prompts on which penalties are chosen.
    """

    config: FunctionsConfig
    positions: Sequence[int] | None = None
    chosen_on: FunctionBatch | None = None

    def fitted_at(self) -> Sequence[int]:
        """The positions at which methods are fitted anew."""
        return fitted_positions(self.config.data.num_pairs) if self.positions is None else self.positions

    def others(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Inputs, labels and targets of the prompts on which penalties are chosen."""
        other = other_prompts(self.config) if self.chosen_on is None else self.chosen_on
        part = task.first(other, CHOOSING_PROMPTS)
        x, y, targets = (np.asarray(leaf, np.float64) for leaf in (part.x, part.y, part.y_query))
        return x, y, targets


def predictors(asked: Asked, leaving_out: Collection[str] = ()) -> dict[str, Predictor]:
    """The predictors of a run, by name, without baselines that are left out."""
    config = asked.config
    function, count = config.function, config.test_tasks
    found = {PRIOR: Predictor(constant(config), count)}
    if exact.has_posterior(function, config.data.dim):
        found[BAYES] = exact.bayes(config)
    if config.data.num_functions < math.inf:
        found[POOL] = exact.of_pool(config)
    if len(function.members) > 1:
        most = min(count, function.posterior_prompts)
        found |= {name: Predictor(predict, most) for name, predict in exact.of_members(function).items()}
    return found | {name: BASELINES[name](asked) for name in function.baselines if name not in leaving_out}


def predictions_on(
    asked: Asked, batch: FunctionBatch, leaving_out: Collection[str] = ()
) -> Iterator[tuple[str, np.ndarray | str]]:
    """(name, predictions on the first b prompts, as many as it is for) of each predictor; or why it is not defined."""
    if reason := exact.not_listed(asked.config):
        yield BAYES, reason
    for name, predictor in predictors(asked, leaving_out).items():
        part = Shown(*(np.asarray(leaf)[: predictor.prompts] for leaf in (batch.x, batch.y, batch.member)))
        try:
            yield name, predictor.predict(part)
        except (ConfigError, UnusableEnvironment) as reason:
            yield name, str(reason)


def references(config: FunctionsConfig, prefix: str) -> tuple[str, ...]:
    """The predictors that a model can at best be as good as, the first that is defined: of a pool its posterior."""
    return (*[POOL] * (prefix == "id"), BAYES, ORACLE, config.function.best_known)


# --- predictors of any class ---


def constant(config: FunctionsConfig) -> Predict:
    """The best constant: 0 of numbers, else the logit of the share of other prompts' labels; of a mixture, each's."""
    function, other = config.function, other_prompts(config)
    targets, number = np.asarray(other.y_query), np.asarray(other.member)
    best = [_constant(member, targets[number == i]) for i, member in enumerate(function.members)]
    return lambda batch: np.broadcast_to(np.stack(best)[batch.member][:, None], (*batch.y.shape, *np.shape(best[0])))


def other_prompts(config: FunctionsConfig) -> FunctionBatch:
    """Prompts on which what baselines need is measured: as many as those of the test, by the same program."""
    return task.prompts(config, Purpose.FITTED, config.test_tasks)


def _constant(function: FunctionClass, targets: np.ndarray) -> np.ndarray:
    if function.target == CLASSES:
        shares = np.array([np.mean(targets == number) for number in range(function.num_classes)])
        return as_predictions(CLASSES, shares)
    return as_predictions(function.target, np.asarray(targets.mean() if function.target == SIGN else 0.0))


# --- baselines that a class names ---


def _closed(means: Callable[..., np.ndarray], **options: Any) -> Callable[[Asked], Predictor]:
    """A method of (x, y) that is quick: of all test prompts."""
    return lambda asked: Predictor(
        lambda batch: as_predictions(asked.config.function.target, means(batch.x, batch.y, **options)),
        asked.config.test_tasks,
    )


def _fitted(means: Callable[..., np.ndarray], **options: Any) -> Callable[[Asked], Predictor]:
    """A method of (x, y, positions) that is fitted anew for each: of some prompts at some positions."""

    def of_run(asked: Asked) -> Predictor:
        config, at = asked.config, asked.fitted_at()

        def predict(batch: Shown) -> np.ndarray:
            return _at(at, means(batch.x, batch.y, positions=at, **options), batch.y.shape)

        return Predictor(predict, min(config.fitted_prompts, config.test_tasks))

    return of_run


def fitted_positions(num_pairs: int) -> list[int]:
    """Positions at which methods are fitted anew: the last, and others that are evenly spaced."""
    count = min(FITTED_POSITIONS, num_pairs)
    return sorted({round((index + 1) * (num_pairs - 1) / count) for index in range(count)})


def _at(positions: Sequence[int], values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    found = np.full(shape, np.nan)
    found[:, [*positions]] = values
    return found


def _neighbours(asked: Asked) -> Predictor:
    """3 nearest neighbours; of signs by Laplace's rule, as a vote of 3 is not certain."""
    target = asked.config.function.members[0].target

    def predict(batch: Shown) -> np.ndarray:
        means = nearest.nearest_neighbours(batch.x, batch.y)
        votes = np.minimum(np.arange(batch.y.shape[1]), NEIGHBOURS)
        return as_predictions(target, means * (votes / (votes + 2))[None] if target == SIGN else means)

    return Predictor(predict, asked.config.test_tasks)


def _ridge(asked: Asked) -> Predictor:
    """Ridge regression with a penalty for each position, chosen on other prompts."""

    def predict(batch: Shown) -> np.ndarray:
        return gaussian.ridge(batch.x, batch.y, gaussian.chosen_penalties(*asked.others()))

    return Predictor(predict, asked.config.test_tasks)


def _lasso(asked: Asked) -> Predictor:
    """Lasso with a penalty for each position, chosen on other prompts."""

    def predict(batch: Shown) -> np.ndarray:
        at = range(batch.y.shape[1]) if asked.positions is None else asked.positions
        x, y, targets = asked.others()
        penalties = lasso.chosen_penalties(x, y, at, targets).tolist()
        return _at(at, lasso.lasso(batch.x, batch.y, penalties, at), batch.y.shape)

    return Predictor(predict, min(CHOOSING_PROMPTS, asked.config.test_tasks))


BASELINES: dict[str, Callable[[Asked], Predictor]] = {
    "least_squares": _closed(linear.least_squares),
    "ridge": _ridge,
    "averaging": _closed(linear.averaging),
    "least_squares_on_squares": _closed(linear.least_squares_on_squares),
    "arc_cosine_regression": _closed(gaussian.arc_cosine_regression),
    "nearest_neighbours": _neighbours,
    "lasso": _lasso,
    "greedy_tree": _fitted(trees.greedy_tree),
    "greedy_tree_on_signs": _fitted(trees.greedy_tree, on_signs=True),
    "boosted_trees": _fitted(trees.boosted_trees),
    "boosted_trees_on_signs": _fitted(trees.boosted_trees, on_signs=True),
    "adam_network": _fitted(adam_network.adam_network),
}
# those whose penalties are chosen on other prompts
CHOSEN = ("ridge", "lasso")
# those that are fitted anew at each position
REFITTED = ("lasso", "greedy_tree", "greedy_tree_on_signs", "boosted_trees", "boosted_trees_on_signs", "adam_network")
