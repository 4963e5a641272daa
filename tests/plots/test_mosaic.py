"""Small matrices: each is drawn once, in its place, and a figure of many costs few artists."""

import io

import matplotlib.collections
import numpy as np
import pytest

from icl_lab.plots import style
from icl_lab.plots.heat_maps import TITLES
from icl_lab.plots.mosaic import mosaic

SIZE, MOST_ARTISTS = 11, 400  # of thirteen rows: 203; with two axes for each row and their colour bars 4079


def rows_of(count):
    rng = np.random.default_rng(count)
    return [(f"layer {layer}", *rng.normal(size=(2, SIZE, SIZE))) for layer in range(count)]


def drawn(rows):
    figure = style.styled(mosaic)(rows, TITLES, "a caption")
    figure.savefig(io.BytesIO(), format="png")
    return figure


@pytest.mark.parametrize("count", [1, 4, 13])
def test_every_matrix_is_drawn_once_in_order_and_scaled_by_its_largest_entry(count):
    rows = rows_of(count)
    images = [image for axes in drawn(rows).axes for image in axes.get_images()]
    lines = -(-count // 9)
    length = -(-count // lines)
    ordered = [rows[first : first + length] for first in range(0, count, length)]
    expected = [matrices[which] for part in ordered for which in (0, 1) for _, *matrices in part]
    assert len(images) == 2 * count
    for image, matrix in zip(images, expected, strict=True):
        np.testing.assert_allclose(image.get_array() * np.abs(matrix).max(), matrix, rtol=1e-12)


def test_the_number_above_a_matrix_is_its_largest_entry():
    rows = [("layer 0", np.diag([-0.25, 0.125]), np.zeros((2, 2))), ("layer 1", np.eye(2), 3 * np.eye(2))]
    said = [text.get_text() for axes in drawn(rows).axes for text in axes.texts]
    assert said == ["layer 0\n0.25", "layer 1\n1", "0", "3"]


def test_many_layers_take_few_artists():
    """The time that a figure takes grows with its artists, above all with its axes and their ticks."""
    figure = drawn(rows_of(13))
    assert len(figure.axes) == 5  # two lines of two, and the colour bar
    assert len(figure.findobj()) < MOST_ARTISTS
    assert sum(isinstance(found, matplotlib.collections.LineCollection) for found in figure.findobj()) >= 4
