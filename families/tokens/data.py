"""The frozen config of sequences of symbols: what this folder's functions take. Every value is checked here."""

from __future__ import annotations

import math
from dataclasses import dataclass

from icl_lab.src.checks import TOO_MANY, require
from icl_lab.src.fields import check_fields, field

MOST_ROWS = 2**16  # of a chain, k^n: all are in memory for every sequence


@dataclass(frozen=True)
class TokenData:
    """Sequences of `num_tokens` symbols of Markov chains, of which all but the first are predicted.

    Each chain has `num_symbols`^`chain_order` rows from a symmetric Dirichlet distribution; of `num_chains` each
    sequence has one, and of infinitely many its own. With a `start_token` a symbol of its own stands before every
    sequence.
    """

    num_symbols: int = field(3, "symbols of a sequence, k", least=2)
    num_tokens: int = field(64, "symbols in a sequence, T", least=2)
    chain_order: int = field(1, "symbols that the next one depends on", least=1)
    concentration: float = field(
        1.0, "of the Dirichlet distribution of a chain's rows", low=0, high=1000, open_low=True
    )
    num_chains: float = field(math.inf, "chains in the pool, M; inf draws a fresh one for each sequence")
    start_token: bool = field(False, "a symbol of its own stands before every sequence")

    def __post_init__(self) -> None:
        check_fields(self)
        require(
            self.chain_order < self.num_tokens,
            f"chain_order is {self.chain_order}; a sequence of {self.num_tokens} symbols has none to predict",
        )
        rows = self.num_symbols**self.chain_order
        require(
            rows <= MOST_ROWS,
            f"chain_order {self.chain_order} and num_symbols {self.num_symbols} have {rows} rows, too many",
        )
        if self.num_chains != math.inf:
            whole = isinstance(self.num_chains, int) and 1 <= self.num_chains < TOO_MANY
            require(whole, f"num_chains is {self.num_chains}; it must be a whole number from 1 to 2^31 - 1, or inf")

    @property
    def rows(self) -> int:
        """Rows that a model reads."""
        return self.num_tokens - 1 + int(self.start_token)
