"""The pages under docs/ and the README say what the code does: their tables are compared, their examples run."""

import csv
import hashlib
import json
import math
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab.analysis import gd_curve, layerwise
from icl_lab.lab.configs.presets import preset, resolve, value_at
from icl_lab.plots import compare_depth
from icl_lab.runners import flags, run_layerwise
from icl_lab.scripts.reference_page import files
from icl_lab.scripts.site.check import INTERACTIVE
from icl_lab.store import layout
from icl_lab.store.rundir import read_meta
from tests.doors import ROOT, Ran, ran
from tests.runners.tiny import copied, twolayer_run, workshop

__all__ = ["ran", "twolayer_run", "workshop"]

SMALL = "--batch_size 64 --config.eval_tasks=64 --config.test_tasks=200 --config.step_size_tasks=256".split()
PAGES = sorted(page.relative_to(ROOT).as_posix() for page in ROOT.glob("docs/**/*.md"))
CODE_BLOCK = re.compile(r"```(\S+)([^\n]*)\n(.*?)```", re.S)


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """(language, what stands behind it, text) of each code block."""
    return [(a, b.strip(), c) for a, b, c in CODE_BLOCK.findall(page.read_text())]


def section(page: Path, title: str) -> str:
    """The text below a heading."""
    return re.split(r"\n#+ ", page.read_text().split(f"# {title}\n")[1])[0]


