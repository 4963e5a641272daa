"""The curves of the reproduction's figures.

Each is a function of one run (or of one seed, where nothing is trained) to {(panel, series): (x, y)}; over the seeds it
becomes rows of panel, series, x, mean, low and high (`studies.curve_rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis import shifts
from icl_lab.analysis.compare_sine import functions
from icl_lab.analysis.weights import interpolated, products, rescale
from icl_lab.baselines import step_sizes
from icl_lab.baselines.construction import gd_params
from icl_lab.baselines.gradient_descent import Predictor
from icl_lab.families.regression.config import gd_steps
from icl_lab.src.data_config import DataConfig
from icl_lab.store.metrics import read_metrics
from icl_lab.studies import algorithm_distances as distances
from icl_lab.studies.curve_rows import Series, Values
from icl_lab.studies.reproduction.measures import algorithms, depth, over_training, rolled, sines, trained

TF, GD, GDPP, HALFWAY, CONTROL = "Trained Transformer", "Gradient descent", "GD++", "Interpolated", "Control"
OWN_STEPS, BEST_GDPP, PAPER_GDPP = "GD, per-step sizes", "GD++, best", "GD++, the paper's"
REPLACED_OF = {
    "tf": TF,
    "gd": GD,
    "gd_own_steps": OWN_STEPS,
    "gd_plus_plus": BEST_GDPP,
    "gd_plus_plus_paper": PAPER_GDPP,
}
LAYERS = {
    "one_layer": "one layer, one step",
    "two_layers": "two recurrent layers, two steps",
    "five_layers": "five layers with untied weights, five steps",
    "ten_layers": "ten recurrent layers, ten steps",
}
STEPS = "GD Steps / Transformer Layers"
POOL_LOSS, POOL_COSINE = "test loss", "cosine with gradient descent's sensitivities"
COSINE = "cosine of sensitivities with the algorithm's"
OF_SOFTMAX = {"softmax_1_head": "one softmax head, ", "softmax_2_heads": "two softmax heads, "}  # before a panel's name
COSINES = (COSINE, POOL_COSINE, *(f"{title}{COSINE}" for title in OF_SOFTMAX.values()))  # panels of cosines
ALGORITHMS = {"gd": GD, "gd_plus_plus": GDPP}
# panel -> its column in `analysis.over_training`, after the algorithm's name
COMPARED = {
    COSINE: "model_cos",
    "mean norm of the sensitivity difference": "model_diff",
    "mean absolute prediction difference": "preds_diff",
}
SHIFTED = {
    "input_range": ("range of inputs", (0.5, 0.75, 1.0, 1.25, 1.5, 2.0)),
    "weight_scale": ("scale of the teacher", (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)),
    "other_inputs": ("other inputs, scale", (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)),
    "distractors": ("labels replaced", (0, 2, 4, 6, 8)),
}
REFERENCES = {"Conjugate gradients": "conjugate_gradients", "Newton-Schulz": "newton_schulz"}
LEARNT_GAMMA = {10: 0.176, 25: 0.099, 50: 0.056, 100: 0.029}  # by context pairs, for two steps and D = 10


def rolled_out(*dampings: float) -> Callable[[Path, str], Series]:
    """The losses of one layer applied again and again, and of gradient descent, by damping."""

    def curves(run: Path, name: str) -> Series:
        steps = np.arange(1, rolled.ROLLED + 1)
        loss_curves = {}
        for damping in dampings:
            panel = f"damping {damping:g}" if len(dampings) > 1 else ""
            for series, whose in ((TF, "tf"), (GD, "gd")):
                loss_curves[panel, series] = (steps, rolled.trimmed_means(run, damping, whose))
        return loss_curves

    return curves


def logged(run: Path, name: str) -> Series:
    """Losses over training, and how far the model is from gradient descent, as it logged them."""
    logged_of = {panel: f"eval_{name}" for panel, name in COMPARED.items()}
    records = read_metrics(run, ("eval_gd_loss", *logged_of.values()))
    steps = [record["step"] for record in records]
    lines = [("loss", TF, "eval_loss"), ("loss", GD, "eval_gd_loss"), *((at, GD, of) for at, of in logged_of.items())]
    titled = OF_SOFTMAX.get(name, "")
    lines = lines[:3] if titled else lines
    return {(titled + panel, series): (steps, [r[field] for r in records]) for panel, series, field in lines}


def compared(run: Path, name: str) -> Series:
    """Losses over snapshots, and how far the model is from gradient descent and from GD++."""
    columns = over_training.at_snapshots(run)
    curves = {("loss", TF): columns["tf_loss"]}
    for algorithm, series in ALGORITHMS.items():
        curves["loss", series] = columns[f"{algorithm}_loss"]
        curves |= {(panel, series): columns[f"{algorithm}_{column}"] for panel, column in COMPARED.items()}
    return {place: (columns["step"], values) for place, values in curves.items()}


def copying(run: Path, name: str) -> Series:
    """Losses over training, and how far the first layer's rows depend on which tokens."""
    columns = over_training.at_snapshots(run)
    panel = "sensitivity of the first layer's rows"
    tokens = {(panel, f"{which} token"): columns[which] for which in ("own", "next", "other")}
    curves = {("loss", TF): columns["tf_loss"], ("loss", GD): columns["gd_loss"]} | tokens
    return {place: (columns["step"], values) for place, values in curves.items()}


