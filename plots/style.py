"""How figures look: sizes, colours, and saving them. matplotlib is imported here, when the first figure is drawn."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from cli import printable
from store.atomic import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")
R = TypeVar("R")

TRANSFORMER = "#7b2d8b"
DESCENT = "#2a8a3e"
OTHER = "#c77c11"
GREY = "#8a8a8a"

INCHES_A_LETTER = 0.055  # of 7 points, on average

RC = {
    "figure.dpi": 150,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "pdf.fonttype": 42,  # TrueType, which journals ask for
}


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Draws in the house's style, and leaves matplotlib's settings as they were."""

    @wraps(draw)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        from matplotlib import rc_context

        with rc_context(RC):
            return draw(*args, **kwargs)

    return wrapped


def new_figure(
    rows: int = 1, columns: int = 1, width: float = 4.2, height: float = 3.0, **sharing: Any
) -> tuple[Figure, np.ndarray]:
    """A figure of rows x columns axes [rows, columns], each of this size in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained", facecolor="white")
    return figure, figure.subplots(rows, columns, squeeze=False, **sharing)


def rendered(figure: Figure, suffix: str) -> bytes:
    """A figure as the bytes of a file of this kind (png, pdf), the same whenever it is drawn."""
    buffer = io.BytesIO()
    dateless = {"CreationDate": None} if suffix == "pdf" else None
    figure.savefig(buffer, format=suffix, facecolor="white", metadata=dateless)
    return buffer.getvalue()


def save(figure: Figure, path: Path) -> Path:
    """Saves a figure, atomically, in the format its name says."""
    write_bytes(path, rendered(figure, path.suffix[1:]))
    return path


def heat_map(axes: Axes, matrix: np.ndarray, title: str, symmetric: bool = True) -> None:
    """A matrix as colours with its colour bar: symmetric limits around 0, or from 0 up."""
    limit = float(np.nanmax(np.abs(matrix))) or 1.0
    options: dict[str, Any] = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit}
    image = axes.imshow(matrix, **(options if symmetric else {"cmap": "viridis", "vmin": 0.0, "vmax": limit}))
    axes.set_title(title, fontsize=9)
    axes.grid(False)
    axes.locator_params(integer=True)
    axes.figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03)


def caption(figure: Figure, text: str) -> int:
    """What was measured, on how much, below the axes in as many lines as the figure's width asks for; returns these."""
    lines = textwrap.wrap(plain(text), int(figure.get_figwidth() / INCHES_A_LETTER))
    figure.supxlabel("\n".join(lines), fontsize=7, color="#555555")
    return len(lines)


def plain(text: object) -> str:
    """Text from a file as it is: no mathematics between dollar signs, no control characters."""
    return printable(text).replace("$", r"\$")
