"""The pages of docs/reference/ are what the code says, and say all of it."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from icl_lab.lab import commands
from icl_lab.lab.configs.presets import preset, resolve, value_at
from icl_lab.lab.configs.registry import named
from icl_lab.lab.registries import FAMILIES
from icl_lab.runners.flags import parser as runners_parser
from icl_lab.scripts import reference
from icl_lab.scripts.reference_page import artifacts, files
from icl_lab.src.checks import UsageError
from icl_lab.store import layout
from icl_lab.sweeps.collect import row_values
from icl_lab.sweeps.grid import Grid
from icl_lab.sweeps.plan import plan
from tests.doors import Ran, ran, snapshot
from tests.test_imports import is_command, modules

__all__ = ["ran"]

OF_ALL = {"--help", "--helpshort", "--helpfull", "--plugin"}


@pytest.fixture(scope="module")
def page() -> str:
    """All pages, which are those that are committed, one behind the other."""
    return reference.text()


def section(page: str, heading: str) -> str:
    """What stands below a heading, up to the next one that is not deeper."""
    depth = len(heading.split()[0])
    return re.split(rf"\n#{{2,{depth}}} ", page.partition(f"\n{heading}\n")[2])[0]


def flags_in(text: str) -> set[str]:
    """The flags in the first cells of tables."""
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `-")]
    return {flag for cell in rows for flag in re.findall(r"`(--[a-z_.]+)`", cell)}


def test_the_pages_are_what_the_command_makes(root: Path) -> None:
    words = [sys.executable, "-m", "scripts.reference", "--check"]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_check_finds_a_page_that_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so and leaves it; without --check it is made anew."""
    earlier = tmp_path / "reference" / "earlier.md"
    earlier.parent.mkdir()
    earlier.write_text("of a section that is gone")
    by_hand = "# Contract\n\n<!-- table trained, by python -m scripts.reference -->\nold\n<!-- end -->\n\nkept\n"
    (tmp_path / "contract.md").write_text(by_hand)
    monkeypatch.setattr(reference, "DOCS", tmp_path)
    monkeypatch.setattr(reference, "LOADED", {})
    monkeypatch.setattr(reference, "text", lambda: "## A run's files\n\n### One\n\nmade\n")
    before = snapshot(tmp_path)
    assert (reference.main(["--check"]), snapshot(tmp_path)) == (1, before)
    assert (reference.main([]), earlier.exists()) == (0, False)
    made = (tmp_path / "reference" / "a_run_files.md").read_text()
    assert made == f"# A run's files\n\n{reference.MADE}\n\n## One\n\nmade\n"
    assert "- [A run's files](reference/a_run_files.md)" in (tmp_path / "reference.md").read_text()
    table = (tmp_path / "contract.md").read_text()
    assert "| layerwise | last layer's MSE over that of zero: at most 0.9 |" in table
    assert (table[:13], table[-6:], "\nold\n" in table) == (by_hand[:13], "\nkept\n", False)
    assert reference.main(["--check"]) == 0


def test_a_plugin_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "LOADED", {"mine": None})
    with pytest.raises(UsageError, match="built-in names"):
        reference.main(["--check"])


def test_every_command_is_on_it(root: Path, page: str) -> None:
    """All modules that run, as their last statements say, but those that only other commands start."""
    runs = [parts for path, parts in modules(root) if is_command(ast.parse(path.read_text()).body[-1])]
    found = {".".join(parts).removesuffix(".__main__") for parts in runs if parts[0] != "icl_lab"}
    assert {*commands.commands()} == found - {*commands.STARTED_BY_OTHERS}
    assert set(commands.STARTED_BY_OTHERS) <= found
    headed = set(re.findall(r"^### `python -m ([\w.]+)(?: MODEL)?`$", page, re.M))
    assert headed == {*commands.commands()}


