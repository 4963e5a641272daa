"""The population loss of one layer: against sampled contexts, and its stationary points against known numbers."""

import jax
import numpy as np
import pytest
from scipy.optimize import least_squares

from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import make_model, make_test_batch
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.src import one_layer, solutions
from icl_lab.src.data_config import DataConfig
from icl_lab.src.one_layer import Point, Setting
from icl_lab.src.one_step import one_step_loss, one_step_size
from icl_lab.src.prng import key


def drawn(dim: int, seed: int = 0) -> Point:
    draw = np.random.default_rng(seed)
    return Point(draw.normal(size=dim), draw.normal(), draw.normal(size=(dim, dim)), draw.normal(size=dim))


def sampled(setting: Setting, point: Point, count: int) -> tuple[float, float]:
    """The loss over drawn tasks and contexts, the mean over queries taken exactly, and its standard error; in NumPy."""
    draw, d, n = np.random.default_rng(1), setting.dim, int(setting.pairs)
    x = draw.uniform(-0.5, 0.5, (count, n, d))
    w = np.sqrt(setting.task_variance) * draw.normal(size=(count, d))
    tokens = np.concatenate([x, np.einsum("bnd,bd->bn", x, w)[..., None]], axis=-1)
    context = np.einsum("bni,bnj->bij", tokens, tokens)
    read = np.append(point.p, point.p_y)
    scores = np.concatenate([point.scores, point.label_scores[None]])
    error = np.einsum("i,bij,jd->bd", read, context, scores) - w
    losses = 0.5 * setting.variance * (error**2).sum(axis=1)
    return float(losses.mean()), float(losses.std() / np.sqrt(count))


@pytest.mark.parametrize("setting", [Setting(1, 3), Setting(2, 5), Setting(3, 4, task_variance=0.5)])
def test_it_is_the_mean_over_sampled_contexts(setting: Setting) -> None:
    """Within five standard errors of 200 000 draws."""
    point = drawn(setting.dim)
    mean, error = sampled(setting, point, 200_000)
    assert error < 0.02 * mean
    assert one_layer.loss_of(setting, point) == pytest.approx(mean, abs=5 * error)


@pytest.mark.parametrize(("dim", "pairs"), [(1, 4), (3, 7), (10, 10)])
def test_gradient_descent_has_the_loss_of_one_step(dim: int, pairs: int) -> None:
    data = DataConfig(dim, pairs)
    setting = one_layer.setting_of(data)
    point = solutions.gradient_descent(setting)
    assert setting.step_size == pytest.approx(one_step_size(data), rel=1e-12)
    assert one_layer.loss_of(setting, point) == pytest.approx(one_step_loss(data, one_step_size(data)), rel=1e-12)


@pytest.mark.parametrize("setting", [Setting(1, 10), Setting(2, 1), Setting(2, 10), Setting(3, 15), Setting(4, 40)])
def test_stationary_points_have_no_gradient(setting: Setting) -> None:
    """In float64, against the gradient's size at drawn points: 1e-12."""
    found = [solutions.zero(setting), solutions.gradient_descent(setting), solutions.rank_one(setting)]
    found += [point for point in (solutions.mixed(setting),) if point is not None]
    assert len(found) == 3 + (setting.dim > 1)
    size = np.linalg.norm(one_layer.gradient(setting, drawn(setting.dim)))
    for point in found:
        assert np.linalg.norm(one_layer.gradient(setting, point)) < 1e-12 * size


LEVELS = {(2, 2): 1.491, (2, 10): 2.675, (2, 40): 4.928, (3, 15): 2.838, (3, 40): 4.461, (4, 40): 3.785}


