"""A sweep over a plugin's names: its workers load it, and its plan asks for it."""

import json
from pathlib import Path

import pytest

from icl_lab.store import layout
from tests.plugin_sources import EVERYTHING
from tests.runners.tiny import Workshop
from tests.sweeps.tiny_sweep import SIZES, Paths


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    path = tmp_path / "everything.py"
    path.write_text(EVERYTHING + "\nprint('loaded')\n")  # a worker's standard output is its sweep's
    return path


@pytest.mark.slow
def test_workers_train_what_a_plugin_registered(plugin: Path, workshop: Workshop, tmp_path: Path) -> None:
    paths = Paths(tmp_path / "runs", tmp_path / "results.csv")
    words = ["--models", "lsa1", "--ordering", "random,last_first", "--seeds", "0", *SIZES]
    words += ["--executor", "process", "--config.baselines=nothing", *paths.flags()]
    done = workshop.run("eval_order", *words, "--plugin", plugin)
    assert done.returncode == 0, done.stderr
    rows = paths.rows()
    assert [(row["ordering"], row["status"]) for row in rows] == [("random", "done"), ("last_first", "done")]
    for row in rows:
        config = json.loads((paths.runs / row["exp"] / layout.CONFIG).read_text())
        assert config["plugins"][0].startswith("everything:")
        headline = json.loads((paths.runs / row["exp"] / layout.SUMMARY).read_text())["headline"]
        assert float(row["test_nothing_loss"]) == pytest.approx(headline["zero_loss"])
        assert float(row["test_nothing_ratio_se"]) == pytest.approx(headline["nothing_ratio_se"])
    index = np_index(paths.runs / rows[1]["exp"])
    assert index == [list(range(len(index[0])))[::-1]] * len(index)
    for command in ("sweeps.status", "sweeps.collect"):
        flags = paths.flags() if command == "sweeps.collect" else ["--runs_dir", paths.runs]
        refused = workshop.run(command, *flags)
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
        assert "was trained with the plugin everything; give --plugin FILE" in refused.stderr
        assert workshop.run(command, *flags, "--plugin", plugin).returncode == 0
    assert paths.rows() == rows


def np_index(run: Path) -> list[list[int]]:
    import numpy as np

    found: list[list[int]] = np.load(run / layout.ORDERING_INDEX).tolist()
    return found


def test_a_plugin_that_changes_under_a_sweep_fails_its_cells(plugin: Path, workshop: Workshop, tmp_path: Path) -> None:
    """The sweep's own process has read it; a worker, which begins later, reads another file under that name."""
    paths = Paths(tmp_path / "runs", tmp_path / "results.csv")
    plugin.write_text(f"{EVERYTHING}\nopen(__file__, 'a').write('#')\n")
    words = ["--models", "lsa1", "--ordering", "last_first", "--seeds", "0", *SIZES, "--executor", "process"]
    done = workshop.run("eval_order", *words, *paths.flags(), "--plugin", plugin)
    assert (done.returncode, "it has changed while it was loaded" in done.stderr) == (2, True)
    assert not paths.runs.exists()


def test_ids_of_cells_that_use_nothing_stay(plugin: Path, workshop: Workshop, tmp_path: Path) -> None:
    paths = Paths(tmp_path / "runs", tmp_path / "results.csv")
    words = ["--models", "lsa1", "--ordering", "random,easy2hard", "--seeds", "0,1", *paths.flags(), "--dry_run"]
    plain, loaded = (workshop.run("eval_order", *words, *more) for more in ([], ["--plugin", plugin]))
    assert loaded.stdout == plain.stdout
    assert plain.stdout.count("planned") >= 4
