"""Draws example chains for each verdict on an LLC, and for each reason against an estimate.

Losses have a few parameters, and settings are chosen so that one thing is wrong.

python -m scripts.llc_pictures [--out docs/figures]
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from icl_lab.lab import cli
from icl_lab.store import outputs
from icl_lab.store.outputs import out_folder

if TYPE_CHECKING:
    from jax import Array
    from matplotlib.axes import Axes

    from icl_lab.analysis.llc.estimate import Estimate

CURVATURES = (1.0, 0.3, 0.1, 0.0)
VERDICTS_FIGURE, REASONS_FIGURE = "llc_traces.png", "llc_reasons.png"
CHAINS, BURN_IN, DRAWS = 96, 200, 400
SHOWN = 2  # chains, of those that are measured
RUNNING = 20  # draws that a trace is averaged over, for the eye
LETTERS = 48  # of a line above a panel


class Picture(NamedTuple):
    """A loss of a few parameters and where its chains begin, w*; what it shows; settings.

    title: the verdict that it is drawn for, or the word of the reason, which comes first.
    """

    title: str
    shows: str
    loss: Callable[[Array], Array]
    centre: Sequence[float]
    settings: Mapping[str, Any]


def bowl(w: Array) -> Array:
    """Half of sum of h w^2: three directions that are curved, and a flat one."""
    import jax.numpy as jnp

    value: Array = 0.5 * jnp.sum(jnp.asarray(CURVATURES, w.dtype) * w**2)
    return value


def quartic(w: Array) -> Array:
    """Sum of w^4, whose Hessian is 0."""
    value: Array = (w**4).sum()
    return value


def slope(w: Array) -> Array:
    """A bowl that goes on falling along one parameter: 0 is no minimum."""
    value: Array = bowl(w) - 0.05 * w[0]
    return value


def pass_between_two_valleys(w: Array) -> Array:
    """A bowl that falls on both sides of 0 along one parameter."""
    value: Array = bowl(w) - 0.5 * w[3] ** 2 + w[3] ** 4
    return value


def crater(w: Array) -> Array:
    """A bowl whose rim is the null predictor's loss, 1."""
    import jax.numpy as jnp

    value: Array = 1 - jnp.exp(-bowl(w))
    return value


def valleys_that_cross(w: Array) -> Array:
    """w1^4 w2^2: a minimum along both axes, and a more degenerate one where they cross."""
    value: Array = w[0] ** 4 * w[1] ** 2
    return value


ORIGIN = (0.0, 0.0, 0.0, 0.0)
VERDICTS = (
    Picture("LLC", "three curved directions, a flat one: 3/2", bowl, ORIGIN, {"nbeta": 1e4, "gamma": 10.0, "thin": 5}),
    Picture("curvature", "the same loss, a strong pull", bowl, ORIGIN, {"nbeta": 1000.0, "gamma": 5000.0}),
    Picture(
        "LLC at this nbeta",
        "sum of w^4 of four: 1",
        quartic,
        ORIGIN,
        {"nbeta": 1e4, "gamma": 10.0, "eps": 2e-4, "chains": 384, "thin": 10},
    ),
    Picture(
        "undecided",
        "sum of w^4, a stronger pull",
        quartic,
        ORIGIN,
        {"nbeta": 1e4, "gamma": 300.0, "eps": 5e-4, "thin": 5},
    ),
)
REASONS = (
    Picture("off minimum", "the loss has a slope at w*", slope, ORIGIN, {"nbeta": 100.0, "gamma": 20.0}),
    Picture(
        "saddle",
        "the loss falls on both sides of w*",
        pass_between_two_valleys,
        ORIGIN,
        {"nbeta": 100.0, "gamma": 20.0, "thin": 2},
    ),
    Picture(
        "saturated",
        "the loss is bounded, the pull too weak",
        crater,
        ORIGIN,
        {"nbeta": 6.0, "gamma": 0.1, "null_loss": 1.0, "thin": 20},
    ),
    Picture(
        "escaped",
        "a valley leads to a more degenerate minimum",
        valleys_that_cross,
        (1.0, 0.0),
        {"nbeta": 100.0, "gamma": 0.3, "eps": 1e-4, "thin": 100, "sampler": "sghmc"},
    ),
    Picture("not mixed", "eps is too small", bowl, ORIGIN, {"nbeta": 100.0, "gamma": 20.0, "eps": 1e-5}),
    Picture("step too long", "eps is too large", bowl, ORIGIN, {"nbeta": 100.0, "gamma": 20.0, "eps": 1.2e-2}),
    Picture("cannot be computed", "eps is far too large", quartic, ORIGIN, {"nbeta": 1e4, "gamma": 1.0, "eps": 3e-2}),
)


