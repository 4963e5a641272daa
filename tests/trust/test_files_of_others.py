"""No command removes or changes a file that none of them wrote, wherever it lies and whatever it is called."""

import csv
import os
import runpy
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icl_lab.store import layout, manifest, outputs, rundir
from tests.doors import ROOT
from tests.runners.tiny import LSA1, SIZES, Workshop, copied
from tests.sweeps.tiny_sweep import GRID, Paths

pytestmark = pytest.mark.robust

TINY = [*SIZES, "--steps", "2"]
SCATTERED = (
    *(
        "notes.md",
        "paper/thesis.tex",
        "manifest.jsonl",
        ".written.jsonl",
        "plan.json",
        "plan_t.json",
        "t.csv",
        "gd.json",
    ),
    *("s.csv", "l.json", "claims.csv", "order_noise.md"),
)
OF_RUNS = (
    *sorted(layout.FIXED_NAMES - {layout.DRAFT}),
    *("notes.md", "analysis/paper.tex", "checkpoints/epoch3.pt", "checkpoints/step_00000002.safetensors"),
    *("attn/layer0.npz", "figs/loss.png", "figs/mine.png", "checkpoints/step_best.safetensors", ".metrics.jsonl"),
    *("llc/0123abcd_step_00000010.npz", "llc/notes.md"),
)
OF_FIGURES = ("order_sensitivity.png", "ood_curve.csv", "compare_gd_vs_transformer.pdf", "attention_layer0_head0.png")
PLACES = [*SCATTERED, *(f"run/{name}" for name in OF_RUNS), *(f"figs/{name}" for name in OF_FIGURES)]
PLACES += [f"runs/{name}" for name in ("plan_s.json", "plan_other.json", ".written.jsonl", "notes.md")]
CONTENTS = [
    b"years of work\n",
    b"",
    b"{}",
    b'{"model_type": "gpt2"}',
    b"exp,model,seed,status,results_version\na,b,0,done,4\n",
]
FOREIGN = st.dictionaries(st.sampled_from(PLACES), st.sampled_from(CONTENTS), max_size=8)

Command = Callable[[Path, Paths], Sequence[object]]
COMMANDS: dict[str, Command] = {
    "run": lambda at, swept: [LSA1, *TINY, "--out", at / "run"],
    "run over": lambda at, swept: [LSA1, *TINY, "--seed", 1, "--save_attention", "--out", at / "run", "--overwrite"],
    "gd": lambda at, swept: ["baselines.gd_step", "--steps", 1, "--num_tasks", 9, "--out", at / "gd.json"],
    "gd elsewhere": lambda at, swept: ["baselines.gd_step", "--steps", 1, "--num_tasks", 9, "--out", at / "notes.md"],
    "ood": lambda at, swept: ["analysis.ood_eval", "--run", at / "run", "--alphas", 1],
    "shifts": lambda at, swept: ["analysis.shifts", "--run", at / "run", "--shift", "num_pairs=2"],
    "attention": lambda at, swept: ["plots.attention_quick", "--run", at / "run", "--out", at / "figs"],
    "figures": lambda at, swept: ["plots.run_figures", "--run", at / "run"],
    "sweep figures": lambda at, swept: ["plots.fig_templates", "--from", swept.out, "--out", at / "figs"],
    "depth": lambda at, swept: [
        "plots.compare_depth",
        "--gd",
        at / "gd.json",
        "--layerwise",
        "l",
        "--out",
        at / "figs",
    ],
    "collect": lambda at, swept: ["sweeps.collect", "--runs_dir", swept.runs, "--out", at / "t.csv"],
    "append": lambda at, swept: ["sweeps.collect", "--runs_dir", swept.runs, "--out", at / "t.csv", "--append"],
    "sweep": lambda at, swept: [
        "eval_noise",
        *GRID,
        "--seeds",
        "0,1",
        "--runs_dir",
        at / "runs",
        "--out",
        at / "s.csv",
    ],
}
TRAINING = ("run", "run over")


@contextmanager
def folder_with(foreign: dict[str, bytes], run: Path | None, swept: Paths) -> Iterator[Path]:
    """A fresh folder with a run and a sweep's cells in it, and these files where nothing is yet."""
    with tempfile.TemporaryDirectory() as name:
        at = Path(name)
        copied(swept.runs, at / "runs", outputs.RECORD, "plan_*")
        if run is not None:
            copied(run, at / "run")
        for place, content in foreign.items():
            with suppress(FileExistsError, NotADirectoryError, IsADirectoryError):
                (at / place).parent.mkdir(parents=True, exist_ok=True)
                with open(at / place, "xb") as file:
                    file.write(content)
        yield at


