"""What serves all families names none: no word and no field of one, and none of its modules."""

import ast
import dataclasses
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from icl_lab.lab.configs.registry import FAMILIES
from icl_lab.src.registries import ATTENTION_KINDS

PLACES = ("src/train.py", "src/model.py", "lab/cli.py", "runners", "sweeps", "store", "plots", "benchmarks")
PLACES += ("analysis/command.py", "analysis/loaded_run.py", "analysis/losses.py", "analysis/plateau.py")
PLACES += ("lab/plugin_files.py", "lab/configs/family.py", "lab/configs/run.py", "lab/configs/identity.py")
PLACES += (
    "lab/configs/outputs.py",
    "lab/configs/registry.py",
    "lab/configs/presets.py",
    "lab/configs/family_checks.py",
)
PLACES += ("families/task.py", "families/shared_arrays.py")

# what is of one family by its nature -> why
OF_ONE = {
    "runners/run_*.py": "a command of one family, which the contract names",
    "runners/analyses.py": "the analyses of all families, some of which have a family's name",
    "lab/configs/registry.py": "the registry",
    "analysis/loaded_run.py": "runs of regression are loaded with their gradient descent",
    "plots/sweep_*.py": "figures of the tables of eval_order and eval_noise",
    "plots/dots.py": "attention to clean and to noisy pairs",
    "plots/compare_depth.py": "the depth curve",
    "plots/effects.py": "effects of order and noise, from a study's table",
    "plots/sines.py": "sines before and after their context",
    "plots/heat_maps.py": "products of weights with and without a positional code",
    "benchmarks/flops.py": "operations of two families' models, counted by hand",
    "benchmarks/plain_*.py": "a plain loop of the same model and data, written apart from ours",
    "benchmarks/cases.py": "what is timed",
    "benchmarks/baseline_costs.py": "baselines of one family, which are timed",
    "benchmarks/curriculum.py": "a curriculum of one family, which is timed",
    "benchmarks/llc.py": "chains around a decoder, which are timed",
    "benchmarks/llc_any_model.py": "estimates of a stack's LLC, which are timed",
    "benchmarks/torch_sgld.py": "the same decoder in PyTorch",
    "benchmarks/devinterp_*.py": "models of two families, written out in PyTorch",
    "benchmarks/programs.py": "the evaluation that is timed, of regression",
}
# words of all: a decoder's field chooses the loss, and every family has one; parameters, modules and sequences have a
# source; and text is what is read and printed
OF_ALL = {"loss", "source", "text"}
# words that are a field of one family and mean something else here -> what
OTHERWISE = {
    ("plots/training.py", "train"): "whose a curve is",
    **{
        ("plots/style.py", model): "its colour; other models get spare ones"
        for model in ("lsa1", "lsa1_pe", "twolayer")
    },
    ("plots/style.py", "axes"): "of a figure",
    **{(f"sweeps/{file}.py", "axes"): "of a grid" for file in ("following", "grid")},
    ("lab/configs/family.py", "axes"): "of a family",
    ("benchmarks/compiling.py", "train"): "a method",
    ("benchmarks/growth.py", "base"): "of a logarithm",
    ("benchmarks/measurements.py", "train"): "a method",
    ("store/provenance.py", "baselines"): "a folder",
    ("runners/from_python.py", "train"): "a function",
    ("plots/probes.py", "tokens"): "a probe of all numbers of a context",
}


def fields(kind: type[Any]) -> set[str]:
    """The names of a config's fields, those of its sections too."""
    found: set[str] = set()
    for field in dataclasses.fields(kind):
        found.add(field.name)
        if dataclasses.is_dataclass(field.default):
            found |= fields(type(field.default))
    return found


def words_of_one() -> dict[str, str]:
    """Word -> the one family that it belongs to: families' names, their models' and fields that no other has.

    Less the models with the name of an attention, and what every family has, which are words of all.
    """
    own = {name: fields(family.config) for name, family in FAMILIES.items() if not FAMILIES.owner(name)}
    counts = Counter(field for found in own.values() for field in found)
    words = {field: name for name, found in own.items() for field in found if counts[field] == 1}
    models = {model: name for name in own for model in FAMILIES[name].models if model not in ATTENTION_KINDS}
    every = words | models | {name: name for name in own}
    return {word: name for word, name in every.items() if word not in OF_ALL}


