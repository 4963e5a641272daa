"""Copies the metrics of runs to TensorBoard or Weights & Biases, while they train or afterwards.

python -m store.export runs --tensorboard logs --follow
python -m store.export runs/lsa1 --wandb my-project

It reads metrics.jsonl, which stays the source of truth, in a process of its own: nothing that it does can stop or slow
a training. Weights & Biases is offline unless --online is given; `wandb sync` uploads what was kept.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from icl_lab.lab import cli
from icl_lab.lab.configs import earlier_names
from icl_lab.lab.environment import extra
from icl_lab.src.words import printable
from icl_lab.store import layout, rundir
from icl_lab.store.listing import run_folders
from icl_lab.store.lock import refuse_links_below
from icl_lab.store.outputs import in_path, out_folder
from icl_lab.store.readers import StoreError, is_count, is_number, json_lines_of, read_json, reading

POLL_SECONDS = 2.0  # at least between two readings of all runs
PAUSE = 10  # and times as long as one takes
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
            raise StoreError(f"{folder} has event files that are not of {run}; choose another --tensorboard LOGS")
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

    Its id is that of the config and the directory, so that a run that goes on is the same run there. `UsageError` for
    a project or an account that Weights & Biases refuses.
    """

    def __init__(self, project: str, name: str, run: Path, folder: Path, online: bool):
        wandb = extra("wandb")
        folder.mkdir(parents=True, exist_ok=True)
        config = read_json(run / layout.CONFIG)
        mode = "online" if online else "offline"
        settings = wandb.Settings(console="off", silent=True, disable_git=True, save_code=False)
        try:
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
        except wandb.Error as error:
            raise cli.UsageError(f"Weights & Biases: {error}") from None

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Writes the numbers of a record."""
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        """Ends the run."""
        self._run.finish()


def _digest(*words: object) -> str:
    """A short name of these words, alike each time."""
    return hashlib.sha256("\n".join(map(str, words)).encode()).hexdigest()[:16]


class Copy:
    """A copy of a run's records, which grows with them.

    A resumed run records what came after its checkpoint again, which is not copied twice. A run that is trained again,
    by the `start` of its meta.json, is copied again.
    """

    def __init__(self, run: Path, begin: Callable[[], Target]):
        self.run, self._begin = run, begin
        self._target: Target | None = None
        self._start: object = None
        self._file, self._offset, self._step = 0, 0, -1  # inode and bytes that are read, and the last step

    def update(self) -> Iterator[int]:
        """Copies the records that are new, and yields the step of each; ends the copy if the run has finished."""
        meta = rundir.read_meta(self.run)  # first: what is recorded before the end is read
        if meta.get("start") != self._start:
            self.close()
            self._start, self._offset, self._step = meta.get("start"), 0, -1
        for record in self._new_records():
            if self._target is None:
                self._target = self._begin()
            numbers = {key: float(value) for key, value in record.items() if is_number(value) and key != "step"}
            self._target.write(record["step"], numbers)
            yield record["step"]
        if meta.get("status") in rundir.FINISHED:
            self.close()

    def _new_records(self) -> Iterator[dict[str, Any]]:
        """The records behind those that are read; none while the run has no metrics."""
        path = self.run / layout.METRICS
        with reading(path), suppress(FileNotFoundError), open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if status.st_ino != self._file or status.st_size < self._offset:  # cut at a checkpoint
                self._file, self._offset = status.st_ino, 0
            file.seek(self._offset)
            for record in map(earlier_names.todays, json_lines_of(file)):
                if not is_count(record.get("step")):
                    raise StoreError(f"{path} is not the metrics of a run: a record has no step")
                "".join(record).encode()  # names that are no text, as "\\ud800", cannot be copied
                if record["step"] > self._step:
                    yield record
                    self._step = record["step"]
                self._offset = file.tell()

    def close(self) -> None:
        """Ends what was begun."""
        if self._target is not None:
            self._target.close()
        self._target = None


class Export:
    """Copies the records of the runs below a folder to targets. Of a damaged run it says once why it is not copied.

    counts: copied records by run. damaged: the runs that could not be copied to their end.
    """

    def __init__(self, folder: Path, target_of: Callable[[str, Path], Target]):
        self.folder, self._target_of = folder, target_of
        self.counts, self.damaged = dict[str, int](), set[Path]()
        self._copies: dict[Path, Copy] = {}

    def update(self, follow: bool = False) -> None:
        """Copies what is new, one run after another; with `follow` runs that have not finished are kept open."""
        for run in sorted(run_folders(self.folder)):
            name = run.relative_to(self.folder).as_posix() if run != self.folder else run.name
            copy = self._copies.setdefault(run, Copy(run, partial(self._target_of, name, run)))
            try:
                for _ in copy.update():
                    self.counts[name] = self.counts.get(name, 0) + 1
            except StoreError as error:
                self._leave_out(run, str(error))
            except OSError as error:  # of its target: those of other runs may do
                self._leave_out(run, f"{run} is not copied: {error.filename}: {error.strerror}")
            if not follow:
                copy.close()

    def _leave_out(self, run: Path, sentence: str) -> None:
        if run not in self.damaged:
            print(printable(f"error: {sentence}"), file=sys.stderr, flush=True)
        self.damaged.add(run)

    def run(self, follow: bool) -> None:
        """Copies the records that are there, or with `follow` all as they come, until Ctrl-C."""
        try:
            while True:
                began = time.monotonic()
                self.update(follow)
                if not follow:
                    return
                time.sleep(max(POLL_SECONDS, PAUSE * (time.monotonic() - began)))
        finally:
            for copy in self._copies.values():
                copy.close()


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("store.export", "Copies the metrics of runs to TensorBoard or Weights & Biases.")
    built.add_argument(
        "folder", metavar="DIR", type=in_path, nargs="?", default=rundir.RUNS, help="a run, or a folder of runs"
    )
    for package in ("tensorboard", "wandb"):
        built.needs(package, when=partial(_is_given, package))
    target = built.add_mutually_exclusive_group(required=True)
    target.add_argument("--tensorboard", metavar="LOGS", type=out_folder, help="folder for TensorBoard's event files")
    target.add_argument("--wandb", metavar="PROJECT", help="project of Weights & Biases")
    built.add_argument("--wandb_dir", type=out_folder, default=Path("wandb_runs"), help="folder of its offline runs")
    built.add_argument("--online", action="store_true", help="let Weights & Biases upload")
    built.add_argument("--follow", action="store_true", help="keep copying while runs train, until Ctrl-C")
    return built


def _is_given(name: str, flags: argparse.Namespace) -> bool:
    return getattr(flags, name) is not None


def main(argv: list[str]) -> int:
    """The command line; 2 if a run could not be copied."""
    flags = parser().parse(argv)

    def target_of(name: str, run: Path) -> Target:
        if flags.tensorboard is not None:
            refuse_links_below(flags.tensorboard, flags.tensorboard / name)
            return TensorBoard(flags.tensorboard / name, run)
        return WeightsAndBiases(flags.wandb, name, run, flags.wandb_dir, flags.online)

    export = Export(flags.folder, target_of)
    try:
        export.run(flags.follow)
    except KeyboardInterrupt:  # the end of --follow
        if not (flags.follow and export.damaged):
            raise
    for name, number in export.counts.items():
        print(f"{printable(name)}: {number} records")
    return 2 if export.damaged else 0


if __name__ == "__main__":
    cli.launch(main)
