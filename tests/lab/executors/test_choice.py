"""Which executor is chosen by its flags, and what is said where it cannot work: before anything is written."""

import argparse
import sys
from pathlib import Path

import pytest

from icl_lab.lab import cli
from icl_lab.lab.executors import choice
from icl_lab.lab.executors.remote import Resources, task_environment
from tests.doors import Refused

pytestmark = pytest.mark.robust

SWEEP = ["eval_noise", "--runs_dir", "runs", "--out", "table.csv", "--steps", "1"]


def read(*words: str) -> argparse.Namespace:
    built = cli.Parser("test", "")
    choice.add_flags(built)
    return built.parse(words)


def test_flags_say_what_a_task_gets(tmp_path: Path) -> None:
    words = "--executor ray --task_cpus 2 --task_gpus 0.25 --task_retries 0 --ray_address auto"
    found = choice.resources_of(read(*words.split()), tmp_path)
    assert found == Resources(2, 0.25, 0, "auto", jobs=tmp_path / ".jobs")
    words = "--executor slurm --task_gpus 2 --slurm partition=cpu,minutes=5,mem=2G"
    slurm = (("partition", "cpu"), ("minutes", 5), ("mem", "2G"))
    assert choice.resources_of(read(*words.split()), tmp_path) == Resources(
        gpus=2, slurm=slurm, jobs=tmp_path / ".jobs"
    )
    for executor in ([], *(["--executor", name] for name in choice.EXECUTORS)):
        assert choice.resources_of(read(*executor), tmp_path) == Resources(jobs=tmp_path / ".jobs")
    assert [choice.default_width(name, found) for name in choice.EXECUTORS] == [8, 1, 1, 8, 8]
    assert [choice.default_width(name, Resources()) for name in choice.EXECUTORS] == [8, 1, 1, 1, 1]


def test_tasks_find_threads_and_devices_in_their_environment() -> None:
    assert task_environment(Resources(cpus=3)).variables.items() >= {"NPROC": "3", "JAX_PLATFORMS": "cpu"}.items()
    shared = task_environment(Resources(gpus=0.25)).variables
    assert shared["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.225"
    assert "JAX_PLATFORMS" not in shared
    assert task_environment(Resources(gpus=2)).variables.keys() == {"NPROC", "PYTHONPATH"}


@pytest.mark.parametrize(
    "words",
    [
        "--executor dask",
        "--task_cpus 0",
        "--task_cpus many",
        "--task_gpus 1.5",
        "--task_gpus -1",
        "--task_gpus nan",
        "--task_retries -1",
        "--slurm partition",
        "--slurm minutes=soon",
        "--slurm cluster=debug --executor slurm",
    ],
)
def test_wrong_flags_are_refused(words: str, refused: Refused, tmp_path: Path) -> None:
    assert words.split()[1].split("=")[-1] in refused(*SWEEP, *words.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--task_cpus 1", "argument --task_cpus: only --executor ray or slurm takes it"),  # its default, given
        ("--task_gpus 0 --executor packed", "argument --task_gpus: only --executor ray or slurm takes it"),
        ("--task_retries 0 --executor serial", "argument --task_retries: only --executor ray or slurm takes it"),
        ("--ray_address auto --executor slurm", "argument --ray_address: only --executor ray takes it"),
        ("--slurm minutes=5 --executor ray", "argument --slurm: only --executor slurm takes it"),
        (
            "--slurm cluster=local,minutes=5,partition=cpu --executor slurm",
            "argument --slurm: cluster=local takes only minutes and at_once, and would ignore partition",
        ),
        (
            "--slurm minutes=2 --executor slurm",
            "argument --slurm: minutes is 2; a job saves its state a minute and a half before its time is over, "
            "so ask for 3 or more",
        ),
    ],
)
def test_flags_without_effect_are_refused(words: str, sentence: str, refused: Refused, tmp_path: Path) -> None:
    assert refused(*SWEEP, *words.split()) == f"error: {sentence}\n"
    assert list(tmp_path.iterdir()) == []


def test_a_fraction_of_a_gpu_is_refused_where_jobs_get_whole_ones(
    refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "check_extra", lambda package: None)
    monkeypatch.setattr(choice.shutil, "which", lambda name: name)
    said = refused(*SWEEP, "--executor", "slurm", "--task_gpus", "0.25")
    assert said == (
        "error: argument --task_gpus: a SLURM job has whole GPUs, and 0.25 is a fraction of one; "
        "ask for 1, or for fractions use --executor ray\n"
    )
    assert list(tmp_path.iterdir()) == []
    here = read("--executor", "slurm", "--task_gpus", "0.25", "--slurm", "cluster=local")
    assert choice.resources_of(here, tmp_path).gpus == 0.25


@pytest.mark.parametrize(("name", "module"), [("ray", "ray"), ("slurm", "submitit")])
def test_a_missing_package_is_a_sentence_with_its_command(
    name: str, module: str, refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    said = refused(*SWEEP, "--executor", name)
    assert (
        f"lacks the package {module}; install it with `{sys.executable} -m pip install -r requirements-{name}.txt"
        in said
    )
    assert list(tmp_path.iterdir()) == []


def test_without_a_slurm_cluster_it_is_refused(
    refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "check_extra", lambda package: None)
    monkeypatch.setattr(choice.shutil, "which", lambda name: None)
    assert "sbatch is not found" in refused(*SWEEP, "--executor", "slurm")
    assert list(tmp_path.iterdir()) == []


def test_the_packages_are_those_of_the_requirements(root: Path) -> None:
    from icl_lab.lab.environment import EXTRAS

    for name in EXTRAS.values():
        file = f"requirements-{name}.txt"
        first = (root / file).read_text().split("\n\n")[0]
        packages = {line.partition("==")[0].lower().replace("-", "_") for line in first.splitlines() if "==" in line}
        extras = {module for module, words in EXTRAS.items() if words == name}
        assert extras <= packages
        # these have what checks need too, and what Sphinx and nbclient load by its name
        more = ("requirements-dev.txt", "requirements-site.txt", "requirements-notebook.txt")
        assert extras == packages or file in more
