"""The vocabulary of a run on text, which the run keeps: its text may be gone when it is asked to go on."""

from __future__ import annotations

from pathlib import Path

from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.families.tokens.bpe import Vocabulary
from icl_lab.families.tokens.sources import check_unchanged
from icl_lab.families.tokens.text import text_of
from icl_lab.store import layout
from icl_lab.store.atomic import write_json
from icl_lab.store.readers import StoreError, expecting, read_json


def write(loaded: LoadedRun) -> None:
    """Writes vocabulary.json: `letters`, and `merges`, the numbers of the two symbols that each further one is of."""
    check_unchanged(loaded.config)
    data = loaded.config.data
    found = text_of(data.file, data.num_symbols).vocabulary
    merges = [f"{one} {two}" for one, two in found.merges]
    write_json(loaded.run / layout.VOCABULARY, {"letters": found.letters, "merges": merges})


def read(run: Path, num_symbols: int) -> Vocabulary:
    """The vocabulary of a run, of so many symbols; `StoreError` where the file is missing, or is none."""
    path = run / layout.VOCABULARY
    if not path.exists():
        raise StoreError(f"{path} is missing; it says what the numbers of the run's symbols mean")
    values = read_json(path)
    with expecting(path, "a vocabulary"):
        letters = values["letters"]
        merges = []
        for place, words in enumerate(values["merges"], start=len(letters)):
            one, two = map(int, words.split())
            if not (0 <= one < place and 0 <= two < place):
                raise ValueError
            merges.append((one, two))
        if len(set(letters)) < len(letters) or not all(len(letter) == 1 for letter in letters):
            raise ValueError
        found = Vocabulary.of(letters, merges)
    if len(found.symbols) != num_symbols:
        raise StoreError(f"{path} has {len(found.symbols)} symbols, but the run has {num_symbols}")
    return found
