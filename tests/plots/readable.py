"""Whether a figure can be read at the width of a journal's column: sizes, and nothing over anything else."""

from collections.abc import Iterator, Sequence
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

COLUMN = 3.3  # inches
SMALLEST = 6.5  # points
ROUNDING = 1.0  # dots


def check_readable(figure: Figure, smallest: float = SMALLEST, width: float | None = COLUMN) -> None:
    """A column wide, no text below 6.5 points or beyond the edge, no two of its words on one another.

    Figures of a single run may be of any width, and have smaller words.
    """
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    assert width is None or abs(figure.get_figwidth() - width) < 1e-9
    boxes = {text: text.get_window_extent(canvas.get_renderer()) for text in shown(figure)}
    assert boxes
    for text, box in boxes.items():
        assert text.get_fontsize() >= smallest, text
        assert box.x0 > -ROUNDING, text
        assert box.y0 > -ROUNDING, text
        assert box.x1 < figure.bbox.x1 + ROUNDING, text
        assert box.y1 < figure.bbox.y1 + ROUNDING, text
    texts = list(boxes)
    for number, one in enumerate(texts):
        for other in texts[number + 1 :]:
            assert not _overlap(boxes[one], boxes[other]), (one, other)


def shown(figure: Figure) -> Iterator[Text]:
    """Every text that is drawn."""
    for axes in figure.axes:
        if not axes.axison:
            continue
        yield from (text for text in (axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts) if text.get_text())
        for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            yield from _tick_labels(axis, sorted(limits))
    yield from (text for legend in figure.legends for text in legend.get_texts())
    yield from figure.texts


def _tick_labels(axis: Any, limits: Sequence[float]) -> Iterator[Text]:
    for tick in axis.get_major_ticks():
        if tick.label1.get_visible() and tick.label1.get_text() and limits[0] <= tick.get_loc() <= limits[1]:
            yield tick.label1


def _overlap(one: Any, other: Any) -> bool:
    across = min(one.x1, other.x1) - max(one.x0, other.x0)
    along = min(one.y1, other.y1) - max(one.y0, other.y0)
    return across > ROUNDING and along > ROUNDING
