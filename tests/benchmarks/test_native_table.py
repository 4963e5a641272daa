"""What the committed measurements say of the native kernel: `--kernel auto` takes it where it is worth it."""

import json
from pathlib import Path
from typing import Any

import pytest

from icl_lab.benchmarks.cases import CASES, SWEEPS
from icl_lab.runners.kernel import reason_of
from icl_lab.src.native import support

NATIVE, IN_BLOCKS = 1.2, 1.1  # times as fast as XLA with whole batches, of these two kernels
BOTH = ("steps", "gradients")  # work that is measured by both kernels


def measured(root: Path) -> list[tuple[str, dict[str, Any]]]:
    """The measurements of steps and gradients by both kernels, in all files of results."""
    found = []
    for path in sorted((root / "benchmarks" / "results").glob("*.json")):
        results = json.loads(path.read_text())["results"]
        found += [(name, results[name]) for name in CASES if CASES[name].work in BOTH and name in results]
        found += [
            (f"{name} {point['value']}", point)
            for name in SWEEPS
            for point in results.get(name, {"points": []})["points"]
        ]
    return [(name, entry["seconds"]) for name, entry in found if "xla" in entry["seconds"]]


def least(name: str) -> float:
    """How many times as fast as XLA with whole batches a case has to be."""
    return IN_BLOCKS if name in CASES and reason_of(CASES[name].config) else NATIVE


def test_auto_takes_it_where_it_was_measured_to_be_faster(root: Path) -> None:
    found = measured(root)
    if not found:
        pytest.fail("no file of results has steps by both kernels")
    ratios = {name: seconds["xla"]["median"] / seconds["ours"]["median"] for name, seconds in found}
    assert not {name: round(ratio, 2) for name, ratio in ratios.items() if ratio < least(name)}


def test_the_largest_stacks_that_auto_takes_were_measured(root: Path) -> None:
    native = {name for name, _ in measured(root) if name in CASES and not reason_of(CASES[name].config)}
    shapes = [CASES[name].config.architecture for name in native]
    assert 0.9 * support.LARGEST_BLOCK < max(map(support.block_bytes, shapes)) <= support.LARGEST_BLOCK
    alone = [shape.width for shape in shapes if shape.model.num_layers == 1]
    assert 0.8 * support.MOST_CHANNELS_ALONE < max(alone) <= support.MOST_CHANNELS_ALONE
