"""Times initialisation, tracing and compilation of a training program in a new process.

python -m benchmarks.compiling ours|xla|plain NAME [FOLDER]     NAME of benchmarks/cases.py; FOLDER caches programs
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from icl_lab.benchmarks.cases import CASES
from icl_lab.benchmarks.processes import ROOT


def measure(whose: str, case: str, folder: Path | None = None) -> dict[str, float]:
    """Seconds, without imports, until the `first_step` is done and, for ours, of `compiling` alone.

    `whose`: ours, with the kernel that a command chooses, or by XLA; or the plain loop's. `folder` caches compiled
    programs.
    """
    line = [sys.executable, "-m", "icl_lab.benchmarks.compiling", whose, case, *([str(folder)] if folder else [])]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(line[1:])} failed: {done.stderr.strip()}")
    seconds: dict[str, float] = json.loads(done.stdout)
    return seconds


def main(whose: str, case: str, folder: str | None = None) -> None:
    """Prints the seconds."""
    from icl_lab.benchmarks.plain_loop import plain_loop
    from icl_lab.benchmarks.programs import automatic, our_program
    from icl_lab.lab.compile_cache import keep_in
    from icl_lab.lab.native.kernel import XLA

    if folder:
        keep_in(Path(folder))
    config = CASES[case].config
    began = time.perf_counter()
    seconds = {}
    if whose in ("ours", "xla"):
        program = our_program(config, kernel=XLA if whose == "xla" else automatic(config))
        seconds["compiling"] = program.compile_seconds
        program.train(1)
    else:
        plain_loop(config)[0](1)
    print(json.dumps(seconds | {"first_step": time.perf_counter() - began}))


if __name__ == "__main__":
    main(*sys.argv[1:])
