"""Copies the metrics of runs to TensorBoard or Weights & Biases, while they train or afterwards.

python -m store.export runs --tensorboard logs --follow
python -m store.export runs/lsa1 --wandb my-project

It reads metrics.jsonl, which stays the source of truth, in a process of its own: nothing that it does can stop or slow
a training. Weights & Biases is offline unless --online is given; `wandb sync` uploads what was kept.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import cli
from environment import extra
from store import layout, rundir
from store.listing import list_runs
from store.readers import StoreError, is_number, json_lines, read_json

POLL_SECONDS = 2.0
EVENTS = "events.out.tfevents.*"


class Target(Protocol):
    """Where the records of one run go."""

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Writes the numbers of a record."""

    def close(self) -> None:
        """Ends the run's copy."""


class TensorBoard:
    """The scalars of a run as an event file, whose name says of which run, so that copying it again replaces it.

    `StoreError` for a folder with event files of anything else: they stay, and TensorBoard would draw them as one run.
    """

    def __init__(self, folder: Path, run: Path):
        extra("tensorboard")
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        folder.mkdir(parents=True, exist_ok=True)
        suffix = f".icl-lab.{_digest(run.resolve())}"
        before = list(folder.glob(EVENTS))
        if not all(old.name.endswith(suffix) for old in before):
            raise StoreError(
                f"{folder} has event files of something else than {run}; choose another --tensorboard LOGS"
            )
        for old in before:
            old.unlink()
        self._event, self._summary = event_pb2.Event, summary_pb2.Summary
        self._writer = EventFileWriter(str(folder), filename_suffix=suffix)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Writes the numbers of a record."""
        scalars = [self._summary.Value(tag=name, simple_value=value) for name, value in values.items()]
        self._writer.add_event(self._event(step=step, wall_time=time.time(), summary=self._summary(value=scalars)))
        self._writer.flush()

    def close(self) -> None:
        """Ends the event file."""
        self._writer.close()


class WeightsAndBiases:
    """A run of Weights & Biases, with the config; offline unless asked. Several may be open at a time.

    Its id is that of the config and the directory, so that a run that goes on is the same run there.
    """

    def __init__(self, project: str, name: str, run: Path, folder: Path, online: bool):
        wandb = extra("wandb")
        folder.mkdir(parents=True, exist_ok=True)
        config = read_json(run / layout.CONFIG)
        mode = "online" if online else "offline"
        settings = wandb.Settings(console="off", silent=True, disable_git=True, save_code=False)
        self._run = wandb.init(
            project=project,
            name=name,
            id=_digest(rundir.read_meta(run).get("config_id", ""), run.resolve()),
            config=config,
            dir=str(folder),
            mode=mode,
            settings=settings,
            reinit="create_new",  # else it is the run that is open
        )

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Writes the numbers of a record."""
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        """Ends the run."""
        self._run.finish()


def _digest(*words: object) -> str:
    """A short name of these words, alike each time."""
    return hashlib.sha256("\n".join(map(str, words)).encode()).hexdigest()[:16]


def new_records(run: Path, after: int) -> Iterator[dict[str, Any]]:
    """Streams the records of a run after a step; empty while it has none."""
    path = run / layout.METRICS
    return (record for record in (json_lines(path) if path.exists() else ()) if record.get("step", -1) > after)


def export(folder: Path, target_of: Callable[[str, Path], Target], follow: bool = False) -> dict[str, int]:
    """Copies the records of the runs below a folder, one run after another, or all as they come; counts them."""
    targets, last, counts = dict[Path, Target](), dict[Path, int](), dict[str, int]()
    try:
        while True:
            entries = [entry for entry in list_runs(folder) if not entry.reason]
            for entry in sorted(entries, key=lambda entry: entry.path):
                name = entry.path.relative_to(folder).as_posix() if entry.path != folder else entry.path.name
                for record in new_records(entry.path, last.get(entry.path, -1)):
                    if entry.path not in targets:
                        targets[entry.path] = target_of(name, entry.path)
                    numbers = {key: float(value) for key, value in record.items() if is_number(value) and key != "step"}
                    targets[entry.path].write(record["step"], numbers)
                    last[entry.path] = record["step"]
                    counts[name] = counts.get(name, 0) + 1
                if entry.path in targets and (not follow or entry.status in rundir.FINISHED):
                    targets.pop(entry.path).close()
            if not follow:
                return counts
            time.sleep(POLL_SECONDS)
    finally:
        for target in targets.values():
            target.close()


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("store.export", "Copies the metrics of runs to TensorBoard or Weights & Biases.")
    built.add_argument(
        "folder", metavar="DIR", type=Path, nargs="?", default=rundir.RUNS, help="a run, or a folder of runs"
    )
    built.add_argument("--tensorboard", metavar="LOGS", type=Path, help="folder for TensorBoard's event files")
    built.add_argument("--wandb", metavar="PROJECT", help="project of Weights & Biases")
    built.add_argument("--wandb_dir", type=Path, default=Path("wandb_runs"), help="folder of its offline runs")
    built.add_argument("--online", action="store_true", help="let Weights & Biases upload")
    built.add_argument("--follow", action="store_true", help="go on with what is trained, until Ctrl-C")
    return built


def main(argv: list[str]) -> None:
    """The command line."""
    flags = parser().parse(argv)
    if (flags.tensorboard is None) == (flags.wandb is None):
        raise cli.UsageError("choose one of --tensorboard LOGS and --wandb PROJECT")

    def target_of(name: str, run: Path) -> Target:
        if flags.tensorboard is not None:
            return TensorBoard(flags.tensorboard / name, run)
        return WeightsAndBiases(flags.wandb, name, run, flags.wandb_dir, flags.online)

    for name, number in export(flags.folder, target_of, flags.follow).items():
        print(f"{cli.printable(name)}: {number} records")


if __name__ == "__main__":
    cli.launch(main, StoreError)
