"""Runs on sequences of symbols, from the command line to the directory: every model, own text, and what is refused."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from icl_lab import store
from icl_lab.analysis.generate import prompt_losses
from icl_lab.analysis.loaded_run import load_run
from icl_lab.store import layout
from tests.doors import Ran, Refused, ran, refused
from tests.families.small import killed_and_resumed
from tests.runners.tiny import Workshop, results

__all__ = ["ran", "refused"]

RUNNER = "runners.run_tokens"
TINY = ["--steps", 20, "--num_tokens", 17, "--config.eval_every=10", "--config.batch_size=4", "--config.eval_tasks=16"]
TINY += ["--config.test_tasks=16", "--config.d_model=16", "--quiet"]
OF_TEXT = ["--model", "text", "--num_symbols", 300, "--corpus"]


def own_text(length: int = 30_000, seed: int = 0) -> str:
    """Sentences of 300 words of random letters, so many characters."""
    draw = np.random.default_rng(seed)
    words = ["".join(draw.choice(list("abcdefghij"), size=draw.integers(2, 8))) for _ in range(300)]
    written = " ".join(draw.choice(words, size=length // 3))
    return written.replace("a b", "a. B")[:length]


def headline(run: Path) -> dict[str, float]:
    """The numbers on the test set."""
    found: dict[str, float] = json.loads((run / layout.SUMMARY).read_text())["headline"]
    return found


@pytest.mark.parametrize(
    ("model", "words", "best"),
    [
        ("markov", ["--num_chains", 4], "pool_loss"),
        ("triggers", ["--num_symbols", 12], "bayes_loss"),
        pytest.param("markov", [], "bayes_loss", marks=pytest.mark.slow),
        pytest.param("markov_plateau", [], "bayes_loss", marks=pytest.mark.slow),
        pytest.param("text_control", ["--num_symbols", 300], "kneser_ney_5_loss", marks=pytest.mark.slow),
    ],
)
def test_every_model_trains_and_is_compared_with_what_predicts_exactly(
    model: str, words: list[object], best: str, ran: Ran, tmp_path: Path
) -> None:
    done = ran(RUNNER, "--model", model, *TINY, *words, "--out", "run")
    assert done.status == 0, done.err
    found, (config, _, batch) = headline(tmp_path / "run"), store.load(tmp_path / "run")
    assert found["uniform_loss"] == pytest.approx(np.log(config.data.num_symbols), rel=1e-5)
    assert found["excess"] == pytest.approx(found["loss"] - found[best], abs=1e-9)
    assert found["loss"] == pytest.approx(found["uniform_loss"], rel=0.1)  # 20 steps teach little
    assert f"{found[best]:.4f}" in done.out
    last = json.loads((tmp_path / "run" / layout.METRICS).read_text().splitlines()[-1])
    with np.load(tmp_path / "run" / layout.PREDICTIONS) as archive:
        assert last["eval_loss"] == pytest.approx(-archive["tf"].mean(), rel=1e-5)
        assert archive["tf"].shape == batch.y_query.shape == (16, 16)
    assert (tmp_path / "run" / layout.VOCABULARY).exists() == (model == "text_control")
    if model != "text_control":
        refused = ran("analysis.generate", "--run", "run", "--prompt", "a")
        assert (refused.status, refused.out) == (2, "")
        assert f"run is a run on {config.data.source}; only a run on text generates text" in refused.err


@pytest.fixture(scope="module")
def text_run(workshop: Workshop) -> Path:
    """A finished run on a text of its own, whose file is gone. Read only."""
    file = workshop.folder / "own_text.txt"
    if not (workshop.folder / "text.txt").exists():
        file.write_text(own_text())
    run = workshop.finished("text", RUNNER, *map(str, [*OF_TEXT, file]), sizes=list(map(str, TINY)))
    file.unlink(missing_ok=True)
    return run


def test_a_text_of_ones_own_trains_by_one_command(text_run: Path, workshop: Workshop) -> None:
    said, found = workshop.said("text"), headline(text_run)
    for order in (1, 2, 3, 4, 5):
        assert f"Kneser-Ney, order {order}   " in said
        assert 0 < found[f"kneser_ney_{order}_loss"] < found["uniform_loss"] + 1
    assert f"{found['kneser_ney_5_loss']:.4f}" in said
    assert "share of the gap to the best predictor that is closed" in said
    assert found["tasks"] == 16


def test_it_generates_though_its_text_is_gone(text_run: Path, ran: Ran) -> None:
    """The losses that it prints are those of the same symbols in the run's own evaluation."""
    loaded, known = load_run(text_run), json.loads((text_run / layout.VOCABULARY).read_text())
    assert len(known["letters"]) + len(known["merges"]) == 300
    read, following = np.asarray(loaded.batch.x)[0], np.asarray(loaded.batch.y_query)[0]
    with np.load(text_run / layout.PREDICTIONS) as archive:
        np.testing.assert_allclose(prompt_losses(loaded, [*read, following[-1]]), -archive["tf"][0], atol=1e-5)
    words = ["--run", text_run, "--prompt", own_text()[:200], "--symbols", 30]
    first = ran("analysis.generate", *words, "--seed", 1)
    assert first.status == 0, first.err
    assert own_text()[:200] in first.out.replace("\n", " ")
    assert first.out == ran("analysis.generate", *words, "--seed", 1).out
    assert first.out != ran("analysis.generate", *words, "--seed", 2).out
    lines = first.out.splitlines()
    losses = [float(line.split()[-1]) for line in lines if line.startswith("  '") and "none" not in line]
    (mean,) = (float(line.split()[-1]) for line in lines if line.startswith("  mean of"))
    assert len(losses) > 20
    assert np.mean(losses) == pytest.approx(mean, abs=2e-3)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--prompt", ""], "--prompt is empty; a model goes on from at least one character"),
        (["--prompt", "caf\u00e9"], "'\u00e9' does not occur in the text that the vocabulary was made from"),
        (["--prompt", "a", "--symbols", 0], "is not a whole number from 1"),
        (["--prompt", "a", "--temperature", -1], "is not a number from 0"),
        ([], "required: --prompt"),
    ],
)
def test_a_prompt_that_cannot_be_gone_on_from_is_refused(
    words: list[object], sentence: str, text_run: Path, refused: Refused
) -> None:
    assert sentence in refused("analysis.generate", "--run", text_run, *words)


