"""The results table in Chromium: it draws what the tables of report/ have, filters, follows links and keys."""

import json
import math
import re
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import pytest

from icl_lab.scripts.site import build, check, results_table
from icl_lab.src.checks import ConfigError
from icl_lab.studies.claim import ORIGINS, UNBOUNDED
from icl_lab.studies.study import all_studies
from tests.runners.tiny import ROOT

REPORT = ROOT / "report"
ROOM = (1280, 390)  # widths of a screen and of a phone
# ids of the rows that are not hidden; (x, end) of what a row draws
VISIBLE = "() => [...document.querySelectorAll('.claim')].filter(row => !row.hidden).map(row => row.id)"
DRAWN = """() => Object.fromEntries([...document.querySelectorAll('.claim')].map(row => [row.id, {
    seeds: [...row.querySelectorAll('.plot .seed')].map(dot => +dot.getAttribute('cx')),
    counts: [...row.querySelectorAll('.plot .count-of')].map(words => words.textContent),
    band: [...row.querySelectorAll('.plot .accepted')].flatMap(
      band => [+band.getAttribute('x'), +band.getAttribute('x') + +band.getAttribute('width')]),
    mean: [...row.querySelectorAll('.plot .mean')].map(dot => +dot.getAttribute('cx')),
    interval: [...row.querySelectorAll('.plot .interval')].flatMap(
      line => [+line.getAttribute('x1'), +line.getAttribute('x2')]),
    crosses: row.querySelectorAll('.plot .control').length,
    words: row.querySelector('.verdict').textContent}]))"""
LEFT, RIGHT = 4, 266  # of a row's drawing


