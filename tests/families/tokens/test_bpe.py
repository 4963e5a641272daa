"""Byte-pair encoding: exact round trips, merges by hand, and what has too few pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_lab.families.tokens import bpe
from icl_lab.src.checks import ConfigError

TEXT = ("low lower lowest newer newest wide wider widest, 1999 and 2001; " * 3 + "\n\tso it goes.  ") * 40
LETTERS = "".join(chr(code) for code in range(0x100, 0x1F0))  # as many characters as make a vocabulary


def test_the_first_merges_are_the_most_frequent_pairs() -> None:
    found = bpe.vocabulary_of(TEXT + LETTERS, 275)
    characters = len(set(TEXT + LETTERS))
    assert found.symbols[:characters] == tuple(sorted(set(TEXT + LETTERS)))
    made = found.symbols[characters:]
    # " w" comes 3 times in each line, "we" 4 times, "wi" 3 times, "lo" 3 times: counted in words with their spaces
    pieces = [piece for piece in bpe.PIECES.findall(TEXT) if len(piece) > 1]
    counts = {a + b: sum(piece.count(a + b) for piece in pieces) for a in "lowerst nid" for b in "lowerst nid"}
    assert counts[made[0]] == max(counts.values())
    assert len(found.symbols) == 275 == characters + len(found.merges)
    for (one, other), symbol in zip(found.merges, made, strict=True):
        assert found.symbols[one] + found.symbols[other] == symbol


@given(st.text(alphabet=sorted(set(TEXT + LETTERS)), max_size=200))
def test_every_text_of_known_characters_comes_back(text: str) -> None:
    found = bpe.vocabulary_of(TEXT + LETTERS, 290)
    assert found.decode(found.encode(text)) == text


def test_a_text_is_shorter_in_symbols_and_as_training_left_it() -> None:
    found = bpe.vocabulary_of(TEXT + LETTERS, 300)
    numbers = found.encode(TEXT)
    assert len(numbers) < 0.4 * len(TEXT)
    assert found.decode(numbers) == TEXT
    assert {piece: found.decode(found.encode(piece)) for piece in ("low", " lowest")} == {
        "low": "low",
        " lowest": " lowest",
    }
    assert found.encode("").shape == (0,)


@pytest.mark.parametrize(
    ("text", "size", "words"),
    [
        (TEXT, 255, "num_symbols is 255; the vocabulary of a text has 256 to 5000 pieces"),
        (TEXT, 5001, "num_symbols is 5001; the vocabulary of a text has 256 to 5000 pieces"),
        ("a" * 5000, 256, "all characters of the text are the same; a model needs two to tell apart"),
        (
            LETTERS * 2 + "0123456789" * 3 + "abcdefghijklmnop",
            256,
            "but the text has 266 distinct characters; raise num_symbols",
        ),
        ("ab ab ab", 256, "but the text has only 5 distinct pieces"),
    ],
)
def test_what_makes_no_vocabulary_is_refused(text: str, size: int, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        bpe.vocabulary_of(text, size)


def test_a_character_that_the_corpus_lacks_is_named() -> None:
    with pytest.raises(ConfigError, match="'Z' does not occur in the text that the vocabulary was made from"):
        bpe.vocabulary_of(TEXT + LETTERS, 270).encode("low Z")