@pytest.mark.parametrize(("dim", "pairs"), LEVELS)
def test_the_mixed_point_has_its_loss(dim: int, pairs: int) -> None:
    """Of another derivation: over that of gradient descent, to the digits that are known."""
    setting = Setting(dim, pairs)
    point = solutions.mixed(setting)
    assert point is not None
    ratio = one_layer.loss_of(setting, point) / one_layer.loss_of(setting, solutions.gradient_descent(setting))
    assert ratio == pytest.approx(LEVELS[dim, pairs], abs=6e-4)


def test_directions_that_lead_down() -> None:
    """At N = 10: none at gradient descent; one at the rank-one point of D = 2, none at its mixed one."""
    one, two = Setting(1, 10), Setting(2, 10)
    assert one_layer.index(one, solutions.gradient_descent(one)) == 0
    assert one_layer.index(one, solutions.rank_one(one)) == 0  # at D = 1 the second global minimum
    assert one_layer.loss_of(one, solutions.rank_one(one)) == pytest.approx(
        one_layer.loss_of(one, solutions.gradient_descent(one)), rel=1e-12
    )
    assert one_layer.index(two, solutions.gradient_descent(two)) == 0
    assert one_layer.index(two, solutions.rank_one(two)) == 1
    mixed = solutions.mixed(two)
    assert mixed is not None
    assert one_layer.index(two, mixed) == 0
    assert one_layer.index(two, solutions.zero(two)) > 0


def test_at_one_dimension_there_is_no_mixed_point() -> None:
    assert solutions.mixed(Setting(1, 10)) is None


def test_from_random_points_newton_finds_no_other_stationary_point() -> None:
    """At D = 2, N = 10: losses over gradient descent's and directions down, as an independent search has found them."""
    setting = Setting(2, 10)
    known = {1.0: {0}, 2.675: {0}, 3.174: {1}, 3.279: {1}, 3.515: {2}, 3.778: {1}, 6.556: {3}}
    best = one_layer.loss_of(setting, solutions.gradient_descent(setting))
    draw, seen = np.random.default_rng(0), set()
    for _ in range(30):
        solved = least_squares(
            lambda at: one_layer.gradient(setting, one_layer.point_of(at, 2)),
            draw.normal(size=9),
            lambda at: one_layer.hessian(setting, one_layer.point_of(at, 2)),
            xtol=1e-15,
            ftol=1e-15,
            gtol=1e-15,
        )
        point = solutions.balanced(one_layer.point_of(solved.x, 2))
        if np.linalg.norm(one_layer.gradient(setting, point)) > 1e-9 * np.linalg.norm(one_layer.flat(point)):
            continue  # it has not come to a stationary point
        ratio = one_layer.loss_of(setting, point) / best
        level = min(known, key=lambda each: abs(each - ratio))
        assert ratio == pytest.approx(level, abs=1e-3)
        if level < 6:  # beside zero lie flat lines
            assert one_layer.index(setting, point) in known[level]
        seen.add(level)
    assert {1.0, 2.675} < seen


@pytest.mark.parametrize(("dim", "least"), [(3, 14.5), (4, 37.0)])
def test_from_how_many_pairs_on_it_is_a_minimum(dim: int, least: float) -> None:
    found = solutions.least_pairs_of_mixed(dim)
    assert found == pytest.approx(least, rel=0.01)
    assert solutions.mixed_level(Setting(dim, 0.98 * found)) is None
    assert solutions.mixed_level(Setting(dim, 1.02 * found)) is not None
    assert found > solutions.LEAST_OF_SQUARE * dim**2  # below which nobody looks


def test_at_two_dimensions_it_always_is() -> None:
    assert solutions.least_pairs_of_mixed(2) == 1


