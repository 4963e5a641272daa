"""`python -m analysis.llc`: what it leaves, that a kill costs one checkpoint at most, and what it refuses."""

import json
import math
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from icl_lab.analysis.llc import checkpoints, settings
from icl_lab.analysis.llc import traces as llc_traces
from icl_lab.analysis.llc.checkpoints import _choose, estimate_run
from icl_lab.analysis.llc.settings import Settings
from icl_lab.lab.executors.signals import Signals
from icl_lab.lab.executors.task import Outcome, Report, Task
from icl_lab.src.model import Params
from icl_lab.store import StoreError, aside, layout, manifest, rundir
from icl_lab.store.atomic import write_bytes
from icl_lab.store.lock import locked
from icl_lab.store.metrics import read_metrics
from icl_lab.store.params import flattened, read_params
from tests.analysis.llc_runs import EVERY_SECOND, OF_FAMILIES, SETTINGS, estimated, table, trained, words
from tests.clusters import ON_CLUSTERS
from tests.doors import Refused, ran, refused
from tests.runners.tiny import INTERRUPTED, RECORDED, Workshop, copied
from tests.trust.damage import limited

__all__ = ["ran", "refused"]

OWN = Settings(**SETTINGS)
COLUMNS = (
    "settings step llc llc_low llc_high loss null_loss draw_loss saturation acceptance stability trend r_hat ess below "
    "distance radius norm relaxation relaxed top_eigenvalue verdict reasons pull order predicted predicted_error "
    "curvature step_part noise_part slope_part h_min d_nbeta d_nbeta_error d_gamma d_gamma_error degree degree_error "
    "descent_distance descent_gain eps nbeta gamma batch_size tasks data chains burn_in draws thin mask sampler "
    "friction descend seed"
).split()
IN_A_RECORD = {
    **{name: name for name in ("llc", "llc_low", "llc_high")},
    **{f"llc_{name}": name for name in ("saturation", "verdict", "reasons")},
}


@pytest.fixture
def run(workshop: Workshop, tmp_path: Path) -> Path:
    """A run of one linear layer that may be changed."""
    return copied(trained(workshop, "lsa1"), tmp_path / "run")


def traces(run: Path) -> dict[str, bytes]:
    """The files of traces."""
    return {path.name: path.read_bytes() for path in (run / layout.LLC_TRACES).iterdir()}


def check_rows(rows: pd.DataFrame, records: Sequence[dict[str, Any]]) -> None:
    """Rows of llc.csv are records of the training, to the bit."""
    for record, (_, row) in zip(records, rows.iterrows(), strict=True):
        assert row["step"] == record["step"]
        for name, column in IN_A_RECORD.items():
            is_none = isinstance(row[column], float) and math.isnan(row[column])
            assert record[name] == (None if is_none else row[column]), (record["step"], name)


@pytest.mark.slow
@pytest.mark.parametrize("family", OF_FAMILIES)
def test_records_of_a_training_are_the_commands_rows_to_the_bit(
    family: str, workshop: Workshop, tmp_path: Path
) -> None:
    run = copied(trained(workshop, family), tmp_path / "run")
    done = estimated(workshop, run, "--checkpoints", f"every:{EVERY_SECOND}", *words())
    rows = table(run)
    assert rows.columns.tolist() == COLUMNS
    records = [record for record in read_metrics(run) if "llc" in record]
    recorded = [record["step"] for record in read_metrics(run)]
    assert rows["step"].tolist() == [record["step"] for record in records] == recorded[::EVERY_SECOND]
    assert [line.split()[1] for line in done.stdout.splitlines()] == [str(step) for step in rows["step"]]
    check_rows(rows, records)
    assert (run / layout.LLC_FIGURE).read_bytes().startswith(b"\x89PNG")


