"""A command given twice, on directories that hold something already, and runs that diverge."""

import json
import re
import shutil
from pathlib import Path

import pytest

from icl_lab.store import layout, rundir
from icl_lab.store.atomic import write_bytes, write_json
from tests.runners.tiny import LSA1, SIZES, Workshop, copied, results

pytestmark = pytest.mark.robust


def times(run: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file() and path.name != ".lock"}


def shown_again(run: Path, lsa1_run: Path, workshop: Workshop, line: str = "") -> str:
    """What the command of the finished run prints of a copy: its summary, when it finished, and a line."""
    end = rundir.read_meta(run)["end"]
    when = f"{end[:10]} at {end[11:19]} UTC"
    device, kernel, summary = workshop.said("lsa1").replace(str(lsa1_run), str(run)).split("\n", 2)
    assert kernel.startswith("kernel: ")  # of a training alone
    summary = f"{device}\n{summary}"
    return f"{summary}this run finished on {when} and was not trained again; --overwrite retrains it\n{line}"


def test_a_finished_run_is_shown_with_its_date_and_not_touched(
    lsa1_run: Path, workshop: Workshop, tmp_path: Path
) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    before = results(run), times(run)
    again = workshop.run(LSA1, *SIZES, "--out", run)
    assert again.returncode == 0, again.stderr
    assert again.stdout == shown_again(run, lsa1_run, workshop)
    assert (results(run), times(run)) == before


def test_a_finished_run_of_other_sources_says_so_below_its_summary(
    lsa1_run: Path, workshop: Workshop, tmp_path: Path
) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    meta = rundir.read_meta(run)
    rundir.update_meta(run, sources=meta["sources"] | {"src/train.py": "0" * 16})
    shown = workshop.run(LSA1, *SIZES, "--out", run)
    assert shown.returncode == 0, shown.stderr
    line = "src/train.py has changed since this run began; --overwrite retrains it\n"
    assert shown.stdout == shown_again(run, lsa1_run, workshop, line)
    del meta["sources"]
    write_json(run / layout.META, meta)
    older = workshop.run(LSA1, *SIZES, "--out", run)
    assert older.stdout.endswith("the sources that made this run are not recorded; --overwrite retrains it\n")


@pytest.mark.slow
def test_attention_asked_for_later_is_what_it_would_have_been(
    lsa1_run: Path, workshop: Workshop, tmp_path: Path
) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    shutil.rmtree(run / layout.ATTENTION)
    (run / layout.FIGURES / "attention_layer0_head0.png").unlink()
    params_written = (run / layout.PARAMS).stat().st_mtime_ns
    done = workshop.run(LSA1, *SIZES, "--out", run, "--save-attention")
    assert done.returncode == 0, done.stderr
    assert results(run) == results(lsa1_run)
    assert (run / layout.FIGURES / "attention_layer0_head0.png").exists()
    assert (run / layout.PARAMS).stat().st_mtime_ns == params_written


@pytest.mark.parametrize("words", [["--seed", "1"], ["--lr", "0.5"], ["--eval_ordering", "easy2hard"]])
def test_another_config_leaves_the_run_alone(
    lsa1_run: Path, workshop: Workshop, tmp_path: Path, words: list[str]
) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    before = results(run), times(run)
    done = workshop.run(LSA1, *SIZES, "--out", run, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr
        == f"error: {run} holds a run of another config or results version; choose another --out, or --overwrite it\n"
    )
    assert (results(run), times(run)) == before


def test_overwriting_trains_anew_to_the_same_bytes_and_spares_what_is_not_the_runs(
    lsa1_run: Path, workshop: Workshop, tmp_path: Path
) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    mine = {"notes.md": b"mine", "analysis/paper.tex": b"mine", "checkpoints/epoch3.pt": b"mine"}
    for name, content in mine.items():
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).write_bytes(content)
    (run / layout.PARAMS).write_bytes(b"broken")
    write_bytes(run / layout.ATTENTION_STATS, b"of an analysis that was asked for later")
    done = workshop.run(LSA1, *SIZES, "--out", run, "--save_attention", "--overwrite")
    assert done.returncode == 0, done.stderr
    said = f"{run}: kept files that are not the run's: analysis/paper.tex, checkpoints/epoch3.pt, notes.md"
    assert said in done.stdout.splitlines()
    assert results(run) == results(lsa1_run) | mine


