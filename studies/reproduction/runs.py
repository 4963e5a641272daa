"""What is trained for the claims of von Oswald et al. 2023, with the published numbers of steps."""

from __future__ import annotations

from studies.runs import Runs

SINE_PAPER = {"lr": 3e-4, "batch_size": 2048, "steps": 50_000}

RUNS: dict[str, Runs] = {
    "one_layer": Runs("lsa1"),
    "two_layers": Runs("lsa1", {"num_layers": 2, "recurrent": True, "eval_every": 250, "snapshots": True}),
    "three_layers": Runs("lsa1", {"num_layers": 3, "recurrent": True}),
    "ten_layers": Runs("lsa1", {"num_layers": 10, "recurrent": True, "steps": 15_000, "snapshots": True}),
    "five_layers": Runs("lsa1", {"num_layers": 5, "snapshots": True}),
    "five_blocks": Runs("lsa1", {"num_layers": 5, "num_heads": 4, "mlp_width": 50}),
    "twelve_layers": Runs("lsa1", {"num_layers": 12}),
    "twelve_blocks": Runs("lsa1", {"num_layers": 12, "num_heads": 4, "mlp_width": 50, "steps": 50_000}),
    **{f"size_{n}": Runs("lsa1", {"dim": n, "num_pairs": n}) for n in (5, 20, 35, 50)},
    "softmax_1_head": Runs("lsa1", {"attention": "softmax"}),
    "softmax_2_heads": Runs("lsa1", {"attention": "softmax", "num_heads": 2, "steps": 10_000}),
    "layer_norm": Runs("lsa1", {"layer_norm": True, "steps": 15_000}),
    "ten_seeds": Runs("lsa1", {}, tuple(range(10))),
    "ten_seeds_2_heads": Runs("lsa1", {"num_heads": 2}, tuple(range(10))),
    **{f"pool_{tasks}": Runs("lsa1", {"batch_size": tasks, "full_batch": True}) for tasks in (128, 512, 2048, 8192)},
    "block_on_a_pool": Runs("lsa1", {"mlp_width": 50, "batch_size": 8192, "full_batch": True, "steps": 15_000}),
    "interleaved": Runs("twolayer", {"eval_every": 100, "snapshots": True}),
    "sine": Runs("sine"),
    "sine_control": Runs("sine_control"),
    "sine_paper": Runs("sine", SINE_PAPER),
    "sine_control_paper": Runs("sine_control", SINE_PAPER),
    "depth_lsa": Runs("lsa"),
    "depth_linear": Runs("linear"),
    "depth_linear_deep": Runs("linear", {"deep_supervision": True}),
    "depth_softmax_small": Runs(
        "softmax", {"dim": 5, "num_pairs": 5, "num_layers": 2, "steps": 6000, "deep_supervision": True}
    ),
    "depth_softmax": Runs("softmax", {"deep_supervision": True}),
}
