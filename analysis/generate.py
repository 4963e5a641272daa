"""Continues a prompt with a run on text, and says how likely the run finds the prompt.

python -m analysis.generate --run RUN --prompt TEXT [--symbols N] [--seed S] [--temperature T]

The loss of a symbol is -log p in nats, given the symbols before it, and a symbol is drawn with probabilities in
proportion to p^(1/T). A model reads `num_tokens` - 1 symbols at most: of longer text it sees the last so many before
each symbol. The first symbol of a prompt has none before it, and no loss.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis import vocabulary
from icl_lab.analysis.command import Command
from icl_lab.analysis.loaded_run import LoadedRun, load_run
from icl_lab.families.tokens.task import as_batch, of_all, of_next
from icl_lab.lab import cli
from icl_lab.lab.flag_types import SEED, Number, Whole
from icl_lab.src.checks import require
from icl_lab.store.rundir import read_config

HOTTEST = 100.0  # where all symbols are as likely to two digits
SYMBOLS = 200


def prompt_losses(loaded: LoadedRun, symbols: Sequence[int]) -> np.ndarray:
    """-log p [n - 1] of the second to the last of n symbols, each given those before it that the model can read."""
    length = loaded.config.data.num_tokens
    windows = np.lib.stride_tricks.sliding_window_view(_padded(symbols, length), length)
    batch = as_batch(windows, loaded.config.data)
    found = -of_next(loaded.model, loaded.params, batch, loaded.config.data.num_symbols)
    losses: np.ndarray = np.concatenate([found[0], found[1:, -1]])[: len(symbols) - 1]
    return losses


def next_log_probabilities(loaded: LoadedRun, symbols: Sequence[int]) -> np.ndarray:
    """log p [k] of what follows symbols, of which the model reads the last `num_tokens` - 1."""
    length = loaded.config.data.num_tokens
    read = symbols[-(length - 1) :]
    batch = as_batch(_padded(read, length)[None], loaded.config.data)
    found: np.ndarray = of_all(loaded.model, loaded.params, batch)[0, len(read) - 1]
    return found


def _padded(symbols: Sequence[int], length: int) -> np.ndarray:
    """At least so many symbols: what stands behind the last one changes nothing that a causal model says before it."""
    return np.array([*symbols, *[0] * (length - len(symbols))], np.int32)


def continuation(
    loaded: LoadedRun, symbols: Sequence[int], count: int, seed: int = 0, temperature: float = 1.0
) -> list[int]:
    """So many symbols behind these, one after another; at temperature 0 each is the most likely one."""
    draw, found = np.random.default_rng(seed), list(symbols)
    for _ in range(count):
        said = next_log_probabilities(loaded, found)
        if temperature > 0:  # the largest of log p / T with Gumbel noise is drawn in proportion to p^(1/T)
            said = said / temperature + draw.gumbel(size=len(said))
        found.append(int(said.argmax()))
    return found[len(symbols) :]


# --- the command ---


def measure(directory: Path, flags: argparse.Namespace) -> Iterator[dict[str, Any] | str]:
    """The loss of each symbol of the prompt, their mean, and the continuation."""
    config: Any = read_config(directory)
    data = config.data
    require(data.source == "text", f"{directory} is a run on {data.source}; only a run on text generates text")
    known = vocabulary.read(directory, data.num_symbols)
    symbols = known.encode(flags.prompt).tolist()
    loaded = load_run(directory)
    losses = prompt_losses(loaded, symbols)
    yield f"prompt: {len(symbols)} symbol{'s' * (len(symbols) > 1)}, the loss of each in nats"
    width = max(len(repr(known.symbols[symbol])) for symbol in symbols)
    for symbol, loss in zip(symbols, ["none: nothing is before it", *losses], strict=True):
        yield {f"  {known.symbols[symbol]!r:{width}}": loss}
    if len(losses):
        yield {f"  mean of {len(losses)}:": losses.mean()}
    found = continuation(loaded, symbols, flags.symbols, flags.seed, flags.temperature)
    yield f"continuation: {len(found)} symbols at temperature {flags.temperature:g}, seed {flags.seed}"
    yield from (flags.prompt + known.decode(found)).split("\n")


def add_flags(parser: cli.Parser) -> None:
    """The prompt, and how it is gone on from."""
    parser.add_argument("--prompt", required=True, help="text to continue")
    parser.add_argument("--symbols", type=Whole(1, 100_000), default=SYMBOLS, help="number of symbols to generate")
    parser.add_argument("--seed", type=SEED, default=0, help="seed of the draws")
    parser.add_argument(
        "--temperature",
        type=Number(0, HOTTEST),
        default=1.0,
        help="softmax temperature; 0: always the most likely symbol; 1: the model's own probabilities",
    )


def check(flags: argparse.Namespace) -> None:
    """`ConfigError` for an empty prompt."""
    require(flags.prompt != "", "--prompt is empty; a model goes on from at least one character")


COMMAND = Command(
    "generate", "Continues a prompt with a run that was trained on text.", measure, add_flags, check, locks=True
)

if __name__ == "__main__":
    COMMAND.launch()
