"""Several seeds in one command: the table, the verdict, the exit status."""

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from icl_lab.scripts.demo_seeds import COLUMNS, WIDTH
from icl_lab.store import rundir
from icl_lab.store.readers import read_json
from tests.runners.tiny import EVERY_CHUNK, INTERRUPTED, Done, Workshop

# What five seeds of the demo give to four digits: the closed form's .606 and .20623, and the transformer beside them.
GOOD: dict[str, Any] = {
    "alignment": {"eta": 0.606, "model_cos": 0.9992, "preds_diff": 0.0205},
    "headline": {"gd_loss_averaged": 0.20623, "loss_ratio": 1.0008, "gd_loss": 0.2074, "gd_loss_se": 0.0033},
}


def misses(**changed: float) -> list[str]:
    """The columns that are not where they must be after changing some values."""
    summary = deepcopy(GOOD)
    for name, value in changed.items():
        part = next(part for part in summary.values() if name in part)
        part[name] = value
    return [name for name, (read, _, holds) in COLUMNS.items() if not holds(read(summary))]


def test_theory_is_where_it_must_be() -> None:
    assert misses() == []


@pytest.mark.parametrize(
    ("name", "just_in", "just_out", "column"),
    [
        ("eta", 0.6205, 0.6215, "eta/N"),
        ("eta", 0.5915, 0.5905, "eta/N"),
        ("gd_loss_averaged", 0.2071, 0.2073, "GD loss"),
        ("gd_loss_averaged", 0.2053, 0.2051, "GD loss"),
        ("loss_ratio", 1.0099, 1.0101, "TF/GD"),
        ("loss_ratio", 0.9971, 0.9969, "TF/GD"),
        ("model_cos", 0.9981, 0.9979, "cosine"),
        ("preds_diff", 0.0249, 0.0251, "|pred diff|"),
        ("gd_loss", 0.20623 + 0.0033 * 2.9, 0.20623 + 0.0033 * 3.1, "sampled z"),
        ("gd_loss", 0.20623 - 0.0033 * 2.9, 0.20623 - 0.0033 * 3.1, "sampled z"),
        ("model_cos", 1.0, float("nan"), "cosine"),
    ],
)
def test_each_number_has_its_bounds(name: str, just_in: float, just_out: float, column: str) -> None:
    assert misses(**{name: just_in}) == []
    assert misses(**{name: just_out}) == [column]


def table(said: str) -> dict[str, list[float]]:
    """The rows of numbers that a demo printed."""
    rows = [re.fullmatch(r"(seed_\d+|mean|± 95 %) +((?:-?[\d.]+ *)+)", line) for line in said.splitlines()]
    return {row[1]: [float(word) for word in row[2].split()] for row in rows if row}


def demo(workshop: Workshop, out: Path, *words: object) -> Done:
    return workshop.run("scripts.demo_seeds", "--out", out, *words)


