"""Flags, words and shared arrays of the pools of strings, which the families autoencoder and languages have alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from icl_lab.families.languages.data import LanguageData
from icl_lab.lab.configs.family import Flag, flag_of
from icl_lab.src.words import words_of

if TYPE_CHECKING:
    import numpy as np

DEFAULT = LanguageData()


LANGUAGE_FLAGS = (
    flag_of(DEFAULT, "data.negatives", text="how non-member strings are made"),
    flag_of(DEFAULT, "data.num_languages", text="how many random languages to train on, if --languages has `random`"),
    flag_of(DEFAULT, "data.max_length"),
    flag_of(DEFAULT, "data.min_length"),
    flag_of(DEFAULT, "data.alignment"),
    flag_of(DEFAULT, "data.pool_seed"),
)
LANGUAGE_LISTS = (
    Flag("languages", "data.languages", words_of, "regular expressions, tomita1 to tomita7, tomita (all), or random"),
    Flag(
        "unseen_languages",
        "data.unseen_languages",
        words_of,
        "languages used only for testing, given as in --languages",
    ),
)
FOLLOWS = {"data.negatives": ""}
ALONE_NEGATIVES = "random_abc"  # of a single language, which has no other whose members could be taken


def with_negatives(values: dict[str, Any]) -> dict[str, Any]:
    """Sets unset negatives: members of the other languages, of a single language random strings over its alphabet."""
    data = dict(values["data"])
    if data["negatives"] is None:
        data["negatives"] = ALONE_NEGATIVES if _is_alone(data) else DEFAULT.negatives
    return values | {"data": data}


def _is_alone(data: Mapping[str, Any]) -> bool:
    from icl_lab.families.languages.named import RANDOM, expand

    names = expand(tuple(data["languages"]))
    return len(names) == 1 and (names[0] != RANDOM or data["num_languages"] == 1)


def strings_lines(config: Any, summary: Mapping[str, Any]) -> list[str]:
    """The summary's lines on strings: the negatives, and how many distinct strings a set has of a language.

    Runs of earlier versions counted none.
    """
    data: LanguageData = config.data
    alone = " (of a single language)" if _is_alone(vars(data)) else ""
    counts: Mapping[str, Mapping[str, list[int]]] = summary.get("strings", {})
    sets = [f"{name} {_range(of['members'])} and {_range(of['non_members'])}" for name, of in counts.items()]
    counted = [f"distinct members and non-members of a language: {', '.join(sets)}"] if sets else []
    return [f"negatives {data.negatives}{alone}", *counted]


def _range(numbers: list[int]) -> str:
    return str(min(numbers)) if min(numbers) == max(numbers) else f"{min(numbers)} to {max(numbers)}"


def language_words(data: LanguageData) -> list[str]:
    """The pool of strings in words, as far as it differs from the default."""
    words = [data.negatives]
    if data.languages != DEFAULT.languages:
        words += [f"{data.num_languages}random" if data.num_languages else f"{len(data.languages)}languages"]
    if data.alignment != DEFAULT.alignment:
        words.append(data.alignment)
    return words


def pool_arrays(data: LanguageData) -> Mapping[str, np.ndarray]:
    """The strings of the training pool, placed among their pads, and its draws, which all runs of a pool share."""
    from icl_lab.families.languages.codes import aligned
    from icl_lab.families.languages.pools import alphabet, pools_of

    pool = pools_of(data).train
    strings = aligned(pool.strings, len(alphabet(data)), data.alignment)
    return {"strings": strings, "positives": pool.positives, "negatives": pool.negatives}