def test_a_row_is_what_its_traces_say(run: Path, workshop: Workshop) -> None:
    estimated(workshop, run, "--checkpoints", "30,90", *words())
    for row in table(run).to_dict("records"):
        with np.load(run / layout.LLC_TRACES / f"{row['settings']}_step_{row['step']:08d}.npz") as kept:
            arrays = {name: kept[name] for name in kept}
        draws, checks = OWN.burn_in + OWN.draws, -(-(OWN.burn_in + OWN.draws) // OWN.check_every)
        assert arrays["excess"].shape == arrays["distance"].shape == (OWN.chains, draws)
        assert arrays["fixed_loss"].shape == arrays["acceptance"].shape == (OWN.chains, checks)
        means = OWN.nbeta * arrays["excess"][:, OWN.burn_in :].astype(float).mean(axis=1)
        assert row["llc"] == pytest.approx(means.mean(), rel=1e-5)
        half = 4.302652729911275 * means.std(ddof=1) / math.sqrt(3)  # t of 2 degrees of freedom at .975, of a table
        assert (row["llc_high"] - row["llc_low"]) / 2 == pytest.approx(half, rel=1e-5)
        assert row["distance"] == pytest.approx(arrays["distance"][:, OWN.burn_in :].mean(), rel=1e-5)
        assert row["draw_loss"] - row["loss"] == pytest.approx(row["llc"] / row["nbeta"], rel=1e-9)
        assert (arrays["distance"][:, 0] == 0).all()  # each chain begins at w*
        assert json.loads(arrays["row"].tobytes())["step"] == row["step"]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ("log:4", [0, 4, 20, 100]),  # 1 + step: 1, 4.7, 21.7, 101
        ("log:2", [0, 100]),
        ("log:100", [0, 1, 2, 4, 10, 20, 50, 100]),
        ("log:3:10", [0, 10, 50, 100]),  # 1 + step: 11, 33, 101
        ("every:3", [0, 4, 50]),
    ],
)
def test_evenly_in_the_logarithm_the_first_and_the_last_are_among_them(selection: str, expected: list[int]) -> None:
    known = [0, 1, 2, 4, 10, 20, 50, 100]
    assert _choose(Path("run"), known, 100, settings.selection(selection)) == expected


@pytest.mark.slow
def test_checkpoints_are_all_the_last_one_in_k_or_those_named(run: Path, workshop: Workshop) -> None:
    estimated(workshop, run, "--checkpoints", "all", *words())
    whole, files = (run / layout.LLC).read_bytes(), traces(run)
    inodes = {path.name: path.stat().st_ino for path in (run / layout.LLC_TRACES).iterdir()}
    for words_of, expected in {
        "last": (100,),
        "every:3": (0, 90),
        "log:2": (0, 100),
        "60,0": (0, 60),
        "all": RECORDED,
    }.items():
        said = estimated(workshop, run, "--checkpoints", words_of, *words()).stdout.splitlines()
        assert [int(line.split()[1]) for line in said] == list(expected), words_of
    assert (run / layout.LLC).read_bytes() == whole
    assert traces(run) == files
    assert {path.name: path.stat().st_ino for path in (run / layout.LLC_TRACES).iterdir()} == inodes  # none anew


@pytest.mark.robust
def test_in_processes_of_their_own_checkpoints_have_the_same_rows(
    run: Path, workshop: Workshop, tmp_path: Path
) -> None:
    """To the byte, with as many threads."""
    alone = copied(run, tmp_path / "alone")
    flags = ("--checkpoints", "0,60", *words())
    one = estimated(workshop, alone, *flags, NPROC="1")
    each = estimated(workshop, run, *flags, "--executor", "process")
    assert sorted(each.stdout.splitlines()) == sorted(one.stdout.splitlines())
    assert len(traces(run)) == 2
    assert traces(run) == traces(alone)
    assert (run / layout.LLC).read_bytes() == (alone / layout.LLC).read_bytes()


@pytest.mark.slow
@ON_CLUSTERS
def test_on_a_cluster_a_checkpoint_has_the_same_row(
    run: Path, workshop: Workshop, tmp_path: Path, package: str, executor: tuple[str, ...]
) -> None:
    """To the byte: a task has one processor, and one thread."""
    pytest.importorskip(package)
    alone = copied(run, tmp_path / "alone")
    flags = ("--checkpoints", "60", *words())
    one = estimated(workshop, alone, *flags, NPROC="1")
    job = estimated(workshop, run, *flags, *executor)
    assert job.stdout == one.stdout
    assert len(traces(run)) == 1
    assert traces(run) == traces(alone)
    assert (run / layout.LLC).read_bytes() == (alone / layout.LLC).read_bytes()


def test_a_checkpoint_that_is_stopped_before_it_begins_has_no_row(run: Path) -> None:
    def stopped(tasks: Sequence[Task], report: Report, signals: Signals) -> Iterator[Outcome]:
        signals.receive(signal.SIGTERM, None)
        yield from (Outcome(task, stopped=True) for task in tasks)

    with pytest.raises(SystemExit) as exited:
        list(estimate_run(run, OWN, "0,60", stopped))
    assert exited.value.code == 128 + signal.SIGTERM
    assert not (run / layout.LLC_TRACES).exists()


