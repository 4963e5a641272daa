"""How figures look: sizes, colours, and saving them. matplotlib is imported here, when the first figure is drawn."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from icl_lab.lab import cli
from icl_lab.src.words import printable
from icl_lab.store import outputs
from icl_lab.store.outputs import in_path, out_folder

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.typing import RcKeyType

P = ParamSpec("P")
R = TypeVar("R")

LINES, BETWEEN = 2, "; "  # of a caption, and its parts
DESCRIBED = {"png": "Description", "pdf": "Subject"}  # where a file keeps a caption that was cut
EARLIER_LEVEL = 0.95  # of intervals in tables that do not say theirs
WRITER = "plots"  # of figures that are drawn from a run or a table
TRANSFORMER = "#7b2d8b"
DESCENT = "#2a8a3e"
OTHER = "#c77c11"
GREY = "#8a8a8a"
PALE = "#eeeeee"  # of what lies behind

# The colour and marker of each model, in every figure that shows several: Okabe and Ito's and Tol's, distinct for
# colour-blind readers. None is green, which is gradient descent's.
MODELS = {"lsa1": ("#0072B2", "o"), "lsa1_pe": ("#D55E00", "s"), "twolayer": ("#882255", "^")}
SPARE = (("#E69F00", "D"), ("#56B4E9", "v"), ("#000000", "P"), ("#CC79A7", "X"))  # of models that are not in the table

REACH, MARGIN = 2.0, 1.3  # factors of a logarithmic axis: see `log_limits`; around what it shows
COLUMN = 3.3  # inches: the width of a journal's column, at which the figures of tables are drawn
# Colours of series that have an order, such as numbers of tasks: Tol's muted ones by hue, which readers of any colour
# vision can tell apart. Fewer series have those that are furthest apart; an infinite one is black.
ORDERED = ("#332288", "#88CCEE", "#44AA99", "#117733", "#999933", "#DDCC77", "#CC6677", "#882255", "#AA4499")
INFINITE = ("∞", "#000000")  # how the name of such a series ends
# of series without an order or a look of their own; none is green, which is gradient descent's
SERIES = ("#0072B2", "#CC3311", "#33BBEE", "#EE3377", "#000000")
INCHES_A_LETTER = 0.052  # of 7 points, on average
FEWEST, FILLED = 20, 0.985  # letters in a line of a caption, at least, and its share of a figure's width, at most
AMPLE = 6.0  # inches that are enough for all that stands around axes
CUT = "arrows: intervals that leave the possible values are cut there"  # what a caption says of `mark_cut`'s
INCHES_A_HANDLE = 0.32  # before a legend's words, with what parts columns

RC: dict[RcKeyType, Any] = {
    "figure.dpi": 150,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
    "pdf.fonttype": 42,  # TrueType, which journals ask for
}
COMPACT: dict[RcKeyType, Any] = RC | {
    "figure.dpi": 200,
    "font.size": 7,
    "axes.titlesize": 7,
    "axes.labelsize": 7,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "legend.fontsize": 6.5,
    "axes.linewidth": 0.7,
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "axes.labelpad": 2.5,
    "axes.titlepad": 4,
    "lines.linewidth": 1.0,
    "lines.markersize": 3.5,
    "errorbar.capsize": 1.5,
}


def styled(draw: Callable[P, R], settings: Mapping[RcKeyType, Any] = RC) -> Callable[P, R]:
    """Draws in the house's style, and leaves matplotlib's settings as they were."""

    @wraps(draw)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        from matplotlib import rc_context

        with rc_context(dict(settings)):
            return draw(*args, **kwargs)

    return wrapped


def compact(draw: Callable[P, R]) -> Callable[P, R]:
    """The same with the sizes of a printed column, where no text is smaller than 6.5 points."""
    return styled(draw, COMPACT)


def model_looks(models: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Colour and marker of each model: the table's own, and for others the spare ones in order."""
    names = list(dict.fromkeys(models))
    others = [name for name in names if name not in MODELS]
    spare = {name: SPARE[number % len(SPARE)] for number, name in enumerate(others)}
    return {name: MODELS.get(name) or spare[name] for name in names}


def new_figure(
    rows: int = 1, columns: int = 1, width: float = 4.2, height: float = 3.0, **sharing: Any
) -> tuple[Figure, np.ndarray]:
    """A figure of rows x columns axes [rows, columns], each of this size in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained", facecolor="white")
    return figure, figure.subplots(rows, columns, squeeze=False, **sharing)


def column_figure(
    heights: Sequence[float], columns: int = 1, width: float = COLUMN, **sharing: Any
) -> tuple[Figure, np.ndarray]:
    """A figure as wide as a column, or so wide: rows of axes of these heights in inches, when it is finished."""
    ratios = {"height_ratios": list(heights)}
    height = sum(heights) / len(heights)
    return new_figure(len(heights), columns, width / columns, height, gridspec_kw=ratios, **sharing)


def few_ticks(axis: Axis, subs: Sequence[float]) -> None:
    """Ticks of a logarithmic axis at these multiples of powers of ten, as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def over_steps(panel: Axes) -> None:
    """A logarithmic axis of training steps that begins with step 0."""
    panel.set_xscale("symlog", linthresh=1)
    panel.set_xlim(left=-0.5)
    panel.set_xlabel("training step")


