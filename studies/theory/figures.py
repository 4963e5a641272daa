"""The figures of theory: which runs each is of, and what of them it shows."""

from __future__ import annotations

from studies.dot_figure import Dots
from studies.figure import AnyFigure, Figure
from studies.theory import curves
from studies.theory.claims import DEPTHS, SPECTRA

FIGURES: tuple[AnyFigure, ...] = (
    Dots(
        "preconditioned",
        "One linear layer on anisotropic inputs, and the preconditioned step in closed form",
        {name: words for name, (words, _) in SPECTRA.items()},
        curves.of_spectrum,
        "full",
    ),
    Dots(
        "higher_order",
        "Layers on contexts of an exact spectrum: the share of zero's loss that is left, and which algorithm is nearest",
        {
            "exact_100_1": "condition 100, one layer",
            **{name: words for name, (words, *_) in DEPTHS.items()},
            "exact_100_3": "condition 100, three layers",
        },
        curves.of_depth,
        "full",
    ),
    Figure(
        "test_length",
        "Trained on 20 noisy pairs, tested on m: the loss ends on a plateau",
        ("noisy",),
        curves.over_pairs,
        "pairs at test, m",
        "loss (half MSE, noiseless query)",
        log_x=True,
        log_y=True,
    ),
)
