"""Trains any model on a grid of its family's axes: python -m sweeps.run MODEL [flags of its family]."""

from __future__ import annotations

from icl_lab.lab.configs.registry import family_of_model
from icl_lab.runners.run import model_of_line
from icl_lab.sweeps import command

PROG = "sweeps.run"


def main(argv: list[str]) -> int:
    """The command line: the model, then the flags of its family's axes."""
    model = model_of_line(argv, PROG, "Trains any model on a grid.")
    if model is None:
        return 0
    family, text = family_of_model(model), f"Trains {model} on a grid, and writes one CSV."
    defaults = {"models": (model,), "seeds": (0,)}
    return command.main(
        family, f"{PROG} {model}", text, defaults, f"results_{model}.csv", f"runs/sweep_{model}", argv[1:]
    )


if __name__ == "__main__":
    command.launch(main)
