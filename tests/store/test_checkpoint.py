"""The last two checkpoints are kept, so that runs stopped between two saves have one in common."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_lab.store import StoreError, checkpoint, layout
from icl_lab.store.atomic import write_safetensors

LIKE = {"['w']": np.zeros(3, np.float32)}  # the shape of what is saved here


def save(run: Path, step: int) -> None:
    checkpoint.save(run, step, {"['w']": np.full(3, step, np.float32)}, {"step": step})


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=6, unique=True).map(sorted))
def test_the_last_two_are_kept(tmp_path_factory: pytest.TempPathFactory, saved: list[int]) -> None:
    run = tmp_path_factory.mktemp("run")
    for step in saved:
        save(run, step)
    assert checkpoint.steps(run) == saved[-2:]
    assert len(list((run / layout.CHECKPOINTS).iterdir())) == len(saved[-2:])
    assert checkpoint.common_steps([run])[-1] == saved[-1]
    np.testing.assert_array_equal(checkpoint.restore(run, saved[-1], LIKE)["['w']"], np.full(3, saved[-1]))


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=6, unique=True).map(sorted), st.integers(1, 3))
def test_a_pack_stopped_between_two_saves_has_a_common_step(
    tmp_path_factory: pytest.TempPathFactory, saved: list[int], ahead: int
) -> None:
    """Runs save one after another: `ahead` of four have the last step, the others the one before it."""
    runs = [tmp_path_factory.mktemp("run") for _ in range(4)]
    for place, run in enumerate(runs):
        for step in saved if place < ahead else saved[:-1]:
            save(run, step)
    assert checkpoint.common_steps(runs)[-1] == saved[-2]


def test_without_a_common_step_there_is_none(tmp_path: Path) -> None:
    save(tmp_path / "a", 10)
    assert checkpoint.common_steps([tmp_path / "a", tmp_path / "new"]) == []
    save(tmp_path / "b", 20)
    assert checkpoint.common_steps([tmp_path / "a", tmp_path / "b"]) == []


def test_a_checkpoint_half_written_is_not_one(tmp_path: Path) -> None:
    save(tmp_path, 10)
    half = layout.checkpoint(tmp_path, 20)
    layout.draft(half, "0123abcd-17-1").write_bytes(b"half")
    assert checkpoint.steps(tmp_path) == [10]


@pytest.mark.parametrize("content", [b"", b"rubbish that is no checkpoint"])
def test_a_broken_checkpoint_says_how_to_go_on(tmp_path: Path, content: bytes) -> None:
    save(tmp_path, 10)
    layout.checkpoint(tmp_path, 10).write_bytes(content)
    with pytest.raises(StoreError, match=r"step_00000010\.safetensors.*--overwrite"):
        checkpoint.restore(tmp_path, 10, LIKE)


@pytest.mark.parametrize(
    "like",
    [
        {"['v']": LIKE["['w']"]},
        LIKE | {"['v']": np.zeros(3, np.float32)},
        {},
        {"['w']": np.zeros((3, 1), np.float32)},
        {"['w']": np.zeros(3, np.int32)},
    ],
)
def test_a_checkpoint_of_another_state_is_refused(tmp_path: Path, like: dict[str, np.ndarray]) -> None:
    save(tmp_path, 10)
    with pytest.raises(StoreError, match=r"step_00000010\.safetensors.*--overwrite"):
        checkpoint.restore(tmp_path, 10, like)


def test_removing_them_leaves_the_rest(tmp_path: Path) -> None:
    save(tmp_path, 10)
    (tmp_path / layout.METRICS).write_text("kept")
    checkpoint.remove(tmp_path)
    checkpoint.remove(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [layout.METRICS]


def test_those_after_a_step_are_removed(tmp_path: Path) -> None:
    save(tmp_path, 10)
    save(tmp_path, 20)
    checkpoint.remove_after(tmp_path, 20)
    assert checkpoint.steps(tmp_path) == [10, 20]
    checkpoint.remove_after(tmp_path, 10)
    checkpoint.remove_after(tmp_path, 10)
    assert checkpoint.steps(tmp_path) == [10]


def test_instead_of_a_damaged_one_the_one_before_is_restored(tmp_path: Path) -> None:
    """By all runs, if it is one run's alone."""
    runs = [tmp_path / "a", tmp_path / "b"]
    assert checkpoint.restore_last([tmp_path / "new", *runs], LIKE) == (0, [], [])
    for run in runs:
        save(run, 10)
        save(run, 20)
    assert checkpoint.restore_last(runs, LIKE)[0] == 20
    layout.checkpoint(runs[1], 20).write_bytes(b"rubbish")
    step, saved, damaged = checkpoint.restore_last(runs, LIKE)
    assert (step, [arrays["['w']"].tolist() for arrays in saved]) == (10, [[10, 10, 10]] * 2)
    aside = runs[1] / "checkpoints/step_00000020.safetensors.damaged"
    assert damaged == [aside]
    assert aside.read_bytes() == b"rubbish"
    assert [checkpoint.steps(run) for run in runs] == [[10, 20], [10]]


def test_if_no_other_is_left_a_damaged_one_stays_and_is_named(tmp_path: Path) -> None:
    save(tmp_path, 10)
    save(tmp_path, 20)
    for step in (10, 20):
        layout.checkpoint(tmp_path, step).write_bytes(b"")
    with pytest.raises(checkpoint.Damaged, match=r"checkpoints/step_00000020\.safetensors.*--overwrite"):
        checkpoint.restore_last([tmp_path], LIKE)
    assert checkpoint.steps(tmp_path) == [10, 20]


@given(st.data())
def test_one_flipped_bit_of_its_arrays_is_seen(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """A safetensors file ends with its arrays: here 12 bytes."""
    run = tmp_path_factory.mktemp("run")
    save(run, 10)
    save(run, 20)
    path = layout.checkpoint(run, 20)
    content = bytearray(path.read_bytes())
    content[-data.draw(st.integers(1, 12))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    assert checkpoint.restore_last([run], LIKE).step == 10


def test_one_of_a_version_that_saved_no_hash_is_restored(tmp_path: Path) -> None:
    write_safetensors(layout.checkpoint(tmp_path, 10), {"['w']": np.full(3, 10, np.float32)}, {"step": 10})
    assert checkpoint.restore_last([tmp_path], LIKE).step == 10


def test_one_that_was_set_aside_goes_with_the_others(tmp_path: Path) -> None:
    save(tmp_path, 10)
    save(tmp_path, 20)
    layout.checkpoint(tmp_path, 20).write_bytes(b"rubbish")
    checkpoint.restore_last([tmp_path], LIKE)
    checkpoint.remove(tmp_path)
    assert list(tmp_path.iterdir()) == []
