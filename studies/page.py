"""The page of a study, written by hand: Markdown in which every number is filled in from the tables, and none is typed.

`{{ value("CLAIM") }}` is a claim's mean with interval and n, `mean`, `n`, `accepted`, `expected` and `verdict` are
these alone, `control` is its control's value, and `power` is two to the power of the value, of a claim on a base-two
logarithm. `{{ figure("NAME") }}` is a figure of the study and `{{ setting("RUNS", "KEY") }}` a setting of its runs. A
study with tables has `{{ table("NAME") }}` too, and one that compares conditions has more. A page has nothing else
between braces. What stands below it, claims with the legend of their verdicts and figures that the page does not show,
is added to it. A note, `note_NAME.md`, is written alike, and nothing is added to it.
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
from icl_lab.plots import style
from icl_lab.src.checks import ConfigError
from icl_lab.src.words import did_you_mean
from icl_lab.store import outputs
from icl_lab.store.provenance import commit_of
from icl_lab.studies import ledger, main_results, template
from icl_lab.studies.drawing import as_drawn, place_of
from icl_lab.studies.figure import AnyFigure
from icl_lab.studies.study import Study

BELOW = Path(__file__).with_name("below_page.md.j2")
NOTES = "notes"  # the folder of notes, beside the pages

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


def name_of(study: Study, profile: str) -> str:
    """The name of the page of a study's results."""
    return f"{study.results(profile)}.md"


def check_outputs(study: Study, profile: str, out: Path, figures: Sequence[AnyFigure] = ()) -> None:
    """`StoreError` if what a study writes, with these figures, would replace somebody else's work."""
    names = [ledger.TABLE, ledger.PAGE, ledger.INDEX, name_of(study, profile)]
    names += [f"{study.name}/{figure.name}.{suffix}" for figure in figures for suffix in ("csv", "json")]
    if study.conditions:
        names += [f"{study.results(profile)}/{name}" for name in study.conditions.tables]
    outputs.check([out / name for name in names], ledger.WRITER)
    places = [place_of(study, out / study.name / f"{figure.name}.csv") for figure in figures]
    outputs.check([place.with_suffix(f".{kind}") for place in places for kind in ("png", "pdf")], style.WRITER)


def check(study: Study) -> None:
    """`ConfigError` for what a text cannot fill in, and for a number that is typed; the sentence names the line."""
    for path in (study.written, *study.notes.values()):
        if path.exists():
            _check(study, path)


