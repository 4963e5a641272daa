"""The smoke test passes on runs that are what they say, and fails on each that is deliberately broken."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread, imsave

from scripts import smoke_train
from store import layout
from tests.runners.tiny import LSA1, STEPS, Workshop, copied


@pytest.fixture
def smoke(
    workshop: Workshop, lsa1_run: Path, twolayer_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A folder with the four runs, small ones."""
    ordered = ["--ordering", "smallnorm2largenorm", "--save_attention"]
    noisy = ["--noise_mode", "label_noise", "--noise_p", "0.25", "--noise_sigma", "0.5", "--save_attention"]
    runs = {
        "lsa1": lsa1_run,
        "lsa1_ordered": workshop.finished("lsa1_ordered", LSA1, *ordered),
        "lsa1_noisy": workshop.finished("lsa1_noisy", LSA1, *noisy),
        "twolayer": twolayer_run,
    }
    for name, run in runs.items():
        copied(run, tmp_path / name)
    monkeypatch.setattr(smoke_train, "STEP", STEPS)
    monkeypatch.setattr(smoke_train, "LOSS", 0.5)  # these runs are too short to learn much
    return tmp_path


def checked(folder: Path) -> int:
    return smoke_train.main(["--out", str(folder), "--check_only"])


def test_runs_that_are_what_they_say_pass(smoke: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(smoke) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["ok"] * 4


def high_loss(folder: Path) -> None:
    path = folder / "lsa1" / layout.METRICS
    records = [json.loads(line) | {"test_loss": 0.51} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def changed_array(name: str, run: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / run / name
        np.save(path, change(np.load(path)))

    return damage


def blank(folder: Path) -> None:
    path = layout.figure(folder / "twolayer", "attention_layer1_head0")
    imsave(path, np.ones_like(imread(path)))


def identity(index: np.ndarray) -> np.ndarray:
    return np.broadcast_to(np.arange(index.shape[1], dtype=index.dtype), index.shape).copy()


BROKEN: dict[str, tuple[Callable[[Path], None], str]] = {
    "it did not learn": (high_loss, f"the loss at step {STEPS} is 0.510, not below 0.5"),
    "no order": (
        changed_array(layout.ORDERING_INDEX, "lsa1_ordered", identity),
        "smallnorm2largenorm changed no index",
    ),
    "not a permutation": (
        changed_array(layout.ORDERING_INDEX, "lsa1_ordered", lambda index: np.maximum(index, 1)),
        "an ordering's index is no permutation",
    ),
    "an order where none is": (
        changed_array(layout.ORDERING_INDEX, "twolayer", lambda index: index[:, ::-1].copy()),
        "random order is not the order drawn",
    ),
    "no noise": (changed_array(layout.NOISE_MASK, "lsa1_noisy", np.zeros_like), "the mask's rate is 0.0000, not 0.25"),
    "too much noise": (changed_array(layout.NOISE_MASK, "lsa1_noisy", np.logical_not), "the mask's rate is 0.7"),
    "an empty picture": (blank, "attention_layer1_head0.png is empty"),
    "no picture": (
        lambda folder: layout.figure(folder / "lsa1", "attention_layer0_head0").unlink(),
        "attention_layer0_head0.png is missing",
    ),
    "no attention": (
        changed_array("attn/layer0_head0.npy", "lsa1", np.zeros_like),
        "the attention of layer 0, head 0 is the same everywhere",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_run_fails_the_script(name: str, smoke: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damage, sentence = BROKEN[name]
    damage(smoke)
    assert checked(smoke) == 1
    said = capsys.readouterr().out
    assert sentence in said
    assert sum(line.startswith("FAILED") for line in said.splitlines()) == 1


@pytest.mark.slow
def test_the_real_one_passes(workshop: Workshop, tmp_path: Path) -> None:
    done = workshop.run("scripts.smoke_train", "--out", tmp_path)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("ok  ") == 4
