"""The population loss of one layer: against sampled contexts, and its stationary points against known numbers."""

import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.src import one_layer
from icl_lab.src.data_config import DataConfig
from icl_lab.src.one_layer import Point, Setting
from icl_lab.src.one_step import one_step_loss, one_step_size


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
    point = one_layer.gradient_descent(setting)
    assert setting.step_size == pytest.approx(one_step_size(data), rel=1e-12)
    assert one_layer.loss_of(setting, point) == pytest.approx(one_step_loss(data, one_step_size(data)), rel=1e-12)


@pytest.mark.parametrize("setting", [Setting(1, 10), Setting(2, 1), Setting(2, 10), Setting(3, 15), Setting(4, 40)])
def test_stationary_points_have_no_gradient(setting: Setting) -> None:
    """In float64, against the gradient's size at drawn points: 1e-12."""
    found = [one_layer.zero(setting), one_layer.gradient_descent(setting), one_layer.rank_one(setting)]
    found += [point for point in (one_layer.mixed(setting),) if point is not None]
    assert len(found) == 3 + (setting.dim > 1)
    size = np.linalg.norm(one_layer.gradient(setting, drawn(setting.dim)))
    for point in found:
        assert np.linalg.norm(one_layer.gradient(setting, point)) < 1e-12 * size


LEVELS = {(2, 2): 1.491, (2, 10): 2.675, (2, 40): 4.928, (3, 15): 2.838, (3, 40): 4.461, (4, 40): 3.785}


@pytest.mark.parametrize(("dim", "pairs"), LEVELS)
def test_the_mixed_point_has_its_loss(dim: int, pairs: int) -> None:
    """Of another derivation: over that of gradient descent, to the digits that are known."""
    setting = Setting(dim, pairs)
    point = one_layer.mixed(setting)
    assert point is not None
    ratio = one_layer.loss_of(setting, point) / one_layer.loss_of(setting, one_layer.gradient_descent(setting))
    assert ratio == pytest.approx(LEVELS[dim, pairs], abs=6e-4)


def test_directions_that_lead_down() -> None:
    """At N = 10: none at gradient descent; one at the rank-one point of D = 2, none at its mixed one."""
    one, two = Setting(1, 10), Setting(2, 10)
    assert one_layer.index(one, one_layer.gradient_descent(one)) == 0
    assert one_layer.index(one, one_layer.rank_one(one)) == 0  # at D = 1 the second global minimum
    assert one_layer.loss_of(one, one_layer.rank_one(one)) == pytest.approx(
        one_layer.loss_of(one, one_layer.gradient_descent(one)), rel=1e-12
    )
    assert one_layer.index(two, one_layer.gradient_descent(two)) == 0
    assert one_layer.index(two, one_layer.rank_one(two)) == 1
    mixed = one_layer.mixed(two)
    assert mixed is not None
    assert one_layer.index(two, mixed) == 0
    assert one_layer.index(two, one_layer.zero(two)) > 0


def test_without_pairs_of_both_roles_there_is_no_mixed_point() -> None:
    assert one_layer.mixed(Setting(1, 10)) is None


@pytest.mark.parametrize(("dim", "least"), [(3, 14.5), (4, 37.0)])
def test_from_how_many_pairs_on_it_is_a_minimum(dim: int, least: float) -> None:
    assert one_layer.least_pairs_of_mixed(dim) == pytest.approx(least, rel=0.02)


def test_at_two_dimensions_it_always_is() -> None:
    assert one_layer.least_pairs_of_mixed(2) == 1


def test_scaling_one_up_and_the_other_down_changes_nothing() -> None:
    setting, point = Setting(3, 6), drawn(3)
    scaled = Point(3 * point.p, 3 * point.p_y, point.scores / 3, point.label_scores / 3)
    assert one_layer.loss_of(setting, scaled) == pytest.approx(one_layer.loss_of(setting, point), rel=1e-12)
    assert len(one_layer.eigenvalues(setting, point)) == len(one_layer.flat(point)) - 1
    again = one_layer.point_of(one_layer.flat(point), 3)
    assert all(np.array_equal(one, other) for one, other in zip(again, point, strict=True))
    assert float(one_layer.loss(setting, Point(*map(jnp.asarray, point)))) == pytest.approx(
        one_layer.loss_of(setting, point), rel=1e-5
    )
