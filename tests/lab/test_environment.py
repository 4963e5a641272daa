"""What a process needs around it: where that is missing or unusable it is one sentence, and no file is touched."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from icl_lab.families.regression.config import RegressionConfig
from icl_lab.lab import environment
from icl_lab.lab.commands import COMMAND
from icl_lab.runners.locks import locked_runs
from icl_lab.store import layout, rundir
from icl_lab.store.atomic import write_json
from icl_lab.store.readers import StoreError
from tests.doors import ROOT, snapshot
from tests.runners.tiny import INTERRUPTED
from tests.thinned import thinned

Done = subprocess.CompletedProcess[str]
RUNNER = "runners.run_concat_inputs_targets"


def python(*words: object, **variables: str) -> Done:
    """Python in a process of its own, with these environment variables."""
    line = [sys.executable, *map(str, words)]
    return subprocess.run(line, cwd=ROOT, env=os.environ | variables, capture_output=True, text=True)


def is_refused(done: Done) -> str:
    """The one sentence of a command that has exited with 2."""
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"error: [^\n]+\n", done.stderr)
    return done.stderr


# Python and packages


def commands() -> list[str]:
    """Every module of the repository that runs as `python -m`."""
    code = [path for path in ROOT.rglob("*.py") if not {".venv", "tests", "runs"} & set(path.relative_to(ROOT).parts)]
    runs = [path for path in code if COMMAND in path.read_text().splitlines() or path.parent.name == "demos_ref"]
    named = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in runs]
    return sorted(name for name in named if not name.endswith("__init__"))


def test_the_commands_are_found() -> None:
    assert {RUNNER, "eval_order", "lab.executors.worker", "demos_ref.sine_waves"} <= set(commands())


@pytest.mark.parametrize("command", commands())
def test_without_packages_every_command_is_one_sentence(command: str) -> None:
    said = is_refused(python("-S", "-m", command))  # -S: nothing of site-packages
    assert "lacks the package absl-py; `make env` makes .venv" in said


@pytest.mark.parametrize(
    "module", ["argparse", "icl_lab.lab.cpu_quota"]
)  # one of every command's, and of the first imports of all
@pytest.mark.parametrize("command", thinned(commands(), 6))
def test_an_interrupt_while_packages_are_imported_ends_every_command_as_elsewhere(command: str, module: str) -> None:
    if command in ("benchmarks.processes", "icl_lab.__main__") and module == "argparse":
        pytest.skip("it has no flags, and so imports no argparse")
    done = python("-m", command, INTERRUPT=f"import:{module}:SIGINT", PYTHONPATH=INTERRUPTED)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("command", ["runners.run", "demos_ref.sine_waves"])
def test_an_interrupt_whose_exception_an_import_would_lose_ends_a_command_too(command: str) -> None:
    """JAX has C++ that calls Python in its imports."""
    done = python("-m", command, "--help", INTERRUPT="caught:argparse:SIGINT", PYTHONPATH=INTERRUPTED)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


IN_A_CALLBACK = """
class Callback:
    def __del__(self):
        raise KeyboardInterrupt
Callback()
print("it goes on")
"""


@pytest.mark.parametrize("script", ["raise KeyboardInterrupt", IN_A_CALLBACK])
def test_an_interrupt_outside_of_launch_and_imports_ends_a_command_as_elsewhere(script: str) -> None:
    """As in a walk-through, and in JAX's callback at every garbage collection, whose exceptions Python ignores."""
    done = python("-c", f"import sys; sys.argv[0] = '-m'; from icl_lab.lab import environment\n{script}")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_interrupt_of_a_users_own_script_is_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("from icl_lab import store\nraise KeyboardInterrupt\n")
    done = python(tmp_path / "script.py", PYTHONPATH=str(ROOT))
    assert done.stderr.splitlines()[-1] == "KeyboardInterrupt"


def test_the_packages_are_those_of_the_requirements(root: Path) -> None:
    first = (root / "requirements.txt").read_text().split("\n\n")[0]
    assert sorted(environment.PACKAGES.values()) == sorted(re.findall(r"^([\w-]+)==", first, re.M))


@pytest.mark.parametrize("module", environment.PACKAGES)
def test_the_package_that_is_missing_is_named(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "modules", {name: value for name, value in sys.modules.items() if name != module})
    found = environment.find_spec
    monkeypatch.setattr(environment, "find_spec", lambda name: None if name == module else found(name))
    assert f"lacks the package {environment.PACKAGES[module]};" in str(environment.missing_requirement())


@pytest.mark.parametrize(("version", "missing"), [((3, 10, 14), True), ((3, 11, 0), False), ((3, 14, 0), False)])
def test_an_old_python_is_named(version: tuple[int, ...], missing: bool) -> None:
    said = environment.missing_requirement(version)
    assert (said is not None) == missing
    assert not missing or "this is Python 3.10.14, and 3.11 or newer is needed" in str(said)


