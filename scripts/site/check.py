"""Opens every page of the site in headless Chromium: python -m scripts.site.check, after scripts.site.build.

Each page is shown at 1280 and 390 pixels, in light and dark. It must log no error, request nothing from outside, not
scroll sideways, reach everything by the Tab key, and pass axe's rules of WCAG 2 A and AA, which include contrast and
alternative texts; every link and image must lead somewhere. A page that only leads to another is not opened, for the
browser would be on its way to the other page while the first is looked at; its link is followed like any other.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from icl_lab.lab import cli
from icl_lab.scripts.site.build import OUT
from icl_lab.src.checks import require
from icl_lab.store.outputs import in_path

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTHS, SCHEMES = (1280, 390), ("light", "dark")
HEIGHT = 900
RULES = {"runOnly": ["wcag2a", "wcag2aa"], "preload": False}  # style sheets would be requested, which file:// refuses
CONTRAST = {"runOnly": ["color-contrast"], "preload": False}
TABS = 40  # elements of a page that the Tab key is followed through
BROWSERS_AT_ONCE = 2
INTERACTIVE = ("explorer", "orders")  # pages that read their state behind the #, as in #v1&depth=2
# in the page: what the Tab key should reach, in its order; where it is
FOCUSABLE = """() => [...document.querySelectorAll(
    "a[href], button, input:not([type=hidden]), summary, [tabindex='0']")]
  .filter(e => e.tabIndex >= 0 && !e.disabled && e.checkVisibility({visibilityProperty: true})
    && !e.closest("details:not([open]) > :not(summary)"))"""
EXPECTED = f"count => {{ window.expected = ({FOCUSABLE})(); return Math.min(count, window.expected.length); }}"
UNREACHED = (
    "place => document.activeElement !== window.expected[place] && window.expected[place].outerHTML.slice(0, 90)"
)
UNSEEN = (
    "() => [...document.images].filter(i => i.checkVisibility() && !i.naturalWidth).map(i => i.getAttribute('src'))"
)
SIDEWAYS = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


def main(argv: list[str]) -> int:
    """The command line; 1 if something is found."""
    built = cli.Parser("scripts.site.check", "Checks every page of the site in headless Chromium.")
    built.add_argument("--site", type=in_path, default=OUT, help=f"folder of the site (default: {OUT})")
    built.needs("playwright")
    built.needs("axe_playwright_python")
    flags = built.parse(argv)
    pages = sorted(Path(flags.site).rglob("*.html"))
    require(bool(pages), f"{flags.site} has no pages: make site builds them")
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(
            "SKIPPED: the pages were not checked, for there is no Chromium (apt-get install chromium)", file=sys.stderr
        )
        return 0
    read = {page: _Page(page.read_text(encoding="utf-8")) for page in pages}
    found = [*dead_links(read), *shown([page for page in pages if not read[page].leads_on], browser)]
    for line in sorted({line.replace(f"{flags.site}/", "") for line in found}):
        print(line)
    print(f"{len(pages)} pages, {len(WIDTHS)} widths, {len(SCHEMES)} schemes: {len(found) or 'nothing'} to mend")
    return bool(found)


# --- links ---


class _Page(HTMLParser):
    """The anchors of a page, where its links and images lead, and whether it only leads to another page."""

    def __init__(self, text: str):
        super().__init__()
        self.anchors, self.links, self.leads_on = {""}, set[str](), False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.anchors |= {named[name] or "" for name in ("id", "name") if name in named}
        self.links |= {named[name] or "" for name in ("href", "src") if name in named}
        if tag == "meta" and (named.get("http-equiv") or "").lower() == "refresh":
            self.leads_on = True
            self.links.add((named.get("content") or "").partition("url=")[2])


def dead_links(pages: dict[Path, _Page]) -> Iterator[str]:
    """What links to a file or a place in one that is not there, or to the absolute path of a file."""
    read = {page.resolve(): content for page, content in pages.items()}
    for page, content in read.items():
        for link in content.links:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "mailto", "data"):
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            there = target.is_file() and not parts.path.startswith("/")
            is_state = target.stem in INTERACTIVE and parts.fragment.startswith("v1")
            if not there or (target in read and not is_state and unquote(parts.fragment) not in read[target].anchors):
                yield f"{page}: the link {link} leads nowhere"


# --- in the browser ---


def shown(pages: list[Path], browser: str) -> Iterator[str]:
    """What the browser finds on the pages, some of which are open at once."""
    parts = [pages[start::BROWSERS_AT_ONCE] for start in range(BROWSERS_AT_ONCE)]
    with ThreadPoolExecutor() as threads:
        for found in threads.map(lambda part: [*_opened(part, browser)], parts):
            yield from found


def _opened(pages: list[Path], browser: str) -> Iterator[str]:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for page in pages:
            tab = chromium.new_page(color_scheme="light", viewport={"width": WIDTHS[0], "height": HEIGHT})
            try:
                yield from (f"{page}: {line}" for line in _of_page(tab, page, Axe()))
            except Error as error:  # it left for another address, or closed
                yield f"{page}: cannot be looked at: {error.message.splitlines()[0]}"
            tab.close()
        chromium.close()


def _of_page(tab: Any, page: Path, axe: Any) -> Iterator[str]:
    """What is wrong with a page that is opened in a fresh tab."""
    said: list[str] = []
    tab.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda request: said.append(f"requests {request.url}") if _is_outside(request.url) else None)
    tab.goto(page.resolve().as_uri(), wait_until="load")
    yield from _violations(axe, tab, RULES)
    yield from _unreached(tab)
    for width in WIDTHS:
        tab.set_viewport_size({"width": width, "height": HEIGHT})
        for scheme in SCHEMES:
            tab.emulate_media(color_scheme=scheme)
            if (wider := tab.evaluate(SIDEWAYS)) > 0:
                yield f"scrolls sideways by {wider} pixels at {width}, {scheme}"
            yield from (f"the image {source} is not shown at {width}, {scheme}" for source in tab.evaluate(UNSEEN))
    yield from _violations(axe, tab, CONTRAST)  # of the last scheme, dark
    yield from said


def _is_outside(url: str) -> bool:
    return urlsplit(url).scheme not in ("file", "data", "blob")


def _violations(axe: Any, tab: Any, rules: dict[str, Any]) -> Iterator[str]:
    for rule in axe.run(tab, options=rules).response["violations"]:
        for node in rule["nodes"][:3]:
            yield f"{rule['help']}: {node['html'][:90]}"


def _unreached(tab: Any) -> Iterator[str]:
    """The first element that the Tab key does not come to in the order of the page."""
    tab.evaluate("() => document.activeElement.blur()")
    for place in range(tab.evaluate(EXPECTED, TABS)):
        tab.keyboard.press("Tab")
        if missed := tab.evaluate(UNREACHED, place):
            yield f"the Tab key does not reach {missed}"
            return


if __name__ == "__main__":
    cli.launch(main)
