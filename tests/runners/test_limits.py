"""Long contexts, wide inputs, deep stacks and large batches, each by itself and together, fit in a laptop's memory."""

import sys
from pathlib import Path

import pytest

from icl_lab.benchmarks.processes import measure
from icl_lab.store import layout

pytestmark = pytest.mark.slow

MOST_MIB = 4096
LONG, WIDE, DEEP = ("--config.num_pairs=512",), ("--config.dim=128",), ("--config.num_layers=48",)
SMALL_SETS = ("--config.eval_tasks=8", "--config.test_tasks=64", "--config.step_size_tasks=1024")
LIMITS = {
    "long": LONG,
    "wide": WIDE,
    "deep": DEEP,
    "large": ("--config.batch_size=65536", "--config.micro_batches=32"),
    "together": (*LONG, *WIDE, *DEEP, "--config.batch_size=8", *SMALL_SETS, "--attention_batch", "8"),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_run_at_the_limit_trains_and_is_analysed_in_four_gigabytes(name: str, tmp_path: Path) -> None:
    """The peak is the whole command's, as the kernel counts it."""
    line = [sys.executable, "-m", "runners.run", "lsa1", "--steps", "2", *LIMITS[name], "--out", str(tmp_path / "run")]
    assert measure(line, {"NPROC": "1"})["peak_mib"] <= MOST_MIB
    assert (tmp_path / "run" / layout.SUMMARY).exists()
