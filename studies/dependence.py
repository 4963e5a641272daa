"""What claims share: facts that they state, runs, and test tasks. Claims that share one do not confirm each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from icl_lab.studies.study import all_studies
from icl_lab.studies.words import CONTRADICTED, HOLDS
from icl_lab.sweeps.plan import PlannedRun

Row = Mapping[str, Any]  # a line of the ledger
# what the claims of a fact show -> of their verdicts: whether they do; the first that holds counts
OUTCOMES: Mapping[str, Callable[[Sequence[str]], bool]] = {
    "contradicted": lambda verdicts: CONTRADICTED in verdicts,
    "holding": lambda verdicts: set(verdicts) <= set(HOLDS),
    "in part": lambda verdicts: bool(set(verdicts) & set(HOLDS)),
    "open": lambda verdicts: True,
}


def facts(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The measured claims by the fact that they state."""
    by_fact: dict[str, list[Row]] = {}
    for row in rows:
        if row["n"]:
            by_fact.setdefault(str(row["fact"]), []).append(row)
    return by_fact


def outcomes(by_fact: Mapping[str, Sequence[Row]]) -> dict[str, int]:
    """How many facts hold in all their claims, in some of them, or in none, and how many a claim contradicts."""
    found = [outcome([row["verdict"] for row in rows]) for rows in by_fact.values()]
    return {name: found.count(name) for name in OUTCOMES}


def outcome(verdicts: Sequence[str]) -> str:
    """What the claims of one fact show."""
    return next(name for name, holds in OUTCOMES.items() if holds(verdicts))


def groups(rows: Sequence[Row], test_tasks: Mapping[str, str] | None = None) -> int:
    """The number of groups of training runs behind the measured claims; groups share no run, controls included.

    test_tasks: of a run; with these, groups share no test tasks either.
    """
    apart: list[set[str]] = []
    for row in rows:
        shared = set(row["cells"].split())
        shared |= {test_tasks[run] for run in shared if run in test_tasks} if test_tasks else set()
        joined = [group for group in apart if group & shared]
        apart = [group for group in apart if not group & shared] + ([shared.union(*joined)] if shared else [])
    return len(apart)


def tasks_by_run(rows: Sequence[Row]) -> dict[str, str]:
    """Names of the test tasks of the runs that these lines' claims are measured on today, by the name of the run.

    Not of runs that need a file, whose test tasks nobody else has.
    """
    measured = {row["claim"]: row["runs"] for row in rows if row["cells"]}
    claims = [(study, claim) for study in all_studies() for claim in study.claims if claim.name in measured]
    named = ((study, name) for study, claim in claims for name in (*claim.trained, measured[claim.name]) if name)
    asked = (study.runs_of(name) for study, name in named)
    runs = (run for one in asked if not one.needs for run in one.cells)  # the same whether what they need is here
    return {run.name: tasks_of(run) for run in runs}


def tasks_of(run: PlannedRun) -> str:
    """The same for runs whose test tasks are drawn with one key from one distribution; pools differ in size alone."""
    config: Any = run.config
    data = replace(config.data, num_tasks=1) if hasattr(config.data, "num_tasks") else config.data
    return f"{config.family}, seed {config.data_seed}, {data}"
