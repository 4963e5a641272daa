"""The baselines on corrupted contexts against closed forms, a table of expected values, and each other.

The table is of half losses at D = N = 10, x ~ U(-1/2, 1/2), w ~ N(0, I), sigma = .5. Its values for gradient descent
are closed forms; those for the linear and the Bayes predictor are means over 500 other contexts, rounded.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from icl_lab.analysis import comparators as module
from icl_lab.analysis.comparators import half_errors
from icl_lab.families.regression import baselines as made_of
from icl_lab.families.regression.baselines import Predictor, made, names_of, tuned_gd
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.outputs import positions_differ
from icl_lab.families.regression.table import MEASURED as COLUMNS
from icl_lab.families.regression.task import (
    GradientDescent,
    corrupted_step_size_batch,
    evaluation_context,
    find_gd,
    first_training_context,
    make_test_batch,
    position_steps_batch,
    step_size_batch,
)
from icl_lab.src import prng
from icl_lab.src.batch import Batch
from icl_lab.src.config import ContextConfig, ModelConfig, TrainConfig
from icl_lab.src.context import draw_context
from icl_lab.src.data_config import DataConfig
from icl_lab.src.one_step import one_step_loss, one_step_size
from icl_lab.src.registries import CORRUPTED
from tests import reference

SIGMAS = 4.0
PAPER = DataConfig()
TASKS, TABLE_TASKS = 4096, 500
TABLE = {
    ("label_noise", 0.1): (0.2094, 0.2094, 0.070, 0.052),
    ("label_noise", 0.25): (0.2142, 0.2139, 0.102, 0.092),
    ("label_noise", 0.5): (0.2222, 0.2210, 0.135, 0.137),
    ("random_pairs", 0.1): (0.2301, 0.2301, 0.156, 0.088),
    ("random_pairs", 0.25): (0.2696, 0.2689, 0.238, 0.206),
    ("random_pairs", 0.5): (0.3449, 0.3368, 0.328, 0.311),
}
CELLS = pytest.mark.parametrize(
    ("mode", "p"), [pytest.param(*cell, marks=[pytest.mark.slow] if cell[1] != 0.25 else []) for cell in TABLE]
)
OF_SETS = ("gd_clean_step", "gd_tuned_step", "linear_mmse", "mask_bayes")
SMALL = RegressionConfig(data=DataConfig(dim=4, num_pairs=4), step_size_tasks=256, eval_tasks=64)


def run_of(mode: str, p: float) -> RegressionConfig:
    return RegressionConfig(data=PAPER, eval=ContextConfig(noise_mode=mode, noise_p=p, noise_sigma=0.5))


def corrupted(config: RegressionConfig, tasks: int) -> Batch:
    return jax.jit(lambda key: draw_context(key, config.data, config.eval, tasks).batch)(prng.key(1))


@lru_cache
def steps_of(mode: str, p: float) -> tuple[GradientDescent, GradientDescent]:
    """Gradient descent at the clean and at the tuned step."""
    return find_gd(run_of(mode, p)), tuned_gd(run_of(mode, p))


def baselines(config: RegressionConfig, gd: GradientDescent) -> dict[str, Predictor]:
    """Every baseline of a run that sees a context as a set of pairs, by name."""
    return {name: made(name, config, gd) for name in OF_SETS}


def baseline_errors(config: RegressionConfig, gd: GradientDescent, batch: Batch) -> dict[str, np.ndarray]:
    """Half the squared errors [B] of each on one batch."""
    return half_errors(baselines(config, gd), batch)


@lru_cache
def averaged_errors(mode: str, p: float) -> Mapping[str, np.ndarray]:
    """Every baseline's half squared error on 4096 tasks, averaged over queries: v/2 |found weights - w|^2.

    All four are linear in the query, so predictions on unit queries are the weights they found. A standard error is a
    third of that on one sampled query for each task.
    """
    config = run_of(mode, p)
    batch = corrupted(config, TASKS)
    units = [batch._replace(x_query=jnp.broadcast_to(unit, (TASKS, 10))) for unit in np.eye(10, dtype=np.float32)]
    errors = {}
    for name, predict in baselines(config, find_gd(config)).items():
        weights = np.stack([np.asarray(predict(unit), np.float64) for unit in units], axis=1)
        errors[name] = 0.5 * PAPER.input_variance * np.sum((weights - np.asarray(batch.w)) ** 2, axis=1)
    return MappingProxyType(errors)


def gd_loss(mode: str, p: float, c: float) -> float:
    """One step's half loss in closed form: v/2 E|w - c sum_i y_i x_i|^2.

    With T = E tr S and E tr S^2 = A + F, A from pairs of different inputs and F = N E|x|^4 from equal ones: label noise
    adds c^2 p sigma^2 T; random pairs agree on w by 1 - p, and two of them by (1 - p)^2.
    """
    v, trace, apart, equal = 1 / 12, 100 / 12, 10 * 9 * 10 / 144, 10 * (10 / 80 + 90 / 144)
    if mode == "label_noise":
        return 0.5 * v * (10 - 2 * c * trace + c**2 * (apart + equal + p * 0.25 * trace))
    return 0.5 * v * (10 - 2 * c * (1 - p) * trace + c**2 * ((1 - p) ** 2 * apart + equal))


def standard_error(values: np.ndarray) -> float:
    return float(values.std() / np.sqrt(values.size))


# The table.


def test_without_corruption_the_closed_form_is_the_clean_one() -> None:
    for mode in ("label_noise", "random_pairs"):
        assert gd_loss(mode, 0.0, 0.5) == pytest.approx(one_step_loss(PAPER, 0.5), rel=1e-12)


@CELLS
def test_gradient_descent_has_the_tables_loss(mode: str, p: float) -> None:
    """In closed form at the steps that were found, and on sampled tasks.

    .00005 is the table's rounding, and as much again is for a step that is off by .009: .6 (.009)^2.
    """
    for name, found, expected in zip(OF_SETS, steps_of(mode, p), TABLE[mode, p], strict=False):
        loss = gd_loss(mode, p, float(found.step_size))
        assert loss == pytest.approx(expected, abs=0.00005 + 0.00005), name
        errors = averaged_errors(mode, p)[name]
        assert abs(errors.mean() - loss) < SIGMAS * standard_error(errors), name


@CELLS
def test_the_tuned_step_is_the_best_one(mode: str, p: float) -> None:
    """gd_loss is a parabola in c; the step found on 65 536 tasks costs less than 1e-4 of the loss at its vertex."""
    values = [gd_loss(mode, p, c) for c in (0.0, 0.5, 1.0)]
    vertex = 0.5 * (values[2] - values[0] + 4 * (values[0] - values[1])) / (2 * (values[0] + values[2] - 2 * values[1]))
    best = gd_loss(mode, p, vertex)
    _, found = steps_of(mode, p)
    assert best <= gd_loss(mode, p, float(found.step_size)) < best * (1 + 1e-4)
    assert found.steps == 1
    assert found.source == f"line search on 65536 separate tasks with {mode}, p = {p:g}"


@CELLS
@pytest.mark.parametrize("name", ["linear_mmse", "mask_bayes"])
def test_the_best_predictors_have_the_tables_loss(mode: str, p: float, name: str) -> None:
    """Within 4 standard errors of both samples, theirs of 500 contexts, and the rounding."""
    errors = averaged_errors(mode, p)[name]
    error = errors.std() * np.sqrt(1 / TASKS + 1 / TABLE_TASKS)
    expected = dict(zip(OF_SETS, TABLE[mode, p], strict=True))[name]
    assert abs(errors.mean() - expected) < SIGMAS * error + 0.0005


@CELLS
def test_knowing_the_law_of_masks_gains_what_the_table_says(mode: str, p: float) -> None:
    """Linear less Bayes on the same contexts, which tells them apart ten times better than either loss."""
    _, _, linear, bayes = TABLE[mode, p]
    expected = 0.003 if (mode, p) == ("label_noise", 0.5) else linear - bayes  # .140 - .137 on the same 500 contexts
    gain = averaged_errors(mode, p)["linear_mmse"] - averaged_errors(mode, p)["mask_bayes"]
    assert abs(gain.mean() - expected) < SIGMAS * gain.std() * np.sqrt(1 / TASKS + 1 / TABLE_TASKS) + 0.001


@CELLS
def test_the_linear_predictor_has_the_loss_of_its_closed_form(mode: str, p: float) -> None:
    """v/2 (D - tr E[w y'] E[y y']^-1 E[y w']) for each context, in NumPy; the surprise averages to 0."""
    x = np.asarray(corrupted(run_of(mode, p), TASKS).x, np.float64)
    gram = x @ np.swapaxes(x, 1, 2)
    own = gram * np.eye(10)
    q = 1.0 if mode == "label_noise" else 1 - p
    covariance = gram + p * 0.25 * np.eye(10) if mode == "label_noise" else q**2 * gram + (1 - q**2) * own
    known = q**2 * np.trace(np.linalg.solve(covariance, gram), axis1=1, axis2=2)
    surprise = averaged_errors(mode, p)["linear_mmse"] - 0.5 / 12 * (10 - known)
    assert abs(surprise.mean()) < SIGMAS * standard_error(surprise)


@CELLS
def test_who_knows_more_loses_less(mode: str, p: float) -> None:
    """Bayes < linear < tuned step <= clean step, paired: the first two by more than 4 standard errors."""
    clean, tuned, linear, bayes = (averaged_errors(mode, p)[name] for name in OF_SETS)
    assert ttest_1samp(linear - bayes, 0).statistic > SIGMAS
    assert ttest_1samp(tuned - linear, 0).statistic > SIGMAS
    assert ttest_1samp(clean - tuned, 0).statistic > -SIGMAS
    assert gd_loss(mode, p, float(steps_of(mode, p)[1].step_size)) < gd_loss(mode, p, one_step_size(PAPER))


# What every baseline does.


def test_errors_are_half_squared_errors_of_the_predictions_on_one_batch() -> None:
    config = replace(SMALL, eval=ContextConfig(noise_mode="random_pairs", noise_p=0.3))
    batch, gd = evaluation_context(config).batch, GradientDescent(2, 0.3, "given")
    errors = baseline_errors(config, gd, batch)
    assert [*names_of(CORRUPTED)] == [*errors, "gd_positions", "gd_positions_trained"]
    wide = Batch(*(np.asarray(part, np.float64) for part in batch))
    expected = 0.5 * (reference.gd(wide, 0.3, 2) - wide.y_query) ** 2
    np.testing.assert_allclose(errors["gd_clean_step"], expected, rtol=1e-4, atol=1e-6)
    assert {(values.shape, values.dtype.name) for values in errors.values()} == {((64,), "float64")}
    means = [values.mean() for values in errors.values()]
    assert len(set(means)) == 4


@pytest.mark.parametrize(
    "context", [ContextConfig(), pytest.param(ContextConfig(noise_mode="random_pairs"), marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(("pairs", "noise"), [(3, 0.0), (4, 0.0), (6, 0.0), (6, 0.5)])
def test_on_clean_contexts_they_are_gradient_descent_and_ridge(
    context: ContextConfig, pairs: int, noise: float
) -> None:
    """The two steps are one, and so are the best predictors: ridge in the primal, least squares without noise."""
    config = replace(SMALL, data=DataConfig(dim=4, num_pairs=pairs, noise_std=noise), eval=context)
    batch, gd = evaluation_context(config).batch, find_gd(config)
    assert tuned_gd(config) == gd
    errors = baseline_errors(config, gd, batch)
    np.testing.assert_array_equal(errors["gd_clean_step"], errors["gd_tuned_step"])
    np.testing.assert_array_equal(errors["linear_mmse"], errors["mask_bayes"])
    x, y, x_query, y_query, _ = (np.asarray(part, np.float64) for part in batch)
    rows = np.concatenate([x, np.broadcast_to(noise * np.eye(4), (64, 4, 4))], axis=1)
    labels = np.concatenate([y, np.zeros((64, 4))], axis=1)
    solution = [np.linalg.lstsq(a, b, rcond=1e-6)[0] for a, b in zip(rows, labels, strict=True)]
    expected = 0.5 * (np.einsum("bd,bd->b", solution, x_query) - y_query) ** 2
    np.testing.assert_allclose(errors["linear_mmse"], expected, rtol=1e-3, atol=1e-4)


@given(st.integers(0, 1000), st.permutations(range(4)), st.sampled_from(["label_noise", "random_pairs"]))
def test_order_does_not_matter_to_any(seed: int, order: list[int], mode: str) -> None:
    config = replace(SMALL, eval=ContextConfig(noise_mode=mode, noise_p=0.3, noise_sigma=0.5))
    batch = reference.random_batch(seed, pairs=4)
    other = batch._replace(x=batch.x[:, order], y=batch.y[:, order])
    with jax.enable_x64(True):
        predictors = baselines(config, GradientDescent(2, 0.3, "given"))
        first, second = (half_errors(predictors, part) for part in (batch, other))
    for name in OF_SETS:
        np.testing.assert_allclose(first[name], second[name], rtol=1e-8, atol=1e-8, err_msg=name)


def test_none_knows_order_or_placement() -> None:
    """The same pairs have the same predictions, wherever the evaluation puts them."""
    mixed = replace(SMALL, eval=ContextConfig(noise_mode="label_noise", noise_p=0.3, noise_sigma=0.5))
    placed = replace(mixed, eval=replace(mixed.eval, ordering="easy2hard", noise_placement="clean_first"))
    batch, gd = evaluation_context(placed).batch, find_gd(placed)
    first, second = (baseline_errors(config, gd, batch) for config in (mixed, placed))
    for name in OF_SETS:
        np.testing.assert_array_equal(first[name], second[name])


# The tuned step.


@pytest.mark.parametrize("mode", ["label_noise", "random_pairs"])
def test_it_is_tuned_on_corrupted_tasks_of_its_own(mode: str) -> None:
    """A regression of labels on predictions at c = 1; none of the evaluation's tasks, whose number does not matter."""
    config = replace(SMALL, eval=ContextConfig(noise_mode=mode, noise_p=0.5, noise_sigma=0.5))
    own = Batch(*(np.asarray(part, np.float64) for part in corrupted_step_size_batch(config)))
    feature = np.einsum("bn,bnd,bd->b", own.y, own.x, own.x_query)
    found = tuned_gd(config)
    assert float(found.step_size) == pytest.approx(feature @ own.y_query / (feature @ feature), rel=1e-5)
    assert tuned_gd(replace(config, eval_tasks=100, test_tasks=50)) == found
    assert found.step_size != find_gd(config).step_size


def test_it_takes_as_many_steps_as_the_clean_one() -> None:
    """Two steps: no other rate of a grid does better on its own tasks by more than float32 shows."""
    context = ContextConfig(noise_mode="random_pairs", noise_p=0.5)
    config = replace(SMALL, model=ModelConfig(num_layers=2), eval=context)
    found, own = tuned_gd(config), corrupted_step_size_batch(config)
    assert found.steps == find_gd(config).steps == 2

    def loss(rate: float) -> float:
        return float(np.mean((np.asarray(GradientDescent(2, rate, "").predict(own)) - np.asarray(own.y_query)) ** 2))

    best = loss(float(found.step_size))
    assert all(best <= loss(factor * float(found.step_size)) for factor in (0.5, 0.9, 0.97, 1.03, 1.1, 2.0))


def test_nothing_is_compiled_twice() -> None:
    """Another batch of the shape, and another step size, run the programs there are."""
    config = replace(SMALL, eval=ContextConfig(noise_mode="random_pairs", noise_p=0.35))
    batch, programs = evaluation_context(config).batch, (made_of._gd, made_of._linear_mmse)
    baseline_errors(config, GradientDescent(1, 0.3, "given"), batch)
    sizes = [program._cache_size() for program in programs]
    baseline_errors(config, GradientDescent(1, 0.4, "given"), batch._replace(y=-batch.y))
    assert [program._cache_size() for program in programs] == sizes


@pytest.mark.parametrize("data", [DataConfig(dim=3, num_pairs=4), DataConfig(dim=20, num_pairs=17)])
def test_where_bayes_has_no_answer_it_alone_is_null_with_the_reason(data: DataConfig) -> None:
    context = ContextConfig(noise_mode="random_pairs", noise_p=0.3)
    config = replace(SMALL, data=data, eval=context, test_tasks=64)
    losses = module._losses(config, GradientDescent(1, 0.3, "given"))
    assert [name for name in names_of(CORRUPTED) if losses[name]["loss"] is None] == ["mask_bayes"]
    assert f"num_pairs is {data.num_pairs}" in losses["mask_bayes"]["reason"]


# A step size for each position.


def position_losses(train: ContextConfig, evaluation: ContextConfig) -> dict[str, float]:
    """The losses of a run's baselines, by name."""
    config = RegressionConfig(data=PAPER, train=train, eval=evaluation)
    losses = module._losses(config, GradientDescent(1, one_step_size(PAPER), "given"))
    return {name: losses[name]["loss"] for name in names_of(CORRUPTED)}


@pytest.mark.slow
def test_it_gains_in_its_own_order_and_loses_in_another() -> None:
    """Ratios to gradient descent: .905 in the order it was fitted in, 1.12 in random order, where its own are one step.

    The ratios are paired on 10 000 tasks: standard errors of .006 and .008.
    """
    easy, random = ContextConfig("easy2hard"), ContextConfig()
    own, elsewhere = position_losses(easy, easy), position_losses(easy, random)
    assert own["gd_positions_trained"] == own["gd_positions"]
    assert own["gd_positions"] / own["gd_clean_step"] == pytest.approx(0.905, abs=SIGMAS * 0.006)
    assert elsewhere["gd_positions_trained"] / elsewhere["gd_clean_step"] == pytest.approx(1.12, abs=SIGMAS * 0.008)
    assert elsewhere["gd_positions"] / elsewhere["gd_clean_step"] == pytest.approx(1, abs=0.002)
    crossed = position_losses(random, easy)
    assert crossed["gd_positions_trained"] / crossed["gd_clean_step"] == pytest.approx(1, abs=0.002)
    assert crossed["gd_positions"] == own["gd_positions"]


def test_it_knows_the_placement_of_corrupted_pairs() -> None:
    """Trained with the clean pairs at one end, it loses most where they stand at the other."""
    first, last = (
        ContextConfig("random", "residual", "label_noise", 0.5, 1.0, p) for p in ("clean_first", "noisy_first")
    )
    same, other = position_losses(first, first), position_losses(first, last)
    assert same["gd_positions_trained"] < 0.97 * same["gd_tuned_step"]
    assert other["gd_positions_trained"] > 1.1 * other["gd_tuned_step"]
    assert other["gd_positions"] < 0.97 * other["gd_tuned_step"]


def test_the_others_do_not_depend_on_the_training_contexts() -> None:
    evaluation = ContextConfig("easy2hard", noise_mode="random_pairs", noise_p=0.3)
    found = [
        module._losses(replace(SMALL, train=train, eval=evaluation, test_tasks=64), GradientDescent(1, 0.3, "given"))
        for train in (ContextConfig(), ContextConfig("hard2easy"))
    ]
    changed = [name for name in found[0] if found[0][name] != found[1][name]]
    assert changed == ["gd_positions_trained"]


def test_its_tasks_are_shared_with_nothing_else() -> None:
    """With none on which a step size is searched, a loss is measured, or the run trains."""
    config = replace(SMALL, test_tasks=256, training=TrainConfig(batch_size=256), eval_tasks=256)
    sets = [
        position_steps_batch(config, config.eval),
        step_size_batch(config),
        corrupted_step_size_batch(config),
        make_test_batch(config),
        evaluation_context(config).batch,
        first_training_context(config).batch,
    ]
    values = [set(np.asarray(batch.w).ravel().tolist()) for batch in sets]
    assert all(values[0].isdisjoint(other) for other in values[1:])


@pytest.mark.parametrize(
    ("context", "differ"),
    [
        (ContextConfig(), False),
        (ContextConfig("smallnorm2largenorm"), True),
        (ContextConfig(noise_mode="label_noise", noise_p=0.3, noise_sigma=1.0), False),
        (ContextConfig(noise_mode="label_noise", noise_p=0.3, noise_sigma=1.0, noise_placement="clean_first"), True),
        (ContextConfig(noise_mode="label_noise", noise_p=1.0, noise_sigma=1.0, noise_placement="clean_first"), False),
        (ContextConfig(noise_placement="clean_first"), False),
    ],
)
def test_positions_differ_where_an_order_or_a_placement_tells_them_apart(context: ContextConfig, differ: bool) -> None:
    for config in (replace(SMALL, train=context), replace(SMALL, eval=context)):
        assert positions_differ(config) == differ


def test_rows_of_runs_of_earlier_versions_are_empty_there() -> None:
    known = {"gd_positions": {"loss": 0.25, "loss_se": 0.1}}
    values = [COLUMNS["test_gd_positions_loss"]({"comparators": part}) for part in ({}, known)]
    assert values == [None, 0.25]
    assert COLUMNS["test_gd_positions_trained_loss"]({"comparators": known}) is None