def run(words: list[str], folder: Path, compiled: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A command with warnings as errors; `compiled` is where it may find programs compiled before."""
    cache = {} if compiled is None else {"JAX_COMPILATION_CACHE_DIR": str(compiled)}
    cache |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
    environment = os.environ | cache | {"PYTHONWARNINGS": "error"}
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, env=environment)


# a word of the contract's command lines that stands for a value -> one that its parser takes
VALUES = {
    "X": "0.5",
    "L": "2",
    "N": "2000",
    "MODEL": "lsa1",
    "CLASS": "linear",
    "NAME,NAME": "lsa1_1",
    "FILE": "file.json",
    "SWEEP": "depth",
    "NAME=EPS:NBETA:GAMMA,": "tight=3.5e-5:133:2000",
}


def contract_lines(root: Path) -> list[list[str]]:
    """Each command line of the contract in words, with all that is optional in it and the first of alternatives."""
    text = (root / "docs/contract.md").read_text()
    lines = [re.sub(r"[\[\]]|\.\.\.", " ", line) for line in re.findall(r"`((?:python -m|sh|bash) [^`]+)`", text)]
    lines = [line for line in lines if not line.endswith("X")]  # of which the page says that all are such
    return [[VALUES.get(word, word.partition("|")[0]) for word in line.split()] for line in lines]


def make_lines(root: Path) -> list[list[str]]:
    """The commands of the repository that make's targets run, in words."""
    targets = re.findall(r"^([a-z][a-z_-]*):", (root / "Makefile").read_text(), re.M)
    done = run(["make", "-n", "-o", ".venv/.made", *targets], root)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.replace("\\\n", " ").splitlines()
    found = [shlex.split(line) for line in lines if line.startswith((".venv/bin/python -m", "bash"))]
    return [words for words in found if not {"pip", "pytest", "ruff", "mypy"} & {*words}]


def test_every_line_of_the_contract_and_of_make_is_one_its_parser_takes(root: Path, ran: Ran) -> None:
    """Each complains of a flag that no command has, or of a batch that no run has, and so of nothing before it."""
    lines = [*contract_lines(root), *make_lines(root)]
    assert len({words[2] for words in lines if words[1] == "-m"}) > 30
    for program, *words in lines:
        if program in ("sh", "bash"):
            done = run([program, *words, "--no_such_flag"], root)
            status, said, expected = done.returncode, done.stderr, "unknown argument --no_such_flag"
        else:
            module, wrong, expected = words[1], ["--no_such_flag"], "unknown argument --no_such_flag"
            if module.startswith("runners.run") and "--help" not in words:
                wrong, expected = ["--batch_size", "0"], "batch_size is 0"
            outcome = ran(module, *words[2:], *wrong)
            status, said = outcome.status, outcome.err
            if "--help" in words:
                status, said = status + 2, expected
        assert (status, expected in said) == (2, True), (program, words, said)


@pytest.mark.slow
def test_with_and_without_pythonpath_a_command_does_the_same(root: Path, tmp_path: Path) -> None:
    """From the repository's root, which is all that it needs."""
    words = [sys.executable, "-m", "analysis.gd_curve", *"--dim 3 --num_pairs 5 --steps 2 --num_tasks 50".split()]
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for name, environment in {"with.json": bare | {"PYTHONPATH": "."}, "without.json": bare}.items():
        line = [*words, "--out", str(tmp_path / name)]
        done = subprocess.run(line, cwd=root, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "with.json").read_bytes() == (tmp_path / "without.json").read_bytes()


@pytest.mark.slow
def test_the_depth_curves_flags_fields_and_files(root: Path, tmp_path: Path) -> None:
    """The contract names no flag that does not exist, and every number of the depth curve; the reference, its files."""
    text = section(root / "docs/contract.md", "The depth curve")
    built = (layerwise.COMMAND.parser(), gd_curve.parser(), compare_depth.parser())
    known = {option for parser in built for action in parser._actions for option in action.option_strings}
    known |= {
        option for action in flags.parser(run_layerwise.MODELS, "a", "b")._actions for option in action.option_strings
    }
    sweep = {"--sweep"}
    assert set(re.findall(r"--[a-z_]+(?![a-z_.])", text)) - sweep - {"--config"} <= known
    assert set(gd_curve.STEP_SIZES) <= set(re.findall(r"[a-z_]+", text))
    words = f"--steps 3 {' '.join(SMALL[:-1])} --config.test_tasks=50 --out {tmp_path / 'run'}".split()
    done = run([sys.executable, "-m", "runners.run_layerwise", *words], root)
    assert done.returncode == 0, done.stderr
    assert_described(tmp_path / "run")
    found = json.loads((tmp_path / "run" / layout.LAYERWISE).read_text())
    said = set(re.findall(r"[a-z_]+", text))
    assert {"layers", "mse", "sem", "median", "ratio_to_gd", "gd", "verdict", "loss_convention"} <= set(found) & said
    assert set(found["references"]) <= said
    first = json.loads((tmp_path / "run" / layout.METRICS).read_text().split("\n")[0])
    assert set(first) <= words_of(layout.METRICS)


def test_every_departure_names_a_test_and_settings_that_are_there(root: Path) -> None:
    """Each row of the page's tables; its command lines are those of runs that its settings change."""
    page = root / "docs/fidelity.md"
    rows = [line.strip("| ").split(" | ") for line in page.read_text().splitlines() if line.startswith("| ")]
    rows = [row for row in rows if row[0] != "what"]
    assert len(rows) > 20
    for row in rows:
        file, _, test = row[-1].strip("`").partition("::")
        assert len(row) == 6, row
        assert f"def {test}(" in (root / file).read_text(), row
    said = {words for row in rows for words in re.findall(r"--config\.(\w+=[\w.]+)", row[4])}
    known = {model: resolve(preset(model)) for model in ("lsa1", "sine", "twolayer", "languages")}
    for words in said:
        models = {"amplitude": "sine", "tied": "sine", "tokens": "twolayer", "prediction": "twolayer"}
        models |= dict.fromkeys(("autoencoder", "query", "schedule", "test"), "languages")
        model = models.get(re.split("[_=]", words)[0], "lsa1")
        changed = flags.read(model, "a", "", [f"--config.{words}"]).config
        assert changed != known[model], words
    for line in blocks(page)[0][2].splitlines():
        *_, model = line.partition(" --")[0].split()
        published = flags.read(model, "a", "", line.split()[4:]).config
        assert published.preset == "published"
        differs = {"lsa1": "model.mlp_bias", "twolayer": "model.tokens"}.get(model, "data.tied_phase")
        assert value_at(published, differs) != value_at(resolve(preset(model)), differs), line


def anchors(page: Path) -> set[str]:
    """What links may name in a page: its headings, as GitHub spells them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *PAGES])
def test_every_link_leads_somewhere(name: str, root: Path) -> None:
    page = root / name
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()) if not link.startswith("http")]
    for link in links:
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        assert target.exists(), link
        is_state = target.stem in INTERACTIVE and anchor.startswith("v1")
        assert not anchor or is_state or anchor in anchors(target), link


def files_of(folder: Path) -> set[str]:
    """The files of a run directory, less its lock."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {layout.LOCK}


def assert_described(folder: Path) -> None:
    """Every file has its line in the reference's table."""
    assert [name for name in files_of(folder) if files.entry(name) is None] == []


def words_of(name: str) -> set[str]:
    """The words with which the reference describes a file."""
    described = files.entry(name)
    assert described is not None
    return set(re.findall(r"[a-z_0-9]+", described.content))


def test_the_reference_lists_exactly_the_files_of_a_run(twolayer_run: Path) -> None:
    """None is missing there, and all that such a run is said to leave are here."""
    assert_described(twolayer_run)
    listed = {files.entry(name) for name in files_of(twolayer_run)}
    left_by = {"every run", "regression", "`--save_attention`", "`twolayer`"}
    promised = {file for file in files.FILES if {*re.split(r"[;,] ", file.left_by)} & left_by}
    assert listed == promised


def test_the_reference_names_the_fields_of_the_files(twolayer_run: Path) -> None:
    assert set(json.loads((twolayer_run / layout.METRICS).read_text().split("\n")[0])) <= words_of(layout.METRICS)
    for name in (layout.ANALYSIS_BATCH, layout.PREDICTIONS):
        assert set(np.load(twolayer_run / name)) <= words_of(name)
    provenance = {"compile_seconds", "run_seconds", "status", "chunk_steps"}
    assert provenance <= set(read_meta(twolayer_run)) & words_of(layout.META)
    summary = {"headline", "trained", "loss_convention", "contexts", "alignment", "ood", "copying", "num_steps"}
    assert summary <= set(json.loads((twolayer_run / layout.SUMMARY).read_text())) & words_of(layout.SUMMARY)


def copy_of(root: Path, to: Path) -> Path:
    """The repository's files, without what git ignores."""
    return copied(root, to, ".git", ".venv", "runs", "__pycache__", ".*_cache", ".hypothesis")


def apply(diff: str, folder: Path) -> None:
    """Applies a diff whose hunks have no line numbers: what a hunk removes or keeps must stand in the file once."""
    for name, hunks in re.findall(r"^--- a/(\S+)\n\+\+\+ b/\S+\n(.*?)(?=^--- a/|\Z)", diff, re.M | re.S):
        text = (folder / name).read_text()
        for hunk in hunks.split("@@\n")[1:]:
            lines = hunk.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if line[0] != "+")
            after = "".join(line[1:] for line in lines if line[0] != "-")
            assert text.count(before) == 1, (name, before)
            text = text.replace(before, after)
        (folder / name).write_text(text)


