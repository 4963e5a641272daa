"""A run that is interrupted, wherever and however often, ends with the same bytes as one that is not."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from icl_lab.store import checkpoint, layout, rundir
from tests.runners.tiny import (
    EVERY_CHUNK,
    INTERRUPTED,
    LSA1,
    RECORDED,
    SIZES,
    THREADS,
    TWOLAYER,
    Done,
    Workshop,
    copied,
    results,
)

pytestmark = pytest.mark.robust


class Stage(NamedTuple):
    """How a process ended, and what was in its run directory then."""

    done: Done
    meta: dict[str, Any]
    metrics: list[int]
    checkpoints: list[int]


def stage(run: Path, done: Done) -> Stage:
    steps = [json.loads(line)["step"] for line in (run / layout.METRICS).read_text().splitlines()]
    return Stage(done, rundir.read_meta(run), steps, checkpoint.steps(run))


class Story(NamedTuple):
    """A run interrupted three times: killed, killed with a torn line of metrics, stopped; and then finished."""

    run: Path
    killed_first: Stage
    killed_later: Stage
    stopped: Stage
    frozen: Path  # a copy of the directory as the stop left it
    finished: Stage


@pytest.fixture(scope="module")
def story(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """The run of `lsa1_run`, interrupted where checkpoints and metrics disagree."""
    run, stages = tmp_path_factory.mktemp("story") / "run", []
    line = [LSA1, *SIZES, *EVERY_CHUNK, "--out", run, "--save_attention"]
    for place in (
        "before:step_00000030.safetensors:SIGKILL",  # its record is written, its checkpoint is not
        "after:step_00000060.safetensors:SIGKILL",
        "after:step_00000090.safetensors:SIGTERM",
    ):
        stages.append(stage(run, workshop.run(*line, INTERRUPT=place, PYTHONPATH=INTERRUPTED)))
        if place.startswith("after:step_00000060"):
            with open(run / layout.METRICS, "a", encoding="utf-8") as file:
                file.write('{"step": 90, "train_l')
    frozen = copied(run, run.parent / "frozen")
    again = shlex.split(stages[-1].done.stdout.splitlines()[-1].rpartition("resumes it: ")[2])
    stages.append(stage(run, workshop.python(*again[1:])))
    return Story(run, *stages[:3], frozen, stages[3])


def test_the_first_process_died_between_a_record_and_its_checkpoint(story: Story) -> None:
    first = story.killed_first
    assert (first.done.returncode, first.meta["status"]) == (-9, "running")
    assert first.metrics == [0, 30]
    assert 1 <= first.checkpoints[-1] < 30


def test_the_second_took_up_the_checkpoint_and_died_after_another(story: Story) -> None:
    second = story.killed_later
    assert (second.done.returncode, second.meta["status"]) == (-9, "running")
    assert (second.metrics, second.checkpoints[-1]) == ([0, 30, 60], 60)


def test_the_third_stopped_when_asked_and_said_how_to_go_on(story: Story) -> None:
    third = story.stopped
    assert (third.done.returncode, third.meta["status"], third.meta["stopped_at"]) == (143, "stopped", 90)
    assert (third.metrics, third.checkpoints[-1]) == ([0, 30, 60, 90], 90)
    sentence = third.done.stdout.splitlines()[-1]
    said = "stopped at step 90; the same command without --overwrite resumes it: "
    assert sentence.startswith(f"{said}{sys.executable} -m {LSA1} ")
    assert "Traceback" not in third.done.stderr


def test_the_sentence_it_said_resumes_and_ends_the_run(story: Story) -> None:
    last = story.finished
    assert last.done.returncode == 0, last.done.stderr
    assert (tuple(last.metrics), last.checkpoints, last.meta["status"]) == (RECORDED, [100], "done")


def test_an_interrupted_run_ends_with_the_bytes_of_an_uninterrupted_one(story: Story, lsa1_run: Path) -> None:
    found, expected = results(story.run), results(lsa1_run)
    assert found.keys() == expected.keys()
    assert [name for name in expected if found[name] != expected[name]] == []


def test_both_say_the_same_at_the_end(story: Story, lsa1_run: Path, workshop: Workshop) -> None:
    """All of the summary but its last line, which has the times."""
    said, expected = story.finished.done.stdout.splitlines(), workshop.said("lsa1").splitlines()
    assert said[:-1] == expected[:-1]
    assert len(said) > 10


def test_training_time_adds_up_over_the_processes(story: Story) -> None:
    seconds = [part.meta["run_seconds"] for part in story[1:4]] + [story.finished.meta["run_seconds"]]
    assert seconds == sorted(seconds)
    assert seconds[-1] > seconds[-2] > seconds[0]


def test_a_run_killed_in_its_analyses_ends_with_the_same_bytes(
    workshop: Workshop, twolayer_run: Path, tmp_path: Path
) -> None:
    """Of two layers, killed when all is trained and half of the files are written."""
    line = [TWOLAYER, *SIZES, "--out", tmp_path / "run", "--save_attention"]
    killed = workshop.run(*line, INTERRUPT="before:metrics_summary.json:SIGKILL", PYTHONPATH=INTERRUPTED)
    assert (killed.returncode, rundir.read_status(tmp_path / "run")) == (-9, "running")
    assert (tmp_path / "run" / layout.PREDICTIONS).exists()
    assert not (tmp_path / "run" / layout.SUMMARY).exists()
    done = workshop.run(*line)
    assert done.returncode == 0, done.stderr
    assert results(tmp_path / "run") == results(twolayer_run)


@pytest.mark.slow
def test_a_run_killed_before_its_first_checkpoint_begins_again(
    workshop: Workshop, lsa1_run: Path, tmp_path: Path
) -> None:
    line = [LSA1, *SIZES, *EVERY_CHUNK, "--out", tmp_path / "run", "--save_attention"]
    killed = workshop.run(*line, INTERRUPT="before:step_00000001.safetensors:SIGKILL", PYTHONPATH=INTERRUPTED)
    assert (killed.returncode, checkpoint.steps(tmp_path / "run")) == (-9, [])
    done = workshop.run(*line)
    assert done.returncode == 0, done.stderr
    assert results(tmp_path / "run") == results(lsa1_run)


@pytest.mark.slow
def test_a_signal_before_or_after_training_stops_a_run_too(workshop: Workshop, lsa1_run: Path, tmp_path: Path) -> None:
    """While the program is compiled, and between two analyses: each time the sentence says where it will go on."""
    run, line = tmp_path / "run", [LSA1, *SIZES, "--out", tmp_path / "run", "--save_attention"]
    for place, status, step in (("config.json:SIGTERM", 143, 0), ("weights.npz:SIGINT", 130, 100)):
        done = workshop.run(*line, INTERRUPT=f"after:{place}", PYTHONPATH=INTERRUPTED)
        assert (done.returncode, rundir.read_status(run)) == (status, "stopped"), done.stderr
        assert done.stdout.splitlines()[-1].startswith(f"stopped at step {step}; the same command")
        assert "Traceback" not in done.stderr
        assert not (run / layout.SUMMARY).exists()
    assert workshop.run(*line).returncode == 0
    assert results(run) == results(lsa1_run)


@pytest.mark.slow
def test_programs_that_are_compiled_anew_give_the_same_bytes(
    workshop: Workshop, lsa1_run: Path, tmp_path: Path
) -> None:
    """The other tests share compiled programs between processes; here nothing is shared."""
    line = [LSA1, *SIZES, *EVERY_CHUNK, "--out", tmp_path / "run", "--save_attention"]
    alone = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "compiled")}
    workshop.run(*line, INTERRUPT="after:step_00000060.safetensors:SIGKILL", PYTHONPATH=INTERRUPTED, **alone)
    alone = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "compiled_again")}
    assert workshop.run(*line, **alone).returncode == 0
    assert results(tmp_path / "run") == results(lsa1_run)


# What a resume needs to be the same

RESTORE = """
import os, sys
from pathlib import Path
from icl_lab.runners.locks import restore_threads
restore_threads(Path(sys.argv[1]), int(sys.argv[2]))
print(os.environ.get("NPROC"))
"""


def changed(story: Story, to: Path, **values: Any) -> Path:
    run = copied(story.frozen, to)
    rundir.update_meta(run, **values)
    return run


def test_the_thread_count_is_restored(story: Story, workshop: Workshop, tmp_path: Path) -> None:
    assert story.stopped.meta["threads"] == THREADS
    run = changed(story, tmp_path / "run", threads=THREADS + 3)
    assert workshop.python("-c", RESTORE, run, 1).stdout == f"{THREADS + 3}\n"
    assert workshop.python("-c", RESTORE, story.frozen, 1).stdout == "None\n"
    assert workshop.python("-c", RESTORE, run, 1, NPROC=str(THREADS + 3)).returncode == 0


@pytest.mark.slow
def test_the_restored_thread_count_is_the_one_that_the_run_then_uses(
    story: Story, workshop: Workshop, tmp_path: Path
) -> None:
    device = story.stopped.meta["device"].replace(f"{THREADS} threads", f"{THREADS + 1} threads")
    run = changed(story, tmp_path / "run", threads=THREADS + 1, device=device)
    done = workshop.run(LSA1, *SIZES, "--out", run)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("device: ")
    assert f"{THREADS + 1} threads" in done.stdout.splitlines()[0]


@pytest.mark.parametrize(
    ("values", "environment", "words"),
    [
        ({}, {"NPROC": "9"}, "was begun with {threads} threads; set NPROC={threads} to resume"),
        ({"pack_width": 5}, {}, "was begun with pack_width 5, not 1; --overwrite retrains it"),
        ({"versions": {"jax": "0.1"}}, {}, "was begun with jax 0.1, not "),
    ],
)
def test_what_cannot_be_restored_is_refused_if_that_is_asked_for(
    story: Story,
    workshop: Workshop,
    tmp_path: Path,
    values: dict[str, Any],
    environment: dict[str, str],
    words: str,
) -> None:
    run = changed(story, tmp_path / "run", **values)
    before = results(run)
    done = workshop.run(LSA1, *SIZES, "--strict_resume", "--out", run, **environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"error: {run} {words.format(threads=THREADS)}" in done.stderr
    assert done.stderr.count("\n") == 1
    assert results(run) == before


@pytest.mark.parametrize("status", ["done", "diverged"])
def test_conditions_of_runs_that_have_ended_do_not_matter(
    story: Story, workshop: Workshop, tmp_path: Path, status: str
) -> None:
    run = changed(story, tmp_path / "run", status=status, threads=77, versions={"jax": "0.1"})
    assert workshop.python("-c", RESTORE, run, 5).stdout == "None\n"


@pytest.mark.slow
def test_a_damaged_checkpoint_costs_the_steps_since_the_one_before(
    story: Story, workshop: Workshop, lsa1_run: Path, tmp_path: Path
) -> None:
    run = copied(story.frozen, tmp_path / "run")
    damaged = layout.checkpoint(run, 90)
    damaged.write_bytes(b"rubbish")
    done = workshop.run(LSA1, *SIZES, "--out", run, "--save_attention")
    assert done.returncode == 0, done.stderr
    assert f"{damaged}.damaged: a damaged checkpoint, set aside; the run goes on from step" in done.stdout
    assert "this run has met damaged checkpoints and resumed from earlier ones" in done.stdout
    assert rundir.read_meta(run)["damaged_checkpoints"] == [f"{damaged.relative_to(run)}.damaged"]
    assert [file.name for file in damaged.parent.iterdir()] == ["step_00000100.safetensors"], "the final state alone"
    assert results(run) == results(lsa1_run)


def test_checkpoints_that_cannot_be_read_are_said(story: Story, workshop: Workshop, tmp_path: Path) -> None:
    run = copied(story.frozen, tmp_path / "run")
    for step in checkpoint.steps(run):
        layout.checkpoint(run, step).write_bytes(b"rubbish")
    done = workshop.run(LSA1, *SIZES, "--out", run)
    assert done.returncode == 2
    assert f"error: {layout.checkpoint(run, 90)} cannot be read" in done.stderr.splitlines()[-1]
    assert "--overwrite retrains the run" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_run_that_other_sources_go_on_with_says_so(story: Story, workshop: Workshop, tmp_path: Path) -> None:
    run = copied(story.frozen, tmp_path / "run")
    began = rundir.read_meta(run)["sources"] | {"src/attn.py": "0" * 16}
    rundir.update_meta(run, sources=began)
    done = workshop.run(LSA1, *SIZES, "--out", run)
    assert done.returncode == 0, done.stderr
    meta = rundir.read_meta(run)
    assert (meta["sources"], meta["sources_changed"]) == (began, ["src/attn.py"])
    assert done.stdout.splitlines()[-1].startswith("src/attn.py has changed since this run began")
    assert "sources_changed" not in story.finished.meta
