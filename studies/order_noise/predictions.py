"""Writes what gradient descent with a step size for each position predicts for the study's contrasts.

python -m studies.order_noise.predictions

A model that can give each position its own step size is predicted to take the best one there: c fitted on contexts like
those it was trained on (`baselines.position_weighted`). twolayer can. lsa1, and lsa1_pe on concatenated tokens, have
one factor for all y_(k) x_(k).x_query: they are predicted to take the one step size that is best on their training
contexts, as twolayer is where positions are exchangeable. A loss is the quadratic form of the tested contexts' moments
at these step sizes; the contrast of two is what the study compares. Every context is made of the same tasks, so
contrasts are paired.

predictions.csv has a row for each contrast of losses, with gradient descent at the clean or the tuned step as control
where that is the study's, and for crossings of a trained with a tested order or placement that the study has not.
predicted_steps.csv has the step sizes. Intervals are 95 % t intervals of the jackknife over sets of tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.lab import cli
from icl_lab.lab.flag_types import Whole
from icl_lab.src.checks import require
from icl_lab.src.config import PLACEMENTS
from icl_lab.src.data_config import DataConfig
from icl_lab.src.registries import ORDERINGS
from icl_lab.src.words import printable
from icl_lab.store import outputs
from icl_lab.store.atomic import csv_bytes
from icl_lab.store.outputs import out_folder
from icl_lab.studies.contrast import CLEAN, Condition, Context, Contrast, Ratio
from icl_lab.studies.ledger import WRITER
from icl_lab.studies.order_noise.measures import CONTRASTS
from icl_lab.studies.order_noise.runs import NOISE, RATE, SIGMA

if TYPE_CHECKING:
    from icl_lab.baselines.position_weighted import Moments
    from icl_lab.src.config import ContextConfig

PREDICTIONS, STEPS = "predictions.csv", "predicted_steps.csv"
TABLES = {
    PREDICTIONS: "a row for each contrast: the change that a step size for each position predicts, and its interval",
    STEPS: "the step size of each position that is best on contexts of the training",
}
FOLDER = "order_noise"
SEED = 20_000  # of no run: those of the study are below 100
TASKS = 400_000  # to fit the step sizes, and as many others to test them
SETS = 40  # of tasks; the jackknife leaves out one at a time
DIGITS = 6  # of the numbers in the tables
BY_POSITION = "twolayer"  # the model whose positions may have step sizes of their own
LOSSES = ("test_loss", "test_gd_loss", "test_gd_tuned_step_loss")  # columns of the study's table that this predicts


# --- contrasts ---


def predicted_contrasts() -> list[Contrast]:
    """The study's contrasts of losses that this predicts, and the crossings that it lacks."""
    contrasts = [contrast for contrast in CONTRASTS if _is_predicted(contrast)]
    return [*contrasts, *_crossings()]


def _is_predicted(contrast: Contrast) -> bool:
    return contrast.unit == "loss" and all(condition.column in LOSSES for condition in contrast.conditions)


def _crossings() -> Iterator[Contrast]:
    """Trained in each order or placement and tested in each, against trained in random order or mixed.

    Of orders on clean and on corrupted contexts, of placements for both kinds of noise.
    """
    for noise in (CLEAN, Context(noise_mode="label_noise", p=RATE)):
        words = "" if noise == CLEAN else f", {noise.noise_mode} {noise.p:g}"
        orders = {ordering: noise._replace(ordering=ordering) for ordering in ORDERINGS}
        yield from _crossed(f"order trained x order tested{words}", orders, "random")
    for mode in NOISE:
        noise = Context(noise_mode=mode, p=RATE)
        places = {placement: noise._replace(placement=placement) for placement in PLACEMENTS}
        yield from _crossed(f"placement trained x placement tested, {mode} {RATE:g}", places, "mixed")


def _crossed(question: str, contexts: Mapping[str, Context], control: str) -> Iterator[Contrast]:
    for trained in contexts:
        for tested in contexts:
            if trained != control:
                name = f"{BY_POSITION}: trained {trained}, tested {tested} / trained {control}"
                treated, untreated = (
                    Condition(BY_POSITION, contexts[train], contexts[tested]) for train in (trained, control)
                )
                yield Contrast(question, name, "difference", [treated], [untreated])


