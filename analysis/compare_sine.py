"""Is the layer a step of gradient descent on the MLP's output weights? A transformer and its control on the same sines.

python -m analysis.compare_sine RUN_TF RUN_CONTROL
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from icl_lab.lab import cli, compile_cache
from icl_lab.lab.environment import check_devices
from icl_lab.store.lock import locked
from icl_lab.store.outputs import in_path
from icl_lab.store.rundir import read_config


def parser() -> cli.Parser:
    """The arguments."""
    built = cli.Parser("analysis.compare_sine", "Compares a transformer with its control, both trained on sines.")
    built.add_argument("run", type=in_path, help="the transformer's run directory, where the comparison is written")
    built.add_argument("control", type=in_path, help="the control's run directory")
    return built


def measure(run: Path, control: Path) -> dict[str, Any]:
    """Compares two finished runs, and writes the comparison into the transformer's."""
    from icl_lab.analysis.loaded_run import load_run
    from icl_lab.analysis.measures.compare_sine import write

    return write(load_run(run), load_run(control))


def main(argv: list[str]) -> None:
    """Compares, and prints the comparison."""
    flags = parser().parse(argv)
    for run in (flags.run, flags.control):
        read_config(run)
    check_devices()
    compile_cache.enable()
    with locked(flags.run):
        for name, value in measure(flags.run, flags.control).items():
            print(f"{name:20s} {value:.6g}")


if __name__ == "__main__":
    cli.launch(main)
