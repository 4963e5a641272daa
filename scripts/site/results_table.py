"""The results table of the site: its data, made from report/index.json, and the links from pages to its rows.

docs/results_table.md becomes a page with every claim in words, so that links and readers without scripts find it; the
scripts of docs/static/ put the table in its place.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from icl_lab.src.checks import require
from icl_lab.studies.claim import ORIGINS
from icl_lab.studies.template import NOT_MEASURED
from icl_lab.studies.words import legend, words_of

PAGE = "docs/results_table.md"
DATA = "_static/results_data.js"
SCRIPTS = ("results_data.js", "results_plot.js", "results_row.js", "results_table.js")
STYLE = "results_table.css"
ELSEWHERE = "<!-- what stands here where there is no table -->"
DIGITS = 7  # of a number in a drawing
# source of a range -> its name among the filters
SOURCES = {
    "plot reading": "a paper's plot",
    "text": "a paper's text",
    "theory": "a theorem",
    "derived": "a closed form",
    "prototype": "a prototype",
    "bound": "a bound of ours",
    "expectation": "our expectation",
    "pilot": "our pilot runs",
}
# what a row shows of a claim
SHOWN = (
    *"id study tier fact paper says expected source scale low high no_effect earlier verdict reading_says".split(),
    *"because planned smaller remark n mean mean_low mean_high level control control_kind control_mean".split(),
    *"control_low control_high control_values seeds values in_words runs paired device date command".split(),
    *"replicate shown_in history".split(),
)

# a value on a page of results, as `studies.template.value` writes it
VALUE = rf"{NOT_MEASURED}|\d+ of \d+ runs \([^)\n]*\)|infinite \(n = \d+\)|[^\s\[\]]+,\s+one run|[^\s\[\]]+ \[[^\]]*\]"
CALL = re.compile(r"\{\{ *(\w+)\(([^)]*)\) *\}\}")
LINKED = ("value", "power")

Index = Mapping[str, Any]


# --- data ---


def data(index: Index, report: Path, images: Path) -> bytes:
    """A script that hands the table its data; `images` is the folder of the site's pictures."""
    pictures = {path.read_bytes(): path.name for path in images.glob("*.png")}  # Sphinx numbers those of one name
    shown = {name for claim in index["claims"] for name in claim["shown_in"]}
    figures = {
        figure["id"]: {"image": f"../_images/{pictures[content]}", "caption": figure["caption"]}
        for figure in index["figures"]
        if figure["id"] in shown and (content := (report / figure["image"]).read_bytes()) in pictures
    }
    pages = [page for page in index["pages"] if page["study"] and page["id"] == page["study"]]
    table = {
        "claims": [_claim(claim, figures) for claim in index["claims"]],
        "withdrawn": index["withdrawn"],
        "runs": {
            runs["id"]: {name: runs[name] for name in ("model", "settings", "axes", "seeds")} for runs in index["runs"]
        },
        "figures": figures,
        "pages": {page["study"]: f"../report/{page['id']}.html" for page in pages},
        "titles": {page["study"]: page["title"] for page in pages},
        "sources": SOURCES,
        "origins": ORIGINS,
        "meanings": legend(words_of(index["claims"])),
    }
    return f"window.RESULTS = {json.dumps(_rounded(table), ensure_ascii=False, separators=(',', ':'))};\n".encode()


def _claim(claim: Index, figures: Mapping[str, Any]) -> dict[str, Any]:
    return {name: claim[name] for name in SHOWN} | {"shown_in": [name for name in claim["shown_in"] if name in figures]}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


# --- the page ---


def with_rows(page: str, index: Index) -> str:
    """The page with its scripts and every claim in words, in place of the table until it is drawn."""
    page = page.partition(ELSEWHERE)[0]
    rows = "".join(map(_row, index["claims"])) + "".join(map(_gone, index["withdrawn"]))
    scripts = "".join(f'<script defer src="../_static/{name}"></script>' for name in SCRIPTS)
    style = f'<link rel="stylesheet" href="../_static/{STYLE}">'
    return f'{page.rstrip()}\n\n```{{raw}} html\n{style}<div id="claims-table">{rows}</div>{scripts}\n```\n'


def _row(claim: Index) -> str:
    words = claim["in_words"]
    said = f"{claim['says']}: {words['measured'] or 'not measured'}; accepted: {words['accepted']}; {words['verdict']}"
    return f'<p id="{claim["id"]}">{html.escape(said)}</p>\n'


def _gone(claim: Index) -> str:
    last = claim["history"][-1]
    return f'<p id="{claim["id"]}">{claim["id"]}: {last["event"]}; {html.escape(last.get("reason", ""))}</p>\n'


# --- links from other pages ---


def with_links(page: str, written: str, index: Index, table: str) -> str:
    """A page of results whose values, and names of claims in its tables, lead to their rows.

    page: as it lies in report/; written: the text that its numbers were filled into; table: the address
    of the table's page. The links are HTML, for Markdown's own would have to lead to headings. `ConfigError` for a
    value that is not measured.
    """
    known, values = {claim["id"] for claim in index["claims"]}, [*values_in(page, written)]
    empty = next((claim for start, end, claim in values if page[start:end] == NOT_MEASURED), "")
    require(not empty, f"a page of results shows {empty}, which has no value; measure it, or leave it out")
    links = [(start, end, claim) for start, end, claim in values if claim in known]
    for start, end, claim in reversed(links):
        page = f'{page[:start]}<a href="{table}#{claim}">{page[start:end]}</a>{page[end:]}'
    return _with_linked_names(page, known, table)


def values_in(page: str, written: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and claim of each value on a page; none if the page was not made from this text."""
    pattern, claims, end = "", list[str](), 0
    for call in CALL.finditer(written := written.rstrip()):
        pattern += re.escape(written[end : call.start()])
        if is_linked := call[1] in LINKED:
            claims.append(call[2].strip("\"' "))
        pattern += f"({VALUE})" if is_linked else r"[\s\S]*?"
        end = call.end()
    found = re.match(pattern + re.escape(written[end:]), page)
    if found:
        yield from ((*found.span(number), claim) for number, claim in enumerate(claims, 1))


def _with_linked_names(page: str, known: set[str], table: str) -> str:
    """Names of claims in the first column of a table."""
    return re.sub(
        r"^\| `(\w+)` \|",
        lambda found: f'| <a href="{table}#{found[1]}">`{found[1]}`</a> |' if found[1] in known else found[0],
        page,
        flags=re.M,
    )
