"""Text as sequences of symbols: the vocabulary of a file or folder, its training text, and windows that are held out.

Training windows begin anywhere in the training text. Held-out windows do not overlap: of each held-out block every
other one is of the evaluation set, the rest of the test set; those of whole texts are a set of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.families.cache import cached
from icl_lab.families.tokens.bpe import Pair, Vocabulary, vocabulary_of
from icl_lab.families.tokens.corpus import Corpus, corpus_of, stamp
from icl_lab.families.tokens.kneser_ney import KneserNey
from icl_lab.src.checks import require
from icl_lab.src.prng import Purpose, purpose_key

SAMPLE = Path(__file__).parent / "sample"  # Genesis and Macbeth, which are in the public domain
HIGHEST_ORDER = 5  # of Kneser-Ney
LEAST_WINDOWS = 4  # of the held-out blocks: two for each set
LONGER = "num_tokens must be smaller, or the text longer"

Pieces = tuple[np.ndarray, ...]


class Text(NamedTuple):
    """A text in symbols: the pieces that are trained on, held-out blocks of the same texts, and whole texts."""

    vocabulary: Vocabulary
    train: Pieces
    blocks: Pieces
    whole: Pieces


def place_of(file: str) -> Path:
    """Where the text of a config lies."""
    return Path(file) if file else SAMPLE


def corpus_in(file: str) -> Corpus:
    """The corpus of a config's file, read once as long as nothing changes there."""
    place = place_of(file)
    return _corpus(place, stamp(place))


@lru_cache(maxsize=4)
def _corpus(place: Path, state: tuple[tuple[str, int, int], ...]) -> Corpus:
    return corpus_of(place)


def text_of(file: str, num_symbols: int) -> Text:
    """The text of a config's file in a vocabulary of so many pieces; `ConfigError` where there are not so many."""
    corpus = corpus_in(file)
    return _text(corpus, num_symbols)


@lru_cache(maxsize=4)
def _text(corpus: Corpus, num_symbols: int) -> Text:
    return cached("tokens", f"text {corpus.digest} {num_symbols}", lambda: _made(corpus, num_symbols), _written, _read)


def _made(corpus: Corpus, num_symbols: int) -> Text:
    """Pieces are of the training text, but every character is known."""
    held_out = "".join((*corpus.blocks, *corpus.whole))
    vocabulary = vocabulary_of("\n".join(corpus.train), num_symbols, held_out)
    encoded = (tuple(vocabulary.encode(piece) for piece in pieces) for pieces in corpus[:3])
    return Text(vocabulary, *encoded)


def _written(text: Text) -> Mapping[str, np.ndarray]:
    arrays = {
        "letters": np.frombuffer("".join(text.vocabulary.letters).encode("utf-32-le"), np.uint32),
        "merges": np.array(text.vocabulary.merges, np.int32).reshape(-1, 2),
    }
    for name in ("train", "blocks", "whole"):
        pieces: Pieces = getattr(text, name)
        arrays[name] = np.concatenate([*pieces, np.zeros(0, np.int32)]).astype(np.int16)
        arrays[f"{name}.lengths"] = np.array([len(piece) for piece in pieces], np.int64)
    return arrays


def _read(arrays: Mapping[str, np.ndarray]) -> Text:
    letters = arrays["letters"].tobytes().decode("utf-32-le")
    merges: tuple[Pair, ...] = tuple((int(one), int(two)) for one, two in arrays["merges"])
    parts = []
    for name in ("train", "blocks", "whole"):
        ends = np.cumsum(arrays[f"{name}.lengths"])
        if len(arrays[name]) != (ends[-1] if len(ends) else 0):
            raise ValueError("it is of other lengths")
        parts.append(tuple(np.split(arrays[name].astype(np.int32), ends[:-1])) if len(ends) else ())
    return Text(Vocabulary.of(letters, merges), *parts)


# --- windows ---