def test_a_run_of_another_family_does_not_generate(root: Path, refused: Refused) -> None:
    said = refused("analysis.generate", "--run", root / "demos_ref" / "lsa1", "--prompt", "a")
    assert "of the family regression, which has no generate" in said


@pytest.mark.slow
def test_killed_it_ends_with_the_same_bytes(text_run: Path, workshop: Workshop, tmp_path: Path) -> None:
    file = tmp_path / "own_text.txt"
    file.write_text(own_text())
    found = killed_and_resumed(workshop, tmp_path / "run", "text", *TINY, *OF_TEXT[2:], file)
    whole = results(text_run)
    for name in (layout.METRICS, layout.PARAMS, layout.SNAPSHOTS, layout.PREDICTIONS, layout.VOCABULARY):
        assert found[name] == whole[name], name


@pytest.mark.slow
def test_a_grid_is_swept(ran: Ran, tmp_path: Path) -> None:
    sizes = [word for word in TINY if word != "--config.eval_every=10"]
    done = ran("eval_tokens", *sizes, "--num_chains", "2,inf", "--seeds", 0, "--out", "table.csv", "--runs_dir", "runs")
    assert done.status == 0, done.err
    rows = list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines()))
    assert [(row["num_chains"], row["status"]) for row in rows] == [("2.0", "done"), ("inf", "done")]
    assert [bool(row["test_pool_loss"]) for row in rows] == [True, False]
    for row, best in zip(rows, ("test_pool_loss", "test_bayes_loss"), strict=True):
        assert float(row["excess"]) == pytest.approx(float(row["test_loss"]) - float(row[best]), abs=1e-6)


# --- what is refused ---