@pytest.mark.slow
def test_settings_share_a_table_and_leave_each_other_alone(run: Path, workshop: Workshop) -> None:
    estimated(workshop, run, "--checkpoints", "0,60", *words())
    before = table(run).to_dict("records")
    estimated(workshop, run, "--checkpoints", "60", *words(gamma=10.0))
    after = table(run)
    assert sorted(zip(after["gamma"], after["step"], strict=True)) == [(10.0, 60), (667.0, 0), (667.0, 60)]
    assert after["settings"].nunique() == 2
    assert str(after[after["gamma"] == 667.0].to_dict("records")) == str(before)


def test_a_kill_costs_one_checkpoint_and_no_digit(run: Path, workshop: Workshop) -> None:
    """The rows are the records of the run's own training, which was not killed."""
    line = ["--run", run, "--checkpoints", "0,60", *words()]
    interrupted = {"INTERRUPT": "before:*_step_00000060.npz:SIGKILL", "PYTHONPATH": INTERRUPTED}
    killed = workshop.run("analysis.llc", *line, **interrupted)
    assert killed.returncode == -9, killed.stderr
    kept = llc_traces.trace_file(run, OWN, 0)
    assert [*(run / layout.LLC_TRACES).glob("[!.]*")] == [kept]
    inode = kept.stat().st_ino
    estimated(workshop, *line[1:])
    assert kept.stat().st_ino == inode
    records = {record["step"]: record for record in read_metrics(run)}
    check_rows(table(run), [records[0], records[60]])


@pytest.mark.slow
def test_a_kill_between_checkpoints_loses_one_at_most(run: Path, workshop: Workshop, tmp_path: Path) -> None:
    whole = copied(run, tmp_path / "whole")
    estimated(workshop, whole, "--checkpoints", "all", *words())
    line = ["analysis.llc", "--run", run, "--checkpoints", "all", *words()]
    inodes: dict[str, int] = {}
    for place, left in (("before:*_step_00000030.npz", 1), ("after:*_step_00000060.npz", 3), ("before:llc.csv:", 4)):
        killed = workshop.run(*line, INTERRUPT=f"{place.rstrip(':')}:SIGKILL", PYTHONPATH=INTERRUPTED)
        assert killed.returncode == -9, killed.stderr
        kept = {path.name: path.stat().st_ino for path in (run / layout.LLC_TRACES).glob("[!.]*")}
        assert len(kept) == left
        assert inodes.items() <= kept.items()  # what was estimated is not estimated again
        inodes = kept
    estimated(workshop, *line[2:])
    assert traces(run) == traces(whole)
    assert (run / layout.LLC).read_bytes() == (whole / layout.LLC).read_bytes()


def test_a_checkpoint_whose_parameters_have_changed_is_estimated_again(run: Path, workshop: Workshop) -> None:
    path = llc_traces.trace_file(run, OWN, 100)
    estimated(workshop, run, *words())
    good = path.read_bytes()
    with np.load(path) as arrays:
        other = {name: arrays[name] for name in arrays} | {"parameters": np.zeros(32, np.uint8)}
    np.savez(path, **other)
    estimated(workshop, run, *words())
    assert path.read_bytes() == good


# --- what lies beside a run ---


def made_up(run: Path, llc: float, params: Params | None = None) -> bytes:
    """Traces of the first checkpoint, of its parameters unless others are given."""
    ((_, own),) = checkpoints.checkpoints(run, RECORDED[-1], "0")
    row = {"step": 0, "llc": llc, "llc_low": 0.5, "llc_high": 1.5, "health": "unmixed"}
    return llc_traces.content(row, {}, own if params is None else params)


def laid_bare(run: Path, name: str, content: bytes) -> None:
    layout.llc_aside(run).mkdir()
    (layout.llc_aside(run) / name).write_bytes(content)


def through_a_link(run: Path, name: str, content: bytes) -> None:
    aside.write(run, name, content, rundir.stored_id(run))
    layout.llc_aside(run).rename(run.parent / "target")
    layout.llc_aside(run).symlink_to("target")


def a_pipe(run: Path, name: str, content: bytes) -> None:
    layout.llc_aside(run).mkdir()
    os.mkfifo(layout.llc_aside(run) / name)


def as_it_lies(folder: Path) -> tuple[object, ...]:
    """A folder and the names in it; when it was last looked at is no change."""
    status = os.lstat(folder)
    return status.st_ino, status.st_mode, status.st_mtime_ns, sorted(os.listdir(folder))


