"""Measures wall time and peak memory of a command from process start.

python -m benchmarks.processes python -m runners.run_concat_inputs_targets --help

runs the command and prints both. A process inherits its parent's peak memory until it executes its own program, so
commands are started from this small process and not from one that has loaded JAX.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UNIT = 1 if sys.platform == "darwin" else 1024  # bytes per unit of ru_maxrss


def measure(words: Sequence[str], environment: Mapping[str, str] | None = None) -> dict[str, float]:
    """Runs a command through this module: {"seconds", "peak_mib"}; `RuntimeError` with its error output if it fails."""
    line = [sys.executable, "-m", "icl_lab.benchmarks.processes", *words]
    done = subprocess.run(
        line, cwd=ROOT, env=os.environ | dict(environment or {}), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} failed: {done.stderr.strip()}")
    cost: dict[str, float] = json.loads(done.stdout)
    return cost


def main(words: Sequence[str]) -> int:
    """Runs a command, prints its cost and returns its exit status."""
    if not words:
        print("error: name the command to measure", file=sys.stderr)
        return 2
    began = time.perf_counter()
    started = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(started.pid, 0)
    seconds = time.perf_counter() - began
    print(json.dumps({"seconds": seconds, "peak_mib": usage.ru_maxrss * UNIT / 2**20}))
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
