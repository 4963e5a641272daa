"""The claims of theory, as data, by question: what is predicted of trained transformers in closed form.

Ranges stand here before the seeds are run that they are read on. Each lies ten margins or more from what another
algorithm would give, which the claim names in brackets.
"""

from __future__ import annotations

from typing import Any

from studies.claim import OURS, UNBOUNDED, Claim
from studies.reproduction.measures import distances as between
from studies.theory import measures

AHN, ZHANG, MAHANKALI = (
    "Ahn et al. 2023, arXiv 2306.00297",
    "Zhang, Frei and Bartlett 2023, arXiv 2306.09927",
    "Mahankali, Hashimoto and Ma 2023, arXiv 2307.03576",
)
REVERSED = "spectrum=given,eigenvalues=" + ":".join(f"{1 / i:.9g}" for i in range(10, 0, -1))  # 1/i, in reverse order
BY_THEORY = "theory"
SAME_TASKS: dict[str, Any] = {"control": (), "uncontrolled": "what predicts zero tolerates it too"}


def _claim(
    name: str,
    figure: str,
    says: str,
    expected: float,
    low: float,
    high: float,
    measure: Any,
    runs: str,
    profile: str = "quick",
    **more: Any,
) -> Claim:
    return Claim(name, figure, says, expected, low, high, BY_THEORY, measure, runs, profile, **{"paper": AHN, **more})


QUICK = ("reciprocal", "noisy", "condition_100", "rotated")  # the settings of the profile of minutes


# runs -> what they are, and what one gradient step with its best size would have over the closed form's loss
SPECTRA = {
    "reciprocal": ("eigenvalues 1/i, N = 20", 1.404),
    "noisy": ("eigenvalues 1/i, N = 20, label noise .5", 1.365),
    "square": ("eigenvalues 1/i^2, N = 20", 1.491),
    "condition_100": ("eigenvalues from 1 to 1/100, N = 40", 1.840),
    "uniform": ("uniform inputs, eigenvalues 1/i, N = 20", 1.455),
    "inverse_tasks": ("eigenvalues 1/i, tasks of the inverse covariance, N = 20", 1.812),
}
# runs -> the closed form's distance from the identity and from the inverse of the covariance
DISTANCES = {
    "reciprocal": (0.338, 0.159),
    "square": (0.409, 0.378),
    "condition_100": (0.558, 0.425),
    "uniform": (0.334, 0.164),
    "inverse_tasks": (0.463, 0.0),
}
# pairs -> the closed form's loss with its noise, and that of the step that is best for so many pairs
LENGTHS = {5: (1.3648, 0.9273), 200: (0.2246, 0.0798), 1000: (0.2013, 0.0171)}
IRREDUCIBLE = 0.125  # half the variance of the query's label noise

OF_PRECONDITIONED: tuple[Claim, ...] = (
    *(
        _claim(
            f"preconditioned_{name}_loss",
            "Th. 1",
            f"{words}: loss over that of the closed-form preconditioned step (one GD step: {alternative})",
            1.0,
            0.995,
            1.01,
            measures.headline("preconditioned_gd_ratio"),
            name,
            "quick" if name in QUICK else "full",
            paper=MAHANKALI if name == "inverse_tasks" else AHN,
        )
        for name, (words, alternative) in SPECTRA.items()
    ),
    *(
        _claim(
            f"preconditioned_{name}_matrix",
            "Th. 1",
            f"{SPECTRA[name][0]}: relative distance of W_K^T W_Q from the closed form (from the identity: {identity}, "
            f"from the inverse covariance: {inverse})",
            0.02,
            0.0,
            0.05,
            measures.preconditioner_distance("closed form"),
            name,
            "quick" if name in QUICK else "full",
            paper=MAHANKALI if name == "inverse_tasks" else AHN,
        )
        for name, (identity, inverse) in DISTANCES.items()
    ),
    *(
        _claim(
            f"preconditioned_{pairs}_pairs",
            "Th. 4.1",
            f"trained at N = 20 with noise .5, tested on {pairs} pairs: loss over the trained step's in closed form "
            f"(that of the best step for {pairs} pairs: {(best + IRREDUCIBLE) / (loss + IRREDUCIBLE):.2f})",
            1.0,
            0.97,
            1.03,
            measures.on_shift(f"num_pairs={pairs}", loss + IRREDUCIBLE),
            "noisy",
            paper=ZHANG,
        )
        for pairs, (loss, best) in LENGTHS.items()
    ),
    _claim(
        "preconditioned_covariance_shift",
        "Sec. 4.3",
        "eigenvalues 1/i in reverse order at test: factor by which the loss grows (of a step fitted to them: 1)",
        14.84,
        14.1,
        15.6,
        measures.grows_by(REVERSED),
        "reciprocal",
        paper=ZHANG,
    ),
    _claim(
        "preconditioned_task_shift",
        "Sec. 4.3",
        "tasks of mean 1 in each coordinate at test: factor by which loss over zero's loss grows (covariance shift: 14.8)",
        1.0,
        0.97,
        1.03,
        measures.share_left("task_mean=1"),
        "reciprocal",
        paper=ZHANG,
        **SAME_TASKS,
    ),
    _claim(
        "preconditioned_query_shift",
        "Sec. 4.3",
        "isotropic queries at test: loss over the trained step's in closed form (of zero: 2.32)",
        1.0,
        0.97,
        1.03,
        measures.on_shift("query_covariance=isotropic", 2.1530),
        "reciprocal",
        paper=ZHANG,
    ),
    _claim(
        "preconditioned_rotated_loss",
        "Sec. 5",
        "eigenvalues 1/i in axes drawn for each context: loss over that of one GD step (with shared axes: .712)",
        1.0,
        0.995,
        1.01,
        measures.headline("loss_ratio"),
        "rotated",
        paper=ZHANG,
    ),
    _claim(
        "preconditioned_rotated_depth",
        "Sec. 5",
        "the same in two layers: loss over one layer's (of two steps of gradient descent: .69)",
        0.4,
        0.3,
        0.5,
        measures.over_paired("tf_loss"),
        "rotated_2_layers",
        "full",
        paired="rotated",
        paper=OURS,
        about="ours",
    ),
    _claim(
        "preconditioned_relu_teacher",
        "Th. 3",
        "labels relu(w.x), isotropic inputs: loss over that of one GD step with its best size (ridge: 1.40)",
        1.0,
        0.99,
        1.01,
        measures.headline("loss_ratio"),
        "relu",
        "full",
        paper=MAHANKALI,
    ),
)


