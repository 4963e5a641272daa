"""Runs with plugins: what is registered reaches the numbers, and a run asks for the plugin it was made with."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from icl_lab.store import layout
from icl_lab.store.params import read_params
from tests.doors import snapshot
from tests.plugin_sources import EVERYTHING
from tests.runners.tiny import INTERRUPTED, LSA1, SIZES, Workshop, copied, tokens

SETTINGS = (
    "--train_ordering last_first --eval_ordering hardest_first --noise_mode flips --noise_p 0.25 "
    "--config.init_scale=20 --config.num_pairs=4 "
    "--config.input_distribution=rademacher --config.attention=halved --config.baselines=nothing,undefined"
).split()
DIVERSITY = "runners.run_task_diversity"


@pytest.fixture
def plugin(workshop: Workshop, tmp_path: Path) -> Path:
    """A plugin of every kind; the file of the shared run, at the place it was trained with."""
    path = workshop.folder / "everything.py"
    path.write_text(EVERYTHING)
    return path


@pytest.fixture
def finished(workshop: Workshop, plugin: Path) -> Path:
    """A run that uses an ordering, a noise mode, an input distribution, an attention kind and baselines. Read only."""
    return workshop.finished("plugged", LSA1, *SETTINGS, "--save_attention", "--plugin", plugin)


def config_of(run: Path) -> dict:
    return json.loads((run / layout.CONFIG).read_text())


def test_the_config_has_the_plugin_and_what_it_registered_was_trained_with(finished: Path) -> None:
    config, batch = config_of(finished), np.load(finished / layout.ANALYSIS_BATCH)
    assert [record.partition(":")[0] for record in config["plugins"]] == ["everything"]
    assert set(np.unique(np.abs(batch["x"]))) == {0.5}
    mask, clean = np.load(finished / layout.NOISE_MASK), np.einsum("bnd,bd->bn", batch["x"], batch["w"])
    assert 0.1 < mask.mean() < 0.4
    np.testing.assert_allclose(batch["y"], np.where(mask, -clean, clean), atol=1e-5)
    train = np.load(finished / layout.ANALYSIS / f"train_{layout.ORDERING_INDEX}")
    assert (train == np.arange(train.shape[1])[::-1]).all()
    residual = np.abs(batch["y"] - clean)
    assert (np.diff(residual, axis=1) <= 1e-5).all()  # hardest first


def test_its_attention_is_the_plugins(finished: Path) -> None:
    """Half the scores of linear attention, by hand in float64."""
    batch = np.load(finished / layout.ANALYSIS_BATCH)
    (layer,) = read_params(finished).values()
    rows = tokens(type("B", (), {name: batch[name] for name in ("x", "y", "x_query")}), "concatenated")
    context, query = rows[:, :-1], rows[:, -1:]
    weight = {name: value.astype(float) for name, value in layer.items()}
    keys, values = (np.einsum("bnw,whk->bhnk", context, weight[name]) for name in ("key", "value"))
    scores = np.einsum("brw,whk,bhnk->bhrn", query, weight["query"], keys) / 2
    update = np.einsum("bhrn,bhnk,hkw->brw", scores, values, weight["projection"])
    assert (finished / layout.FIGURES / layout.head_figure(0, 0)).exists()
    found = np.load(finished / layout.PREDICTIONS)["tf"]
    np.testing.assert_allclose(np.abs(found), np.abs(update[:, 0, -1]), rtol=1e-3, atol=1e-4)
    assert np.abs(found).max() > 1e-3


def test_baselines_stand_in_the_headline_and_what_knows_the_noise_beside_them(
    finished: Path, workshop: Workshop
) -> None:
    numbers = json.loads((finished / layout.SUMMARY).read_text())["headline"]
    assert numbers["nothing_loss"] == numbers["zero_loss"]
    assert numbers["nothing_ratio"] == pytest.approx(numbers["tf_loss"] / numbers["zero_loss"])
    assert numbers["undefined_loss"] is None
    assert numbers["undefined_loss_reason"] == "it is not defined in 4 dimensions"
    known = json.loads((finished / layout.COMPARATORS).read_text())
    assert known["linear_mmse"]["loss"] > 1  # it predicts 2
    assert known["mask_bayes"]["loss"] is not None
    said = workshop.said("plugged")
    assert "transformer / nothing, same tasks" in said
    assert "not defined: it is not defined in 4 dimensions" in said


@pytest.mark.slow
def test_a_task_distribution_and_its_posterior_mean_are_measured(
    plugin: Path, workshop: Workshop, tmp_path: Path
) -> None:
    words = "--task_distribution signs --num_tasks inf --steps 4 --batch_size 16"
    words += " --config.eval_tasks=16 --config.test_tasks=16"
    done = workshop.run(DIVERSITY, "--plugin", plugin, *words.split(), "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert (np.abs(np.load(tmp_path / "run" / layout.ANALYSIS_BATCH)["w"]) == 1).all()
    numbers = json.loads((tmp_path / "run" / layout.SUMMARY).read_text())["headline"]
    assert numbers["ood_signs_loss"] == numbers["ood_zero_loss"]  # the plugin's mean is 0
    assert "signs prior's mean" in done.stdout
    assert config_of(tmp_path / "run")["plugins"][0].startswith("everything:")


def test_a_run_that_uses_nothing_of_a_plugin_is_the_run_it_was(
    plugin: Path, lsa1_run: Path, workshop: Workshop, tmp_path: Path
) -> None:
    """It is done: with the plugin loaded, its summary is shown, and nothing is trained."""
    run = copied(lsa1_run, tmp_path / "run")
    before = {name: content for name, content in snapshot(run).items() if name != layout.LOCK}
    done = workshop.run(LSA1, *SIZES, "--save_attention", "--out", run, "--plugin", plugin)
    assert (done.returncode, "trained transformer" in done.stdout) == (0, True), done.stderr
    assert {name: content for name, content in snapshot(run).items() if name != layout.LOCK} == before
    assert config_of(run)["plugins"] == config_of(run)["baselines"] == []


# What a run asks for


@pytest.mark.parametrize(
    "words",
    [
        ("analysis.alignment", "--run"),
        ("plots.run_figures", "--run"),
        ("analysis.comparators", "--run"),
        ("baselines.gd_step", "--like"),
    ],
)
def test_without_the_flag_a_run_asks_for_its_plugin(words: tuple[str, str], finished: Path, workshop: Workshop) -> None:
    done = workshop.run(words[0], words[1], finished)
    sentence = f"error: {finished} was trained with the plugin everything; give --plugin FILE"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{sentence} (in Python: plugins.load(FILE))\n"


def test_with_it_an_analysis_says_what_the_run_said(
    finished: Path, plugin: Path, workshop: Workshop, tmp_path: Path
) -> None:
    run = copied(finished, tmp_path / "run")
    done = workshop.run("analysis.alignment", "--run", run, "--plugin", plugin)
    assert done.returncode == 0, done.stderr
    assert (run / layout.ALIGNMENT).read_bytes() == (finished / layout.ALIGNMENT).read_bytes()


def test_a_list_of_runs_says_which_plugin_one_needs(finished: Path, plugin: Path, workshop: Workshop) -> None:
    without, given = (workshop.run("store.runs", finished, *flag).stdout for flag in ((), ("--plugin", plugin)))
    (record,) = config_of(finished)["plugins"]
    assert without.endswith(f" plugins_missing={record}\n")
    assert "plugins_missing" not in given
    path, status, _, _, *numbers = given.splitlines()[1].split()[:7]  # its age may have become another
    assert [path, status] == [str(finished), "done"]
    assert all(word in without.split() for word in (path, status, *numbers))


@pytest.mark.parametrize("place", ["run", "path"])
def test_a_run_directory_never_loads_a_plugin(place: str, finished: Path, workshop: Workshop, tmp_path: Path) -> None:
    """Not one that lies in it, nor one that lies where Python would find it."""
    run, path = copied(finished, tmp_path / "run"), tmp_path / "path"
    path.mkdir()
    (tmp_path / place / "everything.py").write_text(f"open({str(tmp_path / 'loaded')!r}, 'w')\n{EVERYTHING}")
    done = workshop.run("analysis.alignment", "--run", run, PYTHONPATH=str(path))
    assert done.returncode == 2
    assert not (tmp_path / "loaded").exists()


def test_a_plugin_that_has_changed_neither_resumes_nor_reads_a_run(
    plugin: Path, finished: Path, workshop: Workshop, tmp_path: Path
) -> None:
    stopped = workshop.run(
        *(LSA1, *SIZES, *SETTINGS, "--plugin", plugin, "--out", tmp_path / "stopped"),
        PYTHONPATH=INTERRUPTED,
        INTERRUPT="after:step_*.safetensors:SIGTERM",
    )
    assert stopped.returncode == 143, stopped.stderr
    changed = tmp_path / "everything.py"
    changed.write_text(EVERYTHING + "\n# another\n")
    done = copied(finished, tmp_path / "done")
    for run in (tmp_path / "stopped", done):
        before = snapshot(run)
        for words in ((LSA1, *SIZES, *SETTINGS, "--out", run), ("analysis.alignment", "--run", run)):
            ended = workshop.run(*words, "--plugin", changed)
            assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
            assert f"{run} was trained with another version of the plugin everything (hash " in ended.stderr
            assert f"{changed} have changed" in ended.stderr
        assert snapshot(run) == before
    resumed = workshop.run(LSA1, *SIZES, *SETTINGS, "--plugin", plugin, "--out", tmp_path / "stopped")
    assert resumed.returncode == 0, resumed.stderr
    for name in (layout.METRICS, layout.PARAMS, layout.SUMMARY):
        assert (tmp_path / "stopped" / name).read_bytes() == (finished / name).read_bytes()
    shutil.rmtree(done)


# Threads: a plugin may have imported JAX before the run's number of them is known


@pytest.mark.slow
@pytest.mark.parametrize("starts", [False, True])
def test_a_resume_gets_its_threads_unless_the_plugin_has_started_jax(
    starts: bool, workshop: Workshop, tmp_path: Path
) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(f"import jax\nfrom icl_lab.lab import plugins\nN = {'jax.numpy.ones(3) + 1' if starts else 0}\n")
    words = (LSA1, *SIZES, "--plugin", plugin, "--out", tmp_path / "run")
    stopped = workshop.run(*words, NPROC="3", PYTHONPATH=INTERRUPTED, INTERRUPT="after:step_*.safetensors:SIGTERM")
    assert stopped.returncode == 143, stopped.stderr
    done = workshop.run(*words, "--quiet", *["--strict_resume"] * starts)
    if starts:
        assert done.returncode == 2
        assert "was begun with 3 threads; set NPROC=3 to resume" in done.stderr
    else:
        assert done.returncode == 0, done.stderr
        through = workshop.run(LSA1, *SIZES, "--out", tmp_path / "through", NPROC="3")
        assert through.returncode == 0, through.stderr
        for name in (layout.METRICS, layout.PARAMS):
            assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "through" / name).read_bytes()
