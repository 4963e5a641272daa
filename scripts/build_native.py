"""Builds the native kernel, and says whether trainings here have it: python -m scripts.build_native."""

from __future__ import annotations

from icl_lab.lab import cli
from icl_lab.lab.native.build import found_or_built


def main(argv: list[str]) -> int:
    """The command line; a build that has failed before is tried again. Exit status 1 where there is none."""
    cli.Parser("scripts.build_native", "Builds the native kernel if it is missing, and describes it.").parse(argv)
    kernel = found_or_built(retry=True)
    print(f"{kernel.described}: {kernel.path}" if kernel.path else f"trainings use XLA alone: {kernel.why}")
    return 0 if kernel.path else 1


if __name__ == "__main__":
    cli.launch(main)