def named(tree: ast.AST, words: dict[str, str]) -> Iterator[tuple[int, str]]:
    """(line, word) of each string that is such a word, or a dotted key that ends with one, and of each attribute.

    A module of a family that is imported counts as its name.
    """
    modules = {f"icl_lab.families.{name}" for name in words.values()}
    modules |= {f"{module}.{part}" for module in modules for part in ("config", "task", "outputs")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            word = node.value.rpartition(".")[2]
            if word in words and " " not in node.value:
                yield node.lineno, word
        elif isinstance(node, ast.Attribute) and node.attr in words:
            yield node.lineno, node.attr
        elif isinstance(node, ast.keyword) and node.arg in words:
            yield node.value.lineno, str(node.arg)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            base = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            for name in node.names:
                whole = {base.rstrip("."), f"{base}{name.name}"} & modules
                if whole:
                    yield node.lineno, max(whole).removeprefix("icl_lab.")


def files(root: Path) -> list[Path]:
    """What is looked through: the neutral places, less what is of one family."""
    found = {
        file
        for place in PLACES
        for path in root.glob(place)
        for file in (path.rglob("*.py") if path.is_dir() else [path])
    }
    found -= {path for pattern in OF_ONE for path in root.glob(pattern)}
    return sorted(found)


def found_in(text: str, name: str, words: dict[str, str]) -> list[str]:
    return [
        f"{name}, line {line}: {word}" for line, word in named(ast.parse(text), words) if (name, word) not in OTHERWISE
    ]


def test_what_serves_all_families_names_none(root: Path) -> None:
    words, chosen = words_of_one(), files(root)
    found = [place for path in chosen for place in found_in(path.read_text(), path.relative_to(root).as_posix(), words)]
    assert found == []
    assert len(chosen) > 60


def test_every_exception_is_needed(root: Path) -> None:
    words = words_of_one()
    for pattern in OF_ONE:
        paths = list(root.glob(pattern))
        assert any(found_in(path.read_text(), pattern, words) for path in paths), pattern
    for name, word in OTHERWISE:
        assert word in {seen for _, seen in named(ast.parse((root / name).read_text()), words)}, (name, word)


def test_the_words_are_of_the_families(root: Path) -> None:
    """Of each one, and none that two have."""
    words = words_of_one()
    assert {word: words[word] for word in ("num_tasks", "amplitude_low", "noise_p", "deep_supervision", "lsa1")} == {
        "num_tasks": "diversity",
        "amplitude_low": "sine",
        "noise_p": "regression",
        "deep_supervision": "layerwise",
        "lsa1": "regression",
    }
    assert not {"num_pairs", "steps", "lr", "eval_tasks", "model", "data", "weight_scale", "d_model"} & {*words}


PLANTED = {
    'if config.family == "sine":': "sine",
    "if config.data.num_tasks > 0:": "num_tasks",
    'values["noise_p"]': "noise_p",
    'Flag("a", "base.ordering", str, "")': "ordering",
    'family = named("layerwise")': "layerwise",
    "replace(config, amplitude_low=0.1)": "amplitude_low",
    "match config.family:\n    case 'diversity': pass": "diversity",
    'getattr(config, "deep_supervision", False)': "deep_supervision",
    "from icl_lab.families.sine.task import eval_metrics": "families.sine.task",
    "from icl_lab.families.regression import config as regression": "families.regression.config",
    "import icl_lab.families.diversity": "families.diversity",
    'model = preset("lsa1")': "lsa1",
}


@pytest.mark.parametrize("line", PLANTED)
def test_a_planted_name_is_found(line: str) -> None:
    text = f"x = 1\n{line}{chr(10) + '    pass' if line.startswith('if') else ''}\n"
    assert PLANTED[line] in {word for _, word in named(ast.parse(text), words_of_one())}


def test_what_is_not_a_name_of_one_is_not_found() -> None:
    text = '"""The sine of a number of tasks, in sine waves."""\nlr, seed = config.training.lr, config.data_seed\n'
    assert list(named(ast.parse(text), words_of_one())) == []


def test_the_two_families_of_these_tests_touch_no_file_but_their_own(root: Path) -> None:
    """No source that is not a test knows a name of theirs."""
    own = re.compile(
        r"\b(LogisticConfig|LogisticData|boosted_reader|ReadersConfig|MaskedBatch|ChainData)\b|['\"]logistic(?=['\"./])"
    )
    folders = [path for path in root.iterdir() if path.is_dir() and path.name not in ("tests", ".venv", "runs", ".git")]
    sources = [*root.glob("*.py"), *(file for folder in folders for file in folder.rglob("*.py"))]
    assert len(sources) > 200
    assert [str(path) for path in sources if own.search(path.read_text())] == []
    family = root / "tests" / "families"
    for name in ("logistic", "readers"):
        files = {path.name for path in (family / name).glob("*.py") if own.search(path.read_text())}
        assert "config.py" in files
