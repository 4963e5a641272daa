"""What is trained for the claims of sequences of symbols, and what is measured in each run.

Seeds 0 to 5 were pilots. Controls train as long as what they control. Runs on text need the folder `corpus`, which
`make text-corpus` fetches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

from icl_lab.analysis.llc.settings import Settings
from icl_lab.store import layout
from icl_lab.store.lock import locked
from icl_lab.studies.runs import Runs, fresh

CORPUS = "corpus"
CHAINS = (1, 4, 16, 64, 256, 1024)  # of a pool
# records close to each other where phases follow each other
PHASES = {"eval_every": 25, "log_records": 12}
LAYER_NORM = {"start_token": True, "steps": 2500} | PHASES
ON_TEXT = {"file": CORPUS}
# a quarter of the windows are [r][r] of always the same length: what was trained first
AT_ONE_DISTANCE = {"repeated_share": 0.25, "shortest_repeat": 0, "batch_size": 16, "steps": 1500}
# 16 600 steps of 32 windows are 68 million symbols, 21 times the training text
LONG = ON_TEXT | {"batch_size": 32, "steps": 16_600, "eval_every": 500, "patience": 2}
# an estimate takes about a minute of a core; those of pilot 0 had mixed, but were off a minimum
LLC = Settings(eps=None, chains=4, burn_in=150, draws=300, tasks=256, batch_size=32)
LLC_STEPS = "log:10:20"

RUNS: dict[str, Runs] = {
    # Markov chains
    "markov": Runs("markov", PHASES, fresh(60)),
    "markov_one_layer": Runs("markov", PHASES | {"num_layers": 1}, fresh(61)),
    "no_start": Runs("markov", PHASES | {"start_token": False}, fresh(62)),
    "small_tables": Runs("markov_plateau", LAYER_NORM, fresh(63)),
    "large_tables": Runs("markov_plateau", LAYER_NORM | {"embedding_std": 0.0}, fresh(63)),
    "sparse_chains": Runs("markov", {"concentration": 0.3}, fresh(64)),
    "dense_chains": Runs("markov", {"concentration": 3.0}, fresh(65)),
    "pools_of_chains": Runs("markov", {"steps": 3000, "eval_every": 500}, fresh(66), {"num_chains": CHAINS}),
    # phases and the local learning coefficient
    "developing": Runs("markov", PHASES, fresh(72)),
    # triggers
    "triggers": Runs("triggers", {}, fresh(67)),
    "triggers_one_layer": Runs("triggers", {"num_layers": 1}, fresh(68)),
    # text
    "text": Runs("text", ON_TEXT, fresh(69), needs=CORPUS),
    "text_control": Runs("text_control", ON_TEXT | AT_ONE_DISTANCE, fresh(70), needs=CORPUS),
    "text_repeats": Runs("text_control", ON_TEXT, fresh(73), needs=CORPUS),
    "text_long": Runs("text", LONG, fresh(71, 3), needs=CORPUS),
}


def _developed(run: Path) -> None:
    """The metrics over training, in its analysis/."""
    from icl_lab.analysis.developmental_metrics import write
    from icl_lab.analysis.loaded_run import load_run
    from icl_lab.plots.training import draw_metrics

    with locked(run, timeout=math.inf):
        if not (run / layout.DEVELOPMENTAL_METRICS).exists():
            write(load_run(run), hessian=False, probes=2, seed=0)
            draw_metrics(run)


def _implied(run: Path) -> None:
    """The prior that its predictions imply, in its analysis/."""
    from icl_lab.analysis.implied_prior import write
    from icl_lab.analysis.loaded_run import load_run

    with locked(run, timeout=math.inf):
        if not (run / layout.IMPLIED_PRIOR).exists():
            write(load_run(run))


def _with_llc(run: Path) -> None:
    """The local learning coefficient over its training, in its analysis/."""
    from icl_lab.analysis.llc.checkpoints import estimate_run

    with locked(run, timeout=math.inf):
        for _ in estimate_run(run, LLC, LLC_STEPS):
            pass


ANALYSES: Mapping[str, Callable[[Path], None]] = {
    **dict.fromkeys(("markov", "sparse_chains", "dense_chains"), _implied),
    "developing": _with_llc,
    **dict.fromkeys(("triggers", "text", "text_control", "text_repeats", "text_long"), _developed),
}
