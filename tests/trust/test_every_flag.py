"""A table over the flags of all commands: each number and each path has a checked type, and hostile values are refused.

A refusal comes from the parser, before anything is imported, read or written, and names the flag, the value and what is
allowed.
"""

import argparse
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from icl_lab.analysis import llc_calibrate
from icl_lab.analysis.llc.settings import selection as checkpoints
from icl_lab.lab import cli
from icl_lab.lab.commands import commands
from icl_lab.lab.environment import UnusableEnvironment
from icl_lab.lab.flag_types import SEED, SEEDS, Either, Number, Ranges, Whole, number, whole_number
from icl_lab.lab.registries import FAMILIES
from icl_lab.scripts.reference_page.commands import OF_A_MODEL, parser_of
from icl_lab.store import layout, manifest
from icl_lab.store.outputs import in_path, out_file, out_folder, run_directory
from icl_lab.store.readers import StoreError

pytestmark = pytest.mark.robust

OF_A_FIELD = (whole_number, number)  # the bounds are those of the config's field, tested below
PATHS = (in_path, out_file, out_folder, run_directory)
# words, each with what reads it further or what it is
WORDS = {
    *("plugin", "study", "claims", "models", "languages", "unseen_languages", "only", "first", "references", "shift"),
    *("coordinator_address", "ray_address", "data", "llc_data", "mask", "llc_mask", "setting", "delete", "wandb"),
    *("sampler", "llc_sampler", "slurm", "preset", "sweep", "zip", "train_only", "stop_when"),
    *("x", "y", "hue", "panels", "where", "metric", "activations", "targets", "python", "prompt"),
}
READ = (checkpoints, llc_calibrate._checkpoint)  # text with numbers in it, which are of checked types
HUGE = ["10000000000000000000000", "1e22", "-1e22"]
NONE = ["", "x", "nan", "1_0x", "1e999999999", "9" * 5000, "1,5x", "٣x", "--"]


@pytest.fixture(scope="module")
def parsers() -> dict[str, cli.Parser]:
    """The parser of every command, of every family where its flags depend on a model."""
    found = {}
    for name in commands():
        models = [next(iter(FAMILIES[family].models)) for family in FAMILIES.built_in] if name in OF_A_MODEL else [""]
        found |= {f"{name} {model}".strip(): parser_of(name, *filter(None, [model])) for model in models}
    return found


def flags_of(parsers: dict[str, cli.Parser]) -> Iterator[tuple[str, cli.Parser, argparse.Action, Any]]:
    """(command, parser, flag, its type) of every flag with a value."""
    for command, parser in parsers.items():
        for action in parser._actions:
            if action.nargs != 0 and not isinstance(action, argparse._HelpAction):
                yield command, parser, action, getattr(action, "item", None) or action.type


def base(kind: Any) -> Any:
    """The type of the numbers that a flag takes, without the words that stand for one, and without ranges."""
    if isinstance(kind, Ranges):
        return kind.kind
    return base(kind.other) if isinstance(kind, Either) else kind


def refusal(parser: cli.Parser, action: argparse.Action, value: object) -> str:
    """The sentence for a value of a flag; "" if the parser takes it."""
    words = [f"{action.option_strings[0]}={value}"] if action.option_strings else [str(value)]
    try:
        parser.parse(words)
    except cli.UsageError as error:
        return "" if " required" in str(error) else str(error)
    except UnusableEnvironment:  # a package that the valid value asks for
        return ""
    return ""


def test_every_number_and_every_path_has_a_checked_type(parsers: dict[str, cli.Parser]) -> None:
    seen: dict[str, int] = {}
    for command, _, action, kind in flags_of(parsers):
        what = f"{command} {action.dest}"
        checked = isinstance(base(kind), Whole | Number) or base(kind) in (*OF_A_FIELD, *PATHS, *READ)
        own = callable(kind) and kind not in (int, float, str, Path)  # a type of the command, such as i/n
        assert checked or own or action.choices or action.dest in WORDS, f"{what} has the type {kind}"
        assert not isinstance(action.default, int | float | Path) or checked or own, f"{what} has no type"
        if action.dest.removeprefix("llc_") in ("seed", "seeds", "data_seed", "init_seed"):
            assert kind is (SEEDS if action.dest == "seeds" else SEED), what
        seen[type(base(kind)).__name__] = seen.get(type(base(kind)).__name__, 0) + 1
    assert seen["Whole"] > 200
    assert seen["Number"] > 80


