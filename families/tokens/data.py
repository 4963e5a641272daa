"""The frozen config of sequences of symbols: what this folder's functions take. Every value is checked here."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from icl_lab.src.checks import TOO_MANY, ConfigError, require
from icl_lab.src.fields import check_fields, field

MOST_ROWS = 2**16  # of a chain, k^n: all are in memory for every sequence
MOST_SYMBOLS = 5000
FEWEST_PIECES = 256  # of the vocabulary of a text
SOURCES = ("markov", "triggers", "text")

# which source a field is of; others are of all
OF_SOURCE = {
    "chain_order": ("markov",),
    "concentration": ("markov",),
    "num_chains": ("markov",),
    "trigger_rate": ("triggers",),
    "file": ("triggers", "text"),
    "repeated_share": ("text",),
    "shortest_repeat": ("text",),
}


@dataclass(frozen=True)
class TokenData:
    """Sequences of `num_tokens` symbols, of which all but the first are predicted.

    markov: chains, each with `num_symbols`^`chain_order` rows from a symmetric Dirichlet distribution; of `num_chains`
    each sequence has one, and of infinitely many its own. text: windows of a text, in a vocabulary of `num_symbols`
    pieces. triggers: the bigrams of the text's `num_symbols` most frequent characters, and in each sequence symbols
    that one symbol of their own always follows. With a `start_token` a symbol of its own stands before every sequence.
    """

    source: str = field("markov", "source of the sequences", names=SOURCES)
    num_symbols: int = field(3, "number of distinct symbols, k; text: size of its vocabulary", least=2)
    num_tokens: int = field(64, "symbols in a sequence, T", least=2)
    chain_order: int = field(1, "markov: number of previous symbols that the next one depends on", least=1)
    concentration: float = field(
        1.0,
        "markov: parameter of the Dirichlet prior of each row of the transition matrix",
        low=0,
        high=1000,
        open_low=True,
    )
    num_chains: float = field(math.inf, "markov: chains in the pool, M; inf draws a fresh one for each sequence")
    trigger_rate: float = field(0.15, "triggers: probability that a symbol is a trigger", low=0, high=1)
    file: str = field("", "text and triggers: a text file, or a folder of text files; empty: the built-in sample text")
    repeated_share: float = field(
        0.0, "text: fraction of training windows that are replaced by repeated random symbols", low=0, high=1
    )
    shortest_repeat: int = field(
        0,
        "text: shortest period of repeated random symbols; 0: always half a window, so that distance alone suffices",
    )
    start_token: bool = field(False, "begin every sequence with an additional start symbol")

    def __post_init__(self) -> None:
        check_fields(self)
        half = -(-self.num_tokens // 2)
        require(
            self.shortest_repeat <= half,
            f"shortest_repeat is {self.shortest_repeat}; it must be at most {half}, half of a sequence",
        )
        for each in dataclasses.fields(self):
            value = getattr(self, each.name)
            if each.name in self.without_meaning and value != each.default:
                raise ConfigError(f"{each.name} is {value}, but has no meaning for sequences of {self.source}")
        require(
            self.num_symbols <= MOST_SYMBOLS, f"num_symbols is {self.num_symbols}; it must be at most {MOST_SYMBOLS}"
        )
        require(
            self.source != "text" or self.num_symbols >= FEWEST_PIECES,
            f"num_symbols is {self.num_symbols}; the vocabulary of a text has {FEWEST_PIECES} to {MOST_SYMBOLS} pieces",
        )
        require(
            self.chain_order < self.num_tokens,
            f"chain_order is {self.chain_order}; a sequence of {self.num_tokens} symbols has none to predict",
        )
        rows = self.num_symbols**self.chain_order
        require(
            rows <= MOST_ROWS,
            f"chain_order {self.chain_order} and num_symbols {self.num_symbols} give {rows} rows of "
            "probabilities, too many",
        )
        require(
            self.shortest_repeat == 0 or (self.shortest_repeat >= 2 and self.repeated_share > 0),
            f"shortest_repeat is {self.shortest_repeat}; it must be 0, or at least 2 where repeated_share is above 0",
        )
        if self.num_chains != math.inf:
            whole = isinstance(self.num_chains, int) and 1 <= self.num_chains < TOO_MANY
            require(whole, f"num_chains is {self.num_chains}; it must be a whole number from 1 to 2^31 - 1, or inf")

    @property
    def without_meaning(self) -> list[str]:
        """Fields of other sources."""
        return [name for name, sources in OF_SOURCE.items() if self.source not in sources]

    @property
    def rows(self) -> int:
        """Rows that a model reads."""
        return self.num_tokens - 1 + int(self.start_token)
