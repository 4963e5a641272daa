"""Checks an object of the native kernel in a process of its own, which a wrong one may end.

python -m runners.check_native OBJECT
"""

from __future__ import annotations

from pathlib import Path

from icl_lab.lab import cli
from icl_lab.store.outputs import in_path


def parser() -> cli.Parser:
    """The arguments."""
    built = cli.Parser("runners.check_native", "Checks an object of the native kernel; the build starts it.")
    built.add_argument("object", type=in_path, help="the compiled object")
    return built


def main(path: Path) -> None:
    """`UsageError` with what is wrong."""
    from icl_lab.src.native.check import fault_of  # imports JAX

    if fault := fault_of(path):
        raise cli.UsageError(fault)


if __name__ == "__main__":
    cli.launch(lambda argv: main(parser().parse(argv).object))