def log_limits(table: pd.DataFrame) -> tuple[float, float]:
    """What a logarithmic axis shows of mean, low and high: means, and intervals up to a factor of REACH from these."""
    least, most = table["mean"].min(), table["mean"].max()
    low, high = np.fmin(least, table["low"].where(table["low"] > 0).min()), np.fmax(most, table["high"].max())
    return float(max(least / REACH, low) / MARGIN), float(min(most * REACH, high) * MARGIN)


def rendered(figure: Figure, suffix: str) -> bytes:
    """A figure as the bytes of a file of this kind (png, pdf), the same whenever it is drawn; a png in few colours."""
    return _in_few_colours(figure) if suffix == "png" else _saved(figure, suffix)


def _saved(figure: Figure, suffix: str) -> bytes:
    from matplotlib import rc_context

    buffer = io.BytesIO()
    described = {DESCRIBED[suffix]: whole_caption(figure)} if figure.get_label() and suffix in DESCRIBED else {}
    dateless = {"CreationDate": None, **described} if suffix == "pdf" else described or None
    with rc_context({"pdf.fonttype": RC["pdf.fonttype"]}):  # the only setting that is read when a figure is saved
        figure.savefig(buffer, format=suffix, facecolor="white", metadata=dateless)
    return buffer.getvalue()


def _in_few_colours(figure: Figure) -> bytes:
    """A figure as a png of 256 colours, none far from its own: a third of the bytes, and the same to the eye."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    canvas: Any = FigureCanvasAgg(figure)  # whose methods have no types
    buffer = io.BytesIO()
    canvas.draw()
    image = Image.frombuffer("RGBA", canvas.get_width_height(), canvas.buffer_rgba(), "raw", "RGBA", 0, 1)
    few = image.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    described = PngInfo()
    if figure.get_label():
        described.add_itxt(DESCRIBED["png"], whole_caption(figure))
    few.save(buffer, "png", optimize=True, dpi=(figure.dpi, figure.dpi), pnginfo=described)
    return buffer.getvalue()


def save(figure: Figure, path: Path, run: Path | None = None) -> Path:
    """Saves a figure, of a run if it is one, in the format its name says; runs' images, which are many, as they are."""
    draw = rendered if run is None else _saved
    if run is not None:
        _fix_layout(figure)
    outputs.write({path: draw(figure, path.suffix[1:])}, WRITER, run)
    return path


def save_both(figure: Figure, place: Path) -> list[Path]:
    """Saves a figure as .png and .pdf: `place`, of whatever suffix, has their name."""
    kinds = ("png", "pdf")
    return outputs.write({place.with_suffix(f".{kind}"): rendered(figure, kind) for kind in kinds}, WRITER)


def mark_cut(
    axes: Axes, places: Sequence[float], intervals: np.ndarray, within: tuple[float, float], colour: Any, across: bool
) -> None:
    """Arrows where intervals [2, P] are cut because they leave what is possible; `across` if they lie along x."""
    for limit, outside, marker in (
        (within[0], intervals[0] < within[0], "<" if across else "v"),
        (within[1], intervals[1] > within[1], ">" if across else "^"),
    ):
        for place in np.asarray(places)[outside]:
            at = (limit, place) if across else (place, limit)
            axes.plot(*at, marker, color=colour, markersize=3.5, clip_on=False, zorder=4)


def caption(figure: Figure, text: str) -> None:
    """What was measured, on how much, below the axes: as many of the parts between semicolons as two lines hold.

    The first part is never cut. What there is no room for is kept with the figure, and with the file it is saved to.
    """
    kept = re.sub(r" (?=[%=])|(?<==) |(?<=version) ", "\N{NO-BREAK SPACE}", plain(text))
    parts = kept.split(BETWEEN)
    for count in range(len(parts), 0, -1):
        if _below(figure, BETWEEN.join(parts[:count])) <= LINES:
            break
    figure.set_label(kept if count < len(parts) else "")


def _below(figure: Figure, text: str) -> int:
    """Writes a text below the axes; gives its number of lines."""
    lines = [text]
    for letters in range(int(figure.get_figwidth() / INCHES_A_LETTER), FEWEST, -2):
        lines = textwrap.wrap(text, letters)
        said = figure.supxlabel("\n".join(lines), fontsize=7, color="#555555")
        if said.get_window_extent().width < FILLED * figure.bbox.width:  # else its letters are wider than most
            break
    return len(lines)