@pytest.fixture(scope="module")
def index() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((REPORT / "index.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def data(index: dict[str, Any]) -> dict[str, Any]:
    """What the scripts read; here the pictures of the site are those of the report."""
    text = results_table.data(index, REPORT, REPORT / "reproduction").decode()
    found: dict[str, Any] = json.loads(text.removeprefix("window.RESULTS = ").rstrip().removesuffix(";"))
    return found


@pytest.fixture(scope="module")
def page(index: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the table as the site has it, without the site's frame."""
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs" / "static", site / "_static")
    (site / results_table.DATA).write_bytes(results_table.data(index, REPORT, REPORT / "reproduction"))
    shutil.copytree(REPORT / "reproduction", site / "_images")
    (site / "docs").mkdir()
    body = results_table.with_rows("", index).strip().removeprefix("```{raw} html\n").removesuffix("\n```")
    head = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>t</title>'
    head += '<meta name="viewport" content="width=device-width"></head>'
    path = site / "docs" / "results_table.html"
    path.write_text(f'{head}<body><main class="content">{body}</main></body></html>', encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    found = next(filter(None, map(shutil.which, check.BROWSERS)), None)
    if found is None or find_spec("playwright") is None:
        pytest.skip("Chromium and what requirements-site.txt lists are not here")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium: Any, page: Path) -> Iterator[Any]:
    """Opens the page at an address behind #; it must log no error and request nothing from outside."""
    said: list[str] = []
    tabs: list[Any] = []

    def opens(behind: str = "", width: int = ROOM[0], path: Path = page) -> Any:
        tab = chromium.new_page(viewport={"width": width, "height": 900})
        tab.set_default_timeout(10_000)
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on("request", lambda request: None if request.url.startswith("file:") else said.append(request.url))
        tab.goto(f"{path.as_uri()}#{behind}")
        tab.wait_for_selector(".claim", state="attached")
        tabs.append(tab)
        return tab

    yield opens
    for tab in tabs:
        tab.close()
    assert said == []


# --- data ---


def test_the_table_has_the_numbers_of_claims_csv(data: dict[str, Any]) -> None:
    table = pd.read_csv(REPORT / "claims.csv").set_index(["claim", "reading"])
    readings = {claim["id"]: claim["reading"] for claim in json.loads((REPORT / "index.json").read_text())["claims"]}
    assert [claim["id"] for claim in data["claims"]] == [*readings]
    for claim in data["claims"]:
        line = table.loc[(claim["id"], readings[claim["id"]])]
        for end in ("low", "high"):
            assert claim[end] == (
                None if abs(line[end]) >= UNBOUNDED else pytest.approx(line[end], rel=1e-6, abs=1e-12)
            )
        for name in ("mean", "mean_low", "mean_high", "control_mean"):
            there = line[name] if math.isfinite(line[name]) else None
            assert claim[name] == (there if there is None else pytest.approx(there, rel=1e-6, abs=1e-12))
        there = [value if value is not None and math.isfinite(value) else None for value in json.loads(line["values"])]
        assert claim["values"] == [value if value is None else pytest.approx(value, rel=1e-6) for value in there]
        assert (claim["seeds"], claim["verdict"]) == (json.loads(line["seeds"]), line["verdict"])


def test_every_source_and_verdict_has_its_words(data: dict[str, Any]) -> None:
    assert data["sources"].keys() == ORIGINS.keys()
    assert {claim[word] for claim in data["claims"] for word in ("verdict", "reading_says")} == {*data["meanings"]}
    assert {*data["pages"]} == {*data["titles"]} == {study.name for study in all_studies()}


def test_a_figure_is_the_picture_of_the_same_bytes(index: dict[str, Any], tmp_path: Path) -> None:
    """Sphinx gives pictures of one name numbers; a picture that no page of the site shows is left out."""
    image = next(figure for figure in index["figures"] if figure["id"] == "theory/main_results")["image"]
    shutil.copy(REPORT / image, tmp_path / "main_results3.png")
    text = results_table.data(index, REPORT, tmp_path).decode()
    found = json.loads(text.removeprefix("window.RESULTS = ").rstrip().removesuffix(";"))
    assert {name: of["image"] for name, of in found["figures"].items()} == {
        "theory/main_results": "../_images/main_results3.png"
    }
    assert {name for claim in found["claims"] for name in claim["shown_in"]} == {"theory/main_results"}


# --- links ---


def test_every_value_and_every_name_on_a_page_of_results_leads_to_its_row(index: dict[str, Any]) -> None:
    """As many values as the text asks for, each of the claim that it names; without the links the page is the same."""
    words = {claim["id"]: claim["in_words"]["measured"] for claim in index["claims"]}
    for entry in (entry for entry in index["pages"] if entry["study"]):
        note = entry["id"].partition("notes/")[2]
        written = ROOT / "studies" / entry["study"] / (f"note_{note}.md" if note else "page.md")
        page, text = (REPORT / entry["path"]).read_text("utf-8"), written.read_text("utf-8")
        values = [*results_table.values_in(page, text)]
        assert [claim for *_, claim in values] == re.findall(r'\{\{ (?:value|power)\("(\w+)"\) \}\}', text)
        for start, end, claim in values:
            mean = re.match(r"[^ ]+", page[start:end])
            assert mean is not None
            if f'power("{claim}")' not in text:
                assert words[claim].startswith(mean[0]) or "of" in page[start:end], (entry["id"], claim)
        linked = results_table.with_links(page, text, index, "table.html")
        assert re.sub(r'<a href="table\.html#\w+">|</a>', "", linked) == page
        if not note:
            own = {claim["id"] for claim in index["claims"] if claim["study"] == entry["study"]}
            assert own <= {*re.findall(r'\| <a href="table\.html#(\w+)">`\1`</a> \|', linked)}


def test_a_page_of_another_text_has_no_linked_values(index: dict[str, Any]) -> None:
    page, text = "A loss of 1.2 [1.1, 1.3; n = 8].\n", 'A loss of {{ value("one_layer_loss") }}.\n'
    linked = 'A loss of <a href="t#one_layer_loss">1.2 [1.1, 1.3; n = 8]</a>.\n'
    assert results_table.with_links(page, text, index, "t") == linked
    assert results_table.with_links(page, f"Not so. {text}", index, "t") == page
    assert results_table.with_links(page, text.replace("one_layer_loss", "no_claim"), index, "t") == page


def test_a_page_with_a_claim_that_has_no_value_is_refused(index: dict[str, Any]) -> None:
    text = 'A loss of {{ value("one_layer_loss") }}.\n'
    with pytest.raises(ConfigError, match="a page of results shows one_layer_loss, which has no value"):
        results_table.with_links("A loss of ….\n", text, index, "t")


def test_the_page_has_every_claim_without_scripts(index: dict[str, Any], page: Path) -> None:
    read = check._Page(page.read_text(encoding="utf-8"))
    assert {claim["id"] for claim in (*index["claims"], *index["withdrawn"])} <= read.anchors
    assert f"docs/{page.name}" == str(Path(results_table.PAGE).with_suffix(".html"))
    assert (str(ROOT), ROOT) == (build.ROOT, ROOT)


# --- drawings ---


def test_each_row_draws_its_seeds_range_and_interval_on_its_scale(opened: Any, data: dict[str, Any]) -> None:
    """All places lie on one line over the values, or over their logarithms: the fit by least squares is exact."""
    drawn = opened().evaluate(DRAWN)
    logarithmic = 0
    for claim in data["claims"]:
        row, values = drawn[claim["id"]], [value for value in claim["values"] if value is not None]
        assert claim["verdict"] in row["words"]
        assert row["crosses"] == (claim["control_mean"] is not None and bool(values)), claim["id"]
        if claim["scale"] == "share":
            counts = [f"{values.count(value)} of {len(values)}" for value in dict.fromkeys(values)]
            assert row["counts"] == counts
            values = [*dict.fromkeys(values)]
        assert len(row["seeds"]) == len(values)
        ends = [*zip(row["band"], (claim["low"], claim["high"]), strict=True)]
        ends += [*zip(row["interval"], (claim["mean_low"], claim["mean_high"]), strict=True)] if row["mean"] else []
        ends += [*zip(row["mean"], [claim["mean"]], strict=True)] if row["mean"] else []
        places = [*zip(sorted(row["seeds"]), sorted(values), strict=True), *ends]
        is_log = claim["scale"] == "log" and min([1.0, *values]) > 0
        logarithmic += is_log
        inside = [
            (math.log(value) if is_log else value, x)
            for x, value in places
            if value is not None and LEFT < x < RIGHT and (value > 0 or not is_log)
        ]
        if len({at for at, _ in inside}) > 2:
            at, x = np.array(inside).T
            fitted = np.polyval(np.polyfit(at, x, 1), at)
            assert np.abs(fitted - x).max() < 1.1, claim[
                "id"
            ]  # an interval or a band too thin to see is drawn 1 or 2 wide
    assert logarithmic > 200


def test_an_open_row_has_its_source_commands_and_history(opened: Any, data: dict[str, Any]) -> None:
    tab = opened()
    for claim in (data["claims"][0], next(claim for claim in data["claims"] if claim["earlier"])):
        tab.evaluate("name => { document.getElementById(name).open = true; }", claim["id"])
        body = tab.locator(f"#{claim['id']} .body")
        said = body.text_content().replace("Von Oswald", "von Oswald")  # which begins a sentence
        for words in (claim["command"], claim["replicate"], claim["in_words"]["place"], claim["runs"], claim["date"]):
            assert words in said
        assert body.locator(".history li").count() == len(claim["history"])
        assert body.locator(".large .seed").count() == len(claim["values"])
        assert body.locator(".large .before").count() == (claim["earlier"] is not None)


# --- filters ---


def wanted(data: dict[str, Any], **chosen: str) -> list[str]:
    """The claims that have all of this; words stand somewhere in a row's texts."""
    words = chosen.pop("words", "").lower().split()
    texts = ("id", "says", "study", "paper", "fact", "remark", "verdict", "control", "runs", "command")
    return [
        claim["id"]
        for claim in data["claims"]
        if all(claim[name] == value for name, value in chosen.items())
        and all(
            word in " ".join([*(claim[text] for text in texts), claim["in_words"]["place"]]).lower() for word in words
        )
    ]


CHOSEN: tuple[dict[str, str], ...] = (
    {"study": "theory", "verdict": "contradicted"},
    {"tier": "main", "source": "derived"},
    {"verdict": "not run"},
    {"words": "Two layers"},
    {"words": "gd++ recurrent", "study": "reproduction", "verdict": "undecided"},
    {"words": "no claim has such words"},
)


@pytest.mark.parametrize("chosen", CHOSEN)
def test_filters_show_what_has_all_of_them_and_stand_in_the_address(
    opened: Any, data: dict[str, Any], chosen: dict[str, str]
) -> None:
    tab = opened()
    for name, value in chosen.items():
        if name == "words":
            tab.fill("#results-words", value)
        else:
            tab.select_option(f"select[aria-label={name.capitalize()}]", value)
    shown = [name for name in tab.evaluate(VISIBLE) if name in {claim["id"] for claim in data["claims"]}]
    assert shown == wanted(data, **chosen)
    assert tab.locator(".nothing").is_visible() == (not shown)
    tab.wait_for_function("() => location.hash.length > 1")
    again = opened(tab.evaluate("() => location.hash.slice(1)"))
    assert again.evaluate(VISIBLE) == tab.evaluate(VISIBLE)
    tab.click(".clear")
    assert len(tab.evaluate(VISIBLE)) == len(data["claims"]) + len(data["withdrawn"])


def test_a_link_to_a_place_of_the_page_leaves_the_filters(opened: Any, data: dict[str, Any]) -> None:
    """As the first link of every page does, which skips the navigation."""
    tab = opened("study=theory&verdict=contradicted")
    tab.evaluate("() => { document.querySelector('main').id = 'a-place'; location.hash = '#a-place' }")
    tab.wait_for_timeout(100)
    assert tab.evaluate(VISIBLE) == wanted(data, study="theory", verdict="contradicted")
    assert tab.locator(".said").is_hidden()


def test_counts_are_of_what_the_other_filters_leave(opened: Any, data: dict[str, Any]) -> None:
    tab = opened(urlencode({"study": "theory", "verdict": "undecided"}))
    options = dict(tab.evaluate("() => [...document.querySelectorAll('option')].map(o => [o.value, o.text])"))
    assert options["contradicted"] == f"contradicted ({len(wanted(data, study='theory', verdict='contradicted'))})"
    assert options["stages"] == f"stages ({len(wanted(data, study='stages', verdict='undecided'))})"
    assert options["main"].endswith(f"({len(wanted(data, study='theory', verdict='undecided', tier='main'))})")


def test_withdrawn_names_are_rows_that_tell_why(opened: Any, data: dict[str, Any]) -> None:
    gone = [claim["id"] for claim in data["withdrawn"] if claim["history"][-1]["event"] == "withdrawn"]
    assert opened("verdict=withdrawn").evaluate(VISIBLE) == gone
    tab = opened("one_layer_plateau")  # the name of an earlier link
    body = tab.locator("#one_layer_plateau .body")
    assert "renamed to one_layer_plateau_length" in body.text_content()
    body.locator("a[href='#one_layer_plateau_length']").click()
    tab.wait_for_selector("#one_layer_plateau_length[open]")


# --- links and keys ---


def test_a_link_opens_its_row_and_scrolls_to_it(opened: Any, data: dict[str, Any]) -> None:
    for width in ROOM:
        for name in (data["claims"][0]["id"], data["claims"][300]["id"], data["claims"][-1]["id"]):
            tab = opened(name, width)
            tab.wait_for_timeout(200)
            box = tab.locator(f"#{name} summary").bounding_box()
            assert tab.locator(f"#{name}").get_attribute("open") is not None
            assert 0 <= box["y"] < 900 - box["height"], (width, name)
    tab.evaluate("name => { location.hash = name; }", data["claims"][5]["id"])  # a link within the page
    tab.wait_for_selector(f"#{data['claims'][5]['id']}[open]")


def test_what_a_link_asks_for_in_vain_is_a_sentence(opened: Any, data: dict[str, Any]) -> None:
    tab = opened("claim=no_such_claim&verdict=splendid")
    assert tab.locator(".said").inner_text() == (
        "The link asks for the verdict “splendid”, which no claim has. The link names the claim “no_such_claim”, "
        "which is not in this table. Perhaps the words of the search find it."
    )
    assert len(tab.evaluate(VISIBLE)) == len(data["claims"]) + len(data["withdrawn"])
    for odd in ("%", "%3Cimg%20src=x%20onerror=alert(1)%3E", "words=%E0%A4%A"):
        assert opened(odd).locator(".claim").count() > len(data["claims"])


def test_it_works_by_keys_alone(opened: Any, data: dict[str, Any]) -> None:
    tab = opened()
    focused = "() => document.activeElement.closest('.claim')?.id ?? document.activeElement.id"
    first, second = (claim["id"] for claim in data["claims"][:2])
    tab.keyboard.press("Tab")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowDown")
    assert tab.evaluate(focused) == second
    tab.keyboard.press("Enter")
    tab.wait_for_selector(f"#{second} .body")
    tab.wait_for_function("name => location.hash === `#${name}`", arg=second)
    tab.keyboard.press("Tab")
    assert tab.evaluate("() => document.activeElement.closest('.body') !== null")
    tab.keyboard.press("Escape")
    assert tab.evaluate(focused) == second
    assert not tab.locator(f"#{second} .body").is_visible()
    tab.keyboard.press("ArrowUp")
    assert tab.evaluate(focused) == first
    tab.keyboard.press("ArrowUp")
    assert tab.evaluate(focused) == "results-words"
    tab.keyboard.type("induction")
    assert len(tab.evaluate(VISIBLE)) < len(data["claims"])
    tab.keyboard.press("Escape")
    assert len(tab.evaluate(VISIBLE)) == len(data["claims"]) + len(data["withdrawn"])


def test_a_command_is_copied_from_a_page_that_is_a_file(opened: Any, data: dict[str, Any]) -> None:
    """Also where the browser's clipboard is not to be had."""
    claim = data["claims"][0]
    for broken in ("() => {}", "() => { navigator.clipboard.writeText = () => Promise.reject(new Error()); }"):
        tab = opened(claim["id"])
        tab.evaluate(broken)
        tab.click("[aria-label='Copy the command that replicates this claim']")
        tab.wait_for_selector("text=Copied")
        tab.focus("#results-words")
        tab.keyboard.press("Control+V")
        assert tab.input_value("#results-words") == claim["replicate"]


def test_nothing_is_wider_than_a_phone(opened: Any, data: dict[str, Any]) -> None:
    for width in ROOM:
        tab = opened("", width)
        tab.evaluate(
            "() => { for (const row of [...document.querySelectorAll('.claim')].slice(0, 60)) row.open = true; }"
        )
        tab.wait_for_timeout(100)
        assert tab.evaluate(check.SIDEWAYS) <= 0


def test_words_of_a_claim_are_never_markup(opened: Any, index: dict[str, Any], page: Path) -> None:
    """A name with tags is shown as it is typed."""
    folder = page.parent.parent.parent / "odd"
    shutil.copytree(page.parent.parent, folder)
    odd = "<img src=x onerror=alert(1)>"
    changed = index | {"claims": [index["claims"][0] | {"says": odd, "remark": odd, "fact": odd}, *index["claims"][1:]]}
    (folder / results_table.DATA).write_bytes(results_table.data(changed, REPORT, REPORT / "reproduction"))
    tab = opened(index["claims"][0]["id"], path=folder / "docs" / page.name)
    assert odd in tab.locator(f"#{index['claims'][0]['id']} .says").text_content()
    assert tab.locator("img[src=x]").count() == 0
    assert "&lt;img" in results_table.with_rows("", changed)
