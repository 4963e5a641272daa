"""`--llc_every K`: estimates during the training, which they change nothing of."""

import json
from pathlib import Path
from typing import Any

import pytest

from icl_lab.store import layout, rundir
from icl_lab.store.llc_rows import is_usable
from icl_lab.store.metrics import read_metrics
from tests.analysis.llc_runs import words
from tests.families.small import READERS
from tests.families.small import SIZES as PLUGIN_SIZES
from tests.runners.tiny import EVERY_CHUNK, INTERRUPTED, LSA1, RECORDED, SIZES, Workshop, copied, results

EVERY = ("--llc_every", 2, *words("llc_"))
FIELDS = {"llc", "llc_low", "llc_high", "llc_saturation", "llc_verdict", "llc_reasons"}


@pytest.fixture(scope="module")
def run(workshop: Workshop) -> Path:
    """A run that is estimated at every second record. Read only."""
    return workshop.finished("llc_every", LSA1, *EVERY)


def test_they_change_nothing_else(run: Path, workshop: Workshop) -> None:
    without = workshop.finished("llc_never", LSA1)
    found, expected = results(run), results(without)
    told = {layout.METRICS, layout.SUMMARY}
    assert {name: found[name] for name in found if name not in told} == {
        name: expected[name] for name in expected if name not in told
    }
    for record, other in zip(read_metrics(run), read_metrics(without), strict=True):
        due = RECORDED.index(record["step"]) % 2 == 0
        assert {*record} - {*other} == (FIELDS if due else set())
        assert {name: record[name] for name in other} == other
    assert "llc" not in rundir.read_meta(without)
    began = rundir.read_meta(run)["llc"]
    assert (began["every"], began["chains"], began["nbeta"], began["gamma"]) == (2, 3, 133.3, 667.0)


@pytest.mark.slow
def test_killed_and_resumed_it_has_the_same_bytes(run: Path, workshop: Workshop, tmp_path: Path) -> None:
    line = [LSA1, *SIZES, *EVERY_CHUNK, *EVERY, "--quiet", "--out", tmp_path / "run"]
    for place in ("during:metrics.jsonl:SIGKILL:3", "after:step_00000090.safetensors:SIGKILL"):
        assert workshop.run(*line, INTERRUPT=place, PYTHONPATH=INTERRUPTED).returncode == -9, place
    done = workshop.run(*line)
    assert (done.returncode, done.stderr) == (0, "")
    assert results(tmp_path / "run") == results(run)


@pytest.mark.slow
def test_the_progress_says_the_last_estimate(workshop: Workshop, tmp_path: Path) -> None:
    done = workshop.run(LSA1, *SIZES, "--llc_every", 2, *words("llc_"), "--out", tmp_path / "run")
    last = read_metrics(tmp_path / "run")[-1]
    marked = "" if is_usable(last | {"verdict": last["llc_verdict"]}) else " (not usable)"
    assert done.stderr.splitlines()[-1].endswith(f"  llc {last['llc']:.4g}{marked}")


@pytest.mark.slow
def test_diverged_chains_are_no_number_and_the_progress_says_so(workshop: Workshop, tmp_path: Path) -> None:
    done = workshop.run(LSA1, *SIZES, *EVERY, "--llc_eps", 1e6, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    record = read_metrics(tmp_path / "run")[-1]
    assert record["llc"] is record["llc_low"] is record["llc_high"] is None
    assert (record["llc_verdict"], record["llc_saturation"]) == ("none", None)
    reason, _, _ = record["llc_reasons"].partition(", as eps")
    assert reason.startswith("cannot be computed: chain 0 diverged at draw ")
    assert done.stderr.splitlines()[-1].endswith(f"  no llc: {reason.removeprefix('cannot be computed: ')}")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        pytest.param(
            (),
            "was started with --llc_every 2 --llc_batch_size 32 --llc_tasks 128 --llc_chains 3 --llc_burn_in 10 ",
            marks=pytest.mark.slow,
        ),
        ((*EVERY, "--llc_nbeta", 10), "--llc_draws 40; give these to resume it, or give --overwrite to retrain it"),
    ],
)
def test_a_run_goes_on_with_the_estimates_that_it_began_with(
    flags: tuple[Any, ...], sentence: str, workshop: Workshop, tmp_path: Path
) -> None:
    line = [LSA1, *SIZES, *EVERY_CHUNK, "--out", tmp_path / "run"]
    place = "after:step_00000030.safetensors:SIGKILL"
    assert workshop.run(*line, *EVERY, INTERRUPT=place, PYTHONPATH=INTERRUPTED).returncode == -9
    before = (tmp_path / "run" / layout.METRICS).read_bytes()
    done = workshop.run(*line, *flags)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert sentence in done.stderr
    assert (tmp_path / "run" / layout.METRICS).read_bytes() == before


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--llc_every", 0), "argument --llc_every: '0' is not a whole number from 1"),
        (("--llc_eps", 1e-5), "--llc_eps has no effect without --llc_every K; give that too"),
        (("--llc_every", 1, "--llc_gamma", -1), "argument --llc_gamma: '-1' is not a number from 0 to 3.4e+38"),
        (
            ("--llc_every", 1, "--llc_mask", "no_such"),
            "mask 'no_such' matches no floating-point parameter; choose from ",
        ),
    ],
)
def test_bad_settings_are_refused_before_a_run_is_cleared(
    flags: tuple[Any, ...], sentence: str, run: Path, workshop: Workshop, tmp_path: Path
) -> None:
    own = copied(run, tmp_path / "run")
    done = workshop.run(LSA1, *SIZES, *flags, "--out", own, "--overwrite")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert sentence in done.stderr
    assert results(own) == results(run)


def test_a_model_without_a_null_predictor_says_what_to_add(workshop: Workshop, tmp_path: Path) -> None:
    line = ["runners.run", "reader", *PLUGIN_SIZES, "--plugin", READERS, "--out", tmp_path / "run"]
    done = workshop.run(*line, *EVERY)
    assert done.returncode == 2
    assert done.stderr == (
        "error: the model of reader has no null predictor, which saturation needs: give its Model "
        "null_losses(batch) -> [B], the losses of a predictor that ignores the context\n"
    )
    assert not (tmp_path / "run" / layout.CONFIG).exists()


@pytest.mark.slow
def test_a_plugins_model_is_estimated(workshop: Workshop, tmp_path: Path) -> None:
    logistic = READERS.with_name("logistic")
    line = ["runners.run", "logistic", *PLUGIN_SIZES, "--plugin", logistic, "--out", tmp_path / "run"]
    done = workshop.run(*line, *EVERY)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "run" / layout.METRICS).read_text().splitlines()
    assert [{*json.loads(line)} >= FIELDS for line in lines] == [True, False, True, False]
