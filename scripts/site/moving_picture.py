"""Draws docs/figures/training.gif, in which a layer becomes a step of gradient descent: half a minute.

python -m scripts.site.moving_picture [--out docs/figures]
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from icl_lab.lab import cli
from icl_lab.store import outputs
from icl_lab.store.outputs import out_folder

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

NAME = "training.gif"
SETTINGS = {"steps": 3000, "seed": 0, "eval_every": 1000, "log_records": 60, "snapshots": True}
SHOWN, MEASURED = 200, 4000  # contexts that are drawn, and that the loss is measured on
FIRST = 20  # training step of the first picture
WITHIN = 1.5  # what the axes of predictions show, on either side of 0
SECONDS, LAST = 0.14, 3.0  # of each picture, and of the last one
COLOURS = 48


class Film(NamedTuple):
    """What is drawn: training steps [T], the model's predictions [T, B] and losses [T], and gradient descent's."""

    steps: np.ndarray
    predictions: np.ndarray
    losses: np.ndarray
    descent: np.ndarray
    descent_loss: float


def filmed(folder: Path) -> Film:
    """Trains the layer in a folder, and asks it for predictions at its snapshots."""
    import icl_lab

    run = icl_lab.train("lsa1", out=folder / "run", quiet=True, **SETTINGS)
    x, y, x_query, y_query = icl_lab.sample(run, MEASURED, seed=1)[:4]
    then = [(step, at.predict(x, y, x_query)) for step, at in run.checkpoints() if step >= FIRST]
    descent = np.asarray(icl_lab.baseline("gd", run)(x, y, x_query))
    made = np.array([predicted for _, predicted in then])
    return Film(
        np.array([step for step, _ in then]),
        made[:, :SHOWN],
        half_mse(made, np.asarray(y_query)),
        descent[:SHOWN],
        float(half_mse(descent, np.asarray(y_query))),
    )


def half_mse(predictions: np.ndarray, y_query: np.ndarray) -> np.ndarray:
    """Half the mean squared error over contexts, of predictions [..., B]."""
    return np.asarray(0.5 * np.mean((predictions - y_query) ** 2, axis=-1))


def pictures(film: Film) -> list[Image]:
    """A picture for each step."""
    from icl_lab.plots import style

    figure, axes = style.new_figure(1, 2, width=3.3, height=2.7)
    left, right = axes.flat
    left.plot([-WITHIN, WITHIN], [-WITHIN, WITHIN], color=style.GREY, linewidth=0.8)
    points = left.plot([], [], "o", color=style.TRANSFORMER, markersize=2.5, alpha=0.7, markeredgewidth=0)[0]
    left.set(
        xlim=(-WITHIN, WITHIN),
        ylim=(-WITHIN, WITHIN),
        xlabel="prediction of one step of gradient descent",
        ylabel="prediction of the layer",
    )
    right.axhline(film.descent_loss, color=style.DESCENT)
    right.text(film.steps[0], film.descent_loss, " one step of gradient descent", color=style.DESCENT, va="top")
    right.plot(film.steps, film.losses, color=style.PALE)
    curve = right.plot([], [], color=style.TRANSFORMER)[0]
    now = right.plot([], [], "o", color=style.TRANSFORMER)[0]
    right.set(
        xscale="log", xlim=(film.steps[0], film.steps[-1] * 1.1), ylim=(0, None), xlabel="training step", ylabel="loss"
    )
    drawn = []
    for place, step in enumerate(film.steps):
        points.set_data(film.descent, film.predictions[place])
        curve.set_data(film.steps[: place + 1], film.losses[: place + 1])
        now.set_data([step], [film.losses[place]])
        right.set_title(f"step {step}")
        drawn.append(_image(figure))
    return drawn


def _image(figure: Figure) -> Image:
    from PIL import Image as images

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", facecolor="white", dpi=110)
    return images.open(buffer).convert("RGB")


def gif(drawn: Sequence[Image]) -> bytes:
    """The pictures one after another, in the colours of the last one, again and again."""
    from PIL import Image as images

    palette = drawn[-1].quantize(COLOURS)
    few = [picture.quantize(palette=palette, dither=images.Dither.NONE) for picture in drawn]
    times = [round(1e3 * SECONDS)] * (len(few) - 1) + [round(1e3 * LAST)]
    buffer = io.BytesIO()
    few[0].save(buffer, "gif", save_all=True, append_images=few[1:], duration=times, loop=0, optimize=False)
    return buffer.getvalue()


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("scripts.site.moving_picture", "Draws how a layer becomes a step of gradient descent.")
    built.add_argument("--out", type=out_folder, default="docs/figures", help="folder of the picture")
    return built


def main(argv: Sequence[str]) -> Any:
    """The command line."""
    from icl_lab.plots import style

    flags = parser().parse(list(argv))
    path = Path(flags.out, NAME)
    outputs.check([path], style.WRITER)
    with tempfile.TemporaryDirectory() as folder:
        film = filmed(Path(folder))
    outputs.write({path: gif(style.styled(pictures)(film))}, style.WRITER)
    print(path)


if __name__ == "__main__":
    cli.launch(main)
