"""A family of a plugin that lacks a part, or takes a name that is there: one sentence with the file and the line."""

import shutil
import sys
from pathlib import Path

import pytest

from icl_lab.lab import plugins
from icl_lab.lab.loaded_plugins import LOADED
from icl_lab.lab.registries import ALL
from icl_lab.store import layout, rundir
from tests.doors import snapshot
from tests.families.small import LOGISTIC, RUN, SIZES
from tests.runners.tiny import Workshop

MODELS = "models=MODELS,"
OUTPUTS = "OUTPUTS = Outputs("
CLASS = 'family: ClassVar[str] = "mine"'
REGISTERED = "__init__.py, line 7: "

# what is broken -> (file, what stands there, what is there instead, how the sentence goes on)
BROKEN = {
    "no models": ("config.py", MODELS, "models={},", f"{REGISTERED}the family mine lacks a part: it has no models"),
    "one preset": (
        "config.py",
        '"paper": Preset(',
        '"long": Preset(',
        f"{REGISTERED}the family mine lacks a part: its model mine has no preset 'paper'",
    ),
    "a preset's key": (
        "config.py",
        '"init_scale": 0.02',
        '"init_scales": 0.02',
        f"{REGISTERED}the preset 'default' of mine: unknown config key 'init_scales' of the family mine, did you mean",
    ),
    "a preset's value": ("config.py", '"lr": 3e-3', '"lr": -1.0', f"{REGISTERED}lr is -1.0; it must be above 0"),
    "no TASK": (
        "task.py",
        "TASK = TaskSpec(",
        "TRIAL = TaskSpec(",
        f"{REGISTERED}the family mine lacks a part: mine.task has no TASK",
    ),
    "no OUTPUTS": (
        "outputs.py",
        OUTPUTS,
        "OUT = Outputs(",
        f"{REGISTERED}the family mine lacks a part: mine.outputs has no OUTPUTS",
    ),
    "a syntax error": ("outputs.py", OUTPUTS, "OUTPUTS = = Outputs(", "outputs.py, line 15: SyntaxError: "),
    "no tag": (
        "config.py",
        CLASS,
        'family: ClassVar[str] = ""',
        f"{REGISTERED}family '': a name is letters, digits and _, and begins with no digit",
    ),
    "another config": (
        "config.py",
        "config=MineConfig,",
        "config=MineData,",
        f"{REGISTERED}<class 'mine.config.MineData'>, a family's config, is not a lab.configs.run.RunConfig",
    ),
    "no family": (
        "__init__.py",
        "plugins.family(FAMILY)",
        "plugins.family(3)",
        f"{REGISTERED}3 is not a lab.configs.family",
    ),
    "a model that is there": (
        "config.py",
        MODELS,
        'models={"sine": MODELS["mine"]},',
        f"{REGISTERED}the model 'sine' exists already, in the family sine",
    ),
}


