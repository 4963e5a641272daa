"""Runs of a pack that end before its last step: each has the parameters that it ended with, and the others train on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from icl_lab.lab.configs.stopping import Stopping
from icl_lab.runners.static_shape import Run
from icl_lab.store import rundir
from icl_lab.store.metrics import metrics

if TYPE_CHECKING:
    from icl_lab.runners.pack import Pack


class EarlyEnds:
    """What the rules of a pack's runs say at their records. `params` are those of the runs that have ended."""

    def __init__(self, pack: Pack):
        self.pack, self.params = pack, dict[int, Any]()
        self.rules = [Stopping(run.config.stop_when, run.config.patience) for run in pack.runs]

    def trains(self, index: int) -> bool:
        """Whether a run has neither ended nor diverged."""
        return self.pack.alive[index] and index not in self.params

    @property
    def any_trains(self) -> bool:
        """Whether a run is left to train."""
        return any(self.trains(index) for index in range(len(self.pack.runs)))

    def see(self, index: int, record: Mapping[str, Any]) -> None:
        """Ends a run at its record if its rule says so: keeps its parameters, and saves its state."""
        if self.rules[index].reason(record):
            self.params[index] = self.pack.params(index)
            self.save(index)

    def see_again(self, index: int, run: Run) -> None:
        """Brings a rule to where it was at the last record of a run that is resumed."""
        if (run.config.stop_when or run.config.patience) and any(map(self.rules[index].reason, metrics(run.directory))):
            self.params[index] = self.pack.params(index)

    def save(self, index: int) -> None:
        """Saves a run's state, from which it is resumed, or ends again."""
        pack = self.pack
        pack.save(index)
        facts = {"run_seconds": pack.run_seconds, "chunk_steps": pack.chunk_steps}
        rundir.update_meta(pack.runs[index].directory, **facts)

    def last_params(self, index: int) -> Any:
        """The parameters that a run ended with."""
        return self.params[index] if index in self.params else self.pack.params(index)
