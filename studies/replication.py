"""Replication: a claim's runs trained with a reader's seeds and measured alike, beside its line of the results table.

python -m studies.run reproduction --claims one_layer_loss --seeds 21,22,23

Runs go below runs/replication/, their table beside it. Nothing that is committed is written.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from icl_lab.lab import cli
from icl_lab.lab.configs.run import RunConfig, Seeds, with_seeds
from icl_lab.lab.flag_types import SEEDS
from icl_lab.lab.progress import say
from icl_lab.studies import checks, ledger
from icl_lab.studies.claim import Claim, Measurement
from icl_lab.studies.study import Study, load
from icl_lab.sweeps.command import carry_out, planned
from icl_lab.sweeps.execution import Execution
from icl_lab.sweeps.plan import PlannedRun, plan, runs_of

NAME = "replication"
PILOT_SEEDS = (99, 100)  # of runs by which ranges, rates and lengths were chosen


class Asked(NamedTuple):
    """A claim to replicate, its study, and its measurement in the results table, if that is of today's runs."""

    study: Study
    claim: Claim
    committed: Measurement | None


def add_flags(built: cli.Parser) -> None:
    """The flags of a replication."""
    cli.add_list(built, "--seeds", SEEDS, (), f"with --claims: replicate them with these seeds, in runs/{NAME}")
    built.add_argument("--reuse_seeds", action="store_true", help="with --seeds: also seeds that the study has used")


def check_flags(flags: argparse.Namespace, default_profile: str) -> None:
    """`UsageError` for flags that do not go together."""
    if flags.reuse_seeds and not flags.seeds:
        raise cli.UsageError("--reuse_seeds needs --seeds")
    if not flags.seeds:
        return
    if not flags.claims:
        raise cli.UsageError("--seeds needs --claims, the names of what is to be replicated")
    if flags.controls:
        raise cli.UsageError("a replication measures its controls too; leave --controls out")
    if flags.profile != default_profile:
        raise cli.UsageError("a replication measures the named claims, whatever their profile; leave --profile out")
    if twice := [seed for seed in dict.fromkeys(flags.seeds) if flags.seeds.count(seed) > 1]:
        raise cli.UsageError(f"seed {twice[0]} stands twice in --seeds, and a run counts once")


def asked(chosen: Sequence[tuple[Study, Claim]], flags: argparse.Namespace) -> list[Asked]:
    """The claims to replicate; `UsageError` for one with a seed that was used."""
    found = []
    for study, claim in chosen:
        checks.check(study)
        readings, committed = ledger.readings(flags.report, study, claim)
        used = used_seeds(study, claim, readings)
        if not flags.reuse_seeds and (again := used.intersection(flags.seeds)):
            raise cli.UsageError(
                f"{claim.name} has used seed{'s' * (len(again) > 1)} {in_ranges(again)} (in use are "
                f"{in_ranges(used)}); choose others, or add --reuse_seeds to train these again"
            )
        trained = [study.runs[name] for name in claim.trained if name in study.runs]
        is_between_seeds = len({runs.shift for runs in trained}) > 1 or any(runs.with_others for runs in trained)
        if len(flags.seeds) == 1 and is_between_seeds:
            raise cli.UsageError(f"{claim.name} compares runs of two seeds with each other; give at least two seeds")
        found.append(Asked(study, claim, committed))
    return found


def used_seeds(study: Study, claim: Claim, readings: Mapping[int, Measurement]) -> set[int]:
    """The seeds of all readings of a claim, of the study's runs with the settings of its own, and of pilot runs."""
    settings = {_unseeded(run) for name in claim.trained if name in study.runs for run in study.runs[name].cells}
    of_runs = {run.config.init_seed for run in runs_of(plan(study.all_grids)) if _unseeded(run) in settings}
    sampled = () if claim.runs else study.sampled_seeds
    return {*PILOT_SEEDS, *of_runs, *sampled, *(seed for reading in readings.values() for seed in reading.seeds)}


def _unseeded(run: PlannedRun) -> RunConfig:
    return with_seeds(run.config, Seeds())


def of_seeds(make: Callable[[], Study], seeds: tuple[int, ...]) -> Study:
    """A study with these seeds in place of its own, without figures and conditions; `make` makes it with its own."""
    study = make()
    return replace(
        study,
        name=NAME,
        runs={name: runs.with_seeds(seeds) for name, runs in study.runs.items()},
        figures=(),
        conditions=None,
        sampled_seeds=seeds,
        again=partial(of_seeds, make, seeds),
    )


def replicate(
    claims: Sequence[Asked], flags: argparse.Namespace, execution: Callable[[Study, argparse.Namespace], Execution]
) -> int:
    """Trains what these claims need with the seeds, measures them and prints them beside the table; the exit status."""
    from icl_lab.studies.replication_text import estimate

    seeds, status = tuple(flags.seeds), 0
    if not flags.quiet:
        for one in claims:
            print(estimate(one.claim, one.committed, len(seeds)), flush=True)
    for study, of_study in groupby(sorted(claims, key=lambda one: one.study.name), key=lambda one: one.study):
        together = list(of_study)
        fresh = of_seeds(study.again or partial(load, study.name), seeds)
        how = execution(fresh, flags)
        status = max(status, carry_out(planned(fresh.grids_of([one.claim for one in together]), flags.quiet), how))
        if status > 128:  # a signal
            return status
        if not how.dry_run:
            _measure(fresh, together, how, flags.report)
    return status


def _measure(fresh: Study, claims: Sequence[Asked], how: Execution, report: Path) -> None:
    """Analyses the runs that are done, and measures and prints the claims whose runs have ended."""
    from icl_lab.studies.replication_text import lines

    of_name = {one.claim.name: one for one in claims}
    for claim, measurement in _measured(fresh, [one.claim for one in claims], how):
        print("\n".join(["", *lines(*of_name.pop(claim.name), measurement, report)]), flush=True)
    if of_name:
        print(f"{len(of_name)} of {len(claims)} claims are not measured: their runs have not ended")


def _measured(fresh: Study, claims: Sequence[Claim], how: Execution) -> Iterator[tuple[Claim, Measurement]]:
    from icl_lab.studies.measuring import analysed, can_measure, measured

    cells = {name for claim in claims for name in fresh.cell_names(claim)}
    runs = fresh.to_analyse(cells, how.folder)
    for number, name in enumerate(analysed(fresh, runs, how.folder, how.cluster), 1):
        if not how.quiet:
            say(f"{number} of {len(runs)} runs analysed: {name}")
    ready = [claim for claim in claims if can_measure(fresh, claim, how.folder)]
    for claim, measurement in measured(fresh, ready, how.folder, how.cluster):
        if measurement is not None:
            yield claim, measurement


def in_ranges(seeds: set[int]) -> str:
    """Seeds in words, neighbours as a range: 0-7, 99, 100."""
    groups: list[list[int]] = []
    for seed in sorted(seeds):
        if groups and seed == groups[-1][-1] + 1:
            groups[-1].append(seed)
        else:
            groups.append([seed])
    return ", ".join(f"{group[0]}-{group[-1]}" if len(group) > 2 else ", ".join(map(str, group)) for group in groups)
