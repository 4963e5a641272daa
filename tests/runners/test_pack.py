"""Runs that train together: each has its own directory, and its bytes depend on nothing that its companions do."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from icl_lab.families.regression.config import RegressionConfig
from icl_lab.lab.progress import NullLogger
from icl_lab.runners.loop import Run, run_pack
from icl_lab.runners.pack import programs
from icl_lab.runners.resume import by_checkpoint
from icl_lab.runners.static_shape import static_shape
from icl_lab.src.config import ContextConfig
from icl_lab.store import checkpoint, layout, rundir
from icl_lab.store.metrics import read_metrics
from icl_lab.store.params import read_params
from icl_lab.store.readers import read_safetensors
from tests.runners.tiny import INTERRUPTED, RECORDED, Workshop, results

WIDTH = 4
SEEDS = (0, 1, 2)

TRAIN = f"""
import sys
from dataclasses import replace
from pathlib import Path
from icl_lab.runners import loop
from icl_lab.runners.resume import Persistence
from icl_lab.store import rundir
from icl_lab.lab.progress import ConsoleLogger

class Watched(loop.Pack):
    def advance(self):
        print("runs", len(self.runs), "of", *self.hyperparameters.lr.shape)
        return super().advance()

loop.Pack = Watched

def made(name, seed, lr):
    config = rundir.read_config(Path(sys.argv[1]))
    return loop.Run(Path(sys.argv[2]) / name, replace(config, data_seed=seed, init_seed=seed,
                                                training=replace(config.training, lr=lr)))

runs = [made(f"seed_{{seed}}", seed, 1e-3) for seed in {SEEDS}]
print(loop.run_pack([*runs, made("wild", 0, 1e9)], ConsoleLogger(), width={WIDTH},
                      persistence=Persistence(checkpoint_seconds=0)))
"""


class Packs(NamedTuple):
    """A pack of three seeds and a run that diverges; and the same again after one of the seeds was lost."""

    folder: Path
    said: str
    first: dict[str, dict[str, bytes]]
    untouched: dict[str, int]
    said_again: str


def written(folder: Path) -> dict[str, int]:
    """When each run's parameters were written."""
    return {path.parent.name: path.stat().st_mtime_ns for path in folder.glob(f"*/{layout.PARAMS}")}