def losses_of(run: Path) -> dict[str, Any]:
    """The losses of a run's baselines that know of the corruption."""
    found: dict[str, Any] = json.loads((run / layout.COMPARATORS).read_text())
    return found


def headline_of(run: Path) -> dict[str, Any]:
    """A run's test-set losses."""
    found: dict[str, Any] = json.loads((run / layout.SUMMARY).read_text())["headline"]
    return found


# of a decoder, which has no step size to search and takes longer a step
SMALL_DECODER = "--batch_size 16 --config.eval_tasks=32 --config.test_tasks=50".split()


# runs whose numbers the page shows; these, and the one that is compared with them, are made as they stand there
SHOWN = ("runs/baseline", "runs/known")
AS_THEY_STAND = (*SHOWN, "runs/noise")
# of the study in one file, whose steps are in it
SETTINGS = '"steps": 2000, "batch_size": 256, '
SMALL_SETTINGS = '"steps": 30, "batch_size": 32, "eval_tasks": 32, "test_tasks": 50, "step_size_tasks": 256, '


@pytest.mark.slow
def test_the_examples_of_extending_work(root: Path, tmp_path: Path) -> None:
    """And the one of CONTRIBUTING.md; the conjecture is run by tests/studies/test_conjecture.py."""
    copy = copy_of(root, tmp_path / "copy")
    printed: dict[str, str] = {}
    shown = {}
    for language, path, text in [*blocks(root / "docs/extending.md"), *blocks(root / "CONTRIBUTING.md")]:
        if language in ("python", "markdown"):
            assert not (copy / path).exists()
            (copy / path).parent.mkdir(exist_ok=True)
            (copy / path).write_text(text.replace(SETTINGS, SMALL_SETTINGS))
        elif language == "diff":
            apply(text, copy)
        elif language == "text" and printed:
            shown[[*printed][-1]] = text
        elif language == "sh" and "my/anisotropic.py" not in text:
            for line in text.splitlines():
                program, *words = line.split()
                assert program == "python"
                as_it_stands = words[-1] in AS_THEY_STAND or "tests/families" in line  # which is small
                is_decoder = "run tiny" in line or "run_functions" in line
                small = SMALL_DECODER if is_decoder else SMALL if "--out" in line and not as_it_stands else []
                done = run([sys.executable, *words, *small], copy, tmp_path / "compiled")
                assert done.returncode == 0, done.stderr
                printed[words[-1]] = done.stdout
    names = ("baseline", "ordering", "noise", "known", "inputs", "tasks", "attention", "decoder_attention")
    names += ("splines", "schedule", "runner", "family", "family_sweep")
    assert list(printed) == [*(f"runs/{name}" for name in names), "my/question.py", "runs/edited"]
    for name in SHOWN:
        check_shown(shown[name], printed[name])
    assert "1 of 1, own_layer_is_a_step: " in shown["my/question.py"]
    assert "1 of 1, own_layer_is_a_step: " in printed["my/question.py"]
    page = (copy / "conjectures/question/question.md").read_text()
    assert "After 30 steps of training, one linear layer has " in page
    assert "![Over one step](question/ratios.png)" in page
    check_plugins(copy)
    batch = np.load(copy / "runs/ordering/analysis/analysis_batch.npz")
    assert (np.diff(np.linalg.norm(batch["x"], axis=2), axis=1) <= 1e-6).all()
    mask = np.load(copy / "runs/noise/noise_mask.npy")
    batch = np.load(copy / "runs/noise/analysis/analysis_batch.npz")
    clean = np.einsum("bnd,bd->bn", batch["x"], batch["w"])
    np.testing.assert_allclose(batch["y"], np.where(mask, -clean, clean), atol=1e-5)
    check_baselines(copy, printed["runs/noise"])
    assert set(np.unique(np.abs(np.load(copy / "runs/inputs" / layout.ANALYSIS_BATCH)["x"]))) == {0.5}
    assert set(np.unique(np.abs(np.load(copy / "runs/tasks" / layout.ANALYSIS_BATCH)["w"]))) == {1.0}
    check_an_input_distribution_without_moments(copy, tmp_path / "compiled")
    headline = headline_of(copy / "runs/baseline")
    assert headline["mean_label_loss"] > headline["gd_loss"]
    labels = np.abs(np.load(copy / "runs/edited" / layout.ANALYSIS_BATCH)["y"])
    assert (np.diff(labels, axis=1) >= 0).all()
    assert json.loads((copy / "runs/runner/config.json").read_text())["model"]["num_heads"] == 2
    assert json.loads((copy / "runs/schedule/config.json").read_text())["training"]["schedule"] == "halving"
    check_a_family(copy, printed["runs/family"])


