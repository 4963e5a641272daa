"""Trains any model of any family: python -m runners.run MODEL [flags of its family]."""

from __future__ import annotations

import cli
from configs.registry import family_of_model, models
from runners import command

PROG = "runners.run"


def main(argv: list[str]) -> int:
    """The model is the first word; the flags behind it are those of its family."""
    model = argv[0] if argv and not argv[0].startswith("-") else ""
    if not model:
        if {"-h", "--help"} & {*argv}:
            print(f"usage: python -m {PROG} MODEL [flags]\n\n{__doc__}\n\nMODEL is one of {', '.join(models())};")
            print(f"python -m {PROG} MODEL --help lists its flags.")
            return 0
        raise cli.UsageError(f"which model? python -m {PROG} MODEL, one of {', '.join(models())}")
    family = family_of_model(model)
    return command.main(model, f"{PROG} {model}", f"Trains {model}, of the family {family.name}.", argv[1:])


if __name__ == "__main__":
    command.launch(main)
