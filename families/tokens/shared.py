"""What a text gives to all runs on it: the arrays that programs take, by the field `source`, and what is hashed."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from icl_lab.families.tokens import text, triggers
from icl_lab.families.tokens.data import TokenData


@lru_cache(maxsize=4)
def _language(digest: str, file: str, num_symbols: int) -> triggers.Language:
    return triggers.language_of(text.most_frequent(text.corpus_in(file), num_symbols), num_symbols)


def language_of(data: TokenData) -> triggers.Language:
    """The language of the most frequent characters of a text."""
    return _language(text.corpus_in(data.file).digest, data.file, data.num_symbols)


def shared_arrays(data: TokenData) -> dict[str, np.ndarray]:
    """Of text the training text; of triggers the language's bigrams, and how likely each symbol comes first."""
    if data.source == "text":
        return text.stored(text.text_of(data.file, data.num_symbols), data.num_tokens)
    return {name: np.asarray(array) for name, array in language_of(data)._asdict().items()}


def hashed(data: TokenData) -> np.ndarray:
    """What is hashed in place of these arrays: the text."""
    return np.frombuffer(bytes.fromhex(text.corpus_in(data.file).digest), np.uint8)