def _check(study: Study, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    names: dict[str, Sequence[str]] = {
        "claim": [claim.name for claim in study.claims],
        "runs": [*study.runs],
        "figure": [*_titles(study)],
        "table": [*study.tables],
    }
    names |= dict(study.conditions.names) if study.conditions else {}
    for line, does, words in _calls(study, path, text):
        for kind, word in zip(_filled_in(study)[does], words, strict=True):
            if word not in names.get(kind, (word,)):
                raise ConfigError(f"{path}, line {line}: there is no {kind} {word!r}{did_you_mean(word, names[kind])}")
        if does == "setting":
            _setting(study, *words)
    for line, number in numbers_by_hand(text):
        raise ConfigError(
            f"{path}, line {line}: {number} is typed by hand; insert it, for example by {{{{ value(...) }}}}"
        )


def numbers_by_hand(text: str) -> list[tuple[int, str]]:
    """The numbers that are typed in a page, with their lines; numbers in words are not found."""
    for pattern in NO_RESULTS:
        text = re.sub(pattern, lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.M | re.S)
    return [
        (line, found.rstrip(".,")) for line, words in enumerate(text.split("\n"), 1) for found in NUMBER.findall(words)
    ]


def write(study: Study, profile: str, out: Path) -> None:
    """Writes the page of a study; of conditions once their tables are there. A user's may have none."""
    tables = study.conditions.tables[:1] if study.conditions else ()
    if study.written.exists() and all((out / study.results(profile) / name).exists() for name in tables):
        rows = ledger.rows_in(out, [study])
        texts = {name_of(study, profile): render(study, profile, rows, out)}
        if profile == study.profiles[-1]:
            texts |= {f"{NOTES}/{name}.md": note(study, name, rows, out) for name in study.notes}
        outputs.write({out / name: text.encode() for name, text in texts.items()}, ledger.WRITER)


def render(study: Study, profile: str, rows: Sequence[Row], out: Path) -> str:
    """The page with its numbers, and below it all claims, with where they come from."""
    values = {
        "study": study,
        "rows": rows,
        "command": study.command(profile),
        "commit": _commit(study),
        "folder": study.name,
        "tables": study.conditions.below(out / study.results(profile)) if study.conditions else "",
        "further": [figure for figure in as_drawn(study, out / study.name) if figure.name not in study.shown],
    }
    text = template.rendered(study.written, **_fill_in(study, profile, rows, out))
    return f"{text.rstrip()}\n\n{template.rendered(BELOW, **values)}"


def note(study: Study, name: str, rows: Sequence[Row], out: Path) -> str:
    """A note with its numbers."""
    text = template.rendered(study.notes[name], **_fill_in(study, study.profiles[-1], rows, out, above="../"))
    return f"{text.rstrip()}\n"


def _fill_in(
    study: Study, profile: str, rows: Sequence[Row], out: Path, above: str = ""
) -> dict[str, Callable[..., str]]:
    """By name, what is filled in; `above` leads from the text's folder to the results."""
    by_name, titles, folder = {row["claim"]: row for row in rows}, _titles(study), study.results(profile)

    def of_row(said: Callable[[Row], str]) -> Callable[[str], str]:
        return lambda name: said(by_name[name])

    fill_in: dict[str, Callable[..., str]] = {
        "value": of_row(template.value),
        "power": of_row(lambda row: template.value(_power(row))),
        "mean": of_row(lambda row: template.NOT_MEASURED if row["mean"] is None else template.number(row["mean"])),
        "verdict": of_row(template.verdict_in_prose),
        "accepted": of_row(lambda row: template.range_in_words(row["low"], row["high"])),
        "expected": of_row(lambda row: template.number(row["expected"])),
        "control": of_row(template.value_of_control),
        "n": of_row(lambda row: str(row["n"])),
        "figure": lambda name: _image(out, f"{_folder(study, profile, name)}/{name}.png", titles[name], above),
        "setting": lambda runs, key: _setting(study, runs, key),
        "table": lambda name: study.tables[name](out / study.name),
    }
    return fill_in | dict(study.conditions.fill_in(out / folder) if study.conditions else {})


def _titles(study: Study) -> dict[str, str]:
    """Figure -> its title."""
    compared = study.conditions.figures if study.conditions else {}
    return (
        {figure.name: figure.title for figure in study.figures}
        | dict(compared)
        | {main_results.NAME: main_results.TITLE}
    )


def _folder(study: Study, profile: str, figure: str) -> str:
    """Where a figure lies: of conditions, with their tables."""
    return study.results(profile) if study.conditions and figure in study.conditions.figures else study.name


def _image(out: Path, path: str, title: str, above: str = "") -> str:
    """A figure below a folder of results as Markdown; where it is not drawn, the sentence that says so."""
    return f"![{title}]({above}{path})" if (out / path).exists() else f"No figure yet: {title}."


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


def _filled_in(study: Study) -> dict[str, tuple[str, ...]]:
    tables = {"table": ("table",)} if study.tables else {}
    return FILLED_IN | tables | dict(study.conditions.arguments if study.conditions else {})


def _calls(study: Study, path: Path, text: str) -> Iterable[tuple[int, str, tuple[str, ...]]]:
    """Line, name and arguments of what a page fills in; `ConfigError` for anything else between braces."""
    jinja2 = extra("jinja2")
    try:
        whole = jinja2.Environment().parse(text)
    except jinja2.TemplateSyntaxError as error:
        raise ConfigError(f"{path}, line {error.lineno}: {error.message}") from None
    for part in whole.body:
        for node in part.nodes if isinstance(part, jinja2.nodes.Output) else (part,):
            if not isinstance(node, jinja2.nodes.TemplateData):
                yield _call(study, path, node)


def _call(study: Study, path: Path, node: Any) -> tuple[int, str, tuple[str, ...]]:
    name = str(getattr(getattr(node, "node", None), "name", ""))
    words = [str(getattr(word, "value", "")) for word in getattr(node, "args", ())]
    possible = _filled_in(study)
    if name not in possible or len(words) != len(possible[name]) or not all(words):
        forms = ", ".join(f"{does}({', '.join(of)})" for does, of in possible.items())
        near = "" if name in possible else did_you_mean(name, possible)
        raise ConfigError(f"{path}, line {node.lineno}: a page fills in {forms} and nothing else{near}")
    return int(node.lineno), name, tuple(words)