def given_command(words: Sequence[object]) -> str:
    """A command in this process; what it said if it refused."""
    argv, name = [str(word) for word in words], str(words[0])
    old = sys.argv
    try:
        sys.argv = argv
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()) as said, pytest.raises(SystemExit) as exited:
            runpy.run_path(str(ROOT / f"{name.replace('.', '/')}.py"), run_name="__main__")
    finally:
        sys.argv = old
    assert "Traceback" not in said.getvalue()
    return said.getvalue() if exited.value.code else ""


def spare_foreign_files(foreign: dict[str, bytes], names: Sequence[str], run: Path | None, swept: Paths) -> list[str]:
    """Gives commands one after another, and compares every file that was there before any of them."""
    with folder_with(foreign, run, swept) as at:
        names_in_run = [] if run is None else [*manifest.names(run), *manifest.files(run), layout.MANIFEST]
        own = {at / "run" / name for name in names_in_run}
        cells = set((at / "runs").glob("lsa1*/**/*"))
        before = {path: path.read_bytes() for path in at.rglob("*") if path.is_file() and path not in own | cells}
        refusals = [given_command(COMMANDS[name](at, swept)) for name in names]
        after = {path: path.read_bytes() for path in before if os.path.lexists(path)}
        for path, content in before.items():
            kept = after.get(path)
            assert kept is not None, path
            grown = path.name in (outputs.RECORD, layout.MANIFEST) and kept.startswith(content)
            assert (
                kept == content or grown or ("append" in names and path == at / "t.csv" and extends(kept, content))
            ), path
        return refusals


def extends(kept: bytes, content: bytes) -> bool:
    """Whether a sweep's table has all rows that it had: `--append` adds rows, and columns that the others lack."""
    now, before = (list(csv.DictReader(StringIO(text.decode()))) for text in (kept, content))
    return bool(before) and all(any(row.items() <= line.items() for line in now) for row in before)


QUICK = [name for name in COMMANDS if name not in TRAINING]


@given(FOREIGN, st.lists(st.sampled_from(QUICK), min_size=1, max_size=4))
@settings(max_examples=4)
def test_no_command_touches_a_file_of_somebody_elses(
    lsa1_run: Path, swept: Paths, foreign: dict[str, bytes], names: list[str]
) -> None:
    spare_foreign_files(foreign, names, lsa1_run, swept)


@pytest.mark.slow
@given(FOREIGN, st.lists(st.sampled_from(list(COMMANDS)), max_size=2), st.booleans())
@settings(max_examples=3)
def test_no_training_touches_a_file_of_somebody_elses(
    lsa1_run: Path, swept: Paths, foreign: dict[str, bytes], names: list[str], beside_a_run: bool
) -> None:
    spare_foreign_files(foreign, ["run over", *names], lsa1_run if beside_a_run else None, swept)


def test_a_table_that_is_appended_to_keeps_its_rows(lsa1_run: Path, swept: Paths) -> None:
    """A sweep's table, whoever has made it: --append asks for it."""
    assert spare_foreign_files({"t.csv": CONTENTS[-1]}, ["append"], lsa1_run, swept) == [""]
    assert not extends(b"exp,model\na,c\n", b"exp,model\na,b\n")


@pytest.mark.slow
@given(FOREIGN, st.lists(st.sampled_from(list(COMMANDS)), min_size=1, max_size=6), st.booleans())
@settings(max_examples=60)
def test_many_commands_touch_no_file_of_somebody_elses(
    lsa1_run: Path, swept: Paths, foreign: dict[str, bytes], names: list[str], beside_a_run: bool
) -> None:
    spare_foreign_files(foreign, names, lsa1_run if beside_a_run else None, swept)


@pytest.mark.slow
def test_without_foreign_files_every_command_does_its_work(lsa1_run: Path, swept: Paths) -> None:
    """And again: what a command wrote it replaces. Without this, refusing everything would pass the tests above."""
    names = [name for name in COMMANDS if name not in ("depth", "append", "run")]
    refusals = spare_foreign_files({}, [*names, *names], lsa1_run, swept)
    assert refusals == [""] * 2 * len(names)


# Single cases


