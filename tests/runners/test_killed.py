"""Killed at every kind of place, again and again, a run ends with the bytes of one that never was.

Five seeded schedules hit each place once, so each is hit five times. The short form is in test_resume.py.
"""

import random
from pathlib import Path

import pytest

from icl_lab.store import layout, rundir
from tests.runners.tiny import EVERY_CHUNK, INTERRUPTED, LSA1, SIZES, TWOLAYER, Workshop, results

pytestmark = pytest.mark.robust

# place -> where exactly, one of which is drawn
TRAINING = {
    "checkpoint write": ("during:step_*.safetensors", "before:step_*.safetensors"),
    "between the rename of a checkpoint and the index of it": ("after:step_*.safetensors",),
    "metrics append": ("during:metrics.jsonl",),
}
FINISHING = {
    "params write": ("during:params.safetensors", "after:params.safetensors", "during:params.pkl", "before:params.pkl"),
    "analysis": tuple(
        f"{when}:{name}"
        for when in ("during", "before", "after")
        for name in ("analysis_batch.npz", "predictions.npz", "weights.npz", "alignment.csv", "ood.csv", "layer0.npz")
    ),
}
SCHEDULES = 5


def schedule(seed: int) -> dict[str, str]:
    """A place of each kind, the ones in training in any order, at their first or second time."""
    draw = random.Random(seed)
    order = draw.sample(list(TRAINING), len(TRAINING))
    drawn = {place: f"{draw.choice(TRAINING[place])}:SIGKILL:{draw.choice((1, 2))}" for place in order}
    return drawn | {place: f"{draw.choice(FINISHING[place])}:SIGKILL" for place in FINISHING}


def test_the_schedules_differ_and_hit_each_place_as_often() -> None:
    schedules = [schedule(seed) for seed in range(SCHEDULES)]
    assert all(set(places) == {*TRAINING, *FINISHING} for places in schedules)
    assert len({tuple(places) for places in schedules}) > 1
    for place in ("analysis", "params write", "checkpoint write"):
        assert len({places[place] for places in schedules}) > 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_a_run_that_is_killed_again_and_again_ends_with_the_same_bytes(
    seed: int, workshop: Workshop, lsa1_run: Path, twolayer_run: Path, tmp_path: Path
) -> None:
    module, expected = ((LSA1, lsa1_run), (TWOLAYER, twolayer_run))[seed % 2]
    run, log = tmp_path / "run", tmp_path / "hit"
    line = [module, *SIZES, *EVERY_CHUNK, "--out", run, "--save_attention"]
    for place, where in schedule(seed).items():
        killed = workshop.run(*line, INTERRUPT=where, INTERRUPT_LOG=str(log), PYTHONPATH=INTERRUPTED)
        assert killed.returncode == -9, f"{place} at {where}: {killed.stderr}"
        assert rundir.read_status(run) == "running"
        assert not (run / layout.SUMMARY).exists()
    assert log.read_text().splitlines() == list(schedule(seed).values())
    done = workshop.run(*line)
    assert done.returncode == 0, done.stderr
    found, bytes_expected = results(run), results(expected)
    assert found.keys() == bytes_expected.keys()
    assert [name for name in found if found[name] != bytes_expected[name]] == []
