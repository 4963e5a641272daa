"""Finds which heads and positions carry a run's prediction, by patching and ablating activations.

python -m analysis.interventions --run RUN [--corruption labels] [--metric prediction]

Activations of clean contexts are put into corrupted ones and back, at each head and at each position of each layer's
stream, and each head, MLP and block is ablated on the clean ones. Writes analysis/interventions.csv,
analysis/ablations.csv and figs/interventions.png.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from icl_lab.analysis.command import Command
from icl_lab.analysis.interventions.metrics import PREDICTION, check_metric
from icl_lab.analysis.interventions.pairs import CORRUPTIONS, FEWEST, pairs_from_files, pairs_of
from icl_lab.analysis.interventions.tables import ablation_table, patching_table
from icl_lab.analysis.run import Run
from icl_lab.lab import cli
from icl_lab.lab.flag_types import POSITIVE, SEED, Whole
from icl_lab.plots.interventions import draw_interventions
from icl_lab.src.checks import require
from icl_lab.store import layout
from icl_lab.store.atomic import write_csv
from icl_lab.store.outputs import in_path

PAIRS = Whole(FEWEST, 2**16, "contexts are in memory at once")
POSITION = Whole(-(2**16), 2**16)
SITES = ("layer", "head", "position")
SHOWN = 3  # of the largest shares of a table, that are printed


def measure(directory: Path, flags: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Measures both tables, writes and draws them, and prints the largest numbers of each."""
    run = Run(directory)
    if flags.clean is None:
        pairs = pairs_of(run, flags.corruption, flags.pairs, flags.seed, flags.sigma, flags.position)
        what = flags.corruption
    else:
        pairs = pairs_from_files(run, flags.clean, flags.corrupted)
        what = f"{flags.corrupted.name} for {flags.clean.name}"
    patched = patching_table(run, pairs, flags.metric, flags.position)
    ablated = ablation_table(run, pairs.clean, flags.metric, flags.position)
    patched.insert(1, "corruption", what)
    for name, table in {layout.INTERVENTIONS: patched, layout.ABLATIONS: ablated}.items():
        write_csv(directory / name, table.astype(object).where(table.notna(), None).to_dict("records"))
    draw_interventions(directory)
    yield from _largest(patched, ["table", "direction"], "share")
    yield from _largest(ablated, ["table", "ablation"], "change")
    reasons = patched["reason"][patched["reason"] != ""].unique()
    yield from ({"null": reason} for reason in reasons)


def _largest(table: Any, by: list[str], value: str) -> Iterator[dict[str, Any]]:
    """The rows with the largest values of each part of a table."""
    import pandas as pd

    for names, part in table.groupby(by, sort=False):
        known = part[part[value].notna()]
        for _, row in known.loc[known[value].abs().sort_values(ascending=False).index].head(SHOWN).iterrows():
            site = {name: int(row[name]) for name in SITES if name in row and not pd.isna(row[name])}
            yield {f"{names[0]}, {names[1]}:": "", **site, value: row[value], "low": row["low"], "high": row["high"]}


def check(flags: argparse.Namespace) -> None:
    """`ConfigError` for a metric that is none, and for one file of two."""
    check_metric(flags.metric)
    both = (flags.clean is None) == (flags.corrupted is None)
    require(both, "--clean and --corrupted must be given together: each holds one context of every pair")


def add_flags(parser: cli.Parser) -> None:
    """The pairs and the metric."""
    text = "what differs between the two contexts of a pair"
    parser.add_argument("--corruption", choices=CORRUPTIONS, default="labels", help=text)
    parser.add_argument("--pairs", type=PAIRS, default=200, help="number of pairs of contexts to draw")
    parser.add_argument("--seed", type=SEED, default=0, help="seed of the contexts")
    parser.add_argument(
        "--sigma",
        type=POSITIVE,
        default=1.0,
        help="standard deviation of the noise on the labels, for --corruption noise",
    )
    parser.add_argument("--clean", type=in_path, help="clean contexts of your own (NPZ), with --corrupted")
    parser.add_argument("--corrupted", type=in_path, help="corrupted contexts, as many and as long as the clean ones")
    parser.add_argument(
        "--metric", default=PREDICTION, help="what is measured: prediction, squared_error, or the name of a baseline"
    )
    parser.add_argument("--position", type=POSITION, default=-1, help="the pair that is predicted; -1: the last")


COMMAND = Command("interventions", "Patches activations between contexts, and ablates them.", measure, add_flags, check)

if __name__ == "__main__":
    COMMAND.launch()
