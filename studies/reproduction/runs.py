"""What is trained for the claims of von Oswald et al. 2023, with the published numbers of steps.

Eight seeds where a run takes less than two minutes on one core, five up to fifteen, three beyond; of sines of
tied phase five, of five layers, which take thirteen minutes, three.
"""

from __future__ import annotations

from dataclasses import replace

from icl_lab.studies.runs import FEW_SEEDS, MANY_SEEDS, SOME_SEEDS, Runs, fresh

# a batch in sixteen parts, whose activations stay in the cache: two thirds of the time
SINE_PAPER = {"lr": 3e-4, "batch_size": 2048, "micro_batches": 16, "steps": 50_000}
# as the published program has them: one MLP for all layers, without biases, of width 4 (D + 1)
PUBLISHED_MLP = {"mlp_width": 44, "mlp_bias": False, "clip_before_mlp": True}
PUBLISHED_TOKENS = {"tokens": "interleaved_shared", "prediction_channel": "last"}
BLOCKS = {"num_heads": 4, "shared_mlp": True, **PUBLISHED_MLP}
TEN_SEEDS = tuple(range(10))
ONE_LAYER = {"snapshots": True}

RUNS: dict[str, Runs] = {
    "one_layer": Runs("lsa1", ONE_LAYER, MANY_SEEDS),
    "two_layers": Runs("lsa1", {"num_layers": 2, "recurrent": True, "eval_every": 250, "snapshots": True}, MANY_SEEDS),
    "three_layers": Runs("lsa1", {"num_layers": 3, "recurrent": True, "snapshots": True}, MANY_SEEDS),
    "ten_layers": Runs("lsa1", {"num_layers": 10, "recurrent": True, "steps": 15_000, "snapshots": True}, FEW_SEEDS),
    "five_layers": Runs("lsa1", {"num_layers": 5, "snapshots": True}, FEW_SEEDS),
    "five_blocks": Runs("lsa1", {"num_layers": 5, **BLOCKS}, FEW_SEEDS),
    "twelve_layers": Runs("lsa1", {"num_layers": 12}, FEW_SEEDS),
    "twelve_blocks": Runs("lsa1", {"num_layers": 12, "steps": 50_000, **BLOCKS}, FEW_SEEDS),
    **{f"size_{n}": Runs("lsa1", {"dim": n, "num_pairs": n}, MANY_SEEDS) for n in (5, 20, 35, 50)},
    "softmax_1_head": Runs("lsa1", {"attention": "softmax"}, MANY_SEEDS),
    "softmax_2_heads": Runs("lsa1", {"attention": "softmax", "num_heads": 2, "steps": 10_000}, MANY_SEEDS),
    "layer_norm": Runs("lsa1", {"layer_norm": True, "steps": 15_000}, MANY_SEEDS),
    "ten_seeds": Runs("lsa1", ONE_LAYER, TEN_SEEDS),
    "ten_seeds_2_heads": Runs("lsa1", {"num_heads": 2}, TEN_SEEDS),
    **{
        f"pool_{tasks}": Runs("lsa1", {"batch_size": tasks, "full_batch": True}, MANY_SEEDS)
        for tasks in (128, 512, 2048, 8192)
    },
    "block_on_a_pool": Runs(
        "lsa1", {**PUBLISHED_MLP, "batch_size": 8192, "full_batch": True, "steps": 15_000}, MANY_SEEDS
    ),
    "interleaved": Runs("twolayer", {"eval_every": 100, "snapshots": True}, MANY_SEEDS),
    "interleaved_shared": Runs("twolayer", PUBLISHED_TOKENS, MANY_SEEDS),
    "interleaved_published": Runs(
        "twolayer", PUBLISHED_TOKENS | {"batch_size": 2048, "init_scale": 0.02, "steps": 10_000}, SOME_SEEDS
    ),
    "sine": Runs("sine", {}, MANY_SEEDS),
    "sine_control": Runs("sine_control", {}, MANY_SEEDS),
    "sine_tied": Runs("sine", {"tied_phase": True}, SOME_SEEDS),
    "sine_control_tied": Runs("sine_control", {"tied_phase": True}, SOME_SEEDS),
    "sine_paper": Runs("sine", SINE_PAPER, FEW_SEEDS),
    "sine_control_paper": Runs("sine_control", SINE_PAPER, FEW_SEEDS),
    "sine_tied_paper": Runs("sine", SINE_PAPER | {"tied_phase": True}, FEW_SEEDS),
    "depth_lsa": Runs("lsa", {}, MANY_SEEDS),
    "depth_linear": Runs("linear", {}, SOME_SEEDS),
    "depth_linear_deep": Runs("linear", {"deep_supervision": True}, SOME_SEEDS),
    "depth_softmax_small": Runs(
        "softmax", {"dim": 5, "num_pairs": 5, "num_layers": 2, "steps": 6000, "deep_supervision": True}, SOME_SEEDS
    ),
    "depth_softmax": Runs("softmax", {"deep_supervision": True}, FEW_SEEDS),
}

# what main results, and claims that were undecided, are read on: the same settings, of fresh seeds
RUNS |= {
    "one_layer_main": Runs("lsa1", ONE_LAYER | {"eval_every": 25}, fresh(0)),
    "one_layer_again": Runs("lsa1", ONE_LAYER | {"eval_every": 25}, fresh(50, 16)),
    "two_layers_main": replace(RUNS["two_layers"], seeds=fresh(1, 10)),
    "ten_layers_main": replace(RUNS["ten_layers"], seeds=fresh(2)),
    "interleaved_again": replace(RUNS["interleaved"], seeds=fresh(52, 16)),
    "interleaved_published_main": replace(RUNS["interleaved_published"], seeds=fresh(4, 10)),
    "interleaved_published_again": replace(RUNS["interleaved_published"], seeds=fresh(58, 16)),
    "softmax_2_heads_again": replace(RUNS["softmax_2_heads"], seeds=fresh(54, 16)),
    "five_layers_decided": replace(RUNS["five_layers"], seeds=fresh(30, 17)),
}
