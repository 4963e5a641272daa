"""The local learning coefficient while a run trains: at every K-th record, from the parameters in memory.

Nothing is saved or loaded for it, and the numbers are those of `python -m analysis.llc` on the run's snapshots, bit for
bit. docs/llc.md says what they mean.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from icl_lab.analysis.llc.settings import NAMES, Settings, settings_of
from icl_lab.analysis.llc.settings import add_flags as add_settings
from icl_lab.lab import cli
from icl_lab.lab.configs.run import RunConfig
from icl_lab.lab.flag_types import COUNT
from icl_lab.src.checks import ConfigError, require
from icl_lab.store import layout, rundir
from icl_lab.store.llc_rows import ESTIMATE, IN_RECORDS, NOT_COMPUTED, RECORDED, is_usable, said
from icl_lab.store.readers import StoreError, expecting

if TYPE_CHECKING:
    from icl_lab.analysis.llc.estimator import Estimator
    from icl_lab.runners.pack import Pack

PREFIX = IN_RECORDS  # of flags, and of names in a record
NOTE = "llc"  # in meta.json


class Llc(NamedTuple):
    """An estimate at one in `every` records, with these settings."""

    every: int
    settings: Settings


def add_flags(built: cli.Parser) -> None:
    """The flags of a runner, in a group of their own."""
    group = built.add_argument_group("local learning coefficient, during the training (docs/llc.md)")
    group.add_argument(f"--{PREFIX}every", type=COUNT, metavar="K", help="estimate the LLC at every K-th record")
    add_settings(group, PREFIX)
    built.needs("blackjax", when=lambda flags: getattr(flags, f"{PREFIX}sampler") == "hmc")


def from_flags(flags: argparse.Namespace) -> Llc | None:
    """What the flags ask for; `ConfigError` for settings that no chain can have, or without K."""
    every, settings = getattr(flags, f"{PREFIX}every"), settings_of(flags, PREFIX)
    if every is None:
        asked = [name for name in vars(flags) if name.startswith(PREFIX) and getattr(flags, name) is not None]
        first = asked[0].removeprefix(PREFIX) if asked else ""
        require(
            not asked, f"--{PREFIX}{NAMES.get(first, first)} has no effect without --{PREFIX}every K; give that too"
        )
        return None
    return Llc(every, settings)


def check(asked: Llc | None, run: Path, config: RunConfig) -> None:
    """`ConfigError` if the model of a config has no estimates, or no parameter that the mask is found in."""
    if asked is None:
        return
    from icl_lab.analysis.llc.estimator import check_mask, require_null_predictor
    from icl_lab.families.shared_arrays import arrays_of_model
    from icl_lab.families.task import model_of

    model = model_of(config, arrays_of_model(config, run))
    require_null_predictor(config, model)
    check_mask(model, asked.settings.mask)


# --- settings of a run that goes on ---


def note(asked: Llc | None) -> dict[str, Any]:
    """What meta.json has of a run's estimates: every and the settings; nothing without."""
    return {} if asked is None else {NOTE: {"every": asked.every, **asdict(asked.settings)}}


def check_resumed(asked: Llc | None, run: Path) -> None:
    """`StoreError` if a run that goes on began with other estimates: its metrics would mix them."""
    began = rundir.read_meta(run).get(NOTE, {})
    now = note(asked).get(NOTE, {})
    if began == now:
        return
    with expecting(run / layout.META, "a run's meta.json; --overwrite retrains the run"):
        defaults = asdict(Settings())
        flags = " ".join(f"--{PREFIX}{name} {value}" for name, value in began.items() if defaults.get(name) != value)
    was = f"with {flags}; give these to resume it" if began else f"without --{PREFIX}every; leave that out to resume it"
    raise StoreError(f"{run} was started {was}, or give --overwrite to retrain it")


# --- a run in training ---


class Watch:
    """Estimates the LLC of a pack's runs at the records that are due."""

    def __init__(self, asked: Llc | None):
        self.asked = asked
        self.estimators: dict[int, Estimator] = {}
        self.note = ""  # the last estimate, for the progress display

    def values(self, pack: Pack, index: int) -> dict[str, Any]:
        """The fields of a run's record: empty if no estimate is due; None for an estimate that is not defined.

        A `ConfigError` is raised at step 0; later it is recorded as the reason, and training continues.
        """
        if self.asked is None or not is_due(pack.record_steps, pack.step, self.asked.every):
            return {}
        row: dict[str, Any] = dict.fromkeys((*ESTIMATE, *RECORDED), math.nan)
        try:
            row, _ = self._estimator(pack, index)(pack.step, pack.params(index))
        except ConfigError as error:
            if pack.step == 0:
                raise
            row |= said([f"{NOT_COMPUTED}: {str(error).replace(';', ',')}"])
        self.note = short(row)
        return {
            name if name in ESTIMATE else f"{PREFIX}{name}": None
            if isinstance(row[name], float) and math.isnan(row[name])
            else row[name]
            for name in (*ESTIMATE, *RECORDED)
        }

    def _estimator(self, pack: Pack, index: int) -> Estimator:
        from icl_lab.analysis.llc.estimator import Estimator

        assert self.asked is not None
        if index not in self.estimators:
            self.estimators[index] = Estimator(pack.runs[index].config, self.asked.settings, pack.shared)
        return self.estimators[index]


def short(row: Mapping[str, Any]) -> str:
    """What the progress display says: `llc 12.3`, `llc 12.3 (not usable)`, `no llc: chain 0 diverged at draw 7`."""
    if math.isnan(row["llc"]):
        return f"no llc: {row['reasons'].removeprefix(f'{NOT_COMPUTED}: ').partition(',')[0]}"
    return f"llc {row['llc']:.4g}" + ("" if is_usable(row) else " (not usable)")


def is_due(record_steps: Sequence[int], step: int, every: int) -> bool:
    """Whether a step's record is one in `every`, counted from the first."""
    return step in record_steps and record_steps.index(step) % every == 0