@pytest.fixture(scope="module")
def packs(workshop: Workshop, lsa1_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Packs:
    folder = tmp_path_factory.mktemp("pack")
    (folder / "seed_1").mkdir()
    done = workshop.python("-c", TRAIN, lsa1_run, folder)
    assert done.returncode == 0, done.stderr
    first, times = {f"seed_{seed}": results(folder / f"seed_{seed}") for seed in SEEDS}, written(folder)
    shutil.rmtree(folder / "seed_1")
    (folder / "seed_1").mkdir()
    again = workshop.python("-c", TRAIN, lsa1_run, folder)
    assert again.returncode == 0, again.stderr
    return Packs(folder, done.stdout, first, times, again.stdout)


def test_every_run_has_its_own_directory(packs: Packs) -> None:
    assert packs.said.splitlines()[-1] == "done"
    for seed in SEEDS:
        run = packs.folder / f"seed_{seed}"
        assert rundir.read_meta(run)["seeds"] == {"data_seed": seed, "init_seed": seed}
        assert (rundir.read_status(run), rundir.read_meta(run)["pack_width"]) == ("done", WIDTH)
        assert tuple(record["step"] for record in read_metrics(run)) == RECORDED
    assert len({files[layout.PARAMS_PICKLE] for files in packs.first.values()}) == len(SEEDS)
    assert len({files[layout.ANALYSIS_BATCH] for files in packs.first.values()}) == len(SEEDS)


def test_a_run_that_diverges_does_not_take_the_others_with_it(packs: Packs) -> None:
    meta = rundir.read_meta(packs.folder / "wild")
    assert meta["status"] == "diverged"
    assert 1 < meta["diverged_at"] < 10
    assert [record["step"] for record in read_metrics(packs.folder / "wild")] == [0]
    assert not (packs.folder / "wild" / layout.PARAMS).exists()


def test_a_run_that_diverges_keeps_its_last_good_checkpoint(packs: Packs) -> None:
    run = packs.folder / "wild"
    step = checkpoint.steps(run)[-1]
    assert 0 < step < rundir.read_meta(run)["diverged_at"]
    arrays, _ = read_safetensors(layout.checkpoint(run, step))
    assert len(arrays) > 4
    assert all(np.isfinite(array).all() for array in arrays.values())


def test_a_lost_run_comes_back_with_the_same_bytes(packs: Packs) -> None:
    """It then trains with no companion but the padding."""
    assert packs.said_again.splitlines()[-1] == "done"
    found = {f"seed_{seed}": results(packs.folder / f"seed_{seed}") for seed in SEEDS}
    assert found == packs.first


@pytest.mark.slow
def test_a_pack_that_is_killed_twice_ends_with_the_same_bytes(
    packs: Packs, workshop: Workshop, lsa1_run: Path, tmp_path: Path
) -> None:
    """Each time when its first run has a checkpoint that the others lack; the second time it is an earlier one."""
    for step in (60, 31):
        words, place = ("-c", TRAIN, lsa1_run, tmp_path), f"before:step_{step:08d}.safetensors:SIGKILL:2"
        killed = workshop.python(*words, INTERRUPT=place, PYTHONPATH=INTERRUPTED)
        assert killed.returncode == -9, killed.stderr
        steps = [checkpoint.steps(tmp_path / f"seed_{seed}") for seed in SEEDS]
        assert (steps[0][-1], steps[1][-1], steps[2][-1]) == (step, 30, 30)
        rundir.update_meta(tmp_path / "seed_0", chunk_steps=1)  # of a slower machine
    done = workshop.python(*words)
    assert done.returncode == 0, done.stderr
    assert {f"seed_{seed}": results(tmp_path / f"seed_{seed}") for seed in SEEDS} == packs.first


def test_only_the_lost_run_is_trained_again(packs: Packs) -> None:
    now = written(packs.folder)
    assert {name for name in now if now[name] != packs.untouched[name]} == {"seed_1"}


def test_a_pack_is_padded_to_its_width(packs: Packs) -> None:
    """Bits depend on the width, so a run that trains without its companions trains at their width all the same."""
    for said, count in ((packs.said, WIDTH), (packs.said_again, 1)):
        assert {line for line in said.splitlines() if line.startswith("runs")} == {f"runs {count} of {WIDTH}"}


def test_a_run_in_a_pack_is_the_run_alone(packs: Packs, lsa1_run: Path) -> None:
    """Data to the bit, parameters to 1e-5."""
    run = packs.folder / "seed_0"
    for name in (layout.ANALYSIS_BATCH, layout.ORDERING_INDEX, "analysis/train_ordering_idx.npy"):
        assert packs.first["seed_0"][name] == (lsa1_run / name).read_bytes()
    packed, alone = read_params(run), read_params(lsa1_run)
    for module, leaf in alone.items():
        for name, value in leaf.items():
            np.testing.assert_allclose(packed[module][name], value, atol=1e-5)


def test_a_pack_is_not_wider_than_it_is(tmp_path: Path) -> None:
    runs = [Run(tmp_path / str(seed), RegressionConfig(data_seed=seed)) for seed in range(3)]
    with pytest.raises(ValueError, match="at most 2 trainings"):
        run_pack(runs, NullLogger(), width=2)
    assert not any(tmp_path.iterdir())


BASE = RegressionConfig()
TOGETHER = {
    "seeds": replace(BASE, data_seed=1, init_seed=2),
    "step size": replace(BASE, training=replace(BASE.training, lr=0.5)),
    "evaluation": replace(BASE, eval=ContextConfig(ordering="easy2hard", noise_mode="label_noise")),
    "rate of noise": replace(BASE, train=replace(BASE.train, noise_p=0.5)),
    "strength of noise": replace(BASE, train=replace(BASE.train, noise_sigma=0.5)),
}
APART = {
    "order": replace(BASE, train=ContextConfig(ordering="easy2hard")),
    "kind of noise": replace(BASE, train=ContextConfig(noise_mode="label_noise")),
    "placement": replace(BASE, train=ContextConfig(noise_placement="clean_first")),
    "width": replace(BASE, data=replace(BASE.data, dim=11)),
    "batch": replace(BASE, training=replace(BASE.training, batch_size=7)),
    "momentum": replace(BASE, training=replace(BASE.training, b1=0.5)),
    "length": replace(BASE, training=replace(BASE.training, steps=7)),
    "records": replace(BASE, eval_every=7),
    "heads": replace(BASE, model=replace(BASE.model, num_heads=2)),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_runs_that_differ_in_values_alone_train_together(name: str) -> None:
    assert static_shape(TOGETHER[name]) == static_shape(BASE)


@pytest.mark.parametrize("name", APART)
def test_runs_of_different_programs_do_not(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="of one static shape"):
        run_pack([Run(tmp_path / "a", BASE), Run(tmp_path / "b", APART[name])], NullLogger(), width=2)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", TOGETHER)
def test_runs_of_one_shape_share_their_programs_one_after_another_too(name: str) -> None:
    assert programs(static_shape(TOGETHER[name]), 1) is programs(static_shape(BASE), 1)


COMPILED = """
import sys, jax
from dataclasses import replace
from pathlib import Path
from icl_lab.runners.loop import run_one
from icl_lab.store import rundir

count = 0
def listen(name, seconds, **_):
    global count
    count += name.endswith("backend_compile_duration")
jax.monitoring.register_event_duration_secs_listener(listen)
config = rundir.read_config(Path(sys.argv[1]))
for seed in (1, 2):
    count = 0
    run_one(replace(config, data_seed=seed, init_seed=seed), Path(sys.argv[2]) / str(seed))
    print(count)
"""


@pytest.mark.slow
def test_a_second_run_in_a_process_compiles_nothing(workshop: Workshop, lsa1_run: Path, tmp_path: Path) -> None:
    """No program holds a run's seeds, its parameters or its step size as constants."""
    done = workshop.python("-c", COMPILED, lsa1_run, tmp_path)
    assert done.returncode == 0, done.stderr
    first, second = map(int, done.stdout.split())
    assert second == 0 < 10 < first


def held(folder: Path, *steps: int) -> Run:
    """A run whose directory has checkpoints of these steps."""
    for step in steps:
        checkpoint.save(folder, step, {"a": np.zeros(1)}, {})
    return Run(folder, BASE)


def test_runs_go_on_together_from_a_step_that_all_of_them_hold(tmp_path: Path) -> None:
    """A run added later starts by itself, and so does one that came from another pack: nothing is trained again."""
    ahead, behind = held(tmp_path / "a", 40, 60), held(tmp_path / "b", 20, 40)
    fresh, newer = held(tmp_path / "c"), held(tmp_path / "d")
    other = held(tmp_path / "e", 500, 520)
    assert by_checkpoint([fresh, ahead, other, newer, behind]) == [[fresh, newer], [ahead, behind], [other]]
    assert checkpoint.common_steps([ahead.directory, behind.directory])[-1] == 40
