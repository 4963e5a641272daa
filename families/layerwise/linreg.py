"""The sweeps of the depth curve as command lines.

python -m families.layerwise.linreg depth prints the runner's flags for each run of a sweep, one run a line.
"""

from __future__ import annotations

from typing import Any

from icl_lab.lab import cli

# sweep -> (the flag that differs between its runs, its values)
SWEEPS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "depth": ("--num_layers", (2, 4, 8, 12, 24)),
    "noise": ("--config.noise_std", (0.0, 0.02, 0.05, 0.1)),
    "context": ("--config.num_pairs", (10, 20, 40)),
}


def main(argv: list[str]) -> None:
    """Prints a sweep's flags, one run a line."""
    parser = cli.Parser(
        "families.layerwise.linreg", "Prints the runner's flags for each run of a sweep, one run a line."
    )
    parser.add_argument("sweep", choices=SWEEPS, help="what differs between the runs")
    flag, values = SWEEPS[parser.parse(argv).sweep]
    for value in values:
        print(f"{flag}={value}")


if __name__ == "__main__":
    cli.launch(main)