def estimated(picture: Picture) -> Estimate:
    """The estimate of a picture, by `icl_lab.llc`."""
    import jax.numpy as jnp

    from icl_lab.analysis.llc.any_model import llc

    def losses(w: Array, batch: Array) -> Array:
        values: Array = picture.loss(w) + 0 * batch
        return values

    lengths: dict[str, Any] = {"batch_size": None, "chains": CHAINS, "burn_in": BURN_IN, "draws": DRAWS}
    return llc(losses, jnp.asarray(picture.centre), jnp.zeros(1), **lengths | dict(picture.settings))


def said(estimate: Estimate) -> str:
    """The verdict, or the word of the first reason against it."""
    return estimate.reasons[0].partition(":")[0] if estimate.reasons else estimate.verdict


def reported(estimate: Estimate) -> str:
    """The LLC with its interval, the prediction, and what the verdict is from: derivatives and degree, or a reason."""
    value = f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"
    if not np.isfinite(estimate.value):
        value = "no number"
    elif estimate.prediction is not None and np.isfinite(estimate.prediction.total):
        value += f", predicted {estimate.prediction.total:.2f}"
    if estimate.reasons:
        return f"{value}\n{textwrap.fill(estimate.reasons[0].partition(': ')[2], LETTERS)}"
    by = f"derivatives: nbeta {estimate.d_nbeta:+.2f}, gamma {estimate.d_gamma:+.2f}; degree {estimate.degree:.1f}"
    return f"{value}\n{by}"


def fill(panel: Axes, picture: Picture, estimate: Estimate) -> None:
    """A picture: some of its chains, 0, the LLC, and above them what is reported."""
    from icl_lab.plots import style

    kernel, values = np.ones(RUNNING) / RUNNING, estimate.settings.nbeta * estimate.traces["excess"][:SHOWN]
    diverged = not np.isfinite(values).all()
    for one in values:
        if diverged:
            panel.plot(one[np.isfinite(one)], "o-", linewidth=0.7, markersize=2)
        else:
            panel.plot(np.convolve(one, kernel, "valid"), linewidth=0.7)
    if diverged:
        panel.set_yscale("symlog", linthresh=1.0)
        panel.set_yticks([0, 1e10, 1e20, 1e30])
        panel.set_xticks(range(int(np.isfinite(values).sum(axis=1).max())))
    else:
        panel.set_xticks([0, BURN_IN, BURN_IN + DRAWS])
        panel.axvspan(0, BURN_IN, color=style.PALE, zorder=0)
        panel.axhline(estimate.value, color="black", linewidth=0.8)
    panel.axhline(0, color=style.GREY, linewidth=0.6)
    bold = said(estimate).replace(" ", r"\ ")
    panel.set_title(f"$\\bf{{{bold}}}$\n{picture.shows}\n{reported(estimate)}", fontsize=7)
    panel.tick_params(labelsize=7)


def draw(folder: Path) -> list[Path]:
    """Draws the verdicts into one figure, and the reasons into another."""
    verdicts = _drawn(folder / VERDICTS_FIGURE, VERDICTS, 2, 3.6)
    return [verdicts, _drawn(folder / REASONS_FIGURE, REASONS, 3, 2.7)]


def _drawn(path: Path, pictures: Sequence[Picture], columns: int, width: float) -> Path:
    from icl_lab.plots import style

    figure, axes = style.new_figure(-(-len(pictures) // columns), columns, width=width, height=1.9)
    for panel, picture in zip(axes.flat, pictures, strict=False):
        fill(panel, picture, estimated(picture))
    for panel in axes.flat[len(pictures) :]:
        panel.set_axis_off()
    for panel in axes[:, 0]:
        panel.set_ylabel("nbeta x excess loss", fontsize=7)
    style.caption(
        figure,
        f"{SHOWN} chains of each over draws, running means of {RUNNING}; burn-in shaded, black the estimate. Bold: "
        "what is said of it; below, the loss, the estimate with its 95 % interval, and why",
    )
    return style.save(figure, path)


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser(
        "scripts.llc_pictures", "Draws example chains for each LLC verdict and reason, for docs/llc/reference.md."
    )
    built.add_argument("--out", type=out_folder, default="docs/figures", help="folder of the figures")
    return built


def main(argv: Sequence[str]) -> Any:
    """The command line."""
    from icl_lab.plots import style

    flags = parser().parse(list(argv))
    outputs.check([flags.out / name for name in (VERDICTS_FIGURE, REASONS_FIGURE)], style.WRITER)
    for path in style.styled(draw)(flags.out):
        print(path)


if __name__ == "__main__":
    cli.launch(main)
