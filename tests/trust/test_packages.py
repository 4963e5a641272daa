"""Packages that only some commands need: looked for first, and named with the line that installs them."""

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from icl_lab.lab.commands import commands
from icl_lab.lab.environment import EXTRAS, PACKAGES
from tests.doors import ROOT
from tests.test_imports import PACKAGE, graph, modules

pytestmark = pytest.mark.robust

# command line -> what it needs besides requirements.txt
NEEDS = {
    "analysis.llc --run run --sampler hmc --batches full": ["blackjax"],
    "analysis.llc_calibrate --run run --sampler hmc --batches full": ["blackjax"],
    "analysis.llc --run run --follow --executor ray": ["ray"],
    "runners.run_concat_inputs_targets --out run --llc_every 2 --llc_sampler hmc --llc_batches full": ["blackjax"],
    "scripts.llc_validation --out run": ["blackjax"],
    "scripts.gpu_check --out run": ["blackjax", "jinja2", "pytest"],
    "scripts.notebooks --execute": ["nbclient"],
    "scripts.plant_faults": ["pytest"],
    "scripts.site.build --out site": ["sphinx"],
    "scripts.site.check --site site": ["playwright", "axe_playwright_python"],
    "studies.run reproduction": ["jinja2"],
    "studies.run stages": ["jinja2"],
    "studies.run conjecture.py": ["jinja2"],
    "studies.remake": ["jinja2"],
    "store.export runs --tensorboard logs": ["tensorboard"],
    "store.export runs --wandb project": ["wandb"],
    "eval_noise --executor ray": ["ray"],
    "eval_noise --executor slurm": ["submitit"],
    "studies.run order_noise --executor slurm --runs_dir runs": ["submitit"],
}
# what each of these imports is used for in commands that reach it and do not use it
NOT_USED = {
    "sweeps",
    "eval_order",
    "eval_noise",
    "eval_diversity",
    "eval_languages",
    "eval_functions",
    "eval_tokens",
}  # no estimate in a sweep's runs
NOT_USED |= {"analysis.stages"}  # it reads estimates
NOT_USED |= {"analysis.curvature"}  # it draws no chain
NOT_USED |= {"analysis.develop", "analysis.llc_saturation", "scripts.llc_pictures", "benchmarks.bench"}  # not by HMC
NOT_USED |= {"scripts.demo_seeds", "scripts.smoke_train"}  # nor in these
NOT_USED |= {"studies.error_rates", "studies.order_noise.predictions"}  # they make no page
NOT_USED |= {"scripts.site.gallery"}  # nor does it
NOT_USED |= {"benchmarks.devinterp"}  # its chains are SGLD
OPTIONAL = {"arviz", "xarray"}  # to which a library's reader may take draws, in the version that they have
OPTIONAL |= {"devinterp"}  # in an environment of its own, which a flag names


@pytest.mark.parametrize(("line", "package"), [(line, package) for line, found in NEEDS.items() for package in found])
def test_a_missing_package_is_found_before_the_work(
    line: str, package: str, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a fresh folder, in which nothing is left."""
    monkeypatch.setattr("icl_lab.lab.environment.find_spec", lambda name: None if name == package else name)
    command, *words = line.split()
    said = refused(command, *words)
    pinned = f"-r requirements-{EXTRAS[package]}.txt"
    assert f"lacks the package {package}; install it with `{sys.executable} -m pip install {pinned}`" in said


def imports(path: Path) -> Iterator[str]:
    """The packages that a file imports, or asks `lab.environment.extra` for."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "extra":
            yield from (str(word.value).split(".")[0] for word in node.args if isinstance(word, ast.Constant))


def test_every_package_is_required_or_an_extra(root: Path) -> None:
    pinned = {line.partition("==")[0].lower() for line in (root / "requirements.txt").read_text().splitlines()}
    known = {*sys.stdlib_module_names, PACKAGE, *PACKAGES, *EXTRAS, *OPTIONAL}
    for path, parts in modules(root):
        for name in imports(path):
            assert name in known or name.lower() in pinned, f"{'.'.join(parts)} imports {name}"


def test_every_command_that_reaches_an_extra_is_in_the_table(root: Path) -> None:
    """By the imports of its modules, in functions too."""
    arrows = graph(root, in_functions=True)
    users = {".".join((PACKAGE, *parts)): {*imports(path)} & {"blackjax", "jinja2"} for path, parts in modules(root)}
    checked = {line.split()[0] for line in NEEDS}
    for command in commands():
        reached, left = {f"{PACKAGE}.{command}"}, [f"{PACKAGE}.{command}"]
        while left:
            left += (new := arrows.get(left.pop(), set()) - reached)
            reached |= new
        needed = set().union(*(users.get(module, set()) for module in reached))
        excepted = command in NOT_USED or command.split(".")[0] in NOT_USED or command.startswith("runners.")
        assert reached <= {*arrows}, command
        assert not needed or command in checked or excepted, f"{command} reaches {needed}"


def test_the_files_of_the_extras_exist() -> None:
    assert all((ROOT / f"requirements-{name}.txt").exists() for name in EXTRAS.values())