# what is left beside the run -> whether it is named
LEFT: dict[str, tuple[Callable[[Path, str, bytes], object], bool]] = {
    "of another run": (lambda run, name, content: aside.write(run, name, content, "0" * 16), True),
    "of other parameters": (
        lambda run, name, content: aside.write(
            run, name, made_up(run, 2.0, {"a": {"b": np.zeros(1)}}), rundir.stored_id(run)
        ),
        False,  # the run's own, of before it was trained again
    ),
    "of no run": (laid_bare, True),
    "not traces": (lambda run, name, content: laid_bare(run, name, b"mine"), True),
    "a link": (through_a_link, True),
    "a pipe": (a_pipe, True),
}


@pytest.mark.parametrize("what", LEFT)
def test_what_lies_beside_a_run_is_not_taken_for_its_own(what: str, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the run has traces already or not: its table is the one that it has with nothing beside it."""
    path, good, (put, is_named) = llc_traces.trace_file(run, OWN, 0), made_up(run, 1.0), LEFT[what]
    monkeypatch.setattr(checkpoints._Estimates, "__call__", lambda self, step, params: good)
    put(run, path.name, made_up(run, 2.0))
    before = as_it_lies(layout.llc_aside(run))
    for _ in ("estimated now", "estimated before"):
        with limited(), locked(run):
            (row,) = estimate_run(run, OWN, "0")
        assert row["llc"] == 1.0
        assert path.read_bytes() == good
        assert table(run)["llc"].tolist() == [1.0]
    assert as_it_lies(layout.llc_aside(run)) == before
    assert bool(llc_traces.left_out(run)) == is_named


def test_what_is_kept_beside_a_run_is_moved_into_it(run: Path) -> None:
    path, kept = llc_traces.trace_file(run, OWN, 0), made_up(run, 2.0)
    aside.write(run, path.name, kept, rundir.stored_id(run))
    with locked(run):
        (row,) = estimate_run(run, OWN, "0")
    assert row["llc"] == 2.0
    assert path.read_bytes() == kept
    assert not layout.llc_aside(run).exists()


def test_a_run_that_is_trained_again_meets_nothing_of_the_one_before(run: Path) -> None:
    aside.write(run, llc_traces.trace_file(run, OWN, 0).name, b"", rundir.stored_id(run))
    with locked(run):
        rundir.clear(run)
    assert not layout.llc_aside(run).exists()


def test_what_cannot_be_kept_beside_a_run_is_refused_before_it_is_estimated(run: Path) -> None:
    laid_bare(run, llc_traces.trace_file(run, OWN, 30).name, b"mine")
    with locked(run), pytest.raises(StoreError, match="was not written by the laboratory and would be overwritten"):
        next(estimate_run(run, OWN, "0,30", lambda *_: pytest.fail("it has begun")))


# --- files of others, and broken ones ---


def test_what_is_not_the_runs_stays_and_is_in_no_table(run: Path, workshop: Workshop) -> None:
    estimated(workshop, run, "--checkpoints", "0", *words())
    good = llc_traces.trace_file(run, OWN, 0).read_bytes()
    strange = {"0123abcd_step_00000000.npz": good, "0123abcd_step_00000010.npz": b"mine", "mine.npz": b"mine"}
    for name, content in strange.items():
        (run / layout.LLC_TRACES / name).write_bytes(content)
    write_bytes(run / layout.LLC_TRACES / "0123abcd_step_00000020.npz", b"the run's, and torn")
    done = estimated(workshop, run, "--checkpoints", "0,30", *words())
    assert table(run)["step"].tolist() == [0, 30]
    for name in (*strange, "0123abcd_step_00000020.npz"):
        assert f"{name} is not the traces of an LLC of this run\n" in done.stderr
    assert {name: (run / layout.LLC_TRACES / name).read_bytes() for name in strange} == strange


def test_traces_that_somebody_else_put_there_are_refused(run: Path, refused: Refused) -> None:
    path = llc_traces.trace_file(run, OWN, 30)
    path.parent.mkdir()
    path.write_bytes(b"mine")
    said = refused("analysis.llc", "--run", run, "--checkpoints", "all", *words())
    assert f"{path} was not written by the laboratory and would be overwritten; move it away" in said


def test_broken_traces_are_refused_until_they_are_moved_away(run: Path, refused: Refused) -> None:
    path = llc_traces.trace_file(run, OWN, 30)
    for content in (b"", b"half", b"PK\x03\x04 and no more"):
        write_bytes(path, content)
        said = refused("analysis.llc", "--run", run, "--checkpoints", "30", *words())
        assert (
            said
            == f"error: {path} is not the traces of an LLC; move it away, and the same command estimates them again\n"
        )
    assert manifest.owns(run, path)


# --- bad input ---


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--eps", 0], "argument --eps: '0' is not a number above 0, from 1.18e-38 to 3.4e+38"),
        (["--eps", "automatic"], "argument --eps: 'automatic' is not a number above 0"),
        (["--eps", "nan"], "argument --eps: 'nan' is not a number above 0, from 1.18e-38 to 3.4e+38"),
        (["--nbeta", -1], "argument --nbeta: '-1' is not a number above 0, from 1.18e-38 to 3.4e+38"),
        (["--nbeta", "inf"], "argument --nbeta: 'inf' is not a number above 0, from 1.18e-38 to 3.4e+38"),
        (["--gamma", -0.5], "argument --gamma: '-0.5' is not a number from 0 to 3.4e+38"),
        (["--mask", "(w"], "mask is '(w', which is not a regular expression"),
        (["--mask", "w{99999999999}"], "which is not a regular expression: the repetition number is too large"),
        (["--mask", "[[w]"], "which is not a regular expression: Possible nested set at position 1"),
        (["--mask", "no_such"], "mask 'no_such' matches no floating-point parameter; choose from "),
        (["--gamma", 0], "with gamma 0 nothing bounds the flat directions at these parameters"),
        (["--batch_size", 129], "batch_size is 129, more than the 128 tasks it is drawn from; raise tasks"),
        (["--batch_size", 0], "argument --batch_size: '0' is not a whole number from 1 to 2^22"),
        (["--chains", 1], "argument --chains: '1' is not a whole number from 2 to 4096"),
        (["--batches", "new"], "batches is 'new'; choose fixed, fresh, full"),
        (["--data", "new"], "batches is 'new'; choose fixed, fresh, full"),  # what the flag was called
        (["--sampler", "adam"], "sampler is 'adam'; choose sgld, rmsprop, sghmc, hmc"),
        (["--preconditioner", "adam"], "sampler is 'adam'; choose sgld"),  # what the flag was called
        (["--sampler", "hmc"], "hmc takes all samples at each step, so it must be full"),
        (["--friction", 0], "argument --friction: '0' is not a number above 0, from 1.18e-38 to 1"),
        (["--descend", -1], "argument --descend: '-1' is not a whole number from 0 to 1000000"),
        (
            ["--checkpoints", "first"],
            "argument --checkpoints: 'first' is not one of all, last, every:K, log:N[:FROM] or steps such as 100,500",
        ),
        (
            ["--checkpoints", "every:0"],
            "argument --checkpoints: '0' is not a whole number from 1 to 2^31 - 1",
        ),
        (["--checkpoints", "log:1"], "argument --checkpoints: '1' is not a whole number from 2 to 100000"),
        (["--checkpoints", "0,31"], "has no snapshot of step 31; it has 0, 30, 60, 90, 100"),
        (["--follow"], "is not training: its status is done; leave --follow out"),
        (["--task_cpus", 2], "argument --task_cpus: only --executor ray or slurm takes it"),
    ],
)
def test_bad_input_is_one_sentence(flags: list[object], sentence: str, run: Path, refused: Refused) -> None:
    assert sentence in refused("analysis.llc", "--run", run, *words(), *flags)


def test_a_missing_package_is_reported_before_the_training_is_followed(
    run: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert "lacks the package ray" in refused("analysis.llc", "--run", run, *words(), "--follow", "--executor", "ray")


@pytest.mark.parametrize("flags", [["--checkpoints", "all"], ["--checkpoints", "30"], ["--follow"]])
def test_a_run_without_snapshots_is_refused(flags: list[str], lsa1_run: Path, tmp_path: Path, refused: Refused) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    (run / layout.LOCK).touch()
    said = refused("analysis.llc", "--run", run, *flags)
    assert said == f"error: {run} has no snapshots of its training; --config.snapshots=true keeps them\n"


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path, refused: Refused) -> None:
    assert "is not a run directory: it has no config.json" in refused("analysis.llc", "--run", tmp_path, "--follow")


def test_a_mask_counts_what_moves(workshop: Workshop, run: Path) -> None:
    """The radius is that of the parameters that move, sqrt(d / gamma), and |w*| theirs."""
    estimated(workshop, run, "--checkpoints", "last", *words(), "--mask", "value")
    row = table(run).iloc[-1]
    moving = [leaf for name, leaf in flattened(read_params(run)).items() if "value" in name]
    size = sum(leaf.size for leaf in moving)
    assert 0 < size < sum(leaf.size for leaf in flattened(read_params(run)).values())
    assert row["radius"] == pytest.approx(math.sqrt(size / OWN.gamma))
    assert row["norm"] == pytest.approx(math.sqrt(sum(float(np.sum(leaf**2)) for leaf in moving)), rel=1e-6)