def pools(run: Path, name: str) -> Series:
    """The test loss and the cosine over training, by size of the pool."""
    records = read_metrics(run, ("eval_model_cos",))
    steps, series = [record["step"] for record in records], f"{name.removeprefix('pool_')} tasks"
    columns = {POOL_LOSS: "eval_loss", POOL_COSINE: "eval_model_cos"}
    return {(panel, series): (steps, [record[field] for record in records]) for panel, field in columns.items()}


def shifted(run: Path, name: str) -> Series:
    """Losses on contexts of other distributions; of five layers and more the medians over tasks."""
    loaded = distances.compared_run(run)
    predictors: dict[str, Predictor] = {TF: loaded.predict}
    predictors |= {ALGORITHMS[name]: other for name, other in trained.defined_baselines(loaded).items()}
    if len(loaded.config.model.layer_names) == 1:
        predictors[HALFWAY] = interpolated(loaded, *trained.construction_of(run))
    curves: dict[tuple[str, str], tuple[Values, Values]] = {}
    for shift, (panel, values) in SHIFTED.items():
        losses = shifts.shifted_losses(loaded.config, predictors, shift, values)
        statistic = np.median if gd_steps(loaded.config.model) >= 5 else np.mean
        curves |= {(panel, series): (values, statistic(losses[series], axis=1)) for series in predictors}
    return curves


def replaced(run: Path, name: str) -> Series:
    """Losses with labels replaced, of a run and of as many steps of each descent; a panel for each number of layers."""
    losses = distances.replaced_losses(run)
    return {(LAYERS[name], REPLACED_OF[whose]): (distances.REPLACED, losses[whose]) for whose in losses}


def sizes(run: Path, name: str) -> Series:
    """The losses at the size of a run."""
    size = distances.compared_run(run).config.data.dim
    return {("", TF): ([size], [trained.loss(run)]), ("", GD): ([size], [trained.loss_of("gd")(run)])}


def sine_training(run: Path, name: str) -> Series:
    """The test loss over training."""
    records = read_metrics(run, ("eval_initial_loss",))[1:]  # at step 0 it is a hundred times the rest
    steps = [record["step"] for record in records]
    return {("", CONTROL if "control" in name else TF): (steps, [record["eval_loss"] for record in records])}