@pytest.mark.parametrize(
    ("content", "words", "sentence"),
    [
        (own_text(2000).encode(), [], "own.txt has 2000 characters of text; a model of text needs at least 20000"),
        (bytes(range(256)) * 200, [], "own.txt is not text in UTF-8"),
        (b"a\0" * 20_000, [], "own.txt is not text: it has a zero byte"),
        (b"a" * 30_000, [], "all characters of the text are the same; a model needs two to tell apart"),
        (b"ab " * 10_000, [], "num_symbols is 300, but the text has only 5 distinct pieces"),
        (own_text().encode(), ["--num_symbols", 5000], "num_symbols is 5000, but the text has only "),
        (own_text().encode(), ["--num_symbols", 255], "the vocabulary of a text has 256 to 5000 pieces"),
        (
            own_text().encode(),
            ["--num_tokens", 400],
            "has fewer than 4 windows of 400 symbols; num_tokens must be smaller, or the text longer",
        ),
        (own_text().encode(), ["--num_tokens", 20_000], "num_tokens must be smaller, or the text longer"),
        (own_text().encode(), ["--config.eval_tasks=2000"], "eval_tasks is 2000, but with the data of "),
        (own_text().encode(), ["--model", "markov", "--num_symbols", 3], "has no meaning for sequences of markov"),
        (own_text().encode(), ["--model", "triggers", "--num_symbols", 64], "the text has only 13 distinct characters"),
    ],
)
def test_a_text_that_no_run_can_be_trained_on_is_refused(
    content: bytes, words: list[object], sentence: str, refused: Refused, tmp_path: Path
) -> None:
    (tmp_path / "own.txt").write_bytes(content)
    assert sentence in refused(RUNNER, *TINY, *OF_TEXT, "own.txt", *words)


def test_a_place_without_text_is_refused(refused: Refused, tmp_path: Path) -> None:
    assert "nowhere does not exist" in refused(RUNNER, *TINY, *OF_TEXT, "nowhere")
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "one.png").write_bytes(b"\x89PNG")
    said = refused(RUNNER, *TINY, *OF_TEXT, "pictures")
    assert "pictures has no text file; the name of one ends in .txt or .md, or has no ending" in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--num_symbols", 1], "num_symbols is 1; it must be a whole number of at least 2"),
        (["--num_symbols", 6000], "num_symbols is 6000; it must be at most 5000"),
        (["--num_tokens", 1], "num_tokens is 1; it must be a whole number of at least 2"),
        (["--concentration", 0], "concentration is 0.0; it must be above 0 and at most 1000"),
        (["--concentration", -1], "concentration is -1.0; it must be above 0 and at most 1000"),
        (["--num_chains", 0], "num_chains"),
        (["--chain_order", 17], "chain_order is 17; a sequence of 17 symbols has none to predict"),
        (
            ["--num_symbols", 20, "--chain_order", 4],
            "chain_order 4 and num_symbols 20 give 160000 rows of probabilities, too many",
        ),
        (["--trigger_rate", 0.2], "trigger_rate is 0.2, but has no meaning for sequences of markov"),
        (["--config.repeated_share=0.5"], "repeated_share is 0.5, but has no meaning for sequences of markov"),
        (["--config.shortest_repeat=5"], "shortest_repeat is 5, but has no meaning for sequences of markov"),
        (["--model", "text", "--num_chains", 4], "num_chains is 4, but has no meaning for sequences of text"),
        (["--model", "triggers", "--chain_order", 2], "chain_order is 2, but has no meaning for sequences of triggers"),
        (
            ["--config.model.loss=absolute_error"],
            "loss is 'absolute_error', but has no meaning for a decoder of symbols",
        ),
        (["--config.source=txet"], "source is 'txet'; it must be one of markov, triggers, text"),
    ],
)
def test_settings_without_sense_are_refused(words: list[object], sentence: str, refused: Refused) -> None:
    assert sentence in refused(RUNNER, *TINY, *words)


def test_a_text_that_changes_between_a_run_and_its_resume_or_evaluation_is_named(
    ran: Ran, refused: Refused, tmp_path: Path
) -> None:
    text, words = own_text(), [*TINY, *OF_TEXT, "own.txt", "--out", "run"]
    (tmp_path / "own.txt").write_text(text)
    assert ran(RUNNER, *words).status == 0
    (tmp_path / "own.txt").write_text(own_text(seed=1))
    assert f"{tmp_path / 'own.txt'} has changed since run began; restore it" in refused(RUNNER, *words)
    said = refused("analysis.llc_calibrate", "--run", "run")
    assert f"{tmp_path / 'own.txt'} has changed since the run began; restore it, or train another run" in said
    (tmp_path / "own.txt").unlink()
    assert "own.txt does not exist" in refused(RUNNER, *words)
    assert "own.txt does not exist" in refused("analysis.llc_calibrate", "--run", "run")
    (tmp_path / "own.txt").write_text(text)
    assert ran(RUNNER, *words).status == 0
