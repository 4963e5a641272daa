"""Replication of a claim with a reader's seeds: which runs are trained, what is compared, and what is refused."""

import argparse
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from icl_lab.lab.executors.inline import in_this_process
from icl_lab.src.checks import UsageError
from icl_lab.store.atomic import csv_bytes, write_bytes
from icl_lab.studies import comparison, ledger, measuring, replication, replication_text, run
from icl_lab.studies.claim import Claim, Measurement
from icl_lab.studies.study import all_studies, load
from tests import processes
from tests.doors import snapshot
from tests.runners.tiny import ROOT, Workshop
from tests.studies import replicated

STUDY = replicated.study()
CLAIMS = {claim.name: claim for claim in STUDY.claims}
COMMITTED = (40.0, 44.0, 39.0, 43.0)  # beside which seeds of about 41 and 51 are read


def measured(*values: float | None, seeds: tuple[int, ...] = (), control: tuple[float, ...] = ()) -> Measurement:
    seeds = seeds or tuple(range(len(values)))
    return Measurement(values, seeds, 4.0, "a laptop", "2026-01-01", "abc", control_values=control)


def claim(low: float = 0.5, high: float = 2.0, **rules: Any) -> Claim:
    return Claim("c", "1", "what c says", 1.0, low, high, "derived", float, **({"scale": "linear"} | rules))


def table(folder: Path, values: dict[str, Measurement]) -> None:
    """A results table of the test's study."""
    rows = [ledger.row(STUDY, one, values.get(one.name)) for one in STUDY.claims]
    write_bytes(folder / ledger.TABLE, csv_bytes(rows))


def replicate(*words: str) -> int:
    return run.main(["reproduction", *words])


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh folder to work in, the test's study as the only one, and a table in report/."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measuring, "in_processes", in_this_process)
    monkeypatch.setattr(run, "all_studies", lambda: [STUDY])
    (tmp_path / "report").mkdir()
    table(tmp_path / "report", {"own": measured(*COMMITTED, seeds=(3, 4, 5, 6), control=COMMITTED)})
    return tmp_path


def texts(said: str) -> dict[str, str]:
    """What was said of each claim."""
    blocks = [block for block in said.split("\n\n") if ", what " in block.split("\n")[0]]
    return {block.split(",")[0]: block for block in blocks}