def whole_caption(figure: Figure) -> str:
    """A figure's caption in one line, with what it had no room for."""
    return " ".join(str(figure.get_label() or figure.get_supxlabel()).replace("\N{NO-BREAK SPACE}", " ").split())


def in_order(names: Iterable[str]) -> dict[str, Any]:
    """A colour for each name along `ORDERED`, in the order in which they first appear."""
    from matplotlib.colors import LinearSegmentedColormap, to_hex

    once = list(dict.fromkeys(names))
    finite = [name for name in once if not name.endswith(INFINITE[0])]
    places = np.linspace(0, len(ORDERED) - 1, len(finite))
    if len(finite) > len(ORDERED):
        between = LinearSegmentedColormap.from_list("", ORDERED)(places / (len(ORDERED) - 1))
        colours = dict(zip(finite, map(to_hex, between), strict=True))
    else:
        colours = {name: ORDERED[round(place)] for name, place in zip(finite, places, strict=True)}
    return {name: colours.get(name, INFINITE[1]) for name in once}


def legend_above(figure: Figure, handles: Mapping[str, Any] | None = None) -> None:
    """A legend above the panels, where no curve is, in as many columns as fit: of `handles`, or of all their lines.

    A label that several panels share stands in it once.
    """
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    if handles is None:
        labelled = [axes.get_legend_handles_labels() for axes in figure.axes]
        handles = {label: handle for entries in labelled for handle, label in zip(*entries, strict=True)}
    names = [plain(name) for name in handles]
    if names:
        points = FontProperties(size=rcParams["legend.fontsize"]).get_size_in_points()
        spacing: dict[str, Any] = {"columnspacing": 1.2, "handletextpad": 0.5, "labelspacing": 0.3, "handlelength": 1.8}
        for columns in range(_columns(names, figure.get_figwidth(), points), 0, -1):
            spacing["ncols"] = columns
            legend = figure.legend(list(handles.values()), names, loc="outside upper center", **spacing)
            if columns == 1 or legend.get_window_extent().width < figure.bbox.width:
                break
            legend.remove()  # its letters are wider than most


def finish(figure: Figure, handles: Mapping[str, Any], text: str) -> None:
    """A legend above the panels, in as many columns as fit, and a caption below, for which the figure grows."""
    legend_above(figure, handles)
    caption(figure, text)
    _grow(figure)


def _grow(figure: Figure) -> None:
    """Makes the axes together as high as the figure was, whatever stands around them."""
    wanted, ample = figure.get_figheight(), figure.get_figheight() + AMPLE
    figure.set_figheight(ample)
    _lay_out(figure)
    placed = [(axes.get_subplotspec(), axes) for axes in figure.axes]
    first = {place.rowspan.start: axes for place, axes in placed if place is not None}
    inside = sum(axes.get_position().height for axes in first.values()) * ample
    figure.set_figheight(round(wanted + ample - inside, 2))
    _fix_layout(figure)


def _fix_layout(figure: Figure) -> None:
    """Lays a figure out for the last time: else saving does it twice, which is most of the time that drawing takes."""
    from matplotlib import rc_context

    _lay_out(figure)  # ticks that matplotlib makes only now are made in this style
    with rc_context({"figure.autolayout": False, "figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)  # "none" would leave a place holder, for which saving draws everything twice
    for axes in figure.axes:  # the layout's last digits depend on where its variables happen to lie in memory
        axes.set_position(np.round(axes.get_position().bounds, 4))
    for text in figure.texts:
        x, y = np.round(text.get_position(), 4)
        text.set_position((x, y))


def _lay_out(figure: Figure) -> None:
    if layout := figure.get_layout_engine():
        layout.execute(figure)


def _columns(names: Sequence[str], width: float, points: float) -> int:
    """The most columns of a legend that fit, in letters of so many points; matplotlib fills one after the other."""
    for columns in range(len(names), 1, -1):
        letters = sum(max(map(len, column)) for column in np.array_split(np.array(names, object), columns))
        if columns * INCHES_A_HANDLE + letters * INCHES_A_LETTER * points / 7 < width:
            return columns
    return 1


def plain(text: object) -> str:
    """Text from a file as it is: no mathematics between dollar signs, no control characters."""
    return printable(text).replace("$", r"\$")


def draw_from_table(
    argv: Sequence[str], prog: str, description: str, table: str, draw: Callable[[Path, Path], Sequence[Path]]
) -> None:
    """The command line `--from TABLE --out DIR`: draws into a folder from a table, and prints the files' names."""
    parser = cli.Parser(prog, description)
    parser.add_argument("--from", dest="source", metavar="FROM", type=in_path, required=True, help=table)
    parser.add_argument("--out", type=out_folder, required=True, help="folder of the figures")
    flags = parser.parse(argv)
    for path in draw(flags.source, flags.out):
        print(printable(path))