NAMED_NUMBERS = re.compile(r"^ *(\S.*?) +(\d+\.\d+) +(\d+\.\d+)$", re.MULTILINE)


def check_shown(shown: str, printed: str) -> None:
    """Each line that a page shows was printed, with its numbers; another machine's differ in rounding that grows."""
    expected, found = (
        {name: (float(a), float(b)) for name, a, b in NAMED_NUMBERS.findall(text)} for text in (shown, printed)
    )
    assert len(expected) == len(shown.splitlines())
    for name, numbers in expected.items():
        assert found[name] == pytest.approx(numbers, rel=0.02), name


def check_plugins(copy: Path) -> None:
    """Each run of a plugin records it with the hash that sha256sum gives, and no other run records one."""
    plugins = {
        **{"ordering": "largenorm", "noise": "flips", "known": "known_flips", "inputs": "distributions"},
        **{"tasks": "distributions", "attention": "relu", "decoder_attention": "relu", "baseline": "mean_label"},
        "schedule": "halving",
    }
    for name in (*plugins, "edited", "runner"):
        found = json.loads((copy / f"runs/{name}" / layout.CONFIG).read_text())["plugins"]
        expected = [
            f"{plugin}:{hashlib.sha256((copy / f'my/{plugin}.py').read_bytes()).hexdigest()[:16]}"
            for plugin in [plugins.get(name)]
            if plugin
        ]
        assert found == expected