def test_runs_are_trained_with_the_seeds_and_nothing_else_is_written(
    in_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Measures give the seeds that runs were trained with; those of the control and of paired runs too."""
    before = snapshot(in_folder / "report")
    line = ["--claims", ",".join(CLAIMS), "--seeds", "41,42,44", "--executor", "serial", "--quiet"]
    assert replicate(*line) == 0
    said = texts(capsys.readouterr().out)
    assert "41: 41, 42: 42, 44: 44" in said["own"]
    assert "control      the other runs: 41, 42, 44" in said["own"]
    assert "control      the same networks untrained: 41, 42, 44" in said["weak"]
    assert "41: 4142, 42: 4244, 44: 4441" in said["shifted"]
    assert "41: 4146, 42: 4245, 44: 4443" in said["beside"]
    assert "41: did not train, 42: 42, 44: 44; left out: 1 of 3 runs" in said["even"]
    assert "41: 82, 42: 84, 44: 88" in said["several"]
    assert "41: 82, 42: 84, 44: 88" in said["drawn"]
    assert "Your seeds agree with the table" in said["own"]
    assert "report/claims.csv has no values of this claim to compare with" in said["weak"]
    assert snapshot(in_folder / "report") == before
    assert {path.name for path in in_folder.iterdir()} == {"report", "runs"}
    runs = in_folder / "runs" / replication.NAME
    beside = {path.name for path in runs.parent.iterdir() if path.suffix != ".lock"}
    assert beside == {replication.NAME, f"{replication.NAME}.csv"}
    trained = [json.loads(path.read_text())["init_seed"] for path in runs.glob("*/config.json")]
    assert sorted(trained) == [41] * 4 + [42] * 4 + [44] * 4  # one, other, easy2hard and untrained
    assert len(list(runs.glob("*/analysed"))) == 3
    again = snapshot(runs)
    assert replicate(*line) == 0  # gone on with: nothing is left to train
    assert {name: state for name, state in snapshot(runs).items() if "/" in name} == {
        name: state for name, state in again.items() if "/" in name
    }
    assert texts(capsys.readouterr().out) == said


REFUSED = {
    "in_use": (
        ("--claims", "own", "--seeds", "1,21"),
        "own has used seed 1 \\(in use are 0-6, 99, 100\\); choose others",
    ),
    "pilot": (("--claims", "weak", "--seeds", "100,21,99"), "weak has used seeds 99, 100 .*or add --reuse_seeds"),
    "of_another_claim_alone": (("--claims", "weak,own", "--seeds", "5"), "^own has used seed 5 "),
    "sampled": (("--claims", "drawn", "--seeds", "1360,7"), "drawn has used seed 1360 .in use are 99, 100, 1360-1367."),
    "unknown": (("--claims", "severall", "--seeds", "21"), "unknown claim 'severall', did you mean several"),
    "twice": (("--claims", "own", "--seeds", "21,22,21"), "seed 21 stands twice in --seeds"),
    "no_claims": (("--seeds", "21"), "--seeds needs --claims"),
    "controls": (("--claims", "own", "--seeds", "21", "--controls"), "leave --controls out"),
    "profile": (("--claims", "own", "--seeds", "21", "--profile", "gpu"), "leave --profile out"),
    "reuse": (("--claims", "own", "--reuse_seeds"), "--reuse_seeds needs --seeds"),
    "one_of_a_pair": (("--claims", "shifted", "--seeds", "21"), "shifted compares runs of two seeds"),
    "one_of_all": (("--claims", "beside", "--seeds", "21"), "beside compares runs of two seeds"),
    "not_a_seed": (("--claims", "own", "--seeds", "21,x"), "argument --seeds: 'x' is not a whole number"),
    "negative": (("--claims", "own", "--seeds", "-1"), "argument --seeds: '-1' is not a whole number from 0"),
    "replaced_table": (("--claims", "own", "--seeds", "21", "--replace_table"), "leave --replace_table out"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused_is_refused_before_anything_is_trained(kind: str, in_folder: Path) -> None:
    before = snapshot(in_folder)
    words, sentence = REFUSED[kind]
    with pytest.raises((UsageError, argparse.ArgumentTypeError), match=sentence):
        replicate(*words, "--quiet")
    assert snapshot(in_folder) == before


def test_a_conjecture_is_not_replicated_so(tmp_path: Path) -> None:
    """In a process of its own: the plugin stays imported in the one that loads it."""
    (tmp_path / "mine.py").write_text("")
    done = processes.command("studies.run", str(tmp_path / "mine.py"), "--seeds", "21", "--claims", "own")
    assert (done.returncode, done.stdout) == (2, "")
    assert "leave --claims and --controls out" in done.stderr


def test_seeds_in_use_are_trained_again_if_asked(in_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replicate("--claims", "own", "--seeds", "3,21", "--reuse_seeds", "--dry_run") == 0
    said = capsys.readouterr().out
    assert said.startswith(
        "own with 2 seeds: about 2.0 minutes of training and measuring, for the table's 4 took 4.0 (a la"
    )
    assert "4 runs to do: 4 trainings" in said
    assert not (in_folder / "runs").exists()


def test_seeds_in_use_are_those_of_all_runs_with_the_same_settings() -> None:
    """one_layer_loss is read on runs with finer records than those of other claims, which are other settings."""
    study = load("reproduction")
    claims = {claim.name: claim for claim in study.claims}
    ten = claims["ten_layers_loss"]
    names = [name for name, runs in study.runs.items() if runs.settings == study.runs[ten.runs].settings]
    assert {"ten_layers", "ten_layers_main"} <= {*names}
    expected = {seed for name in names for seed in study.runs[name].seeds}
    assert replication.used_seeds(study, ten, {}) == {99, 100, *expected}
    assert replication.used_seeds(study, ten, {1: measured(1.0, seeds=(77,))}) == {77, 99, 100, *expected}


def test_every_study_is_paired_with_other_seeds_as_with_its_own() -> None:
    """With its own seeds in their order it is the study itself; with others each index has the same distance."""
    for study in all_studies():
        for runs in study.runs.values():
            assert runs.with_seeds(sorted(runs.seeds)).seeds == runs.seeds
            assert runs.with_seeds(runs.seeds).untrained().seeds == (*runs.untrained().seeds,) or runs.shift
    shifted = replicated.ONE.of_next_seeds().of_next_seeds()
    assert shifted.with_seeds((5, 9, 8, 7)).seeds == (8, 7, 5, 9)
    assert shifted.with_seeds((5, 9)).seeds == (5, 9)


def test_seeds_are_said_in_ranges() -> None:
    assert replication.in_ranges({3, 1, 2, 0, 99, 100, 7}) == "0-3, 7, 99, 100"


@pytest.mark.parametrize("scale", ["linear", "log", "fisher"])
def test_the_comparison_is_scipys(scale: str) -> None:
    """Prediction: mean +- t s sqrt(1/m + 1/n); the power of the shifts found by simulation of the t statistic."""
    to, back = {"linear": (np.array, np.array), "log": (np.log, np.exp), "fisher": (np.arctanh, np.tanh)}[scale]
    committed, fresh = np.array([0.4, 0.5, 0.45, 0.52, 0.38]), np.array([0.41, 0.6])
    found = comparison.compare(fresh, committed, scale)
    both = to(np.concatenate([committed, fresh]))
    error = to(committed).std(ddof=1) * math.sqrt(1 / 5 + 1 / 2)
    expected = back(np.array(stats.t.interval(0.9, 4, to(committed).mean(), error)))
    np.testing.assert_allclose(found.predicted[1:3], expected, rtol=1e-9)
    pooled = stats.t.interval(0.9, 6, both.mean(), stats.sem(both))
    np.testing.assert_allclose(found.pooled[:3], back(np.array([both.mean(), *pooled])), rtol=1e-9)
    np.testing.assert_allclose(found.fresh[0], back(to(fresh).mean()), rtol=1e-9)
    shift = (to(found.found[1]) - to(committed).mean()) / error
    assert stats.nct.sf(stats.t.ppf(0.95, 4), 4, shift) == pytest.approx(0.8, abs=1e-6)
    assert found.side == 0


def test_a_mean_just_outside_lies_on_its_side() -> None:
    committed = np.array([1.0, 2.0, 3.0, 4.0])
    low, high = stats.t.interval(0.9, 3, 2.5, committed.std(ddof=1) * math.sqrt(1 / 4 + 1))
    for mean, side in ((low - 1e-6, -1), (low + 1e-6, 0), (high - 1e-6, 0), (high + 1e-6, 1)):
        assert comparison.compare(np.array([mean]), committed, "linear").side == side


def test_a_tenth_of_replications_of_the_same_law_lies_outside() -> None:
    """1000 studies: within three simulation standard errors."""
    draws = np.random.default_rng(3).lognormal(0.0, 0.5, (1000, 11))
    outside = np.mean([comparison.compare(row[:3], row[3:], "log").side != 0 for row in draws])
    assert outside == pytest.approx(0.1, abs=3 * math.sqrt(0.09 / 1000))


def test_two_kinds_are_counted_on_the_ranges_side_of_the_cut() -> None:
    """By the beta-binomial of SciPy with Jeffreys' prior."""
    c = claim(0.9, 1.1, cut=0.5)
    found = comparison.of_claim(c, measured(1.0, 0.1, 0.9), measured(*[1.0] * 6, 0.1, 0.2))
    ((what, counts),) = found.items()
    assert what == "share above 0.5"
    assert [*comparison.of_claim(claim(0.9, 1.1, cut=1.2), measured(1.0), measured(1.0, 1.3))] == ["share below 1.2"]
    assert (counts.fresh.estimate, counts.committed.estimate) == (2 / 3, 0.75)
    expected = stats.betabinom(3, 6.5, 2.5).ppf([0.05, 0.95]) / 3
    np.testing.assert_allclose(counts.predicted[1:3], expected, atol=1e-12)
    assert counts.pooled[:2] == pytest.approx((8 / 11, stats.binomtest(8, 11).proportion_ci(0.9).low))


def test_a_claim_of_every_run_is_compared_by_its_mean_and_by_its_count() -> None:
    found = comparison.of_claim(claim(every=True), measured(1.0, 3.0), measured(1.0, 1.2, 0.9))
    assert [*found] == ["mean", "share in the range"]
    assert found["share in the range"].fresh.estimate == 0.5
    assert found["share in the range"].committed.estimate == 1.0
    assert found["mean"].fresh.estimate == 2.0


def test_runs_that_did_not_train_do_not_count() -> None:
    c = claim(among=float)
    found = comparison.of_claim(c, measured(1.0, math.nan, 2.0), measured(1.0, 1.5, math.nan))["mean"]
    assert (found.fresh.n, found.committed.n, found.pooled.n) == (2, 2, 4)
    assert found.predicted == comparison.compare(np.array([1.0, 2.0]), np.array([1.0, 1.5]), "linear").predicted
    assert comparison.of_claim(c, measured(math.nan, math.nan), None) == {}
    assert comparison.of_claim(c, measured(1.0, None), None) == {}
    assert comparison.of_claim(c, measured(1.0, 2.0), measured(1.0, None))["mean"].committed is None


def test_of_one_value_and_of_infinite_ones_nothing_is_predicted() -> None:
    for fresh, committed in (((1.0, 2.0), (1.0,)), ((1.0, math.inf), (1.0, 2.0)), ((1.0, 2.0), (math.inf, 2.0))):
        found = comparison.of_claim(claim(), measured(*fresh), measured(*committed))["mean"]
        assert found.predicted is None
        with pytest.raises(ValueError, match="nothing is predicted"):
            _ = found.side
    assert comparison.compare(np.array([3.0]), np.array([2.0, 2.0]), "linear", spacing=1.0).side == 1
    assert comparison.compare(np.array([2.5]), np.array([2.0, 2.0]), "linear", spacing=1.0).side == 0


def test_no_interval_is_outside_what_is_possible() -> None:
    """Fractions near 1 are compared by the log of 1 - v, whose values have no lower bound."""
    c = claim(0.8, 1.0, scale="fraction")
    found = comparison.of_claim(c, measured(0.9, 0.1), measured(0.1, 0.999, 0.5))["mean"]
    for interval in (found.fresh, found.committed, found.pooled, found.predicted):
        assert 0.0 <= interval.low <= interval.high <= 1.0
    assert math.isnan(found.found[0])
    assert 0.9 < found.found[1] < 1.0


def said(c: Claim, fresh: Measurement, committed: Measurement | None) -> str:
    return "\n".join(replication_text.lines(STUDY, c, committed, fresh, Path("report")))


def test_what_differs_is_said_first_and_what_would_be_found_after() -> None:
    text = said(claim(), measured(3.0, 3.2, seeds=(21, 22)), measured(1.0, 1.1, 0.9, 1.05))
    lines = text.splitlines()
    assert lines[0] == "c, what c says"
    assert lines[1].startswith("Your seeds differ from the table: their mean is 3.10. The table predicts 0.8")
    below, above = comparison.shift_found(np.array([1.0, 1.1, 0.9, 1.05]), 2, "linear")
    (shift,) = (line for line in lines if "80 % power" in line)
    numbers = [float(word) for word in re.findall(r"\d\.\d+", shift)]
    assert numbers == pytest.approx([1.0125 - below, below, above - 1.0125, above], abs=0.01)
    assert "21: 3, 22: 3.2" in text
    assert "both 1.7" in text  # 10.25 / 6
    assert "without a verdict" in text
    assert "the table    reading 1: provisional\n" in text


def test_a_seed_alone_has_no_interval_and_what_nobody_measured_is_said() -> None:
    text = said(claim(), measured(1.0, seeds=(21,)), None)
    assert "report/claims.csv has no values of this claim to compare with." in text
    assert "yours 1 (one seed has no interval), n = 1" in text
    assert "reading 1: not run" in text
    assert "pool" not in text


def test_infinite_values_say_what_they_mean() -> None:
    c = claim(infinite="it was never reached", scale="log")
    text = said(c, measured(1.0, math.inf, 2.0, seeds=(21, 22, 23)), measured(1.0, 1.1))
    assert "22: infinite (it was never reached)" in text
    assert "The table predicts nothing of the mean" in text


def test_seeds_of_the_table_are_compared_one_by_one() -> None:
    committed = measured(1.0, 1.5, math.nan)
    c = claim(among=float)
    assert "2 of 2 values of seeds that the table has are the table's to the last bit." in said(
        c, measured(1.0, math.nan, seeds=(0, 2)), committed
    )
    text = said(c, measured(1.25, 3.0, 1.5, seeds=(0, 21, 1)), committed)
    assert (
        "1 of 2 values of seeds that the table has are the table's to the last bit; the largest change is 0.25." in text
    )
    assert "predicts" not in text
    assert "without a verdict" not in text


def test_where_no_run_trained_nothing_is_compared() -> None:
    text = said(claim(among=float), measured(math.nan, math.nan), measured(1.0, 1.2))
    assert "Nothing can be compared: no run learnt." in text
    assert "left out: 2 of 2 runs" in text
    assert "Nothing can be compared: it is not computed for a run." in said(claim(), measured(1.0, math.nan), None)


@pytest.mark.slow
def test_a_main_result_as_a_user_types_it(workshop: Workshop, tmp_path: Path) -> None:
    before = snapshot(ROOT / "report")
    where = ("--runs_dir", tmp_path / "runs")
    done = workshop.run(
        "studies.run", "reproduction", "--claims", "one_layer_loss,one_step_size", "--seeds", "21,22", *where
    )
    assert done.returncode == 0, done.stderr
    assert "21: 0.99" in done.stdout
    assert "21: 0.607" in done.stdout  # the paper's best step is .606
    assert snapshot(ROOT / "report") == before
    refused = workshop.run("studies.run", "reproduction", "--claims", "one_layer_loss", "--seeds", "1000", *where)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert "one_layer_loss has used seed 1000" in refused.stderr
