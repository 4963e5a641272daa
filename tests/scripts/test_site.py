"""The check of the site finds each kind of fault on a page, and only there; the build refuses what it cannot show."""

import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from icl_lab.scripts.site import build, check, gallery, moving_picture
from icl_lab.studies.functions.runs import POOLED
from icl_lab.studies.run import figures_with
from icl_lab.studies.study import load
from tests.doors import Ran, Refused, ran, refused

__all__ = ["ran", "refused"]

pytestmark = pytest.mark.robust

PICTURE = "data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw=="  # one white pixel
PAGE = (
    '<!doctype html><html lang="en"><head><meta name="viewport" content="width=device-width"><title>A page</title>'
    "</head><body><main><h1>A page</h1>{}</main></body></html>"
)
SOUND = f'<p>Text, <a href="other.html#place">a link</a></p><img alt="one pixel" src="{PICTURE}">'
FAULTS = {
    "a link that leads nowhere": ('<a href="missing.html">text</a>', "the link missing.html leads nowhere"),
    "a place that is not there": ('<a href="other.html#nowhere">text</a>', "the link other.html#nowhere leads nowhere"),
    "a missing image": ('<img alt="a figure" src="missing.png">', "the image missing.png is not shown at 390, dark"),
    "no alternative text": (f'<img src="{PICTURE}">', "Images must have alternative text"),
    "a wide element": ('<div style="width: 700px">text</div>', "scrolls sideways by 318 pixels at 390, light"),
    "an error in a script": ("<script>missing()</script>", "missing is not defined"),
    "a request": ('<img alt="a figure" src="http://127.0.0.1:9/x.png">', "requests http://127.0.0.1:9/x.png"),
    "a grey text": ('<p style="color: #999; background: #fff">text</p>', "Elements must meet minimum color contrast"),
    "grey in the dark": (
        "<style>:root { color-scheme: light dark; } @media (prefers-color-scheme: dark) { p { color: #444; "
        "background: #222; } }</style><p>text</p>",
        "Elements must meet minimum color contrast",
    ),
    "what no key reaches": (
        '<a href="other.html">text</a><script>document.querySelector("a").onfocus = e => e.target.blur()</script>',
        'the Tab key does not reach <a href="other.html">text</a>',
    ),
}


LEADS_ON = (
    '<!doctype html><html lang="en"><head><meta http-equiv="refresh" content="9; url={}"><title>A page</title></head>'
    f'<body><img src="{PICTURE}"></body></html>'
)


@pytest.fixture(scope="module")
def browser() -> str:
    found = next(filter(None, map(shutil.which, check.BROWSERS)), None)
    if found is None or find_spec("playwright") is None or find_spec("axe_playwright_python") is None:
        pytest.skip("Chromium and what requirements-site.txt lists are not here")
    return found


def site_of(folder: Path, *bodies: str) -> Path:
    """A folder with these pages, and another with an anchor."""
    folder.mkdir()
    (folder / "other.html").write_text(PAGE.format('<p id="place">text</p>'))
    for number, body in enumerate(bodies):
        (folder / f"page_{number}.html").write_text(PAGE.format(body))
    return folder


def test_each_fault_is_found_on_its_page_and_nothing_else(browser: str, tmp_path: Path, ran: Ran) -> None:
    site_of(tmp_path / "site", SOUND, *(fault for fault, _ in FAULTS.values()))
    done = ran("scripts.site.check", "--site", tmp_path / "site")
    lines = [line.partition("/site/")[2] or line for line in done.out.splitlines()]
    for number, (name, (_, said)) in enumerate(FAULTS.items(), start=1):
        assert any(line.startswith(f"page_{number}.html: ") and said in line for line in lines), (name, lines)
    assert not [line for line in lines if line.startswith(("page_0", "other"))]
    assert done.status == 1


def test_nothing_is_found_on_a_sound_page(browser: str, tmp_path: Path, ran: Ran) -> None:
    done = ran("scripts.site.check", "--site", site_of(tmp_path / "site", SOUND))
    assert (done.status, done.out) == (0, "2 pages, 2 widths, 2 schemes: nothing to mend\n")


def test_a_page_that_leads_to_another_is_followed_and_not_opened(browser: str, tmp_path: Path, ran: Ran) -> None:
    """Its image without a text would be found if the browser had opened it."""
    site = site_of(tmp_path / "site", SOUND)
    (site / "index.html").write_text(LEADS_ON.format("page_0.html"))
    assert ran("scripts.site.check", "--site", site).out.endswith(": nothing to mend\n")
    (site / "index.html").write_text(LEADS_ON.format("gone.html"))
    done = ran("scripts.site.check", "--site", site)
    assert (done.status, done.out.splitlines()[0]) == (1, "index.html: the link gone.html leads nowhere")