# --- first or higher order ---

FU, PAPER_GD = "Fu et al. 2023, arXiv 2310.17086", "von Oswald et al. 2023, arXiv 2212.07677v2"
GD_PLUS_PLUS: dict[str, Any] = {"profile": "full", "paper": PAPER_GD}
# runs -> what they are; the share of zero's loss that GD++ with its best rates leaves; accepted values over it, and the
# best polynomial of that degree over it
DEPTHS = {
    "exact_10_2": ("condition number 10, two layers", 0.00906, 0.7, 2.0, 11.9),
    "exact_100_2": ("condition number 100, two layers", 0.1681, 0.95, 1.05, 2.40),
    "exact_1000_2": ("condition number 1000, two layers", 0.3491, 0.95, 1.05, 1.64),
    "drawn_100_2": (
        "eigenvalues drawn for each context, up to condition number 100, two layers",
        0.177,
        0.92,
        1.08,
        2.11,
    ),
}

OF_HIGHER_ORDER: tuple[Claim, ...] = (
    _claim(
        "order_one_layer",
        "Prop. 1",
        "condition number 100, one layer: loss over that of one GD step (of a Newton-Schulz step: .78)",
        1.0,
        0.99,
        1.01,
        measures.headline("loss_ratio"),
        "exact_100_1",
        **GD_PLUS_PLUS,
    ),
    _claim(
        "order_exact_isotropic",
        "Prop. 1",
        "X^T X / N = I, one layer: share of zero's loss that is left (where X^T X is drawn, N = D = 10: .495)",
        0.0,
        0.0,
        0.001,
        measures.over("tf_loss", "zero_loss"),
        "exact_isotropic_1",
        **GD_PLUS_PLUS,
    ),
    *(
        _claim(
            f"order_{name}",
            "App. A.10",
            f"{words}: share of zero's loss that is left, over that of GD++ with its best rates, {share} (the best "
            f"polynomial of that degree: {polynomial})",
            1.0,
            low,
            high,
            measures.left_over(share),
            name,
            **GD_PLUS_PLUS,
        )
        for name, (words, share, low, high, polynomial) in DEPTHS.items()
    ),
    _claim(
        "order_exact_100_3",
        "App. A.10",
        "condition number 100, three layers: share of zero's loss that is left (GD++ with its best rates: .004; the best "
        "polynomial: .267)",
        0.004,
        0.0,
        0.02,
        measures.over("tf_loss", "zero_loss"),
        "exact_100_3",
        **GD_PLUS_PLUS,
    ),
    _claim(
        "order_nearer_than_polynomial",
        "App. A.10",
        "condition number 100, two layers: 1 - cosine of sensitivities with GD++ over that with the best polynomial",
        0.01,
        0.0,
        0.1,
        between.nearer_than("gd_plus_plus", "gd_own_steps"),
        "exact_100_2",
        **GD_PLUS_PLUS,
    ),
    _claim(
        "order_nearer_than_conjugate_gradients",
        "Sec. 4",
        "eigenvalues drawn for each context, two layers: 1 - cosine of sensitivities with GD++ over that with conjugate "
        "gradients",
        0.05,
        0.0,
        0.1,
        between.nearer_than("gd_plus_plus", "conjugate_gradients"),
        "drawn_100_2",
        profile="full",
        paper=FU,
    ),
    _claim(
        "order_looped_median",
        "Sec. 3",
        "three recurrent layers, uniform inputs, N = D = 10: median loss over tasks at depth 6 over that at depth 3",
        0.6,
        0.1,
        0.95,
        measures.looped(6, over=3),
        "looped_3",
        profile="full",
        paper=OURS,
        about="ours",
    ),
    _claim(
        "order_looped_mean",
        "Sec. 3",
        "the same of the mean loss, which a few contexts of large eigenvalues make",
        10.0,
        1.05,
        UNBOUNDED,
        measures.looped(6, over=3, mean=True),
        "looped_3",
        profile="full",
        paper=OURS,
        about="ours",
    ),
)

CLAIMS: tuple[Claim, ...] = (*OF_PRECONDITIONED, *OF_HIGHER_ORDER)