def check_a_family(copy: Path, printed: str) -> None:
    """Its losses at each snapshot, and a row for each dimension of its sweep."""
    assert [line.split()[1] for line in printed.splitlines()] == ["0", "40"]
    rows = list(csv.DictReader((copy / "dims.csv").read_text().splitlines()))
    assert [(row["dim"], row["status"]) for row in rows] == [("2", "done"), ("3", "done")]


def check_baselines(copy: Path, printed: str) -> None:
    """Of a mode that is not registered they are null with the reason; of one that is they beat what knows less."""
    without, known = (losses_of(copy / f"runs/{name}") for name in ("noise", "known"))
    for name in ("linear_mmse", "mask_bayes"):
        assert without[name]["loss"] is None
        assert f"is registered without its {name}" in without[name]["reason"]
        assert f"not defined: {without[name]['reason']}" in printed
    zero = headline_of(copy / "runs/known")["zero_loss"]
    for name in ("gd_clean_step", "gd_tuned_step"):
        assert without[name] == known[name]
        assert known["mask_bayes"]["loss"] < known["linear_mmse"]["loss"] < known[name]["loss"] < zero


WITHOUT_MOMENTS = """
import jax

from icl_lab.lab import plugins


@plugins.input_distribution("student", variance=lambda scale: 3 * scale**2)
def student(key, input_range, shape):
    return input_range * jax.random.t(key, 3.0, shape)


@plugins.input_distribution("cauchy")
def cauchy(key, input_range, shape):
    return input_range * jax.random.cauchy(key, shape)
"""


def check_an_input_distribution_without_moments(copy: Path, compiled: Path) -> None:
    """Student's t, which has no fourth moment, and Cauchy's, which has none: what needs one is refused, or null."""
    (copy / "my/without_moments.py").write_text(WITHOUT_MOMENTS)
    words = [sys.executable, "-m", "runners.run", "lsa1", "--plugin", "my/without_moments.py", *SMALL]
    words += ["--steps", "40", "--out"]
    refused = run([*words, "runs/refused", "--ordering", "easy2hard", "--config.input_distribution=student"], copy)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "input_distribution is 'student'" in refused.stderr
    assert not (copy / "runs/refused").exists()
    done = run([*words, "runs/cauchy", "--config.input_distribution=cauchy"], copy, compiled)
    assert done.returncode == 0, done.stderr
    headline = headline_of(copy / "runs/cauchy")
    assert headline["gd_loss_averaged"] is None
    assert f"not defined: {headline['gd_loss_averaged_reason']}" in done.stdout


LLC_PAGES = ("docs/llc.md", "docs/llc/reference.md")
MODELS = "\n## Models of "  # the page's section of recipes, which tests/test_recipes.py runs


def llc_examples(root: Path, page: str, to: Path) -> list[tuple[str, str]]:
    """The examples in Python of a page on the LLC, each with what the page says that it prints, "" if nothing."""
    part = to / "examples.md"
    part.write_text((root / page).read_text().partition(MODELS)[0])
    found = blocks(part)
    after = [*found[1:], ("", "", "")]
    return [
        (code, out if kind == "text" else "")
        for (a, _, code), (kind, _, out) in zip(found, after, strict=True)
        if a == "python"
    ]


def test_the_page_on_the_llc_begins_with_eight_lines_and_its_command_is_of_a_default_run(
    root: Path, tmp_path: Path
) -> None:
    code, printed = llc_examples(root, "docs/llc.md", tmp_path)[0]
    assert len([line for line in code.splitlines() if line]) <= 8
    assert printed.endswith(": LLC\n")
    found = blocks(root / "docs/llc.md")
    assert found[0][2] == code
    first = next(text for language, _, text in found if language == "sh")
    assert "runs/demo_concat" in first
    assert "--out runs/demo_concat" in (root / "Makefile").read_text()


