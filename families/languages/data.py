"""Frozen configs of languages and of codes: what this folder's functions take. Every value is checked here."""

from __future__ import annotations

from dataclasses import dataclass

from icl_lab.lab.flag_types import SEED
from icl_lab.src.checks import finite, one_of, require
from icl_lab.src.fields import check_fields, field

NEGATIVES = ("random_hash", "random_abc", "other_language", "near_miss", "mixed")
ALIGNMENTS = ("left", "right")
MOST_LETTERS = 64
MOST_STATES = 512  # of a random automaton
MOST_STRINGS = 2**22  # of a language and a label
CODES = ("one_hot", "raw_index", "bigrams", "states", "autoencoder", "learned")
CODE_SCALES = ("whitened", "centred", "raw")
AUTOENCODER_INPUTS = ("one_hot", "raw_index")


@dataclass(frozen=True)
class LanguageData:
    """Membership in a language as a task: strings and labels, 1 for members, -1 for others.

    `languages`, of which each task has one, are regular expressions, names (`families.languages.named`) or `random`,
    that is `num_languages` automata of `num_states` states; `unseen_languages` are tested on alone. Strings are
    `min_length` to `max_length` symbols of `alphabet` (that of the expressions if empty), non-members as `negatives`
    says. A label is 1 with the chance `positive_share`. Of every language and label `pool_size` strings are drawn once,
    by the seed `pool_seed`; `test_share` of all strings are kept for the tests.
    """

    languages: tuple[str, ...] = field(
        ("a*bc*", "((a|b)c)*", "(abc?)*"), "regular expressions, tomita1 to tomita7, tomita, or random"
    )
    unseen_languages: tuple[str, ...] = field(("c*ba*", "((b|c)a)*", "(bca?)*"), "languages used only for testing")
    alphabet: str = field("", "symbols; empty: those of the expressions")
    num_languages: int = field(0, "how many random languages are trained on", least=0)
    num_unseen: int = field(0, "how many random languages are used only for testing", least=0)
    num_states: int = field(5, "states of a random automaton before minimisation", least=1)
    num_pairs: int = field(10, "number of pairs in a context (N) or in a sequence (K)", least=1)
    negatives: str = field(
        "other_language",
        "how non-member strings are made (default with a single language: random_abc)",
        names=NEGATIVES,
    )
    positive_share: float = field(0.5, "probability that a label is 1")
    min_length: int = field(1, "length of the shortest string", least=0)
    max_length: int = field(20, "length of the longest string", least=1)
    alignment: str = field("left", "which side of its padding a string is on", names=ALIGNMENTS)
    pool_size: int = field(4096, "strings in the pool, of each language and label", least=1)
    test_share: float = field(0.2, "fraction of all strings that is held out for testing")
    pool_seed: int = field(0, "seed of random languages, of strings and of the choice of test strings")

    def __post_init__(self) -> None:
        require(len(self.languages) > 0, "languages is empty; give at least one regular expression or name")
        check_fields(self)
        require(SEED.has(self.pool_seed), f"pool_seed is {self.pool_seed}; it must be {SEED}")
        for name, most in (("num_states", MOST_STATES), ("pool_size", MOST_STRINGS)):
            value = getattr(self, name)
            require(value <= most, f"{name} is {value}; it must be at most {most}, because all are kept in memory")
        require(
            self.min_length <= self.max_length,
            f"min_length is {self.min_length}; it must be at most max_length, {self.max_length}",
        )
        require(self.max_length <= MOST_LETTERS, f"max_length is {self.max_length}; it must be at most {MOST_LETTERS}")
        for name in ("positive_share", "test_share"):
            value = getattr(self, name)
            finite(name, value)
            require(0 < value < 1, f"{name} is {value}; it must be above 0 and below 1")
        for words, count, name in (
            (self.languages, self.num_languages, "num_languages"),
            (self.unseen_languages, self.num_unseen, "num_unseen"),
        ):
            drawn = "random" in words
            require(drawn == (count > 0), f"{name} is {count}; it must be above 0 with `random`, and 0 without")
        require(
            self.num_pairs <= self.pool_size,
            f"num_pairs is {self.num_pairs}; a pool has only {self.pool_size} strings of a language and a label",
        )


@dataclass(frozen=True)
class CodeConfig:
    """How a string becomes `dim` channels: its features, their scale, and whether a channel that is 1 stands behind.

    `autoencoder` is a run of its own, of `autoencoder_dim` channels and one of the `autoencoder_input`s; `learned` is
    an MLP of the model (`model.features`) on one-hot symbols, trained with it.
    """

    kind: str = field("one_hot", "how strings are encoded as vectors", names=CODES, checked=False)
    scale: str = field("whitened", "scaling of the code's features", names=CODE_SCALES, checked=False)
    dim: int = field(16, "channels of a code", least=1)
    constant: bool = field(False, "append a channel that is always 1")
    autoencoder_dim: int = field(16, "channels of the autoencoder's code", least=1)
    autoencoder_input: str = field("one_hot", "what the autoencoder reads", names=AUTOENCODER_INPUTS)

    def __post_init__(self) -> None:
        one_of("code", self.kind, CODES)
        one_of("code_scale", self.scale, CODE_SCALES)
        check_fields(self)
        require(
            self.kind != "autoencoder" or self.dim <= self.autoencoder_dim,
            f"code_dim is {self.dim}; the codes of the autoencoder have {self.autoencoder_dim} channels",
        )