def sine_functions(run: Path, name: str) -> Series:
    """The functions of one pair of runs: they start from random ones, so a mean over seeds would describe none."""
    loaded = sines.load(run)
    if loaded.config.data_seed > 0:
        return {}
    columns, series = functions(loaded), CONTROL if "control" in name else TF
    curves = {("before the context", series): columns["before"], ("after the context", series): columns["after"]}
    if series == TF:
        curves |= {(panel, "Sine"): columns["target"] for panel, _ in curves}
    return {place: (columns["x"], values) for place, values in curves.items()}


def by_layer(run: Path, name: str) -> Series:
    """Losses after every layer, beside those of gradient descent and the references after as many steps."""
    depth_curve = depth.layerwise_of(run)
    steps = np.arange(1, depth_curve["layers"] + 1)
    if name == "depth_lsa":
        panel = ""
        losses = {TF: depth_curve["trimmed_mean"], GD: depth_curve["gd"]["trimmed_mean"]}
        losses |= {series: depth_curve["references"][of]["trimmed_mean"] for series, of in REFERENCES.items()}
        losses["Ridge (Bayes)"] = np.full(len(steps), depth_curve["references"]["ridge"]["trimmed_mean"][-1])
        return {(panel, series): (range(1, len(values) + 1), values) for series, values in losses.items()}
    panel = {
        "depth_linear": "linear layers, trained at depth",
        "depth_linear_deep": "the same under deep supervision",
        "depth_softmax_small": "softmax blocks, D = N = 5",
        "depth_softmax": "softmax blocks",
    }[name]
    return {(panel, TF): (steps, depth_curve["trimmed_mean"]), (panel, GD): (steps, depth_curve["gd"]["trimmed_mean"])}


def condition_numbers(seed: int, name: str) -> Series:
    """The median condition number after a step on the inputs, by gamma."""
    gammas = np.linspace(0, 0.2, 41)
    curves = {}
    for pairs in LEARNT_GAMMA:
        values = step_sizes.eigenvalues(algorithms.inputs_of(seed, DataConfig(num_pairs=pairs), 2048))
        after = [np.median(step_sizes.condition_number(np.abs(step_sizes.after_a_step(values, g)))) for g in gammas]
        curves["", f"N = {pairs}"] = (gammas, after)
    return curves


def eigenvalues(seed: int, name: str) -> Series:
    """The mean eigenvalues of the scatter matrix, by rank, before and after a step on the inputs."""
    curves = {}
    for pairs, gamma in LEARNT_GAMMA.items():
        values = np.sort(step_sizes.eigenvalues(algorithms.inputs_of(seed, DataConfig(num_pairs=pairs), 2048)), axis=1)
        ranks, panel = np.arange(values.shape[1], 0, -1), f"N = {pairs}, gamma = {gamma:g}"
        curves[panel, "before"] = (ranks, values.mean(axis=0))
        curves[panel, "after a step"] = (ranks, np.sort(step_sizes.after_a_step(values, gamma), axis=1).mean(axis=0))
    return curves


def heat_maps(runs: Sequence[Path]) -> list[dict[str, Any]]:
    """Rows of row, matrix, i, j, value: the products of runs of one layer, and of their constructions.

    Means over the runs; W_K^T W_Q is matrix 0, P W_V matrix 1, rescaled to the construction's scale. Fig. 9.
    """
    matrices: dict[str, list[Sequence[np.ndarray]]] = {"trained": [], "construction": []}
    for run in runs:
        loaded = distances.compared_run(run)
        config = loaded.config
        matrices["trained"].append(rescale(*products(config, loaded.params), config.data.dim))
        matrices["construction"].append(products(config, gd_params(config.architecture, *trained.construction_of(run))))
    return [
        {"row": row, "matrix": matrix, "i": i, "j": j, "value": float(value)}
        for row, of_runs in matrices.items()
        for matrix, values in enumerate(zip(*of_runs, strict=True))
        for (i, j), value in np.ndenumerate(np.mean(values, axis=0)[0, 0])
    ]
