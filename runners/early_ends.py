"""What follows from the records of a pack's runs: which of them ends before the last step, and which was the best.

A run that has ended has the parameters that it ended with; the others train on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax

from icl_lab.families.shared_arrays import shared_with
from icl_lab.families.task import task_of
from icl_lab.lab.configs.stopping import BEST, LOSSES, Stopping, condition_of
from icl_lab.runners.pack import NORMS, Pack
from icl_lab.runners.static_shape import Run
from icl_lab.src.prng import Purpose, key, purpose_key
from icl_lab.store import best_params, rundir
from icl_lab.store.best_params import Best
from icl_lab.store.metrics import metrics


def check_column(run: Run) -> None:
    """`ConfigError` if the rule of a run reads a column that its records do not have.

    What the records have is known from one of the untrained model; all have the losses.
    """
    directory, config = run
    condition = condition_of(config.stop_when) if config.stop_when else None
    if condition is None or condition.column in LOSSES:
        return
    task, shared = task_of(config), shared_with(config, directory)
    model = task.make_model(config, shared)
    params = jax.jit(model.init)(purpose_key(key(config.init_seed), Purpose.INIT))
    evaluated = task.eval_metrics(model, params, task.make_eval_set(config, shared))
    condition.check([LOSSES[0], *evaluated, *(NORMS if config.log_norms else ())])


class EarlyEnds:
    """What the rules of a pack's runs say at their records.

    `params` are those of the runs that have ended, `best` the records that are the best so far and not written yet.
    """

    def __init__(self, pack: Pack):
        self.pack, self.params, self.best = pack, dict[int, Any](), dict[int, Best]()
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
        rule = self.rules[index]
        if self.pack.runs[index].config.keep_best and rule.is_better(record):
            self.best[index] = Best(record["step"], record[BEST], self.pack.params(index))
        if rule.reason(record):
            self.params[index] = self.pack.params(index)
            self.save(index)

    def see_again(self, index: int, run: Run) -> None:
        """Brings a rule to where it was at the last record of a run that is resumed."""
        config = run.config
        if not (config.stop_when or config.patience or config.keep_best):
            return
        for record in metrics(run.directory):
            if self.rules[index].reason(record):
                self.params[index] = self.pack.params(index)

    def save(self, index: int) -> None:
        """Saves a run's state, from which it is resumed, or ends again."""
        pack = self.pack
        if index in self.best:
            best_params.write(pack.runs[index].directory, self.best.pop(index))
        pack.save(index)
        facts = {"run_seconds": pack.run_seconds, "chunk_steps": pack.chunk_steps}
        rundir.update_meta(pack.runs[index].directory, **facts)

    def last_params(self, index: int) -> Any:
        """The parameters that a run ended with."""
        return self.params[index] if index in self.params else self.pack.params(index)
