"""A page that is written by hand: Markdown in which every number is filled in from the tables, and none is typed.

`{{ value("CLAIM") }}` is a claim's mean with interval and n, `mean`, `n`, `accepted`, `expected` and `verdict` are
these alone, `control` is its control's value, and `power` is two to the power of the value, of a claim on a base-two
logarithm. `{{ figure("NAME") }}` is a figure of the study and `{{ setting("RUNS", "KEY") }}` a setting of its runs. A
page has nothing else between braces. What stands below it, claims with the legend of their verdicts and figures that
the page does not show, is added to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from icl_lab.lab.configs.keys import find_key
from icl_lab.lab.configs.presets import preset, set_values, value_at
from icl_lab.lab.configs.run import to_dict
from icl_lab.lab.environment import extra
from icl_lab.src.checks import ConfigError
from icl_lab.src.words import did_you_mean
from icl_lab.store.provenance import commit_of
from icl_lab.studies import template
from icl_lab.studies.drawing import as_drawn
from icl_lab.studies.findings import image, value
from icl_lab.studies.study import Study

BELOW = Path(__file__).with_name("below_written_page.md.j2")

Row = Mapping[str, Any]

# what is filled in -> what its arguments name
FILLED_IN = {
    "value": ("claim",),
    "power": ("claim",),
    "mean": ("claim",),
    "verdict": ("claim",),
    "accepted": ("claim",),
    "expected": ("claim",),
    "control": ("claim",),
    "n": ("claim",),
    "figure": ("figure",),
    "setting": ("runs", "key"),
}

# digits that are no results: code, what is filled in, where a link leads, dates, numbers of lists, places in papers
NO_RESULTS = (
    r"^```.*?^```",
    r"`[^`\n]*`",
    r"\{\{.*?\}\}",
    r"\]\([^)\n]*\)",
    r"\b\d{4}-\d\d-\d\d\b",
    r"^\s*\d+\.\s",
    r"\barXiv[: ]\d{4}\.\d{4,5}(v\d+)?",
    r"\b(?:et al\.,?|and [A-Z]\w+,?|[A-Z]\w+(?= \()) \(?(?:19|20)\d\d\b\)?",
    r"\b(?:Fig|Th|Thm|Sec|Prop|App|Eq|Lemma|Theorem|Figure|Section|Table)\.? (?:[A-Z]\.)?\d[\w.]*",
)
NUMBER = re.compile(r"(?<![\w.])\.?\d[\d.,]*")


def numbers_by_hand(text: str) -> list[tuple[int, str]]:
    """The numbers that are typed in a page, with their lines; numbers in words are not found."""
    for pattern in NO_RESULTS:
        text = re.sub(pattern, lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.M | re.S)
    return [
        (line, found.rstrip(".,")) for line, words in enumerate(text.split("\n"), 1) for found in NUMBER.findall(words)
    ]


def check(study: Study, page: Path) -> None:
    """`ConfigError` for what a page cannot fill in, and for a number that is typed; the sentence names the line."""
    text = page.read_text(encoding="utf-8")
    names = {"claim": [claim.name for claim in study.claims], "runs": [*study.runs]}
    names |= {"figure": [figure.name for figure in study.figures]}
    for line, does, words in _calls(page, text):
        for kind, word in zip(FILLED_IN[does], words, strict=True):
            if word not in names.get(kind, (word,)):
                raise ConfigError(f"{page}, line {line}: there is no {kind} {word!r}{did_you_mean(word, names[kind])}")
        if does == "setting":
            _setting(study, *words)
    for line, number in numbers_by_hand(text):
        raise ConfigError(f"{page}, line {line}: {number} is typed by hand; fill it in, as by {{{{ value(...) }}}}")


def render(study: Study, page: Path, profile: str, rows: Sequence[Row], out: Path) -> str:
    """The page with its numbers, and below it all claims, with where they come from."""
    by_name, titles = {row["claim"]: row for row in rows}, {figure.name: figure.title for figure in study.figures}

    def of_row(said: Callable[[Row], str]) -> Callable[[str], str]:
        return lambda name: said(by_name[name])

    fill_in: dict[str, Callable[..., str]] = {
        "value": of_row(value),
        "power": of_row(lambda row: value(_power(row))),
        "mean": of_row(lambda row: "…" if row["mean"] is None else template.number(row["mean"])),
        "verdict": of_row(template.verdict_in_prose),
        "accepted": of_row(lambda row: template.range_in_words(row["low"], row["high"])),
        "expected": of_row(lambda row: template.number(row["expected"])),
        "control": of_row(template.value_of_control),
        "n": of_row(lambda row: str(row["n"])),
        "figure": lambda name: image(out, f"{study.name}/{name}.png", titles[name]),
        "setting": lambda runs, key: _setting(study, runs, key),
    }
    text = template.rendered(page, **fill_in)
    further = [figure for figure in as_drawn(study, out / study.name) if figure.name not in study.shown]
    values = {"study": study, "rows": rows, "command": study.command(profile), "commit": _commit(study)}
    below = template.rendered(BELOW, further=further, folder=study.name, **values)
    return f"{text.rstrip()}\n\n{below}"


def _power(row: Row) -> Row:
    """A line on a base-two logarithm, as one on the number itself."""
    ends = ("mean", "mean_low", "mean_high")
    return {**row, **{name: None if row[name] is None else 2.0 ** row[name] for name in ends}}


def _commit(study: Study) -> str:
    """The commit of a user's file as it is, if there is one."""
    return (commit_of(study.file) or "") if study.file else ""


def _setting(study: Study, runs: str, key: str) -> str:
    asked = study.runs_of(runs)
    if asked.cells:
        config = asked.cells[0].config
        return str(value_at(config, find_key(to_dict(config), key)))
    values = preset(asked.model)  # of runs whose text is missing
    set_values(values, asked.settings)
    return str(value_at(values, find_key(values.to_dict(), key)))


def _calls(page: Path, text: str) -> Iterable[tuple[int, str, tuple[str, ...]]]:
    """Line, name and arguments of what a page fills in; `ConfigError` for anything else between braces."""
    jinja2 = extra("jinja2")
    try:
        whole = jinja2.Environment().parse(text)
    except jinja2.TemplateSyntaxError as error:
        raise ConfigError(f"{page}, line {error.lineno}: {error.message}") from None
    for part in whole.body:
        for node in part.nodes if isinstance(part, jinja2.nodes.Output) else (part,):
            if not isinstance(node, jinja2.nodes.TemplateData):
                yield _call(page, node)


def _call(page: Path, node: Any) -> tuple[int, str, tuple[str, ...]]:
    name = str(getattr(getattr(node, "node", None), "name", ""))
    words = [str(getattr(word, "value", "")) for word in getattr(node, "args", ())]
    if name not in FILLED_IN or len(words) != len(FILLED_IN[name]) or not all(words):
        forms = ", ".join(f"{does}({', '.join(of)})" for does, of in FILLED_IN.items())
        raise ConfigError(f"{page}, line {node.lineno}: a page fills in {forms} and nothing else{_near(name)}")
    return int(node.lineno), name, tuple(words)


def _near(name: str) -> str:
    return "" if name in FILLED_IN else did_you_mean(name, FILLED_IN)