@pytest.mark.slow
def test_the_examples_on_the_llc_have_the_verdicts_that_the_page_shows(root: Path, tmp_path: Path) -> None:
    """And the values, within the intervals shown; another machine's chains are others in their last bits."""
    copy = copy_of(root, tmp_path / "copy")
    examples = [example for page in LLC_PAGES for example in llc_examples(root, page, tmp_path)]
    assert sum(bool(shown) for _, shown in examples) > 2
    for code, shown in examples:
        (copy / "example.py").write_text(code)
        done = run([sys.executable, "example.py"], copy, tmp_path / "compiled")
        assert done.returncode == 0, (code, done.stderr)
        values = [(line.split()[0], line.rpartition(": ")[2]) for line in done.stdout.splitlines() if "nbeta" in line]
        lines = [line for line in shown.splitlines() if " at nbeta " in line]
        for line, (value, verdict) in zip(lines, values, strict=bool(shown)):
            low, high = (float(each) for each in re.findall(r"\[(.*), (.*)\]", line)[0])
            # other processors round otherwise, and their chains are others: two half-widths are three of a difference's
            assert abs(float(value) - (low + high) / 2) <= high - low, line
            assert verdict == line.rpartition(": ")[2], line


def test_the_readme_has_the_numbers_of_the_ledger(root: Path) -> None:
    """Mean, interval and n of every result, to the digits shown, with a figure for each."""
    rows = {row["id"]: row for row in json.loads((root / "report/index.json").read_text("utf-8"))["claims"]}
    text = (root / "README.md").read_text()
    results = re.findall(r"(-?\d*\.\d+) \[(-?\d*\.\d+), (-?\d*\.\d+); n = (\d+)\][^|`]*\(`(\w+)`\)", text)
    assert len(results) == 6
    for *shown, n, name in results:
        assert n == str(rows[name]["n"]), name
        for number, column in zip(shown, ("mean", "mean_low", "mean_high"), strict=True):
            digits = len(number.partition(".")[2])
            assert abs(float(number) - float(rows[name][column])) <= 0.51 * 10**-digits, (name, column)


def test_the_readme_fits_on_three_screens(root: Path) -> None:
    assert len((root / "README.md").read_text().splitlines()) <= 110


# The README, top to bottom

RUN = " ".join(("--steps 20", *SMALL))
DECODER = "--steps 20 --batch_size 16 --config.eval_tasks=32 --config.test_tasks=50"
SWEEP = " ".join(("--models lsa1 --seeds 0,1 --executor serial --steps 20 --config.batch_size=64", *SMALL[2:]))
# how each line of the README that trains is shortened, by how it begins; the others run as they stand
SHORTER = {
    "make demo_concat": f"ARGS='{RUN}'",
    "make eval_noise": f"ARGS='{SWEEP}'",
    "python -m runners.run_concat_inputs_targets": RUN,
    "python -m runners.run_task_diversity": DECODER,
}
NOT_RUN = {"make test": "make -n test"}  # it would run this test


def readme_lines(root: Path) -> list[str]:
    """The command lines of the README, in order, without their comments."""
    text = "\n".join(text for language, _, text in blocks(root / "README.md") if language == "sh")
    return [shlex.join(shlex.split(line, comments=True)) for line in text.splitlines() if line]


def shortened(line: str) -> str:
    """The line with what makes it short behind it; make hands its ARGS on."""
    return NOT_RUN.get(line) or " ".join([line, *(more for start, more in SHORTER.items() if line.startswith(start))])


def test_the_environment_comes_before_the_first_python_line(root: Path) -> None:
    lines = readme_lines(root)
    first = next(number for number, line in enumerate(lines) if line.startswith("python"))
    assert "source .venv/bin/activate" in lines[:first]
    assert (lines[0], lines[1]) == ("make demo_concat", "make test")
    page = (root / "README.md").read_text()
    assert page.index("source .venv/bin/activate") < page.index("python -m ")