def test_a_language_models_checkpoints_are_not_cleared(workshop: Workshop, tmp_path: Path) -> None:
    run = tmp_path / "gpt2"
    files = {"config.json": '{"model_type":"gpt2"}', "checkpoints/epoch3.pt": "weights", "analysis/paper.tex": "paper"}
    for name, content in files.items():
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text(content)
    done = workshop.run(LSA1, *SIZES, "--out", run, "--overwrite")
    assert (done.returncode, done.stdout) == (2, "")
    reason = "has a config.json but no manifest.jsonl, so it is not a run directory; choose another --out"
    assert done.stderr == f"error: {run} {reason}\n"
    assert {str(path.relative_to(run)): path.read_text() for path in run.rglob("*") if path.is_file()} == files


def test_what_a_command_wrote_and_somebody_changed_is_somebodys(tmp_path: Path) -> None:
    figure = {tmp_path / "figs" / "loss.png": b"drawn"}
    outputs.write(figure, "plots")
    outputs.write(dict.fromkeys(figure, b"drawn again"), "plots")
    with pytest.raises(outputs.StoreError, match=r"loss\.png was not written by report"):
        outputs.write(figure, "report")
    (tmp_path / "figs" / "loss.png").write_bytes(b"retouched")
    with pytest.raises(outputs.StoreError, match=r"or has been changed since; move it away"):
        outputs.write(figure, "plots")
    assert (tmp_path / "figs" / "loss.png").read_bytes() == b"retouched"


def test_of_several_files_none_is_written_if_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b.pdf").write_bytes(b"mine")
    with pytest.raises(outputs.StoreError, match=r"b\.pdf"):
        outputs.write({tmp_path / "a.png": b"drawn", tmp_path / "b.pdf": b"drawn"}, "plots")
    assert [path.name for path in tmp_path.iterdir()] == ["b.pdf"]


def test_a_kill_between_a_record_and_its_file_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "gd.json"
    outputs.write({path: b"first"}, "gd")
    with monkeypatch.context() as patch:
        patch.setattr(outputs, "replace_file", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            outputs.write({path: b"second"}, "gd")
    with open(tmp_path / outputs.RECORD, "ab") as file:
        file.write(b'{"file": "gd')
    outputs.write({path: b"third"}, "gd")
    outputs.write({path: b"fourth"}, "gd")
    assert path.read_bytes() == b"fourth"


def test_the_committed_results_are_recorded_as_their_commands_left_them() -> None:
    """Else the commands that made them would be refused in a fresh clone."""
    folders = {path.parent for path in ROOT.rglob(outputs.RECORD) if ".venv" not in path.parts} - {ROOT}
    assert {str(folder.relative_to(ROOT)) for folder in folders} >= {"report", "report/reproduction", "docs/figures"}
    for folder in folders:
        for entry in manifest.entries(folder / outputs.RECORD):
            outputs.check([folder / entry["file"]], entry["writer"])
    recorded = {folder / entry["file"] for folder in folders for entry in manifest.entries(folder / outputs.RECORD)}
    left = [path for path in (ROOT / "report").rglob("*") if path.suffix in (".png", ".csv", ".pdf", ".json", ".md")]
    assert [path for path in left if path not in recorded] == []


@pytest.mark.parametrize("name", ["config.json", "params.safetensors", "metrics_summary.json", "figs/loss.png"])
def test_the_files_of_a_run_are_no_place_for_another_commands(name: str, lsa1_run: Path, tmp_path: Path) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    before = (run / name).read_bytes()
    with pytest.raises(outputs.StoreError, match=r"is a file of the run .*; choose another --out"):
        outputs.write({run / name: b"{}"}, "baselines.gd_step")
    with pytest.raises(outputs.StoreError, match=r"is a file of the run"):
        outputs.write({run / name: b"{}"}, "plots", run=tmp_path / "another")
    assert (run / name).read_bytes() == before
    outputs.write({run / name: b"{}"}, "plots", run=run)
    assert (run / name).read_bytes() == b"{}"


def test_what_is_put_into_a_run_directory_by_another_command_is_not_the_runs(lsa1_run: Path, tmp_path: Path) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    outputs.write({run / "gd.json": b"{}"}, "baselines.gd_step")
    assert rundir.clear(run) == [outputs.RECORD, "gd.json"]


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "target.json")
    with pytest.raises(outputs.StoreError, match=r"link\.json is a symbolic link"):
        outputs.write({tmp_path / "link.json": b"{}"}, "baselines.gd_step")
    assert not (tmp_path / "target.json").exists()
