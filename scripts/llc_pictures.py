"""Draws docs/figures/llc_traces.png: traces of usable chains and of others, on losses of a few parameters.

python -m scripts.llc_pictures [--out docs/figures]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from icl_lab.lab import cli
from icl_lab.store import outputs
from icl_lab.store.outputs import out_folder

if TYPE_CHECKING:
    from jax import Array

CURVATURES = (1.0, 0.3, 0.1, 0.03)
FIGURE = "llc_traces.png"
CHAINS, BURN_IN, DRAWS = 8, 100, 300
SHOWN = 3  # chains, of those that are measured
RUNNING = 10  # draws that a trace is averaged over, for the eye


class Picture(NamedTuple):
    """A loss of a few parameters around 0, the loss of its null predictor, settings, and the diagnostic to look at."""

    title: str
    sign: str
    loss: Callable[[Array], Array]
    null: float
    eps: float
    nbeta: float
    gamma: float


def bowl(w: Array) -> Array:
    """Half of sum of h w^2."""
    import jax.numpy as jnp

    value: Array = 0.5 * jnp.sum(jnp.asarray(CURVATURES, w.dtype) * w**2)
    return value


def crater(w: Array) -> Array:
    """A bowl whose rim is the null predictor's loss, 1."""
    import jax.numpy as jnp

    value: Array = 1 - jnp.exp(-bowl(w))
    return value


def slope(w: Array) -> Array:
    """A bowl that goes on falling along one parameter: 0 is no minimum."""
    value: Array = bowl(w) - 0.25 * w[0]
    return value


PICTURES = (
    Picture("usable", "r_hat", bowl, 10.0, 2e-3, 100.0, 20.0),
    Picture("eps too small: still moving", "r_hat", bowl, 10.0, 3e-5, 100.0, 20.0),
    Picture("eps too large", "stability", bowl, 10.0, 2.5e-2, 100.0, 20.0),
    Picture("saturated: pull too weak", "saturation", crater, 1.0, 5e-2, 6.0, 0.05),
    Picture("w* is no minimum", "below", slope, 10.0, 2e-3, 100.0, 20.0),
    Picture("pull too strong: gamma decides", "relaxation", bowl, 10.0, 1e-4, 100.0, 5000.0),
)


def traces(picture: Picture) -> dict[str, np.ndarray]:
    """The traces of the chains of a picture."""
    import jax
    import jax.numpy as jnp

    from icl_lab.analysis.llc import sgld
    from icl_lab.src.prng import key

    def losses(w: Array, batch: Array) -> Array:
        values: Array = picture.loss(w) + 0 * batch
        return values

    tasks, centre = jnp.zeros(8), jnp.zeros(len(CURVATURES))
    target = sgld.Target(losses, centre, picture.nbeta, picture.gamma)
    source, steps = sgld.all_tasks(losses, centre, tasks), sgld.Steps(BURN_IN, DRAWS)

    @jax.jit
    def run(keys: Array) -> sgld.Draws:
        return jax.vmap(lambda chain_key: sgld.chain(chain_key, target, source, tasks, picture.eps, steps))(keys)

    drawn = run(jax.random.split(key(0), CHAINS))
    kept = {name: values for name, values in drawn._asdict().items() if not isinstance(values, tuple)}
    return {name: np.asarray(values, float) for name, values in kept.items()}


def reported(picture: Picture, drawn: dict[str, np.ndarray]) -> str:
    """The LLC, the diagnostic to look at, and whether a picture's chains may be used."""
    from icl_lab.analysis.llc.estimate import of_traces
    from icl_lab.analysis.llc.settings import Settings
    from icl_lab.store.llc_rows import NONE

    lengths = Settings(chains=CHAINS, burn_in=BURN_IN, draws=DRAWS)
    settings = replace(lengths, eps=picture.eps, nbeta=picture.nbeta, gamma=picture.gamma)
    size = len(CURVATURES)
    diagnosis = of_traces(drawn, settings, 0.0, picture.null, 0.0, size, top_eigenvalue=max(CURVATURES))
    llc = picture.nbeta * drawn["excess"][:, BURN_IN:].mean()
    told = "not usable" if diagnosis.verdict == NONE else "usable"
    return f"LLC {llc:.2g}, {picture.sign} {getattr(diagnosis, picture.sign):.3g}\n{told}"


def draw(folder: Path) -> Path:
    """Draws all of them into one figure."""
    from icl_lab.plots import style

    figure, axes = style.new_figure(2, 3, width=2.6, height=2.0)
    for panel, picture in zip(axes.flat, PICTURES, strict=True):
        drawn = traces(picture)
        kernel = np.ones(RUNNING) / RUNNING
        for values in picture.nbeta * drawn["excess"][:SHOWN]:
            panel.plot(np.convolve(values, kernel, "valid"), linewidth=0.7)
        panel.axvspan(0, BURN_IN, color=style.PALE, zorder=0)
        panel.axhline(0, color=style.GREY, linewidth=0.6)
        panel.set_title(f"{picture.title}\n{reported(picture, drawn)}", fontsize=7.5)
        panel.set_xlabel("draw")
    for panel in axes[:, 0]:
        panel.set_ylabel("nbeta x excess loss")
    style.caption(
        figure,
        f"{SHOWN} of {CHAINS} chains each, running means of {RUNNING} draws, burn-in shaded; below each title what is "
        "reported",
    )
    return style.save(figure, folder / FIGURE)


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("scripts.llc_pictures", "Draws traces of usable chains and of others for docs/llc.md.")
    built.add_argument("--out", type=out_folder, default="docs/figures", help="folder of the figure")
    return built


def main(argv: Sequence[str]) -> Any:
    """The command line."""
    from icl_lab.plots import style

    flags = parser().parse(list(argv))
    outputs.check([flags.out / FIGURE], style.WRITER)
    print(style.styled(draw)(flags.out))


if __name__ == "__main__":
    cli.launch(main)