def family(folder: Path, *changes: tuple[str, str, str]) -> Path:
    """A copy of the family logistic, of the name mine, with changes of its files."""
    shutil.copytree(LOGISTIC, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in folder.glob("*.py"):
        text = file.read_text().replace("logistic", folder.name).replace("Logistic", folder.name.capitalize())
        for name, before, after in changes:
            if name == file.name:
                assert text.count(before) == 1, (name, before)
                text = text.replace(before, after)
        file.write_text(text)
    return folder


def names() -> dict[str, list[str]]:
    return {registry.kind: list(registry) for registry in ALL}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_family_is_one_sentence_when_it_is_loaded(case: str, tmp_path: Path, fresh: None) -> None:
    file, before, after, sentence = BROKEN[case]
    known = names()
    folder = family(tmp_path / "mine", (file, before, after))
    with pytest.raises(plugins.PluginError) as raised:
        plugins.load(folder)
    assert str(raised.value).startswith(f"plugin {folder}/{sentence}")
    assert "\n" not in str(raised.value)
    assert (names(), "mine" in LOADED, "mine" in sys.modules) == (known, False, False)
    assert plugins.load(family(tmp_path / "whole" / "mine")).FAMILY.name == "mine"  # so it was that change


@pytest.mark.parametrize("part", ["task", "outputs"])
def test_a_module_that_is_not_there_is_named(part: str, tmp_path: Path, fresh: None) -> None:
    folder = family(tmp_path / "mine")
    (folder / f"{part}.py").unlink()
    with pytest.raises(
        plugins.PluginError, match=f"line 7: the family mine lacks a part: there is no module mine.{part}$"
    ):
        plugins.load(folder)


def test_a_family_takes_no_name_that_is_there(tmp_path: Path, fresh: None) -> None:
    changes = (("config.py", CLASS, CLASS.replace("mine", "sine")),)
    with pytest.raises(plugins.PluginError, match="line 7: family 'sine' is built in and cannot be replaced"):
        plugins.load(family(tmp_path / "mine", *changes))
    plugins.load(family(tmp_path / "other" / "mine"))
    taken = [(name, before.replace("mine", "yours"), after) for name, before, after in (("config.py", CLASS, CLASS),)]
    with pytest.raises(plugins.PluginError, match="line 7: family 'mine' is registered already, by the plugin mine"):
        plugins.load(family(tmp_path / "yours", *taken))
    assert "yours" not in LOADED


def test_two_families_of_one_model_do_not_go_together(tmp_path: Path, fresh: None) -> None:
    plugins.load(family(tmp_path / "mine"))
    yours = family(tmp_path / "yours", ("config.py", MODELS, 'models={"mine": MODELS["yours"]},'))
    with pytest.raises(plugins.PluginError, match="the model 'mine' exists already, in the family mine"):
        plugins.load(yours)


def test_a_family_is_found_broken_without_jax(tmp_path: Path, workshop: Workshop) -> None:
    (tmp_path / "light.py").write_text("import sys\nsys.modules['jax'] = None\n")
    light = ["--plugin", tmp_path / "light.py"]
    broken = family(tmp_path / "mine", ("outputs.py", OUTPUTS, "OUT = Outputs("))
    done = workshop.run(RUN, "mine", *light, "--plugin", broken, "--help")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("the family mine lacks a part: mine.outputs has no OUTPUTS\n")
    done = workshop.run(RUN, "logistic", *light, "--plugin", LOGISTIC, "--help")
    assert (done.returncode, "--weight_scale" in done.stdout) == (0, True), done.stderr
    done = workshop.run(RUN, "logistic", *light, "--plugin", LOGISTIC, "--config.help")
    assert " ".join(done.stdout.split("data.num_pairs")[1].split("\n")[0].split()) == (
        "whole number 20 labelled inputs of a context"
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", [RUN, "sweeps.run"])
def test_modules_that_fail_end_a_command_before_a_finished_run_is_lost(
    command: str, tmp_path: Path, workshop: Workshop
) -> None:
    """They are imported late, and told of as the rest of the plugin is; even --overwrite clears nothing before."""
    words = [command, "mine", *SIZES, "--out", tmp_path / ("run" if command == RUN else "out.csv")]
    words += [] if command == RUN else ["--runs_dir", tmp_path / "runs", "--executor", "serial"]
    fails = 'OUTPUTS = 1 / (not __import__("os").environ.get("BROKEN")) and Outputs('
    folder = family(tmp_path / "mine", ("outputs.py", OUTPUTS, fails))
    done = workshop.run(*words, "--plugin", folder)
    assert done.returncode == 0, done.stderr
    before = snapshot(tmp_path)
    done = workshop.run(*words, "--plugin", folder, "--overwrite", BROKEN="1")
    sentence = f"error: plugin {folder}/outputs.py, line 15: ZeroDivisionError: division by zero\n"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == sentence
    assert snapshot(tmp_path) == before


def test_modules_that_hold_something_else_are_refused_before_anything_begins(
    tmp_path: Path, workshop: Workshop
) -> None:
    folder = family(tmp_path / "mine", ("outputs.py", OUTPUTS, "OUTPUTS = dict("))
    done = workshop.run(RUN, "mine", *SIZES, "--plugin", folder, "--out", tmp_path / "run")
    sentence = (
        "error: the family mine lacks a part: mine.outputs has no OUTPUTS, an icl_lab.lab.configs.outputs.Outputs"
    )
    assert (done.returncode, done.stdout, done.stderr.splitlines()[-1]) == (2, "", sentence)
    assert not (tmp_path / "run" / layout.CONFIG).exists()


def test_what_is_drawn_and_not_recorded_is_said_at_the_first_record(tmp_path: Path, workshop: Workshop) -> None:
    folder = family(tmp_path / "mine", ("task.py", '        "eval_constant_loss": LOG_2,\n', ""))
    done = workshop.run(RUN, "mine", *SIZES, "--plugin", folder, "--out", tmp_path / "run")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "error: the family mine plots eval_constant_loss, but does not record it",
    )
    assert rundir.read_status(tmp_path / "run") == "failed"
