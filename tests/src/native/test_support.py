"""Which trainings the kernel can compute, and which of them `--kernel auto` leaves to XLA."""

from typing import Any

import pytest

from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.src.native import support


def config_of(name: str, values: dict[str, Any]) -> Any:
    config = preset(name)
    set_values(config, values)
    return resolve(config)


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("lsa1", {}, ""),
        ("twolayer", {"num_heads": 3}, ""),
        ("lsa1", {"bias": True}, "attention has biases"),
        ("twolayer", {"layer_norm": True}, "there are layer norms"),
        ("lsa1", {"mlp_width": 32}, "layers have MLPs"),
    ],
)
def test_what_it_cannot_compute_is_said(name: str, values: dict[str, Any], reason: str) -> None:
    config = config_of(name, values)
    assert support.impossible(config.architecture, config.training) == reason


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({}, ""),
        ({"num_layers": 3, "dim": 50, "num_pairs": 50}, ""),
        (
            {"num_layers": 4, "dim": 50, "num_pairs": 50},
            "a block of its tasks takes 4714 KiB; the C++ was measured to be faster only up to 4096 KiB",
        ),
        ({"dim": 23}, ""),
        ({"dim": 24}, "one layer of 25 channels is as fast with XLA; the C++ is faster only up to 24 channels"),
        ({"dim": 24, "num_layers": 2}, ""),
        ({"batch_size": 64}, ""),
        ({"batch_size": 126, "micro_batches": 2}, "a batch has 63 tasks, fewer than 64"),
    ],
)
def test_auto_leaves_to_xla_what_is_not_measured_to_be_faster(values: dict[str, Any], reason: str) -> None:
    config = config_of("lsa1", values)
    assert support.slower(config.architecture, config.training) == reason