def stored(text: Text, num_tokens: int) -> dict[str, np.ndarray]:
    """The training text as programs take it: symbols [N], where pieces start, and how many windows are before each."""
    pieces = [piece for piece in text.train if len(piece) >= num_tokens]
    require(bool(pieces), f"no passage of the training text has {num_tokens} symbols; {LONGER}")
    lengths = np.array([len(piece) for piece in pieces])
    return {
        "symbols": np.concatenate(pieces).astype(np.int32),
        "starts": (np.cumsum(lengths) - lengths).astype(np.int32),
        "windows": np.append(0, np.cumsum(lengths - num_tokens + 1)).astype(np.int32),
    }


def windows(key: Array, shared: Mapping[str, Array], count: int, num_tokens: int) -> Array:
    """Windows [B, T] of the training text, each of its places as likely."""
    places = jax.random.randint(purpose_key(key, Purpose.INPUT), (count,), 0, shared["windows"][-1])
    piece = jnp.searchsorted(shared["windows"], places, side="right") - 1
    first = shared["starts"][piece] + places - shared["windows"][piece]
    found: Array = shared["symbols"][first[:, None] + jnp.arange(num_tokens)[None]]
    return found


def with_repeated(key: Array, x: Array, share: float, num_symbols: int, shortest: int = 0) -> Array:
    """Windows [B, T] of which about a `share` is replaced by random symbols that come again and again, [r][r]...

    |r| is half of T (of odd T one more), or with `shortest` uniform from that to half of T, of each window its own.
    Where |r| is always the same, a head can copy by distance alone, and need not look at any symbol.
    """
    half = -(-x.shape[1] // 2)
    random = jax.random.randint(purpose_key(key, Purpose.TASK), (len(x), half), 0, num_symbols)
    chosen = jax.random.bernoulli(purpose_key(key, Purpose.CHOICE), share, (len(x), 1))
    again = jnp.concatenate([random, random], axis=1)[:, : x.shape[1]]
    if shortest:
        lengths = jax.random.randint(purpose_key(key, Purpose.DISTRACTOR_PLACE), (len(x), 1), shortest, half + 1)
        again = jnp.take_along_axis(random, jnp.arange(x.shape[1])[None] % lengths, axis=1)
    return jnp.where(chosen, again, x)


def divided(pieces: Sequence[np.ndarray], num_tokens: int) -> np.ndarray:
    """All windows [B, T] of pieces that do not overlap, in the order of the text."""
    rows = [piece[: len(piece) // num_tokens * num_tokens].reshape(-1, num_tokens) for piece in pieces]
    return np.concatenate([*rows, np.zeros((0, num_tokens), np.int32)]).astype(np.int32)


def held_out(text: Text, num_tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """The windows [B, T] of the evaluation and of the test set; `ConfigError` if there are too few."""
    found = divided(text.blocks, num_tokens)
    require(
        len(found) >= LEAST_WINDOWS,
        f"the held-out text has fewer than {LEAST_WINDOWS} windows of {num_tokens} symbols; {LONGER}",
    )
    return found[::2], found[1::2]


def spread(found: np.ndarray, count: int) -> np.ndarray:
    """At most so many of the windows, from all over the text."""
    return found if len(found) <= count else found[np.linspace(0, len(found) - 1, count).round().astype(int)]


# --- counts of the training text ---


def kneser_ney_of(file: str, num_symbols: int, order: int) -> KneserNey:
    """Counts of a config's training text."""
    return _kneser_ney(corpus_in(file), num_symbols, order)


@lru_cache(maxsize=2 * HIGHEST_ORDER)
def _kneser_ney(corpus: Corpus, num_symbols: int, order: int) -> KneserNey:
    return KneserNey(np.concatenate(_text(corpus, num_symbols).train), num_symbols, order)


def most_frequent(corpus: Corpus, count: int) -> np.ndarray:
    """The training text [N] in its `count` most frequent characters, the most frequent first; others are left out."""
    letters, numbers, times = np.unique(
        np.frombuffer("".join(corpus.train).encode("utf-32-le"), np.uint32), return_inverse=True, return_counts=True
    )
    require(len(letters) >= count, f"num_symbols is {count}, but the text has only {len(letters)} distinct characters")
    rank = np.argsort(np.argsort(-times, kind="stable"), kind="stable")
    found = rank[numbers]
    return np.asarray(found[found < count], np.int32)
