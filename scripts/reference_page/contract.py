"""The tables of docs/contract.md that the code knows; the text around them is written by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping

from icl_lab.lab.configs.outputs import Criterion, Outputs
from icl_lab.lab.configs.registry import named, outputs_of
from icl_lab.lab.registries import FAMILIES
from icl_lab.scripts.reference_page.markdown import code, table

BLOCK = re.compile(r"(<!-- table (\w+), by python -m scripts\.reference -->\n).*?(\n<!-- end -->)", re.DOTALL)


def filled(page: str) -> str:
    """The page with its tables as the code has them; `KeyError` for one that it does not know."""
    tables = _tables()
    return BLOCK.sub(lambda found: f"{found[1]}{tables[found[2]]}{found[3]}", page)


def _tables() -> Mapping[str, str]:
    return {"models": _models(), "trained": _trained()}


def _models() -> str:
    rows = [(name, code(model), named(name).about[model]) for name in FAMILIES.built_in for model in named(name).models]
    return table(("family", "model", "what it is"), rows)


def _trained() -> str:
    rows = ((name, _when(outputs_of(named(name)))) for name in FAMILIES.built_in)
    return table(("family", "has trained when all of this holds"), rows)


def _when(outputs: Outputs) -> str:
    return "; ".join(map(_in_words, outputs.criteria))


def _in_words(criterion: Criterion) -> str:
    side = "at least" if criterion.at_least else "at most"
    return f"{criterion.words}: {side} {criterion.threshold:g}{criterion.unit}"
