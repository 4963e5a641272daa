"""Runs of languages and of their autoencoder, from the command line to the directory; and what is refused."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from icl_lab import store
from icl_lab.analysis.loaded_run import load_run
from icl_lab.families.languages.task import accuracy
from icl_lab.store import layout
from tests.doors import Ran, Refused, ran, refused

__all__ = ["ran", "refused"]

TINY = ["--steps", 20, "--eval_every", 10, "--config.batch_size=32", "--config.eval_tasks=128", "--quiet"]
TINY += ["--config.test_tasks=256", "--config.pool_size=128", "--max_length", 10]
RUNNER, ENCODER = "runners.run_languages", "runners.run_autoencoder"


def test_a_run_has_its_files_and_says_what_they_hold(ran: Ran, tmp_path: Path) -> None:
    done = ran(RUNNER, *TINY, "--code_dim", 8, "--out", "run")
    assert done.status == 0, done.err
    run = tmp_path / "run"
    for name in (layout.ALGORITHM_DISTANCE, layout.WEIGHTS, layout.PREDICTIONS, "figs/weights.png", "figs/loss.png"):
        assert (run / name).exists(), name
    summary = json.loads((run / layout.SUMMARY).read_text())
    config, _, batch = store.load(run)
    loaded = load_run(run)
    found = np.asarray(loaded.predict(batch))
    with np.load(run / layout.PREDICTIONS) as archive:
        stored = dict(archive)
    np.testing.assert_allclose(found, stored["tf"], rtol=0, atol=1e-6)
    last = json.loads((run / layout.METRICS).read_text().splitlines()[-1])
    assert last["eval_loss"] == pytest.approx(0.5 * np.mean((found - batch.y_query) ** 2), rel=1e-5)
    assert last["eval_accuracy"] == accuracy(found, batch.y_query)
    headline = summary["headline"]
    assert headline["version_space_accuracy"] > 0.99
    assert abs(headline["no_context_accuracy"] - 0.5) < 0.12  # negatives are other languages' members
    assert set(summary["layer"]["singular_values"]) == {"model", "optimum", "gd"}
    assert f"{headline['loss']:8.4f}" in done.out
    assert "without context" in done.out
    train = summary["strings"]["train"]
    counted = f"train {min(train['members'])} to {max(train['members'])} and {min(train['non_members'])} to "
    assert "negatives other_language\n" in done.out
    assert f"distinct members and non-members of a language: {counted}" in done.out
    assert config.data.languages == ("a*bc*", "((a|b)c)*", "(abc?)*")


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--num_heads", 2], ["--config.model.key_size=4"]])
def test_layers_that_no_construction_is_of_end_without_one(words: list[object], ran: Ran, tmp_path: Path) -> None:
    assert ran(RUNNER, *TINY, *words, "--code_dim", 8, "--out", "run").status == 0
    with np.load(tmp_path / "run" / layout.WEIGHTS) as archive:
        arrays = dict(archive)
    assert arrays["construction_kq"].size == 0
    assert arrays["kq"].shape[1:] == (2 if "--num_heads" in words else 1, 9, 9)
    assert arrays["optimum_kq"].shape == (1, 1, 9, 9)


@pytest.mark.slow
def test_expressions_stand_as_they_are_typed(ran: Ran, tmp_path: Path) -> None:
    words = ["--languages", "a*bc*", "((a|b)c)*", "--unseen_languages", "(abc?)*", "--code_dim", 6]
    assert ran(RUNNER, *TINY, *words, "--out", "run").status == 0
    data = json.loads((tmp_path / "run" / layout.CONFIG).read_text())["data"]
    assert data["languages"] == ["a*bc*", "((a|b)c)*"]
    assert data["unseen_languages"] == ["(abc?)*"]


@pytest.mark.slow
@pytest.mark.parametrize("command", [RUNNER, ENCODER])
def test_a_single_language_works_and_says_its_negatives(command: str, ran: Ran, tmp_path: Path) -> None:
    done = ran(command, *TINY, "--languages", "a*bc*", "--code_dim", 8, "--out", "run")
    assert done.status == 0, done.err
    assert "negatives random_abc (of a single language)\n" in done.out
    assert json.loads((tmp_path / "run" / layout.CONFIG).read_text())["data"]["negatives"] == "random_abc"


@pytest.mark.slow
def test_a_code_of_an_autoencoder_needs_its_run_and_the_sentence_trains_it(
    ran: Ran, refused: Refused, tmp_path: Path
) -> None:
    words = [*TINY, "--code", "autoencoder", "--code_dim", 4, "--config.autoencoder_dim=6", "--out", "runs/languages"]
    said = refused(RUNNER, *words)
    command = said[said.index("python -m runners.run autoencoder") :].split()[2:]
    assert command[0] == "runners.run"
    assert ran(*command, "--quiet").status == 0
    assert ran(RUNNER, *words).status == 0
    other = refused(RUNNER, *[8 if word == 4 else word for word in words[:-2]], "--config.autoencoder_dim=8")
    assert "builds on a run of autoencoder" in other


@pytest.mark.slow
def test_the_autoencoder_decodes_unseen_strings(ran: Ran, tmp_path: Path) -> None:
    assert ran(ENCODER, *TINY, "--steps", 400, "--config.batch_size=128", "--out", "run").status == 0
    headline = json.loads((tmp_path / "run" / layout.SUMMARY).read_text())["headline"]
    assert headline["symbol_accuracy"] > 0.9
    assert headline["loss"] < 0.5


@pytest.mark.slow
def test_a_sweep_trains_the_autoencoder_first(ran: Ran, tmp_path: Path) -> None:
    sizes = [word for word in TINY if word not in ("--max_length", 10)]
    grid = ["--code", "autoencoder", "--code_dim", 4, "--negatives", "other_language", "--max_length", 8]
    own = ["--config.autoencoder_dim=6", "--seeds", 0, "--out", "table.csv", "--runs_dir", "runs"]
    assert ran("eval_languages", *[w for w in sizes if w not in ("--eval_every", 10)], *grid, *own).status == 0
    (row,) = csv.DictReader((tmp_path / "table.csv").read_text().splitlines())
    assert row["status"] == "done"
    assert row["code"] == "autoencoder"
    assert float(row["test_version_space_accuracy"]) > 0.99


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--languages", "a*(b", "abc"], "is not a regular expression over abc"),
        (["--languages", ""], "languages is empty"),
        (["--languages", "(a|b|c)*", "a*bc*"], "has no non-members"),
        (["--languages", "ab", "a*bc*"], "has 1 members of length 1 to 10; at least 8 are needed"),
        (["--languages", "a*bc*", "a*bc*"], "are the same language"),
        (
            ["--languages", "a*bc*", "--negatives", "other_language"],
            "there is only one; choose other negatives, such as --negatives",
        ),
        (
            ["--languages", "a*bc* ((a|b)c)*"],
            "it has a blank, which is not a symbol; write each expression as one word",
        ),
        (["--languages", "a+?b", "abc"], "it has ? behind +, which is ambiguous"),
        (["--languages", "^a*", "abc"], "it has ^; an expression describes whole strings and has no anchors"),
        (
            ["--languages", "(ab[c])*", "a*bc*", "--max_length", "20"],
            "--max_length 24 gives enough; [c] is the same as c",
        ),
        (["--unseen_languages", "a*bc*"], "is one of those trained on"),
        (["--languages", "random"], "num_languages is 0"),
        (["--config.data.alphabet=abcdefghijklmnopqrstuvwxyz0"], "has 27 symbols"),
        (["--num_pairs", "129"], "a pool has only 128 strings"),
        (["--code_dim", "200"], "fewer than code_dim 200; set --code_dim "),
        (["--code", "bigrams", "--code_scale", "raw"], "has 15 channels, not 16; set --code_dim 15"),
        (["--min_length", "12"], "it must be at most max_length, 10"),
        (["--negatives", "other"], "choose from"),
        (["--config.positive_share=1"], "it must be above 0 and below 1"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(words: list[str], sentence: str, refused: Refused) -> None:
    assert sentence in refused(RUNNER, *TINY, *words, "--out", "run")