@pytest.mark.slow
def test_a_run_that_diverges_says_so(workshop: Workshop, tmp_path: Path) -> None:
    """Every weight moves by about 1e9 a step under Adam, so the loss, of their products, overflows float32 at once."""
    words = [LSA1, *SIZES, "--lr", "1e9", "--config.grad_clip=0", "--out", tmp_path / "run"]
    done = workshop.run(*words)
    meta = rundir.read_meta(tmp_path / "run")
    first = json.loads((tmp_path / "run" / layout.METRICS).read_text().splitlines()[0])
    assert (done.returncode, meta["status"]) == (1, "diverged")
    assert 1 < meta["diverged_at"] < 10
    assert meta["last_losses"] == [first["eval_loss"]]
    sentence = done.stderr.splitlines()[-1]
    said = (
        f"error: lsa1 diverged at step {meta['diverged_at']} after test losses {first['eval_loss']:.4g}; a smaller --lr"
    )
    assert sentence.startswith(said)
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run" / layout.PARAMS).exists()
    again = workshop.run(*words)
    assert (again.returncode, again.stderr) == (1, sentence + "\n")


@pytest.mark.slow
def test_on_a_terminal_of_ascii_a_run_ends_as_on_any_other(lsa1_run: Path, workshop: Workshop, tmp_path: Path) -> None:
    terminal = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = workshop.run(LSA1, *SIZES, "--out", tmp_path / "run", "--save_attention", **terminal)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "mean ||sensitivity difference||" in done.stdout
    assert results(tmp_path / "run") == results(lsa1_run)


@pytest.mark.slow
def test_a_quiet_run_says_its_result_alone(lsa1_run: Path, workshop: Workshop, tmp_path: Path) -> None:
    words = [LSA1, *SIZES, "--save_attention", "--out"]
    quiet = workshop.run(*words, tmp_path / "run", "--quiet")
    assert (quiet.returncode, quiet.stderr) == (0, "")
    device, kernel, summary = workshop.said("lsa1").split("\n", 2)
    assert device.startswith("device: ")
    assert kernel.startswith("kernel: ")
    clock = re.compile(r"run_seconds .*")
    assert clock.sub("", quiet.stdout) == clock.sub("", summary)
    assert results(tmp_path / "run") == results(lsa1_run)
    again = workshop.run(*words, tmp_path / "run", "--quiet").stdout
    assert again.startswith(f"{quiet.stdout}this run finished on ")


@pytest.mark.slow
def test_the_second_process_finds_the_programs_of_the_first_and_the_same_results(
    workshop: Workshop, lsa1_run: Path, tmp_path: Path
) -> None:
    compiled: list[set[str]] = []
    for _ in range(2):
        again = copied(lsa1_run, tmp_path / f"run{len(compiled)}")
        words = (*SIZES, "--save_attention", "--overwrite", "--out", again)
        done = workshop.run(LSA1, *words, JAX_COMPILATION_CACHE_DIR="", XDG_CACHE_HOME=str(tmp_path))
        assert done.returncode == 0, done.stderr
        assert results(again) == results(lsa1_run)
        compiled.append({path.name for path in (tmp_path / "icl-lab").rglob("*-cache")})
    assert len(compiled[0]) > 5
    assert compiled[1] == compiled[0]  # nothing was compiled that had to be kept


@pytest.mark.slow
def test_analyses_and_sweeps_keep_their_programs_too(lsa1_run: Path, workshop: Workshop, tmp_path: Path) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    sweep = "--models lsa1 --ordering random --noise_mode clean --p 0 --placement mixed --seeds 0 --steps 1"
    out = ("--runs_dir", tmp_path / "runs", "--out", tmp_path / "table.csv")
    for name, words in (("analysis.losses", ("--run", run)), ("eval_noise", (*sweep.split(), *out))):
        home = tmp_path / name
        done = workshop.run(name, *words, JAX_COMPILATION_CACHE_DIR="", XDG_CACHE_HOME=str(home))
        assert done.returncode == 0, done.stderr
        assert [*(home / "icl-lab").rglob("*-cache")]
