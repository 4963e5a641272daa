"""What the figures of theory show of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from baselines import preconditioned
from store.rundir import read_config
from studies.curve_rows import Series
from studies.dot_figure import Numbers
from studies.reproduction.measures.distances import distances
from studies.theory import measures
from studies.theory.claims import IRREDUCIBLE

PAIRS = (5, 10, 20, 50, 200, 1000)


def of_spectrum(run: Path) -> Numbers:
    """Losses over the closed form's, and distances of the learnt preconditioner."""
    found: dict[tuple[str, str], float] = {}
    loss, matrix = "loss / closed-form loss", "distance of W_K^T W_Q"
    best = measures.headline("preconditioned_gd_loss")(run)
    for who, name in (("Trained Transformer", "tf_loss"), ("Gradient descent", "gd_loss")):
        found[(loss, who)] = measures.headline(name)(run) / best
    for target in ("closed form", "identity", "inverse covariance"):
        found[(matrix, f"from the {target}")] = measures.preconditioner_distance(target)(run)
    return found


def over_pairs(run: Path, name: str) -> Series:
    """Losses against the number of pairs at test: the transformer, the step that it learnt, and the best for each."""
    data = read_config(run).data
    trained = preconditioned.preconditioner(data)
    tf = [measures.shifted_losses(run, f"num_pairs={pairs}")["tf"] - IRREDUCIBLE for pairs in PAIRS]
    tested = [replace(data, num_pairs=pairs) for pairs in PAIRS]
    return {
        ("", "Trained Transformer"): (PAIRS, tf),
        ("", "trained step, closed form"): (PAIRS, [preconditioned.loss(trained, one) for one in tested]),
        ("", "best step for so many pairs"): (
            PAIRS,
            [preconditioned.loss(preconditioned.preconditioner(one), one) for one in tested],
        ),
    }


ALGORITHMS = {
    "gd": "gradient descent",
    "gd_own_steps": "best polynomial",
    "gd_plus_plus": "GD++",
    "conjugate_gradients": "conjugate gradients",
    "newton_schulz": "Newton-Schulz",
}


def of_depth(run: Path) -> Numbers:
    """The loss over zero's, and 1 - cosine of sensitivities with each algorithm of as many steps that is defined."""
    found = distances(run)
    left = {("loss / zero's loss", "Trained Transformer"): measures.over("tf_loss", "zero_loss")(run)}
    apart = {
        ("1 - cosine of sensitivities", words): 1 - found["tf", name, "cosine"]
        for name, words in ALGORITHMS.items()
        if ("tf", name, "cosine") in found
    }
    return left | apart