def test_hostile_numbers_are_refused_by_every_flag(parsers: dict[str, cli.Parser]) -> None:
    """In a sentence with the flag and the whole of what is allowed; both ends of the range are taken."""
    for command, parser, action, kind in flags_of(parsers):
        bounds = base(kind)
        if not isinstance(bounds, Whole | Number):
            continue
        allowed, *_ = str(bounds).partition(" (")
        if isinstance(bounds, Whole):
            outside = [bounds.least - 1, bounds.most + 1, bounds.least + 0.5, *HUGE]
            inside = [bounds.least, bounds.most, f"{bounds.least}.0"]
        else:
            outside = [bounds.low * 1.01 - bool(bounds.low <= 0), bounds.high * 1.01, "1e999"]
            outside = [value for value in outside if not bounds.low <= float(value) <= bounds.high]
            inside = [bounds.low, bounds.high * 0.99]
        infinite = isinstance(kind, Either) and kind.words[0] == "inf"
        for value in [*outside, *NONE]:
            said = refusal(parser, action, value)
            assert said, f"{command} {action.option_strings} takes {value!r}"
            if value not in ("", "--", "1e999") and not (infinite and value == "inf") and "," not in str(value):
                assert action.option_strings[0] in said, said
                assert f"is not {allowed}" in said, said
                assert len(said) < 250, said
        for value in inside:
            assert not refusal(parser, action, value), (command, action.option_strings, value)


