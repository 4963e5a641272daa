"""`pip install` of the tree and of its wheel: one package, beside a neighbour's own `src/`, `plots/`, `analysis.py`."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from tests.runners.tiny import copied

pytestmark = pytest.mark.robust

NOT_BUILT = (".git", ".venv", "runs", "tests", "report", "build", "__pycache__", ".*_cache", ".hypothesis")
OWN = {"src/__init__.py": "OWN = 'src'", "plots/__init__.py": "OWN = 'plots'", "analysis.py": "OWN = 'analysis'"}
ORDERS = {"own first": ("{own}", "{ours}"), "ours first": ("{ours}", "{own}")}
SCRIPT = """
{first}
{second}
assert [src.OWN, plots.OWN, analysis.OWN] == ["src", "plots", "analysis"]
assert icl_lab.src.data_config.DataConfig().dim == 10 and icl_lab.analysis.__name__ == "icl_lab.analysis"
print(icl_lab.__file__)
"""
OURS = "import icl_lab.src.data_config, icl_lab.plots.style, icl_lab.store, icl_lab.analysis"


def run(*words: object, cwd: Path, **variables: str) -> str:
    """The output of a command that must succeed, without what the tests' own environment adds to the path."""
    done = ended(*words, cwd=cwd, **variables)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def ended(*words: object, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    line = [str(word) for word in words]
    return subprocess.run(line, cwd=cwd, capture_output=True, text=True, env=kept | variables, check=False)


@pytest.fixture(scope="module")
def tree(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree, since a build leaves folders in it."""
    return copied(root, tmp_path_factory.mktemp("tree") / "lab", *NOT_BUILT)


@pytest.fixture(scope="module")
def install(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Installs into a fresh environment, whose other packages are those of the tests, and gives its interpreter."""

    def installed(*words: object) -> Path:
        folder = tmp_path_factory.mktemp("fresh") / "env"
        run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=tree)
        python = folder / "bin" / "python"
        packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tree).strip())
        (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
        run(*pip, "install", "--no-index", "--no-deps", "--no-build-isolation", *words, cwd=tree)
        return python

    return installed


@pytest.fixture(scope="module")
def wheel(tree: Path) -> Path:
    line = (sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-index", "--no-deps")
    run(*line, "--no-build-isolation", "--wheel-dir", "dist", ".", cwd=tree)
    return next((tree / "dist").glob("*.whl"))


def test_a_source_distribution_gives_the_same_wheel(tree: Path, wheel: Path, tmp_path: Path) -> None:
    """With licence, readme and what else its build asks for."""
    build = "from setuptools.build_meta import build_sdist; build_sdist('sources')"
    run(sys.executable, "-c", build, cwd=tree)
    (archive,) = (tree / "sources").glob("*.tar.gz")
    with tarfile.open(archive) as sources:
        sources.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    line = (sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-index", "--no-deps")
    run(*line, "--no-build-isolation", "--wheel-dir", tmp_path / "dist", unpacked, cwd=tmp_path)
    (again,) = (tmp_path / "dist").glob("*.whl")
    assert {"LICENSE", "NOTICE", "README.md", "pyproject.toml"} <= {path.name for path in unpacked.iterdir()}
    names = [ZipFile(path).namelist() for path in (wheel, again)]
    assert sorted(names[0]) == sorted(names[1])


@pytest.fixture(scope="module", params=["wheel", "editable"])
def python(request: pytest.FixtureRequest, tree: Path, install: Callable[..., Path]) -> Path:
    """The interpreter of an environment in which the laboratory is installed."""
    return install(request.getfixturevalue("wheel")) if request.param == "wheel" else install("--editable", ".")


@pytest.mark.parametrize("order", ORDERS)
def test_a_neighbours_own_modules_stay_theirs(order: str, python: Path, tmp_path: Path) -> None:
    for name, text in OWN.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    first, second = (each.format(own="import src, plots, analysis", ours=OURS) for each in ORDERS[order])
    said = run(python, "-c", SCRIPT.format(first=first, second=second), cwd=tmp_path)
    assert Path(said.strip()).name == "__init__.py"
    assert not Path(said.strip()).is_relative_to(tmp_path)


def test_a_checkout_from_whose_root_python_starts_comes_before_what_is_installed(python: Path, root: Path) -> None:
    """As the tests do, in an environment that `make env` has made of another checkout too."""
    files = run(python, "-c", "import icl_lab.store; print(icl_lab.__file__, icl_lab.store.__file__)", cwd=root).split()
    assert files == [str(root / "icl_lab/__init__.py"), str(root / "icl_lab/store/__init__.py")]


LIBRARY = """
import sys, icl_lab
assert not {"numpy", "pandas", "jax"} & {*sys.modules}
run = icl_lab.train("lsa1", steps=4, eval_every=2, batch_size=16, eval_tasks=32, quiet=True)
print(run.predict(*icl_lab.sample(run, 3)[:3]).shape, icl_lab.table().loc[0, "status"])
assert run.facts()["command"].startswith("icl-lab runners.run lsa1 "), run
"""


def test_the_library_and_the_console_script_work_in_any_folder(python: Path, tmp_path: Path) -> None:
    """Of a wheel and of a checkout that is installed as it stands."""
    assert run(python, "-c", LIBRARY, cwd=tmp_path) == "(3,) done\n"
    script = python.with_name("icl-lab")
    assert "  run " in run(script, cwd=tmp_path)
    assert "lsa1" in run(script, "runs", "runs", cwd=tmp_path)
    wrong = ended(script, "alignment", "--run", "nowhere", cwd=tmp_path)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert "usage: icl-lab analysis.llc " in run(script, "llc", "--help", cwd=tmp_path)


def test_a_wheel_trains_a_run_in_an_empty_folder_as_the_checkout_does(
    wheel: Path, install: Callable[..., Path], root: Path, tmp_path: Path
) -> None:
    """One package, no module of the root on the path, the same bytes."""
    words = "--steps 4 --eval_every 2 --batch_size 16 --config.eval_tasks=32 --quiet --out".split()
    python = install(wheel)
    run(python, "-m", "icl_lab.runners.run", "lsa1", *words, "run", cwd=tmp_path, NPROC="1")
    run(sys.executable, "-m", "runners.run", "lsa1", *words, tmp_path / "ours", cwd=root, NPROC="1")
    for name in ("metrics.jsonl", "params.safetensors", "metrics_summary.json"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "ours" / name).read_bytes(), name
    assert "lsa1" in run(python, "-m", "icl_lab.store.runs", ".", cwd=tmp_path)
    assert "--models" in run(python, "-m", "icl_lab.eval_order", "--help", cwd=tmp_path)
    asked = "from icl_lab.studies.history import events; print(events('one_layer_loss')[0].event)"
    assert run(python, "-c", asked, cwd=tmp_path) == "range\n"
    sample = "from icl_lab.families.tokens.text import corpus_in; print(corpus_in('').digest)"
    assert run(python, "-c", sample, cwd=tmp_path) == run(sys.executable, "-c", sample, cwd=root)
    done = ended(python, "-c", "import runners", cwd=tmp_path)
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'runners'"


def test_packages_that_are_installed_within_the_ranges_stay(root: Path) -> None:
    """The ranges take what requirements.txt pins, and what comes after it."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = {f"requirements-{name}.txt": asked for name, asked in project["optional-dependencies"].items()}
    for file, asked in [("requirements.txt", project["dependencies"]), *extras.items()]:
        pins = pinned(root / file)
        for each in map(Requirement, asked):
            assert pins[each.name.lower().replace("_", "-")] in each.specifier, f"{file}: {each}"
            assert all(part.operator == ">=" for part in each.specifier), each


def pinned(file: Path) -> dict[str, str]:
    """The versions that a file of requirements pins, by the package's normalised name."""
    lines = (line.split("==") for line in file.read_text().splitlines() if "==" in line)
    return {name.lower().replace("_", "-"): pin for name, pin in lines}


def test_all_requirements_can_be_installed_together(root: Path) -> None:
    """`make test-all` does: no two files pin two versions of a package."""
    versions: dict[str, set[str]] = {}
    for file in root.glob("requirements*.txt"):
        for name, pin in pinned(file).items():
            versions.setdefault(name, set()).add(pin)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}