def test_a_page_that_leaves_by_itself_is_found_and_ends_nothing(browser: str, tmp_path: Path, ran: Ran) -> None:
    leaves = '<script>setInterval(() => { location.href = "other.html?" + Math.random(); }, 20)</script>'
    done = ran("scripts.site.check", "--site", site_of(tmp_path / "site", leaves, FAULTS["a missing image"][0]))
    assert done.status == 1
    assert [line for line in done.out.splitlines() if line.startswith("page_1.html: the image missing.png")]


def test_without_a_browser_it_says_that_nothing_was_checked(
    tmp_path: Path, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    if None in map(find_spec, ("playwright", "axe_playwright_python")):
        pytest.skip("what requirements-site.txt lists is not here")
    monkeypatch.setenv("PATH", str(tmp_path))
    done = ran("scripts.site.check", "--site", site_of(tmp_path / "site", SOUND))
    assert (done.status, done.out) == (0, "")
    assert done.err.startswith("SKIPPED: the pages were not checked")


def test_a_folder_without_pages_and_one_of_others_are_refused(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "thesis.tex").write_text("mine")
    if None in map(find_spec, ("sphinx", "playwright", "axe_playwright_python")):
        pytest.skip("what requirements-site.txt lists is not here")
    assert "has no pages: make site builds them" in refused("scripts.site.check", "--site", "site")
    assert "holds other files than a site: choose --out" in refused("scripts.site.build", "--out", "site")
    assert (tmp_path / "site" / "thesis.tex").read_text() == "mine"


def test_links_within_the_site_stay_and_others_become_what_they_name(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    for name in ("docs/other.md", "report/table.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    kept = "[a](other.md) [b](other.md#c) [d](#e) [f](https://a.b/c) [g](../report/table.csv) ![h](missing.png)"
    assert build.within(page, tmp_path, kept) == kept
    assert build.within(page, tmp_path, "[`src/prng.py`](../src/prng.py)") == "`src/prng.py`"
    assert build.within(page, tmp_path, "[random keys](../src/prng.py)") == "random keys (`src/prng.py`)"


def test_all_pages_of_the_reference_are_listed(root: Path) -> None:
    listed = [page.name for page in build.in_order(root / "docs" / "reference.md")]
    assert sorted(listed) == sorted(page.name for page in (root / "docs" / "reference").glob("*.md"))


def test_every_figure_of_the_gallery_has_a_command_and_the_page_is_what_the_report_says(root: Path) -> None:
    page = (root / "docs" / "gallery.md").read_text()
    assert page == gallery.text()
    figures = sum(len(names) for names in gallery.FIGURES.values())
    assert figures >= 25
    assert (page.count("!["), page.count("python -m studies.run ")) == (figures, figures)


@pytest.mark.parametrize(
    ("name", "figure"), [(study, figure) for study, of in gallery.FIGURES.items() for figure in of]
)
def test_the_claims_that_a_figures_command_names_train_all_that_it_shows(name: str, figure: str) -> None:
    study, words = load(name), gallery.command(name, figure).split()
    (drawn,) = (each for each in study.figures if each.name == figure)
    if "--claims" in words:
        claims = [claim for claim in study.claims if claim.name in words]
        assert {*drawn.run_names} <= {run for claim in claims for run in claim.trained}
        assert drawn in figures_with(study, claims)
    else:
        assert words[-2:] == ["--profile", drawn.profile]


def test_a_figure_of_six_pools_is_drawn_by_six_claims_and_no_profile() -> None:
    """A gallery that named profiles alone would pass the test above."""
    names = gallery.command("functions", "pools").partition("--claims ")[2].split()
    assert sorted(names) == sorted(f"half_{kind}" for kind in POOLED)


def test_a_film_ends_where_the_layer_is_gradient_descent(tmp_path: Path) -> None:
    """The losses fall from that of predicting 0, twice that of one step, to that of one step."""
    film = moving_picture.filmed(tmp_path)
    assert film.losses[0] > 1.9 * film.descent_loss
    assert abs(film.losses[-1] / film.descent_loss - 1) < 0.02  # 1.002 on 4000 contexts
    assert np.corrcoef(film.descent, film.predictions[-1])[0, 1] > 0.995
    assert np.all(np.diff(film.steps) > 0)
    end = film._replace(steps=film.steps[-2:], predictions=film.predictions[-2:], losses=film.losses[-2:])
    made = moving_picture.gif(moving_picture.pictures(end))
    (tmp_path / "film.gif").write_bytes(made)
    with Image.open(tmp_path / "film.gif") as shown:
        assert shown.n_frames == 2
