"""What is trained on function classes: decoders of three blocks and 20 000 steps, unless a group says otherwise.

Groups of eight seeds are those of main results; what takes long, prompts of 40 pairs and many settings, has fewer, or
smaller decoders. Long prompts are differentiated in parts, whose activations stay in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from icl_lab.studies.runs import Runs, fresh

MODEL = "functions_tiny"
POOL_SIZES = (1, 4, 16, 64, 256, 1024, 4096, 16_384)
NARROW: dict[str, Any] = {"num_layers": 2, "num_heads": 2, "d_model": 32, "mlp_width": 128}
OF_POOLS: dict[str, Any] = NARROW | {"test_tasks": 2000, "fitted_prompts": 2}
# the classes of which pools are made, all of numbers: a posterior that is certain and wrong has no finite log loss
POOLED: dict[str, dict[str, Any]] = {
    "linear": {"dim": 4},
    "noisy_linear": {"dim": 4},
    "quadratic": {"dim": 4},
    "fourier": {"dim": 1, "order": 2},
    "decision_tree": {"dim": 4, "depth": 2, "num_pairs": 16},
    "relu_network": {"dim": 3, "hidden": 8, "num_pairs": 16},
}
SIZES: dict[str, dict[str, Any]] = {
    "one_layer": {"num_layers": 1, "num_heads": 2, "d_model": 32, "mlp_width": 128},
    "two_layers": {"num_layers": 2, "num_heads": 2, "d_model": 48, "mlp_width": 192},
    "three_layers": {"num_layers": 3, "num_heads": 2, "d_model": 64, "mlp_width": 256},
}
DIMS = (3, 8)  # of the inputs of linear functions, for each size
# of four inputs and twelve pairs, at the classes' own settings
FURTHER = (
    *("sign_vector", "quadratic", "linear_classification", "logistic_regression"),
    *("nearest_neighbour", "prototypes", "disjunctions", "majority"),
)
CURRICULUM: dict[str, Any] = {
    "start_dims": 2,
    "dims_every": 500,
    "start_points": 5,
    "points_every": 500,
}
# both are 4000 steps after the curriculum
OF_TEN: dict[str, Any] = {"dim": 10, "steps": 10_000, "eval_every": 250, "micro_batches": 4}
QUICK: dict[str, Any] = NARROW | {"mlp_width": 64, "dim": 2, "num_pairs": 6, "steps": 5000, "lr": 3e-3}
QUICK |= {"test_tasks": 4000}


def _of(function: str, seeds: tuple[int, ...], **settings: Any) -> Runs:
    """Decoders on a class."""
    return Runs(MODEL, {"function.kind": function} | settings, seeds)


RUNS: dict[str, Runs] = {
    "linear": _of("linear", fresh(150)),
    "noisy_linear": _of("noisy_linear", fresh(151, 4)),
    "sparse_linear": _of("sparse_linear", fresh(152, 3), dim=10, sparsity=2, micro_batches=4),
    "relu_network": _of("relu_network", fresh(153, 3), hidden=20, num_pairs=41, micro_batches=8),
    "decision_tree": _of("decision_tree", fresh(154, 3), dim=6, depth=3, num_pairs=40, micro_batches=8),
    "conjunctions": _of("conjunctions", fresh(155, 4), dim=8, num_pairs=13),
    "parities": _of("parities", fresh(156), **NARROW, dim=8, parity_size=2, num_pairs=13, num_functions=24),
    "two_noise_levels": _of("two_noise_levels", fresh(157, 4)),
    "fourier": _of("fourier", fresh(158, 3), **NARROW, dim=1),
    "fourier_orders": _of("fourier_orders", fresh(159, 3), **NARROW, dim=1),
    "regression_or_classification": _of("regression_or_classification", fresh(160, 3), **NARROW, dim=3),
    "further": Runs(MODEL, NARROW | {"dim": 4, "num_pairs": 12}, fresh(161, 3), axes={"function.kind": FURTHER}),
    "all_inputs": _of("linear", fresh(162), **OF_TEN),
    "from_two_inputs": _of("linear", fresh(162), **OF_TEN, **CURRICULUM),
    **{
        name: Runs(MODEL, {"function.kind": "linear"} | size, seeds, axes={"dim": DIMS})
        for (name, size), seeds in zip(SIZES.items(), (fresh(163, 3), fresh(172, 3), fresh(163, 3)), strict=True)
    },
    **{
        f"pools_{kind}": Runs(
            MODEL, {"function.kind": kind} | OF_POOLS | settings, fresh(164 + number, 3), {"num_functions": POOL_SIZES}
        )
        for number, (kind, settings) in enumerate(POOLED.items())
    },
    "quick": _of("linear", fresh(170, 3), **QUICK),
    "quick_pool": _of("linear", fresh(171, 3), **QUICK, num_functions=4),
}

# the shifts of the study, and the classes that are measured under them
SHIFTS = (
    *("none", "random_quadrants", "orthogonal_query", "half_subspace", "skewed_covariance"),
    *("x_a_third", "x_three_times", "y_a_third", "y_three_times", "noisy_labels", "permuted_labels"),
)
SHIFTED = ("linear", "noisy_linear", "sparse_linear", "relu_network", "decision_tree")
SHIFTED_PROMPTS = 500


def _shift(run: Path) -> None:
    """What the study's shifts do to a run, in its analysis/function_shifts.csv."""
    from icl_lab.analysis.function_shifts import measure
    from icl_lab.analysis.loaded_run import load_run
    from icl_lab.store import layout

    if not (run / layout.FUNCTION_SHIFTS).exists():
        measure(load_run(run), [*SHIFTS], SHIFTED_PROMPTS)


ANALYSES: Mapping[str, Callable[[Path], None]] = dict.fromkeys(SHIFTED, _shift)
