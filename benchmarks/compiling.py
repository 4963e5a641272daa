"""How long a training program takes to be there: initialisation, tracing, compiling, in a process of its own.

python -m benchmarks.compiling ours|plain NAME [FOLDER]     NAME of benchmarks/cases.py; FOLDER keeps programs
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.cases import CASES
from benchmarks.processes import ROOT


def measure(whose: str, case: str, folder: Path | None = None) -> dict[str, float]:
    """In a new process, imports left out: seconds until the `first_step` is done and, of ours, of `compiling` alone.

    With `folder`, programs are kept there and taken from there.
    """
    line = [sys.executable, "-m", "benchmarks.compiling", whose, case, *([str(folder)] if folder else [])]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(line[1:])} failed: {done.stderr.strip()}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(whose: str, case: str, folder: str | None = None) -> None:
    """Prints the seconds."""
    from benchmarks.plain_loop import plain_loop
    from benchmarks.programs import our_program
    from runners.compile_cache import enable

    if folder:
        enable(Path(folder))
    config = CASES[case].config
    began = time.perf_counter()
    found = {}
    if whose == "ours":
        program = our_program(config)
        found["compiling"] = program.compile_seconds
        program.train(1)
    else:
        plain_loop(config)[0](1)
    print(json.dumps(found | {"first_step": time.perf_counter() - began}))


if __name__ == "__main__":
    main(*sys.argv[1:])