def test_hostile_text_is_refused_by_every_number_of_the_config(parsers: dict[str, cli.Parser]) -> None:
    count = 0
    for command, parser, action, kind in flags_of(parsers):
        if base(kind) not in OF_A_FIELD:
            continue
        count += 1
        for value in ["x", "1.5x", "1e", *(["1.5", "nan", "inf"] if base(kind) is whole_number else [])]:
            said = refusal(parser, action, value)
            assert f"{value!r} is not a " in said, (command, action.option_strings, value)
    assert count > 100


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file, a folder, a run with a manifest, one of a time before there were any, and a link to it."""
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("text")
    Path("folder").mkdir()
    manifest.begin(Path("run"))
    Path("earlier").mkdir()
    Path("earlier", layout.META).write_text('{"schema_version": 1, "config_id": "abc"}')
    Path("link").symlink_to("run")
    return tmp_path


IN_A_RUN = ("run/sub", "run/sub/sub", "run/analysis", "folder/../run/x", "link/x", "earlier/x")
BAD_PLACES: dict[Callable[[str], Path], dict[str, tuple[str, ...]]] = {
    in_path: {"the path is empty": ("",)},
    out_file: {
        "the path is empty": ("",),
        " is a folder, not a file": ("folder", "folder/", ".", "run"),
        " cannot be made: ": ("file/x", "file/x/y", "/proc/1/x"),
    },
    out_folder: {
        "the path is empty": ("",),
        " is a file, not a folder": ("file",),
        " cannot be made: ": ("file/x", "file/x/y", "/proc/1/x"),
        " is a run directory, where no other files may be written": ("run", "link", "earlier", "run/figs/.."),
        ", where no other files may be written; choose another folder": IN_A_RUN,
    },
    run_directory: {
        "the path is empty": ("",),
        " is a file, not a run directory": ("file",),
        " cannot be made: ": ("file/x", "/proc/1/x"),
        ", where no other files may be written; choose another --out": IN_A_RUN,
    },
}
GOOD_PLACES = {
    in_path: ("file", "folder", "run", "no/such"),
    out_file: ("new.csv", "file", "new/new.csv"),
    out_folder: ("new", "new/new", "folder", "folder/new", ".", "run/figs", "link/figs"),
    run_directory: ("new", "new/new", "folder", "run", "link", "earlier"),
}


def test_hostile_places_are_refused_by_every_path(parsers: dict[str, cli.Parser], places: Path) -> None:
    """And nothing is made there."""
    before, count = sorted(places.rglob("*")), dict.fromkeys(PATHS, 0)
    for command, parser, action, kind in flags_of(parsers):
        if kind not in PATHS:
            continue
        count[kind] += 1
        for sentence, values in BAD_PLACES[kind].items():
            for value in values:
                if value or not hasattr(action, "item"):  # an empty list is another sentence
                    said = refusal(parser, action, value)
                    assert sentence in said, f"{command} {action.option_strings} {value}: {said!r}"
                    assert (action.option_strings or [""])[0] in said
        for value in GOOD_PLACES[kind]:
            assert not refusal(parser, action, value), (command, action.option_strings, value)
    assert sorted(places.rglob("*")) == before
    assert min(count.values()) >= 8, count


def test_every_output_is_of_a_type_that_looks_at_its_place(parsers: dict[str, cli.Parser]) -> None:
    """What is named as an output is one; what is read is not."""
    for command, _, action, kind in flags_of(parsers):
        if action.dest in ("out", "report", "tensorboard", "wandb_dir", "page"):
            assert kind in (out_file, out_folder, run_directory), f"{command} {action.dest}"
        if action.dest == "runs_dir":
            assert kind is (in_path if command in ("sweeps.status", "sweeps.collect") else out_folder), command


# command -> (its flags, the file that it writes, what in it does the work)
WORK: dict[str, tuple[list[str], str, str]] = {
    "analysis.gd_curve": (["--out", "out/x.json"], "out/x.json", "data_of"),
    "scripts.gpu_check": (["--out", "out/x.json"], "out/x.json", "_so_far"),
    "scripts.llc_pictures": (["--out", "out"], "out/llc_traces.png", "estimated"),
    "scripts.llc_validation": (["--out", "out"], "out/validation.md", "_printed"),
    "scripts.llc_targets": (["--out", "out"], "out/targets.csv", "_printed"),
    "studies.error_rates": (["--report", "out"], "out/ledger/error_rates.csv", "rates"),
    "studies.order_noise.predictions": (["--report", "out"], "out/order_noise/predictions.csv", "Predictions"),
}


@pytest.mark.parametrize("command", WORK)
def test_a_file_of_others_is_found_before_the_work(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, file, work = WORK[command]
    monkeypatch.chdir(tmp_path)
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text("years of work")
    module = import_module(f"icl_lab.{command}")
    monkeypatch.setattr(module, work, lambda *_: pytest.fail("it works first"))
    with pytest.raises(StoreError, match=f"{file} was not written by "):
        module.main(words)
    assert (tmp_path / file).read_text() == "years of work"


SELECTIONS = {
    "all": "all",
    "last": "last",
    "every:2e1": "every:20",
    "log:5": "log:5",
    "log:5.0:1": "log:5:1",
    "log:5:1e3": "log:5:1000",
    "1e2, 20.0,7": "100,20,7",
}
SELECTING = ("curvature", "develop", "llc", "llc_saturation")
NO_SELECTIONS = [
    *("log:5:100000000000000000000000", "log:5:1:2", "log:1", "log:", "log:1e9", "every", "every:0", "every:-1"),
    *("all:3", "first", "", ",", "1,,2", "-1", "1.5", "1e30", "nan", "100000000000000000000000"),
]


def test_selections_of_checkpoints(parsers: dict[str, cli.Parser]) -> None:
    found = [one for one in flags_of(parsers) if one[2].dest == "checkpoints"]
    assert {one[0] for one in found} == {f"analysis.{name}" for name in SELECTING}
    for _, parser, action, kind in found:
        assert kind.__name__ == checkpoints.__name__  # a command that runs has it as its own
        for text, selection in SELECTIONS.items():
            assert checkpoints(text) == selection
            assert not refusal(parser, action, text)
        for text in NO_SELECTIONS:
            assert "--checkpoints" in refusal(parser, action, text), text


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("analysis.llc", "--chains=10000000000"),
        ("analysis.llc", "--seed=-1"),
        ("analysis.llc", "--draws=1000000000000"),
        ("analysis.llc", "--checkpoints=log:5:100000000000000000000000"),
        ("analysis.stages", "--length 1e-300"),
        ("analysis.essential_dynamics", "--walks 1000000000000"),
        ("analysis.developmental_metrics", "--hessian --probes 1000000000000"),
    ],
)
def test_a_value_is_refused_before_jax_is_imported(command: str, words: str, refused: Callable[..., str]) -> None:
    said = refused(command, "--run", "run", *words.split())
    flag, value = words.removeprefix("--hessian ").replace("=", " ").split()
    assert said.startswith(f"error: argument {flag}: '{value.rpartition(':')[2]}' is not a ")


def test_draws_of_all_chains_fit_in_memory(refused: Callable[..., str]) -> None:
    """Each flag is within its bounds, both together are not."""
    said = refused("analysis.llc", "--run", "run", "--chains", "4096", "--draws", "2e4")
    assert "4096 chains of 20200 draws keep more than 2^26 values in memory" in said
    said = refused("analysis.llc", "--run", "run", "--draws", "2e6", "--thin", "1e6")
    assert "more than the 2^31 - 1 that can be counted; lower thin" in said