def test_scaling_one_up_and_the_other_down_changes_nothing() -> None:
    setting, point = Setting(3, 6), drawn(3)
    scaled = Point(3 * point.p, 3 * point.p_y, point.scores / 3, point.label_scores / 3)
    assert one_layer.loss_of(setting, scaled) == pytest.approx(one_layer.loss_of(setting, point), rel=1e-12)
    assert len(one_layer.eigenvalues(setting, point)) == len(one_layer.flat(point)) - 1
    again = solutions.balanced(scaled)
    assert one_layer.loss_of(setting, again) == pytest.approx(one_layer.loss_of(setting, point), rel=1e-12)
    assert np.hypot(np.linalg.norm(again.p), again.p_y) == pytest.approx(
        np.hypot(np.linalg.norm(again.scores), np.linalg.norm(again.label_scores)), rel=1e-12
    )


@pytest.mark.parametrize("fields", [{}, {"merged": True}, {"num_heads": 2}])
def test_a_models_losses_have_this_mean(fields: dict[str, object]) -> None:
    """Within five standard errors, of weights that are twenty times those at initialisation."""
    config = run_config({"dim": 2, "num_pairs": 5, "test_tasks": 100_000} | fields)
    model = make_model(config)
    params = jax.tree.map(lambda part: 20 * part, model.init(key(3)))
    losses = np.asarray(model.losses(params, make_test_batch(config)), np.float64)
    layer = params[f"{config.model.layer_names[0]}/attention"]
    heads = one_layer.heads_of(layer, 2, config.architecture.prediction_channel)
    expected = float(one_layer.loss_of_heads(one_layer.setting_of(config.data), heads))
    assert losses.mean() == pytest.approx(expected, abs=5 * losses.std() / np.sqrt(losses.size))
    zero = float(
        one_layer.loss_of(one_layer.setting_of(config.data), solutions.zero(one_layer.setting_of(config.data)))
    )
    assert abs(expected - zero) > 10 * losses.std() / np.sqrt(losses.size)  # else any formula would do


def run_config(fields: dict[str, object]) -> RegressionConfig:
    config = preset("lsa1")
    set_values(config, fields)
    resolved: RegressionConfig = resolve(config)
    return resolved


def as_heads(*points: Point) -> Point:
    return Point(*(np.stack([np.asarray(part) for part in parts]) for parts in zip(*points, strict=True)))


def near(point: Point, size: float = 1e-3) -> Point:
    draw = np.random.default_rng(2)
    return Point(*(part + size * draw.normal(size=np.shape(part)) for part in point))


def test_what_a_layer_is() -> None:
    """Each solution, with a little noise, and what is none of them."""
    two, one = Setting(2, 10), Setting(1, 10)
    mixed = solutions.mixed(two)
    assert mixed is not None
    found = {
        solutions.DESCENT: solutions.gradient_descent(two),
        solutions.MIXED: solutions.balanced(mixed),
        solutions.PLATEAU: solutions.rank_one(two),
        solutions.MOVING: Point(np.zeros(2), 1.0, 0.5 * two.step_size * np.eye(2), np.zeros(2)),
    }
    for name, point in found.items():
        told = solutions.classify(two, as_heads(near(point)))
        assert told.solution == name
    assert solutions.classify(two, as_heads(near(found[solutions.PLATEAU]))).rank == 1
    assert solutions.classify(two, as_heads(solutions.zero(two))).rank == 0
    assert solutions.classify(one, as_heads(solutions.rank_one(one))).solution == solutions.SWAPPED
    assert solutions.classify(one, as_heads(solutions.gradient_descent(one))).solution == solutions.DESCENT


def test_two_heads_whose_even_parts_cancel_are_gradient_descent() -> None:
    """Half of the step in each head, with a part that is swapped, of both signs."""
    setting = Setting(2, 10)
    half = Point(np.array([0.3, 0.1]), 1.0, 0.5 * setting.step_size * np.eye(2), np.zeros(2))
    other = half._replace(p=-half.p)
    told = solutions.classify(setting, as_heads(half, other))
    assert (told.solution, told.swapped_share) == (solutions.DESCENT, None)
    assert told.loss == pytest.approx(told.best, rel=1e-5)
    assert solutions.classify(setting, as_heads(half, half)).loss > 1.01 * told.best