# NPROC


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "abc", "1025", "1000000", "1e3", " 2", "²", "٣", "9" * 5000])
def test_a_number_of_threads_that_is_none_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPROC", text)
    with pytest.raises(environment.UnusableEnvironment, match=r"it must be a whole number of threads from 1 to 1024$"):
        environment.num_threads()


@pytest.mark.parametrize(("text", "threads"), [("1", 1), ("7", 7), ("1024", 1024)])
def test_a_number_of_threads_is_taken_as_it_is(text: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPROC", text)
    assert environment.num_threads() == threads
    assert environment.threads_are_set()


def test_an_empty_number_of_threads_is_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NPROC", raising=False)
    of_the_machine = environment.num_threads()
    monkeypatch.setenv("NPROC", "")
    assert environment.num_threads() == of_the_machine
    assert not environment.threads_are_set()


@pytest.mark.parametrize("command", [RUNNER, "lab.executors.worker", "plots.run_figures", "eval_noise"])
def test_every_door_refuses_a_number_of_threads(command: str) -> None:
    assert "NPROC is '1000000'" in is_refused(python("-m", command, "--help", NPROC="1000000"))


# JAX_PLATFORMS and MPLBACKEND


def a_run(folder: Path) -> Path:
    """A run that could be retrained."""
    rundir.begin(folder, RegressionConfig())
    rundir.update_meta(folder, status="done")
    write_json(folder / layout.SUMMARY, {})
    return folder


@pytest.mark.parametrize("platforms", thinned(["cuda", "nowhere"], 2))
def test_devices_that_are_not_here_are_refused_before_anything_is_cleared(platforms: str, tmp_path: Path) -> None:
    a_run(tmp_path / "run")
    before = snapshot(tmp_path)
    for words in (["--out", tmp_path / "run", "--overwrite"], ["--out", tmp_path / "fresh"]):
        said = is_refused(python("-m", RUNNER, *words, JAX_PLATFORMS=platforms))
        assert f"JAX_PLATFORMS is '{platforms}', and JAX cannot start that here" in said
    grid = ["--runs_dir", tmp_path / "runs", "--out", tmp_path / "results.csv"]
    assert "JAX_PLATFORMS is" in is_refused(python("-m", "eval_order", *grid, JAX_PLATFORMS=platforms))
    assert snapshot(tmp_path) == before


def test_the_devices_that_are_here_are_not_refused() -> None:
    for platforms in ("", "cpu", "cpu,cpu"):
        done = python("-c", "from icl_lab.lab import environment; environment.check_devices()", JAX_PLATFORMS=platforms)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_run_from_python_is_refused_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_PLATFORMS", "nowhere")
    monkeypatch.setattr(
        sys, "modules", {name: value for name, value in sys.modules.items() if name.split(".")[0] != "jax"}
    )
    runs = [(tmp_path / "run", RegressionConfig())]
    with pytest.raises(environment.UnusableEnvironment, match="nowhere"), locked_runs(runs):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_backend_that_matplotlib_does_not_know_is_refused_before_training(tmp_path: Path) -> None:
    said = is_refused(python("-m", RUNNER, "--out", tmp_path / "run", MPLBACKEND="foo"))
    assert "MPLBACKEND is 'foo', which Matplotlib does not know; unset it, or set MPLBACKEND=agg" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("backend", ["agg", "Agg", "svg", "module://matplotlib_inline.backend_inline", ""])
def test_a_backend_that_matplotlib_knows_draws(backend: str, tmp_path: Path) -> None:
    script = (
        "import sys; from icl_lab.lab import cli\n"
        "def main(argv):\n"
        "    from matplotlib.figure import Figure\n"
        "    Figure().savefig(argv[0])\n"
        "cli.launch(main)"
    )
    done = python("-c", script, tmp_path / "figure.png", MPLBACKEND=backend)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "figure.png").exists()


def test_matplotlib_is_not_imported_without_need() -> None:
    script = "import sys; from icl_lab.lab import cli; cli.launch(lambda argv: int('matplotlib' in sys.modules))"
    assert python("-c", script, MPLBACKEND="").returncode == 0
    assert python("-c", script, MPLBACKEND="module://a.notebook").returncode == 0


def test_threads_of_a_run_follow_the_same_rule(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run")
    begun = {"versions": {}, "pack_width": 1, "run_seconds": 0.0, "status": "stopped"}
    rundir.update_meta(run, **begun, threads=environment.MOST_THREADS + 1)
    with pytest.raises(StoreError, match=r"a run's meta.json"), locked_runs([(run, RegressionConfig())]):
        pass
