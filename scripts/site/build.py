"""Builds the site in site/, static and offline: python -m scripts.site.build; then open site/index.html.

The pages are those of docs/ and report/, CHANGELOG.md, and the notebooks of tutorials/ with the outputs that `make
notebooks` has kept; the API is made of docstrings. Values on pages of results lead to their rows of the results table.
A warning of Sphinx ends it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from icl_lab.lab import cli
from icl_lab.lab.environment import ROOT
from icl_lab.scripts import notebooks
from icl_lab.scripts.site import results_table
from icl_lab.src.checks import ConfigError, require
from icl_lab.store.outputs import out_folder

OUT = Path("site")
PAGES = ("docs", "report", "CHANGELOG.md")
# a link to a state of the explorer or of the page on orders; Sphinx knows no such place, so the site has it as HTML
STATE = re.compile(r"\[([^]\n]+)\]\((\S*\b(?:explorer|orders))\.md#(v1\b[^)\s]*)\)")


def main(argv: list[str]) -> int:
    """The command line."""
    built = cli.Parser("scripts.site.build", "Builds the site: static pages that need no network.")
    built.add_argument("--out", type=out_folder, default=OUT, help=f"folder of the site (default: {OUT})")
    built.add_argument("--bare_notebooks", action="store_true", help="show the tutorials without their outputs")
    built.needs("sphinx")
    flags = built.parse(argv)
    build(flags.out, flags.bare_notebooks)
    print(f"open {flags.out / 'index.html'}")
    return 0


def build(out: Path, bare_notebooks: bool = False) -> None:
    """Builds the site in a folder, in place of an earlier one; `ConfigError` with what Sphinx says if it warns."""
    marks = [out / "index.html", out / "searchindex.js"]
    is_ours = all(mark.is_file() for mark in marks)
    require(is_ours or not out.exists() or not any(out.iterdir()), f"{out} holds other files than a site: choose --out")
    tutorials = {script.stem: _shown(script, bare_notebooks) for script in notebooks.scripts()}
    with tempfile.TemporaryDirectory() as folder:
        source, pages = Path(folder, "source"), Path(folder, "site")
        stage(source)
        for name, path in tutorials.items():
            shutil.copy2(path, source / "tutorials" / f"{name}.ipynb")
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "2", "-c", str(source / "docs")]
        variables = os.environ | {"SITE_ROOT": str(ROOT), "SITE_SOURCE": str(source)}
        done = subprocess.run(
            [*command, "-d", str(Path(folder, "doctrees")), str(source), str(pages)],
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ConfigError(
                f"Sphinx does not build the site: {done.stderr.strip().replace(str(source) + os.sep, '')}"
            )
        report = Path(ROOT, "report")
        table = results_table.data(_index(report), report, pages / "_images")
        (pages / results_table.DATA).write_bytes(table)
        if is_ours:
            shutil.rmtree(out)
        shutil.copytree(pages, out, dirs_exist_ok=True)


def _shown(script: Path, bare: bool) -> Path:
    """The notebook of a tutorial that the site shows: the executed one, unless it is to be bare."""
    path = script.with_suffix(".ipynb") if bare else notebooks.executed(script)
    how = "`make notebooks` makes it" if bare else "`make notebooks` executes it, --bare_notebooks shows it as it is"
    require(path.is_file(), f"the notebook of tutorials/{script.name} is not there: {how}")
    return path


def stage(source: Path) -> None:
    """Copies the pages into a folder, with the layout of the repository, so that links between them hold.

    Links to other files of the repository become their paths, and the list of the reference's pages its contents.
    """
    source.mkdir()
    (source / "tutorials").mkdir()
    for name in PAGES:
        place = Path(ROOT, name)
        if place.is_dir():
            shutil.copytree(place, source / name, ignore=shutil.ignore_patterns("drawn", "__pycache__"))
        else:
            shutil.copy2(place, source / name)
    _lead_to_the_results_table(source)
    for page in source.rglob("*.md"):
        text = within(page, source, page.read_text(encoding="utf-8"))
        page.write_text(STATE.sub(r'<a href="\2.html#\3">\1</a>', text), encoding="utf-8")
    listed = "\n".join(f"reference/{page.stem}" for page in in_order(source / "docs" / "reference.md"))
    with (source / "docs" / "reference.md").open("a", encoding="utf-8") as file:
        file.write(f"\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n")


def _lead_to_the_results_table(source: Path) -> None:
    index = _index(source / "report")
    table = source / results_table.PAGE
    table.write_text(results_table.with_rows(table.read_text(encoding="utf-8"), index), encoding="utf-8")
    for entry in index["pages"]:
        if entry["study"] is None:
            continue
        page, note = source / "report" / entry["path"], entry["id"].partition("notes/")[2]
        written = Path(ROOT, "studies", entry["study"]) / (f"note_{note}.md" if note else "page.md")
        link = os.path.relpath(table.with_suffix(".html"), page.parent)
        text = results_table.with_links(page.read_text("utf-8"), written.read_text("utf-8"), index, link)
        page.write_text(text, encoding="utf-8")


def _index(report: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((report / "index.json").read_text(encoding="utf-8"))
    return found


def within(page: Path, source: Path, text: str) -> str:
    """A page whose links to files that are no part of the site are replaced by what they name."""

    def named(link: re.Match[str]) -> str:
        said, target = link.groups()
        path = target.partition("#")[0]
        if not path or "://" in target or (page.parent / path).is_file():
            return link[0]
        inside = os.path.relpath(page.parent / path, source)
        return said if inside in said else f"{said} (`{inside}`)"

    return re.sub(r"(?<!!)\[([^]\[]*)\]\(([^)\s]+)\)", named, text)


def in_order(page: Path) -> Iterator[Path]:
    """The pages that a list of links names."""
    for target in re.findall(r"^- \[.*\]\((.*\.md)\)$", page.read_text(encoding="utf-8"), re.M):
        yield page.parent / target


if __name__ == "__main__":
    cli.launch(main)
