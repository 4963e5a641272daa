"""Reports the status of a sweep's runs.

python -m sweeps.status --runs_dir DIR
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from icl_lab.lab import cli
from icl_lab.lab.configs.run import to_dict
from icl_lab.src.words import printable
from icl_lab.store import layout, rundir
from icl_lab.store.outputs import in_path
from icl_lab.store.readers import StoreError, read_json
from icl_lab.sweeps.plan import PlannedRun, Point, runs_of
from icl_lab.sweeps.plan_file import read_plans

PLANNED = ("planned", "")


def run_status(run: PlannedRun, folder: Path) -> tuple[str, str]:
    """The status of a run, and the last line of its error if there is one.

    "planned" if it has not begun, "failed" if its directory cannot be used, and "schema 1" if an earlier version
    trained it.
    """
    directory = folder / run.name
    try:
        rundir.check_usable(directory, run.config, overwrite=False)
        meta = rundir.read_meta(directory)
    except (StoreError, OSError) as error:
        return rundir.EARLIER if isinstance(error, rundir.EarlierVersion) else "failed", str(error)
    last = str(meta.get("error") or "").strip().splitlines()[-1:]
    return str(meta.get("status", "planned")), "".join(last)


def statuses(chosen: Sequence[PlannedRun], folder: Path) -> dict[PlannedRun, str]:
    """The status of each run."""
    return {run: status for run, (status, _) in statuses_and_errors(chosen, folder).items()}


def statuses_and_errors(chosen: Sequence[PlannedRun], folder: Path) -> dict[PlannedRun, tuple[str, str]]:
    """`run_status` of each run; of those that have no directory nothing is read."""
    there = {entry.name for entry in os.scandir(folder)} if folder.is_dir() else set()
    return {run: run_status(run, folder) if run.name in there else PLANNED for run in chosen}


def refuse_earlier(points: Sequence[Point], folder: Path) -> None:
    """`StoreError` if runs of schema 1 stand where a sweep's do, or may be some that it would train.

    They are not read, so a sweep would train them again, and their numbers would leave its table.
    """
    there = {entry.name for entry in os.scandir(folder)} if folder.is_dir() else set()
    planned = {run.name: run.config for run in runs_of(points)} if there else {}
    lacking = {_model_and_seeds(to_dict(config)) for name, config in planned.items() if name not in there}
    names = there if lacking else there & planned.keys()
    earlier = [name for name in sorted(names) if rundir.is_of_earlier_version(folder / name)]
    theirs = [name for name in earlier if name in planned or _model_and_seeds_of(folder / name) in lacking]
    if theirs:
        raise StoreError(
            f"{folder} has runs of an earlier version (schema 1), such as {theirs[0]}, which this version "
            f"leaves as they are and does not read; read them with the version that "
            f"trained them (git_hash in their {layout.META}), or train their settings again in another --runs_dir"
        )


def _model_and_seeds(config: Mapping[str, Any]) -> tuple[str, ...]:
    """What a config says of itself in every schema."""
    return tuple(str(config.get(name)) for name in ("name", "data_seed", "init_seed"))


def _model_and_seeds_of(run: Path) -> tuple[str, ...]:
    return _model_and_seeds(read_json(run / layout.CONFIG))


def status_counts(statuses: Iterable[str]) -> str:
    """Counts of statuses: `12 done, 3 planned`."""
    return ", ".join(f"{number} {status}" for status, number in sorted(Counter(statuses).items()))


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("sweeps.status", "Counts a sweep's runs by status, and lists those that failed or diverged.")
    built.add_argument("--runs_dir", type=in_path, required=True, help="the sweep's folder")
    return built


def main(argv: list[str]) -> None:
    """The command line."""
    folder = parser().parse(argv).runs_dir
    points = read_plans(folder)
    by_run = statuses_and_errors(runs_of(points), folder)
    for run, (status, error) in by_run.items():
        if status in ("failed", "diverged", rundir.EARLIER):
            print(printable(f"{status}: {folder / run.name}{error and f': {error}'}"))
    print(f"{len(by_run)} runs: {status_counts(status for status, _ in by_run.values())}")


if __name__ == "__main__":
    cli.launch(main)