@pytest.fixture(scope="module")
def short(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """Two seeds, hardly trained."""
    out = tmp_path_factory.mktemp("demo") / "seeds"
    return out, demo(workshop, out, "--seeds", "0,3", "--steps", 3)


@pytest.mark.slow
def test_what_is_hardly_trained_misses_and_exits_with_1(short: tuple[Path, Done]) -> None:
    _, done = short
    assert done.returncode == 1, done.stderr
    missed = done.stdout.splitlines()[-1]
    assert missed.startswith("missed: ")
    for seed in (0, 3):
        for column in ("TF/GD", "cosine", "|pred diff|"):
            assert f"{column} of seed_{seed}" in missed
    assert "eta/N" not in missed  # gradient descent is where it must be, trained or not
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_table_is_of_the_runs(short: tuple[Path, Done]) -> None:
    """A row for each seed from its summary; their mean; half the width of Student's 95 % interval."""
    out, done = short
    rows = table(done.stdout)
    values = {}
    for seed in (0, 3):
        summary = read_json(out / f"seed_{seed}" / "metrics_summary.json")
        align, numbers = summary["alignment"], summary["headline"]
        z = (numbers["gd_loss"] - 0.20623) / numbers["gd_loss_se"]
        head = [align["eta"], numbers["gd_loss_averaged"], numbers["loss_ratio"]]
        values[seed] = np.array([*head, align["model_cos"], align["preds_diff"], z])
        np.testing.assert_allclose(rows[f"seed_{seed}"], values[seed], atol=6e-5)
    both = np.stack(list(values.values()))
    low, high = stats.t.interval(0.95, 1, loc=both.mean(axis=0), scale=stats.sem(both, axis=0))
    np.testing.assert_allclose(rows["mean"], both.mean(axis=0), atol=6e-5)
    np.testing.assert_allclose(rows["± 95 %"], (high - low) / 2, atol=6e-5)


@pytest.mark.slow
def test_every_seed_has_its_directory(short: tuple[Path, Done]) -> None:
    out, _ = short
    assert sorted(path.name for path in out.iterdir()) == ["seed_0", "seed_3"]
    for seed in (0, 3):
        meta = rundir.read_meta(out / f"seed_{seed}")
        assert (meta["status"], meta["pack_width"]) == ("done", WIDTH)
        assert meta["seeds"] == {"data_seed": seed, "init_seed": seed}


@pytest.mark.slow
def test_a_second_time_nothing_is_trained(short: tuple[Path, Done], workshop: Workshop) -> None:
    out, first = short
    files = [path for path in out.rglob("*") if path.is_file() and path.name != ".lock"]
    before = [(path.read_bytes(), path.stat().st_mtime_ns) for path in files]
    again = demo(workshop, out, "--seeds", "0", "3", "--steps", 3)
    day = rundir.read_meta(out / "seed_0")["end"][:10]
    line = f"2 of 2 runs finished earlier ({day}) and were not trained again; --overwrite retrains them\n"
    trained = "".join(said for said in first.stdout.splitlines(True) if not said.startswith("kernel: "))
    assert (again.returncode, again.stdout) == (1, trained + line)
    assert [(path.read_bytes(), path.stat().st_mtime_ns) for path in files] == before


@pytest.mark.slow
def test_stopped_it_says_how_to_go_on_and_a_seed_more_trains_none_again(workshop: Workshop, tmp_path: Path) -> None:
    line = ["scripts.demo_seeds", *EVERY_CHUNK, "--out", tmp_path / "seeds", "--steps", 60]
    place = {"INTERRUPT": "after:step_00000001.safetensors:SIGTERM", "PYTHONPATH": INTERRUPTED}
    stopped = workshop.run(*line, "--seeds", "0,3", **place)
    assert stopped.returncode == 143, stopped.stderr
    sentence = stopped.stdout.splitlines()[-1]
    assert sentence.startswith("stopped at step 1; the same command without --overwrite resumes it: ")
    assert sentence.endswith("--seeds 0,3")
    runs = [tmp_path / "seeds" / f"seed_{seed}" for seed in (0, 3)]
    place["INTERRUPT"] = "before:step_00000001.safetensors:SIGKILL"  # the first step of the third seed
    killed = workshop.run(*line, "--seeds", "0,3,1", **place)
    assert killed.returncode == -9
    assert [rundir.read_status(run) for run in runs] == ["done", "done"]
    assert rundir.read_status(tmp_path / "seeds" / "seed_1") == "running"


@pytest.mark.slow
def test_a_seed_that_diverges_is_named(workshop: Workshop, tmp_path: Path) -> None:
    done = demo(workshop, tmp_path / "seeds", "--seeds", "0,3", "--steps", 3)
    assert done.returncode == 1
    rundir.update_meta(tmp_path / "seeds" / "seed_3", status="diverged", diverged_at=2, last_losses=[0.5])
    again = demo(workshop, tmp_path / "seeds", "--seeds", "0,3", "--steps", 3)
    assert again.returncode == 1
    assert "error: seed_3 diverged at step 2 after test losses 0.5; a smaller --lr" in again.stderr


@pytest.mark.slow
def test_another_number_of_steps_is_another_config(short: tuple[Path, Done], workshop: Workshop) -> None:
    out, _ = short
    done = demo(workshop, out, "--seeds", "0,3", "--steps", 4)
    assert (done.returncode, done.stdout) == (2, "")
    assert "seed_0 holds a run of another config" in done.stderr


@pytest.mark.slow
def test_trained_to_the_end_every_number_is_where_it_must_be(workshop: Workshop, tmp_path: Path) -> None:
    done = demo(workshop, tmp_path / "seeds", "--seeds", "0,1,2,3,4")
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == "every number is where it must be"
    assert len(table(done.stdout)) == 7
