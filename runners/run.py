"""Trains any model: python -m runners.run MODEL [flags of its family]."""

from __future__ import annotations

from collections.abc import Sequence

from icl_lab.lab import cli
from icl_lab.lab.command_end import typed
from icl_lab.lab.configs.registry import family_of_model, models
from icl_lab.runners import command

PROG = "runners.run"


def model_of_line(argv: Sequence[str], prog: str, text: str) -> str | None:
    """The model at the start of a command line; None after printing the help for -h. `UsageError` without a model."""
    if argv and not argv[0].startswith("-"):
        return argv[0]
    if {"-h", "--help"} & {*argv}:
        print(f"usage: {typed(prog)} MODEL [flags]\n\n{text}\n\nMODEL is one of\n{_listed()}\n")
        print(f"{typed(prog)} MODEL --help lists its flags.")
        return None
    raise cli.UsageError(f"which model? {typed(prog)} MODEL, one of {', '.join(models())}")


def _listed() -> str:
    width = max(map(len, models()))
    return "\n".join(f"  {model:{width}}  {family_of_model(model).about.get(model, '')}".rstrip() for model in models())


def main(argv: list[str]) -> int:
    """The command line: the model, then the flags of its family."""
    model = model_of_line(argv, PROG, "Trains any model.")
    if model is None:
        return 0
    text = f"Trains {model}, of the family {family_of_model(model).name}."
    return command.main(model, f"{PROG} {model}", text, argv[1:])


if __name__ == "__main__":
    command.launch(main)
