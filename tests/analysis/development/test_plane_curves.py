"""Plane curves whose curvature, evolute, vertices and cusps are known in closed form."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_lab.analysis.development.forms import cusps, geometry, vertices

ANGLES = np.linspace(0, 2 * np.pi, 1001)  # one turn, whose ends coincide
A, B = 2.0, 1.0


def ellipse(angles: np.ndarray = ANGLES) -> np.ndarray:
    return np.stack([A * np.cos(angles), B * np.sin(angles)], axis=1)


def test_curvature_and_evolute_of_an_ellipse() -> None:
    """k = a b / (a^2 sin^2 + b^2 cos^2)^(3/2); the evolute is (c^2 cos^3 / a, -c^2 sin^3 / b), c^2 = a^2 - b^2."""
    found, inner = geometry(ellipse()), slice(1, -1)
    cos, sin = np.cos(ANGLES), np.sin(ANGLES)
    expected = A * B / (A**2 * sin**2 + B**2 * cos**2) ** 1.5
    np.testing.assert_allclose(found.curvature[inner], expected[inner], rtol=1e-4)
    evolute = np.stack([(A**2 - B**2) * cos**3 / A, (B**2 - A**2) * sin**3 / B], axis=1)
    np.testing.assert_allclose(found.centre[inner], evolute[inner], atol=1e-4)
    assert np.isnan(found.curvature[[0, -1]]).all()


def test_an_ellipse_has_four_vertices_two_of_them_sharp() -> None:
    """From a quarter turn on, so that none lies at an end."""
    found = vertices(ellipse(ANGLES + 0.3))
    assert [round((ANGLES[v.place] + 0.3) / (np.pi / 2), 2) for v in found] == [1, 2, 3, 4]
    assert [v.sharp for v in found] == [False, True, False, True]
    np.testing.assert_allclose([v.curvature for v in found], [B / A**2, A / B**2] * 2, rtol=1e-4)
    np.testing.assert_allclose(found[1].centre, [-(A**2 - B**2) / A, 0], atol=1e-2)
    assert found[1].prominence == pytest.approx(np.log((A / B**2) / (B / A**2)), rel=1e-2)
    assert found[0].prominence == 0
    assert len(cusps(ellipse())) == 0


def test_a_semicubical_parabola_has_one_cusp() -> None:
    """(t^2, t^3) at 0: the direction reverses."""
    t = np.linspace(-1, 1, 401)
    assert list(cusps(np.stack([t**2, t**3], axis=1))) == [200]
    assert len(cusps(np.stack([t, t**3], axis=1))) == 0


def test_a_parabola_has_its_vertex_at_the_bottom() -> None:
    """y = x^2 / 2 has curvature 1 and centre (0, 1) there."""
    t = np.linspace(-1, 1, 401)
    (only,) = vertices(np.stack([t, t**2 / 2], axis=1))
    assert only.place == 200
    assert only.sharp
    assert only.curvature == pytest.approx(1, rel=1e-4)
    np.testing.assert_allclose(only.centre, [0, 1], atol=1e-4)


def test_two_modes_that_grow_one_after_the_other_turn_once_between_them() -> None:
    """Saddle to saddle: a(t) = sqrt(s) exp(2 s t) / sqrt(C + exp(4 s t)), s = 10 and 6, C = 1000, t in [0, .4].

    The faster mode is half grown at t = log(C) / (4 s) = .173, the slower one at .288; the bend lies between.
    """
    t = np.linspace(0, 0.4, 401)
    curve = np.stack([np.sqrt(s) * np.exp(2 * s * t) / np.sqrt(1000 + np.exp(4 * s * t)) for s in (10, 6)], axis=1)
    bend = max((v for v in vertices(curve) if v.sharp), key=lambda v: v.prominence)
    assert np.log(1000) / 40 < t[bend.place] < np.log(1000) / 24
    assert bend.prominence > 1


def test_lissajous_curves_of_a_random_walk_have_the_vertices_of_cosines() -> None:
    """PC 1 against PC 2 is (cos u, cos 2u), a parabola: one sharp vertex, in the middle."""
    u = np.linspace(0, np.pi, 402)[1:-1]
    found = [v for v in vertices(np.stack([np.cos(u), np.cos(2 * u)], axis=1)) if v.sharp]
    assert [v.place for v in found] in ([199], [200])


@given(st.floats(0.1, 10), st.floats(0, 6), st.floats(-5, 5))
def test_vertices_do_not_depend_on_size_place_or_direction(size: float, turn: float, shift: float) -> None:
    curve = ellipse(ANGLES + 0.3)
    turned = size * curve @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]]) + shift
    one, other = vertices(curve), vertices(turned)
    assert [v.place for v in one] == [v.place for v in other]
    np.testing.assert_allclose([v.prominence for v in one], [v.prominence for v in other], atol=1e-6)
    np.testing.assert_allclose([v.curvature for v in one], [size * v.curvature for v in other], rtol=1e-6)


def test_a_line_has_no_vertex_and_what_is_no_curve_is_refused() -> None:
    t = np.arange(10.0)
    assert vertices(np.stack([t, 2 * t], axis=1)) == []
    for wrong, said in ((np.zeros((4, 2)), "at least 5"), (np.zeros((9, 3)), "at least 5")):
        with pytest.raises(ValueError, match=said):
            geometry(wrong)
    with pytest.raises(ValueError, match="not all finite"):
        geometry(np.full((9, 2), np.nan))
