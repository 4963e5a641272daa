"""The figures of the reproduction of von Oswald et al. 2023: which runs each is of, and which curves of them."""

from __future__ import annotations

import numpy as np

from icl_lab.plots.algorithm_distance import draw_matrices, draw_over_training
from icl_lab.studies import algorithm_distances as distances
from icl_lab.studies.distance_figure import Distances
from icl_lab.studies.figure import AnyFigure, Figure, HeatMaps
from icl_lab.studies.reproduction import curves

DEPTHS = (  # the runs of each, in words, and the profile that trains them
    ("one_layer", "One layer", "quick"),
    ("two_layers", "Two recurrent layers", "quick"),
    ("three_layers", "Three recurrent layers", "full"),
    ("five_layers", "Five layers with untied weights", "full"),
    ("ten_layers", "Ten recurrent layers", "full"),
    ("twelve_layers", "Twelve layers with untied weights", "full"),
)
COSINES = dict.fromkeys(curves.COSINES, "fisher")

# fmt: off
FIGURES: tuple[AnyFigure, ...] = (
    Figure("rollout", "One trained layer, applied again and again (damping .75), follows gradient descent", ("one_layer",), curves.rolled_out(0.75), curves.STEPS, "Loss, 99.9 % of tasks"),
    Figure("one_layer_training", "One layer over training", ("one_layer",), curves.logged, "training step", "", scale=COSINES),
    Figure("sizes", "One layer, N = D", ("one_layer", "size_5", "size_20", "size_35", "size_50"), curves.sizes, "N = D", "Loss", profile="full", means=False, by_seed=True),
    Figure("one_layer_shifts", "One layer on contexts of another distribution", ("one_layer",), curves.shifted, "", "Loss", log_y=True),
    Figure("two_layers_training", "Two layers with shared weights do gradient descent first, and GD++ later", ("two_layers",), curves.compared, "training step", "", scale=COSINES),
    Figure("two_layers_shifts", "Two recurrent layers on contexts of another distribution", ("two_layers",), curves.shifted, "", "Loss", log_y=True),
    Figure("ten_layers_training", "Ten recurrent layers over training", ("ten_layers",), curves.compared, "training step", "", profile="full", scale=COSINES),
    Figure("ten_layers_shifts", "Ten recurrent layers on contexts of another distribution, medians over tasks", ("ten_layers",), curves.shifted, "", "Loss", log_y=True, profile="full"),
    Figure("five_layers_training", "Five layers with untied weights over training", ("five_layers",), curves.compared, "training step", "", profile="full", means=False, by_seed=True, scale=COSINES),
    Figure("five_layers_shifts", "Where labels are replaced, five layers and GD++ are worse than gradient descent", ("five_layers",), curves.shifted, "", "Loss, median over tasks", log_y=True, profile="full"),
    *(
        Distances(f"distances_{runs}", f"{words} and the algorithms of as many steps", (runs,), distances.between_pairs, ("row", "column"), draw_matrices, profile)
        for runs, words, profile in DEPTHS
    ),
    *(  # twelve layers, of 88 minutes a run, keep no snapshots
        Distances(f"nearest_{runs}", f"{words} over training, compared with the algorithms of as many steps", (runs,), distances.at_snapshots, ("algorithm", "step"), draw_over_training, profile)
        for runs, words, profile in DEPTHS[:-1]
    ),
    Figure("replaced_labels", "Loss with some of the 10 labels replaced by N(0, 1)", ("one_layer", "two_layers"), curves.replaced, "labels replaced", "Loss"),
    Figure("replaced_labels_deep", "Loss of deep stacks with some of the 10 labels replaced by N(0, 1)", ("five_layers", "ten_layers"), curves.replaced, "labels replaced", "Loss", log_y=True, profile="full"),
    Figure("rollout_dampings", "Roll-outs by damping, without a clip; means less the largest thousandth", ("one_layer",), curves.rolled_out(1.0, 0.875, 0.75), curves.STEPS, "Loss", log_y=True),
    Figure("softmax_training", "Softmax attention over training", ("softmax_1_head", "softmax_2_heads"), curves.logged, "training step", "", profile="full", means=False, by_seed=True, scale=COSINES),
    Figure("layer_norm_training", "One layer with layer norm over training", ("layer_norm",), curves.logged, "training step", "", profile="full", means=False, by_seed=True, scale=COSINES),
    Figure("pools", "One layer trained on a pool of tasks", ("pool_128", "pool_512", "pool_2048", "pool_8192"), curves.pools, "training step", "", log_y=(curves.POOL_LOSS,), profile="full", scale=COSINES),
    Figure("block_on_a_pool", "A block with an MLP on 8192 fixed tasks", ("block_on_a_pool",), curves.logged, "training step", "", profile="full", scale=COSINES),
    Figure("interleaved_training", "The loss falls as the first layer begins to depend on the next token", ("interleaved",), curves.copying, "training step", "", means=False, by_seed=True),
    Figure("sine_training", "Sines: an MLP below one linear layer, and its control", ("sine", "sine_control"), curves.sine_training, "training step", "Loss", log_y=True, profile="full"),
    Figure("sine_functions", "One sine, asked on a dense grid", ("sine", "sine_control"), curves.sine_functions, "x", "prediction", profile="full", scale="linear"),
    Figure("depth", "The depth curve: Gaussian inputs, D = N = 20, noise .05; means less the largest thousandth", ("depth_lsa",), curves.by_layer, curves.STEPS, "Loss (MSE)", log_y=True, means=False, by_seed=True),
    Figure("depth_stacks", "Stacks on Gaussian inputs, noise .05; means less the largest thousandth", ("depth_linear", "depth_linear_deep", "depth_softmax_small"), curves.by_layer, curves.STEPS, "Loss (MSE)", log_y=True, profile="full"),
    Figure("depth_softmax", "Softmax blocks on Gaussian inputs, D = N = 20; means less the largest thousandth", ("depth_softmax",), curves.by_layer, curves.STEPS, "Loss (MSE)", log_y=True, profile="gpu"),
    Figure("condition_numbers", "Condition numbers after a step of GD++ on the inputs", (), curves.condition_numbers, "gamma", "median condition number", log_y=True, limit=np.inf),
    Figure("spectrum", "Eigenvalues of the scatter matrix", (), curves.eigenvalues, "rank", "mean eigenvalue", log_y=True),
    HeatMaps("weights_one_layer", "one layer", ("one_layer",), curves.heat_maps, dim=10),
    HeatMaps("weights_three_layers", "three layers", ("three_layers",), curves.heat_maps, profile="full", dim=10),
)
# fmt: on