def _words(context: Context) -> str:
    """A context in words: order, difficulty, noise, placement, as far as they are not the plain ones."""
    by = f" by {context.difficulty}" if context.difficulty else ""
    noise = f" {context.noise_mode} {context.p:g}" if context.noise_mode != "clean" else ""
    return f"{context.ordering}{by}{noise}{f' {context.placement}' if context.placement != 'mixed' else ''}"


# --- moments ---


class Predictions:
    """The moments of contexts on sets of tasks, and what is predicted from them.

    Arrays have a leading axis of 1 + SETS: all tasks, then all but each set.
    """

    def __init__(self, tasks: int = TASKS, sets: int = SETS):
        require(
            tasks % sets == 0 and tasks // sets > 10, f"tasks is {tasks}; it must be a multiple of {sets} above 400"
        )
        self.tasks_of_a_set, self.sets = tasks // sets, sets
        self.drawn: dict[tuple[ContextConfig, bool], Moments] = {}

    def moments(self, context: Context, tested: bool) -> Moments:
        """The moments of a context, on the tasks that step sizes are fitted on or on those that they are tested on."""
        which = (_config(context), tested)
        if which not in self.drawn:
            self.drawn[which] = self._drawn(*which)
        return self.drawn[which]

    def _drawn(self, config: ContextConfig, tested: bool) -> Moments:
        import jax

        from icl_lab.baselines.position_weighted import Moments, query_averaged_moments
        from icl_lab.src.context import draw_contexts
        from icl_lab.src.prng import Purpose, key, purpose_key

        data, parts = DataConfig(), []
        of_queries = data.input_variance * np.eye(data.dim)
        own_key = purpose_key(key(SEED), Purpose.TEST_SET if tested else Purpose.POSITION_STEPS)
        for number in range(self.sets):
            drawn = draw_contexts(jax.random.fold_in(own_key, number), [data], config, self.tasks_of_a_set)[0]
            parts.append(query_averaged_moments(drawn.batch, of_queries))
        return Moments(*(_left_out(np.stack(part)) for part in zip(*parts, strict=True)))

    def step_sizes(self, model: str, train: Context) -> np.ndarray:
        """The step sizes [1 + SETS, N] that a model is predicted to take, trained on such contexts."""
        from icl_lab.baselines.position_weighted import fit_step_sizes

        moments = self.moments(train, tested=False)
        if model == BY_POSITION and not _config(train).exchangeable:
            return fit_step_sizes(moments)
        everywhere: np.ndarray = np.repeat(fit_step_sizes(moments.flat), moments.cross.shape[-1], axis=-1)
        return everywhere

    def value(self, side: Condition | Ratio) -> np.ndarray:
        """The predicted loss [1 + SETS] of a condition, or the ratio of two.

        Gradient descent's is that of the one step size which is best on clean contexts or on the tested ones.
        """
        from icl_lab.baselines.position_weighted import expected_loss

        if isinstance(side, Ratio):
            ratio: np.ndarray = self.value(side.of) / self.value(side.over)
            return ratio
        tuned_on = {
            "test_gd_loss": CLEAN,
            "test_gd_tuned_step_loss": side.test._replace(ordering="random", placement="mixed"),
        }
        train = tuned_on.get(side.column, side.train)
        model = side.model if side.column == "test_loss" else "gradient descent"
        loss: np.ndarray = expected_loss(self.moments(side.test, tested=True), self.step_sizes(model, train))
        return loss

    def change(self, contrast: Contrast) -> np.ndarray:
        """The predicted change [1 + SETS] of a contrast: the mean of the treated over that of the control, less 1."""
        treated, control = (
            np.mean([self.value(side) for side in sides], axis=0) for sides in (contrast.treated, contrast.control)
        )
        relative: np.ndarray = treated / control - 1
        return relative