@pytest.mark.parametrize("command", ["analysis.ood_eval", "sweeps.collect", "studies.run", "analysis.gd_curve"])
def test_a_commands_flags_are_those_of_its_help(command: str, page: str, ran: Ran) -> None:
    said = set(re.findall(r"(--[a-z_]+)", ran(command, "--help").out.partition("options:")[2]))
    assert flags_in(section(page, f"### `python -m {command}`")) == said - {
        "--help",
        "--helpshort",
        "--helpfull",
        "--plugin",
    }


def test_a_runners_flags_are_its_familys(page: str) -> None:
    """`run_concat_inputs_targets` has those of all families and of regression, and says so."""
    whole = section(page, "### `python -m runners.run MODEL`")
    common, *families = whole.split("\n#### ")
    own = next(part for part in families if part.startswith("Family regression"))
    parser = runners_parser("lsa1", "runners.run_concat_inputs_targets", "")
    known = {flag for action in parser._actions for flag in action.option_strings if flag.startswith("--")}
    assert flags_in(common) | flags_in(own) == known - OF_ALL
    short = section(page, "### `python -m runners.run_concat_inputs_targets`")
    assert "It has the flags of `runners.run lsa1`." in short


@pytest.mark.parametrize("name", ["default", "paper"])
@pytest.mark.parametrize("model", ["lsa1", "twolayer", "lsa", "softmax", "sine_control", "small"])
def test_the_presets_are_those_of_the_configs(model: str, name: str, page: str) -> None:
    """The numbers in a model's row are the resolved config's, under the names of the fields."""
    tables = section(page, "## Presets").split("\n### ")
    table = next(text for text in tables if re.match(rf"Family .*\b{model}\b", text))
    head, _, *rows = [line.strip("| ").split(" | ") for line in table.split("\n\n")[1].splitlines()]
    row = next(row for row in rows if row[0] == model and name in row[1].split(", "))
    config = resolve(preset(model, name))
    for column in ("lr", "batch_size", "steps", "grad_clip"):
        if f"`{column}`" in head:
            assert float(row[head.index(f"`{column}`")]) == value_at(config, f"training.{column}")


def test_activations_are_clipped_beyond_three_layers(page: str) -> None:
    rows = [line.strip("| ").split(" | ") for line in section(page, "## Presets").splitlines() if "from 4" in line]
    assert {row[5] for row in rows} == {"10"}
    assert [resolve(preset("lsa1", "paper", depth)).model.activation_clip for depth in (1, 3, 4)] == [0, 0, 10]


@pytest.mark.parametrize("name", FAMILIES.built_in)
def test_the_columns_are_those_of_a_sweeps_row(name: str, page: str, tmp_path: Path) -> None:
    """In the order of the table that a sweep writes, which adds where it lies and whether it was resumed elsewhere."""
    family = named(name)
    row = plan([Grid((next(iter(family.models)),), {}, (0,), {})])[0]
    written = [*row_values(row, tmp_path), "runs_dir", "bitwise"]
    assert artifacts.columns_of(family) == written
    table = next(
        part for part in section(page, "## Columns of a sweep's CSV").split("\n### ") if f"Family {name}" in part
    )
    listed = {
        word for line in table.splitlines() if line.startswith("| `") for word in line.split("|")[1].split("`")[1::2]
    }
    assert listed == set(written)


def test_every_name_of_the_layout_has_a_line() -> None:
    folders = {*layout.RUN_FOLDERS, layout.LOCK, layout.DRAFT}
    assert [name for name in sorted(layout.FIXED_NAMES - folders) if files.entry(name) is None] == []
    assert files.entry("attn/layer12_head3.npy") is not None
    assert files.entry("attn/layerX.npz") is None
    assert files.entry("notes.txt") is None


def test_the_targets_are_the_makefiles(root: Path, page: str) -> None:
    targets = set(re.findall(r"^([a-z][a-z_-]*):", (root / "Makefile").read_text(), re.M))
    assert set(re.findall(r"^\| `([a-z_-]+)` \|", section(page, "## Make targets"), re.M)) == targets