def test_every_line_of_the_readme_is_one_its_parser_takes(root: Path, tmp_path: Path, ran: Ran) -> None:
    """Each complains of a flag that no command has, or of a batch that no run has, and so of nothing before it."""
    for line in readme_lines(root):
        program, *words = shlex.split(line)
        if program == "make":
            done = run(["make", "-n", "-o", ".venv/.made", *words], root)
            assert done.returncode == 0, done.stderr
        elif program == "python":
            module, wrong, said = words[1], ["--no_such_flag"], "unknown argument --no_such_flag"
            if module.startswith("runners."):
                wrong, said = ["--batch_size", "0"], "batch_size is 0"
            done = ran(module, *words[2:], *wrong)
            assert (done.status, said in done.err) == (2, True), (line, done.err)
        else:
            assert line == "source .venv/bin/activate"


@pytest.mark.slow
def test_the_readme_runs_top_to_bottom_and_leaves_nothing_untracked(root: Path, tmp_path: Path) -> None:
    """In a fresh repository of these files, each line shortened; git sees nothing of it but what it ignores."""
    copy = copy_of(root, tmp_path / "copy")
    (copy / ".venv").symlink_to(sys.prefix)
    committed = "git init -q && git add -A && git -c user.name=a -c user.email=a@b commit -qm all"
    assert subprocess.run(committed, shell=True, cwd=copy).returncode == 0
    made = 'make() { command make -o .venv/.made "$@"; }\n'  # the environment is there, whatever the files' dates say
    for line in readme_lines(root):
        script = f"set -e\n{made}source .venv/bin/activate\n{shortened(line)}"
        done = run(["bash", "-c", script], copy, tmp_path / "compiled")
        assert done.returncode == 0, (line, done.stderr)
        seen = subprocess.run(["git", "status", "--porcelain"], cwd=copy, capture_output=True, text=True, check=True)
        assert seen.stdout == "", line
        if "recurrent=true" in line:
            assert re.search(r"GD\+\+, 2 steps, fitted rates +0\.\d+", done.stdout)
    assert (copy / "figs/noise/noise_robustness.png").exists()


TABLE_LINE = re.compile(r"^(model|gd|ridge|mean label) +(\S+ +\S+ +\S+)$", re.MULTILINE)


def test_the_python_example_of_the_readme_works(root: Path, tmp_path: Path) -> None:
    """Ten lines: contexts that no run has seen have the losses of the committed run's test set; a run is trained."""
    copy = copy_of(root, tmp_path / "copy")
    code = next(text for language, _, text in blocks(root / "README.md") if language == "python")
    assert len([line for line in code.splitlines() if line]) == 10
    (copy / "example.py").write_text(code)
    done = run([sys.executable, "example.py"], copy, tmp_path / "compiled")
    assert done.returncode == 0, done.stderr
    table = {name: [float(each) for each in rest.split()] for name, rest in TABLE_LINE.findall(done.stdout)}
    stored = headline_of(root / "demos_ref/lsa1")
    for name, key in (("model", "tf_loss"), ("gd", "gd_loss")):
        loss, error, _ = table[name]
        assert abs(loss - stored[key]) < 4 * math.hypot(error, stored[f"{key}_se"])  # of independent tasks
    assert table["gd"][2] == pytest.approx(table["model"][0] / table["gd"][0], rel=1e-4)
    assert table["mean label"][0] > 2 * table["gd"][0] > table["ridge"][0]
    predicted, descended = (np.array(part.split(), float) for part in re.findall(r"\[([^]]+)\]", done.stdout))
    np.testing.assert_allclose(predicted, descended, atol=0.1)  # five mean |prediction differences|
    ratio, count = done.stdout.splitlines()[-1].split()
    assert abs(float(ratio) - 1) < 0.02
    assert count == "1"


USE = ("learn", "first_run", "own_data", "extending", "looking_inside", "llc", "cluster", "training_fails", "functions")


@pytest.mark.parametrize("name", USE)
def test_a_page_to_learn_or_use_has_at_most_800_words(name: str, root: Path) -> None:
    """Those of sentences: code and tables are looked up, not read."""
    text = re.sub(r"```.*?```", "", (root / f"docs/{name}.md").read_text(), flags=re.DOTALL)
    lines = [line for line in text.splitlines() if not line.startswith("|")]
    assert len(" ".join(lines).split()) <= 800