def _config(context: Context) -> ContextConfig:
    from icl_lab.src.config import ContextConfig

    by = context.difficulty or ("gd_error" if context.noise_mode == "clean" else "residual")
    sigma = SIGMA if context.noise_mode != "clean" else 0.0
    return ContextConfig(context.ordering, by, context.noise_mode, context.p, sigma, context.placement)


def _left_out(parts: np.ndarray) -> np.ndarray:
    """The mean over the first axis, then the means without each one."""
    total, count = parts.sum(axis=0), len(parts)
    return np.concatenate([total[None] / count, (total - parts) / (count - 1)])


def jackknife_error(values: np.ndarray) -> np.ndarray:
    """The standard error of values[0], of values[1:] without a set each: sqrt((S - 1)/S sum (v_s - mean)^2)."""
    count = len(values) - 1
    error: np.ndarray = np.sqrt((count - 1) / count * np.sum((values[1:] - values[1:].mean(axis=0)) ** 2, axis=0))
    return error


# --- tables ---


def rows(predictions: Predictions, contrasts: Iterable[Contrast]) -> list[dict[str, Any]]:
    """A row for each contrast: its conditions, the predicted change and its interval."""
    from scipy.special import stdtrit

    table = []
    for contrast in contrasts:
        change = predictions.change(contrast)
        half = stdtrit(predictions.sets - 1, 0.975) * jackknife_error(change)
        table.append(_row(contrast, float(change[0]), float(half)))
    return table


def _row(contrast: Contrast, change: float, half: float) -> dict[str, Any]:
    treated = [side.of if isinstance(side, Ratio) else side for side in contrast.treated]
    noise = next((c for side in treated for c in (side.test, side.train) if c.noise_mode != "clean"), CLEAN)
    numbers = {"predicted_change": change, "low": change - half, "high": change + half}
    return {
        "question": contrast.question,
        "contrast": contrast.name,
        "trained": "; ".join(dict.fromkeys(_words(side.train) for side in treated)),
        "tested": "; ".join(dict.fromkeys(_words(side.test) for side in treated)),
        "noise": noise.noise_mode,
        "p": noise.p,
        **{name: _rounded(value) for name, value in numbers.items()},
    }


def step_rows(predictions: Predictions, contrasts: Iterable[Contrast]) -> list[dict[str, Any]]:
    """A row for each training context of the model with step sizes by position, and each position."""
    conditions = [condition for contrast in contrasts for condition in contrast.conditions]
    trained = {_config(condition.train): condition.train for condition in conditions if condition.model == BY_POSITION}
    table = []
    for context in trained.values():
        step_sizes = predictions.step_sizes(BY_POSITION, context)
        for place, (c, error) in enumerate(zip(step_sizes[0], jackknife_error(step_sizes), strict=True)):
            row = {"condition": _words(context), "position": place + 1, "c": _rounded(c), "c_se": _rounded(error)}
            table.append(row)
    return table


def _rounded(value: float) -> float:
    """Rounded to `DIGITS` significant digits; 0 below float64 rounding error."""
    return 0.0 if abs(value) < 1e-12 else float(f"{value:.{DIGITS}g}")


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser(
        "studies.order_noise.predictions",
        "Writes what gradient descent with a step size for each position predicts for the study's contrasts.",
    )
    built.add_argument("--report", type=out_folder, default="report", help="folder of the results")
    built.add_argument(
        "--tasks",
        type=Whole(2, 2**22, "they are in memory at once"),
        default=TASKS,
        help="tasks to fit on, and as many others to test on",
    )
    return built


def main(argv: list[str]) -> None:
    """The command line."""
    flags = parser().parse(argv)
    files = [flags.report / FOLDER / name for name in (PREDICTIONS, STEPS)]
    outputs.check(files, WRITER)
    predictions, contrasts = Predictions(flags.tasks), predicted_contrasts()
    tables = (rows(predictions, contrasts), step_rows(predictions, contrasts))
    outputs.write({path: csv_bytes(table) for path, table in zip(files, tables, strict=True)}, WRITER)
    for path, table in zip(files, tables, strict=True):
        print(f"{printable(path)}: {len(table)} rows")


if __name__ == "__main__":
    cli.launch(main)
