"""Runs of three families whose local learning coefficient is estimated while they train, and settings of a second."""

from pathlib import Path
from typing import Any

import pandas as pd

from icl_lab.store import layout
from tests.runners.tiny import LSA1, SINE, SINE_SIZES, SIZES, Done, Workshop

KEEPING = "--config.snapshots=true"
SETTINGS = {"chains": 3, "burn_in": 10, "draws": 40, "tasks": 128, "batch_size": 32}
EVERY_SECOND = 2  # record

DECODER_SIZES = (
    "--model hoogland --steps 40 --eval_every 10 --batch_size 32 --num_tasks 2 --config.eval_tasks=64 "
    "--config.test_tasks=200 --config.num_pairs=6 --config.dim=4"
).split()
FAMILIES: dict[str, tuple[str, list[str]]] = {
    "lsa1": (LSA1, SIZES),
    "sine": (SINE, [*SINE_SIZES, "--config.key_size=6"]),
    "decoder": ("runners.run_task_diversity", DECODER_SIZES),
}
OF_FAMILIES = ("lsa1", "sine", "decoder")


def words(prefix: str = "", **settings: Any) -> list[str]:
    """The flags of settings."""
    values = SETTINGS | settings
    return [word for name, value in values.items() for word in (f"--{prefix}{name}", str(value))]


def trained(workshop: Workshop, family: str) -> Path:
    """A finished run with snapshots and estimates at every second record. Read only."""
    module, sizes = FAMILIES[family]
    flags = [KEEPING, "--llc_every", EVERY_SECOND, *words("llc_")]
    return workshop.finished(f"llc_{family}", module, *flags, sizes=sizes)


def estimated(workshop: Workshop, run: Path, *flags: object, **environment: str) -> Done:
    """`analysis.llc` on a run with the small settings, which must succeed."""
    done = workshop.run("analysis.llc", "--run", run, *flags, **environment)
    assert done.returncode == 0, done.stderr
    return done


def table(run: Path) -> pd.DataFrame:
    """llc.csv."""
    return pd.read_csv(run / layout.LLC, keep_default_na=False, na_values=[""])
