"""Plugins are loaded by their flag alone, add names and take none; a broken one is one sentence that names its line."""

import hashlib
import importlib.util
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from icl_lab.families.regression.config import RegressionConfig
from icl_lab.lab import cli, plugins
from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.lab.configs.registry import from_dict
from icl_lab.lab.configs.run import RunConfig, to_dict
from icl_lab.lab.loaded_plugins import LOADED, Plugin
from icl_lab.lab.plugin_digest import digest_of, trained_digest_of
from icl_lab.lab.registries import ALL
from icl_lab.src import registries
from icl_lab.src.checks import ConfigError
from icl_lab.src.config import ContextConfig, ModelConfig
from icl_lab.src.data_config import DataConfig
from icl_lab.src.prng import Purpose
from tests.doors import COMMANDS, SWEEPS, Refused, ran, refused
from tests.plugin_sources import EVERYTHING, LIGHT

__all__ = ["ran", "refused"]

RUNNER = "runners.run_concat_inputs_targets"


@pytest.fixture
def fresh() -> Iterator[None]:
    """Plugins that are loaded here are gone afterwards."""
    before, modules = dict(LOADED), set(sys.modules)
    yield
    for plugin in [plugin for name, plugin in LOADED.items() if name not in before]:
        for registry in ALL:
            registry.drop(plugin.name)
        del LOADED[plugin.name]
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def command(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).resolve().parents[2]
    line = [sys.executable, *map(str, words)]
    return subprocess.run(line, cwd=cwd or root, capture_output=True, text=True, timeout=120)


# Names


@pytest.fixture
def everything(tmp_path: Path, fresh: None) -> Plugin:
    plugins.load(written(tmp_path / "everything.py", EVERYTHING))
    return LOADED["everything"]


USES = {
    "ordering": {"base.ordering": "last_first"},
    "train ordering": {"train.ordering": "hardest_first"},
    "noise mode": {"eval.noise_mode": "flips", "base.noise_p": 0.1},
    "inputs": {"data.input_distribution": "rademacher"},
    "attention": {"model.attention": "halved"},
    "one layer's attention": {"num_layers": 2, "model.attention": "linear,halved"},
    "baseline": {"baselines": "nothing,undefined"},
}


def configured(model: str, settings: dict[str, object]) -> RunConfig:
    config = preset(model)
    set_values(config, settings)
    return resolve(config)


@pytest.mark.parametrize("used", USES)
def test_a_run_that_uses_a_name_has_the_plugin_in_its_id(used: str, everything: Plugin) -> None:
    config = configured("lsa1", USES[used])
    assert config.plugins == (everything.record,)
    LOADED["everything"] = everything._replace(digest="another", trained="another")
    changed = replace(config)
    assert changed.plugins == ("everything:another",)
    assert config_id(changed) != config_id(config)
    assert from_dict(to_dict(changed)) == changed


def test_so_has_one_whose_tasks_are_a_plugins(everything: Plugin) -> None:
    assert configured("tiny", {"task_distribution": "signs"}).plugins == (everything.record,)


def test_so_has_a_decoder_whose_attention_is_a_plugins(everything: Plugin) -> None:
    assert configured("tiny", {"model.attention": "softmax,even"}).plugins == (everything.record,)


def test_a_decoder_has_a_plugins_attention_in_its_layer(everything: Plugin) -> None:
    """The last of two layers: each row's weights are the same for all that it sees, in the hook and in the prediction.

    Of a softmax with scores of 0 they are too, and its prediction is the same.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    from icl_lab.families.diversity.task import make_model, pool_sequences
    from icl_lab.src.patching import run
    from icl_lab.src.prng import key

    small = {"model.attention": "softmax,even", "num_pairs": 3, "eval_tasks": 4}
    config = configured("tiny", small)
    model, batch, at = make_model(config), pool_sequences(config), "blocks.1.attn.pattern"
    params = jax.jit(model.init)(key(0))
    found, seen = run(model, params, batch, at)
    rows = np.arange(1, 7)
    np.testing.assert_allclose(
        seen[at], np.broadcast_to(np.tril(np.ones((6, 6))) / rows[:, None], seen[at].shape), rtol=1e-6
    )
    np.testing.assert_allclose(model.predict(params, batch), found, rtol=1e-5, atol=1e-7)
    softmax = make_model(configured("tiny", small | {"model.attention": "softmax"}))
    equal, _ = run(softmax, params, batch, (), {"blocks.1.attn.scores": jnp.zeros_like})
    np.testing.assert_allclose(found, equal, rtol=1e-5, atol=1e-7)


def test_a_kind_without_a_causal_form_is_refused_for_a_decoder(everything: Plugin) -> None:
    with pytest.raises(ConfigError) as error:
        configured("tiny", {"model.attention": "softmax,halved"})
    assert str(error.value) == (
        "attention is 'halved', which has no causal form; a decoder needs one: register it by "
        "@plugins.attention('halved', causal=f), with f(scores, key_size, visible, count) -> weights"
    )
    assert configured("lsa1", {"model.attention": "halved"}).plugins == (everything.record,)


def test_a_run_that_uses_nothing_has_the_id_it_had(tmp_path: Path, fresh: None) -> None:
    configs = [configured("lsa1", {"base.ordering": "easy2hard"}), configured("tiny", {}), RegressionConfig()]
    ids = [config_id(config) for config in configs]
    plugins.load(written(tmp_path / "everything.py", EVERYTHING))
    again = [configured("lsa1", {"base.ordering": "easy2hard"}), configured("tiny", {}), RegressionConfig()]
    assert again == configs
    assert [config_id(config) for config in again] == ids
    assert {config.plugins for config in again} == {()}


def test_a_config_that_drops_the_name_drops_the_plugin(everything: Plugin) -> None:
    config = RegressionConfig(train=ContextConfig(ordering="last_first"))
    assert replace(config, train=ContextConfig()) == RegressionConfig()
    assert RegressionConfig(plugins=(everything.record,)) == RegressionConfig()


def test_what_a_registry_is_asked_for_is_there_at_once(everything: Plugin) -> None:
    """The modules that look functions up were imported before."""
    from icl_lab.baselines.linear_mmse import LINEAR_MMSE
    from icl_lab.baselines.mask_bayes import HITS
    from icl_lab.families.diversity.task import POSTERIOR_MEANS
    from icl_lab.src.attn import ATTENTION_WEIGHTS
    from icl_lab.src.causal import CAUSAL_WEIGHTS
    from icl_lab.src.inputs import INPUT_DISTRIBUTIONS
    from icl_lab.src.noise import NOISE_MODES
    from icl_lab.src.ordering import ORDERINGS
    from icl_lab.src.tasks import TASK_DISTRIBUTIONS

    added = {
        id(mapping): set(mapping) - set(known)
        for mapping, known in (
            (ORDERINGS, registries.ORDERINGS.built_in),
            (NOISE_MODES, registries.NOISE_MODES.built_in),
            (LINEAR_MMSE, registries.NOISE_MODES.built_in),
            (HITS, registries.NOISE_MODES.built_in),
            (INPUT_DISTRIBUTIONS, registries.INPUT_DISTRIBUTIONS.built_in),
            (TASK_DISTRIBUTIONS, registries.TASK_DISTRIBUTIONS.built_in),
            (POSTERIOR_MEANS, registries.TASK_DISTRIBUTIONS.built_in),
            (ATTENTION_WEIGHTS, registries.ATTENTION_KINDS.built_in),
            (CAUSAL_WEIGHTS, registries.ATTENTION_KINDS.built_in),
        )
    }
    flips = {"flips"}
    expected = [
        {"last_first", "hardest_first"},
        flips,
        flips,
        flips,
        {"rademacher"},
        {"signs"},
        {"signs"},
        {"halved", "even"},
    ]
    expected.append({"even"})
    assert list(added.values()) == expected
    assert set(registries.SCHEDULES) == {"constant", "cosine", "linear_up_down", "cosine_oscillation", "halving"}
    assert registries.SCHEDULES["halving"].rate is not None
    assert set(registries.BY_DIFFICULTY) == {"easy2hard", "hard2easy", "hardest_first"}
    assert "flips" in registries.WITHOUT_SIGMA
    assert "flips" not in registries.ADDITIVE
    assert set(registries.POSTERIOR_MEANS) == {"laplace", "mixture", "sparse", "signs"}
    with pytest.raises(KeyError):
        LINEAR_MMSE["clean"]


def test_moments_of_a_plugin_are_used(everything: Plugin) -> None:
    assert DataConfig(input_distribution="rademacher", input_range=3.0).input_variance == 9 / 4
    assert RegressionConfig(
        data=DataConfig(input_distribution="rademacher"), train=ContextConfig(ordering="easy2hard")
    ).plugins


def test_a_name_that_no_plugin_has_is_refused_with_those_that_are_there(everything: Plugin) -> None:
    with pytest.raises(
        ConfigError, match=r"ordering is 'last'; it must be one of random, .*, last_first, hardest_first$"
    ):
        ContextConfig(ordering="last")
    with pytest.raises(ConfigError, match="attention is 'hard'; it must be one of linear, softmax, halved"):
        ModelConfig(attention=("hard",))
    with pytest.raises(ConfigError, match="baselines has 'ridge'; known are preconditioned_gd, gaussian_posterior, "):
        RegressionConfig(baselines=("ridge",))


# Purposes


def test_a_purpose_has_a_number_of_its_own_that_stays(everything: Plugin) -> None:
    """2^16 + the first 8 bytes of the SHA-256 of the name, modulo 2^31 - 2^16."""
    word = int.from_bytes(hashlib.sha256(b"OTHER_SIGNS").digest()[:8], "big")
    number = 2**16 + word % (2**31 - 2**16)
    assert dict(registries.PURPOSES) == {"OTHER_SIGNS": number}
    assert max(Purpose) < 2**16 <= number < 2**31


def test_purposes_that_clash_are_refused(tmp_path: Path, fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(plugins.PluginError, match="line 2: key purpose 'TASK' is built in"):
        plugins.load(written(tmp_path / "taken.py", "from icl_lab.lab import plugins\nplugins.purpose('TASK')"))
    plugins.load(
        written(tmp_path / "one.py", "from icl_lab.lab import plugins\nA = plugins.purpose('A'), plugins.purpose('A')")
    )
    with pytest.raises(plugins.PluginError, match="key purpose 'A' is registered already, by the plugin one"):
        plugins.load(written(tmp_path / "two.py", "from icl_lab.lab import plugins\nplugins.purpose('A')"))
    monkeypatch.setattr(plugins, "NUMBERS", (registries.PURPOSES["A"], registries.PURPOSES["A"] + 1))
    with pytest.raises(plugins.PluginError, match="key purpose 'B' has the same number as 'A'; choose another name"):
        plugins.load(written(tmp_path / "three.py", "from icl_lab.lab import plugins\nplugins.purpose('B')"))


# What is broken

BROKEN = {
    "syntax error": ("from icl_lab.lab import plugins\n\ndef f(:\n    pass", "line 3: SyntaxError: "),
    "not text": ("x = 1\n\0", ": SyntaxError: source code string cannot contain null bytes"),
    "exception": ("x = 1\n\nfoo = 1 / 0", "line 3: ZeroDivisionError: division by zero"),
    "deeper": ("def f():\n    raise KeyError('mine')\n\nf()", "line 2: KeyError: 'mine'"),
    "from a library": ("import json\njson.loads('{')", "line 2: JSONDecodeError: "),
    "import": ("import no_such_module", "line 1: ModuleNotFoundError: No module named 'no_such_module'"),
    "exit": ("import sys\nsys.exit(0)", "line 2: SystemExit: 0"),
    "shadows": (LIGHT.format(name="easy2hard"), "line 5: ordering 'easy2hard' is built in and cannot be replaced"),
    "twice": (LIGHT.format(name="a") * 2, "line 12: ordering 'a' is registered already, by the plugin broken"),
    "no name": (
        "from icl_lab.lab import plugins\n@plugins.ordering\ndef f(batch, difficulty): pass",
        "line 2: the ordering has no name",
    ),
    "not a name": (LIGHT.format(name="a-b"), "line 5: ordering 'a-b': a name is letters, digits and _"),
    "reserved": (LIGHT.format(name="auto"), "line 5: ordering 'auto': the word is reserved"),
    "an earlier word": (
        "from icl_lab.lab import plugins\n@plugins.schedule('triangle')\ndef f(lr, config, step): pass",
        "line 2: schedule 'triangle': the word is reserved",
    ),
    "too few": (
        "from icl_lab.lab import plugins\n@plugins.attention('a')\ndef f(x): pass",
        "line 2: attention 'a' must take the argum",
    ),
    "causal form": (
        "from icl_lab.lab import plugins\n@plugins.attention('a', causal=lambda x: x)\ndef f(scores, key_size): pass",
        "line 2: causal must take the arguments (scores, key_size, visible, count): ",
    ),
    "no function": (
        "from icl_lab.lab import plugins\nplugins.baseline('a')(3)",
        "line 2: baseline 'a' is 3; it must be a function",
    ),
    "unknown argument": (
        "from icl_lab.lab import plugins\nplugins.ordering('a', hard=1)",
        "line 2: TypeError: ordering() got an unexp",
    ),
    "unknown kind": (
        "from icl_lab.lab import plugins\nplugins.order('a')",
        "line 2: AttributeError: module 'icl_lab.lab.plugins' has no attri",
    ),
    "wrong moment": (
        "from icl_lab.lab import plugins\nplugins.input_distribution(\n    'a',\n    variance=2,\n)",
        "line 2: variance is 2; it must be a function of (input_range)",
    ),
    "wrong baseline": (
        "from icl_lab.lab import plugins\nplugins.noise_mode('a', linear_mmse=lambda batch: batch)",
        "line 2: linear_mmse must take the arguments (batch, data, context): too many positional arguments",
    ),
    "wrong bayes": (
        "from icl_lab.lab import plugins\nplugins.task_distribution('a', bayes='yes')",
        "line 2: bayes is 'yes'; it must be",
    ),
    "headline": (
        "from icl_lab.lab import plugins\nplugins.baseline('gd')(lambda batch, config: 0)",
        "line 2: baseline 'gd' is built in and cannot be replaced",
    ),
    "64 bits": ("import jax\njax.config.update('jax_enable_x64', True)", ": it turns on JAX's 64-bit numbers"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_plugin_is_one_sentence_with_its_line(
    case: str, tmp_path: Path, refused: Refused, fresh: None
) -> None:
    text, sentence = BROKEN[case]
    file = written(tmp_path / "broken.py", text)
    before = {registry.kind: list(registry) for registry in ALL}
    try:
        said = refused("store.runs", "--plugin", file)
    finally:
        if case == "64 bits":
            import jax

            jax.config.update("jax_enable_x64", False)
    between = ", " if sentence.startswith("line") else ""
    assert said.startswith(f"error: plugin {file}{between}{sentence}")
    assert {registry.kind: list(registry) for registry in ALL} == before
    assert "broken" not in LOADED
    assert "broken" not in sys.modules


# what plugins of earlier versions imported -> what to write instead
FORMER = {
    "import src.data": ("src", "from icl_lab import src"),
    "from src.batch import Batch": ("src", "from icl_lab import src"),
    "import families.languages": ("families", "from icl_lab import families"),
    "from baselines import ridge": ("baselines", "from icl_lab import baselines"),
    "import plugins": ("plugins", "from icl_lab.lab import plugins"),
    "import cli": ("cli", "from icl_lab.lab import cli"),
    "from environment import num_threads": ("environment", "from icl_lab.lab import environment"),
    "from configs.family import Family": ("configs", "from icl_lab.lab import configs"),
    "from executors import choice": ("executors", "from icl_lab.lab import executors"),
    "import languages.split": ("languages", "from icl_lab.families import languages"),
    "from curricula.noise import corrupted": ("curricula", "from icl_lab import src"),
}


@pytest.mark.parametrize("line", FORMER)
def test_a_plugin_that_imports_by_an_earlier_name_is_told_what_to_write(
    line: str, tmp_path: Path, refused: Refused, fresh: None
) -> None:
    file = written(tmp_path / "old.py", f'"""An old plugin."""\n{line}\n')
    name, instead = FORMER[line]
    sentence = f"no module is called {name}, since all are below icl_lab: write `{instead}`"
    assert refused("store.runs", "--plugin", file) == f"error: plugin {file}, line 2: {sentence}\n"
    with pytest.raises(plugins.PluginError, match=re.escape(f"line 2: {sentence}")):
        plugins.load(file)
    assert "old" not in LOADED


def test_another_module_that_is_not_there_is_told_as_python_does(tmp_path: Path, refused: Refused, fresh: None) -> None:
    file = written(tmp_path / "old.py", "import absent_module\n")
    said = refused("store.runs", "--plugin", file)
    assert said == f"error: plugin {file}, line 1: ModuleNotFoundError: No module named 'absent_module'\n"


def test_a_broken_plugin_has_no_traceback_in_a_process_of_its_own(tmp_path: Path) -> None:
    file = written(tmp_path / "broken.py", BROKEN["deeper"][0])
    done = command("-m", RUNNER, "--plugin", file, "--out", tmp_path / "run")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: plugin {file}, line 2: KeyError: 'mine'\n"
    assert not (tmp_path / "run").exists()


def test_a_file_that_is_no_plugin_is_refused(tmp_path: Path, refused: Refused, fresh: None) -> None:
    (tmp_path / "folder").mkdir()
    for path, sentence in {
        "missing.py": "it does not exist",
        "folder": "it is a folder without an __init__.py",
        "notes.txt": "it is not a .py file",
        "my-plugin.py": "'my-plugin' is not a valid module name; rename it",
        "json.py": "json is the name of another module; rename it",
        "runners.py": "runners is the name of another module; rename it",
        "time.py": "time is the name of another module; rename it",
    }.items():
        if path.endswith(("s.txt", "n.py", "s.py", "time.py")) and not path.startswith("missing"):
            written(tmp_path / path, "")
        assert refused("store.runs", "--plugin", tmp_path / path) == f"error: plugin {tmp_path / path}: {sentence}\n"


@pytest.mark.parametrize("words", [["--plugin"], ["--plugin="], ["--plugin", "--help"]])
def test_the_flag_needs_a_file(words: list[str], refused: Refused) -> None:
    assert refused("store.runs", *words) == "error: argument --plugin: expected one argument\n"


def test_the_flag_is_not_taken_in_silence_where_nothing_loads(tmp_path: Path) -> None:
    with pytest.raises(cli.UsageError, match=r"in Python, call plugins\.load\('a\.py'\) first"):
        cli.Parser("some.command", "").parse(["--plugin", "a.py"])


# Several plugins, and folders


def test_two_plugins_are_loaded_side_by_side_and_in_one_run(tmp_path: Path, fresh: None) -> None:
    for name in ("one", "two"):
        plugins.load(written(tmp_path / f"{name}.py", LIGHT.format(name=f"order_{name}")))
    config = RegressionConfig(train=ContextConfig(ordering="order_two"), eval=ContextConfig(ordering="order_one"))
    assert config.plugins == (LOADED["one"].record, LOADED["two"].record)
    assert RegressionConfig(train=ContextConfig(ordering="order_two")).plugins == (LOADED["two"].record,)


def test_no_plugin_takes_anothers_name(tmp_path: Path, fresh: None) -> None:
    one = written(tmp_path / "one.py", LIGHT.format(name="mine"))
    module = plugins.load(one)
    assert plugins.load(one) is module  # once
    with pytest.raises(
        plugins.PluginError, match=r"two\.py, line 5: ordering 'mine' is registered already, by the plugin on"
    ):
        plugins.load(written(tmp_path / "two.py", LIGHT.format(name="mine")))
    elsewhere = written(tmp_path / "elsewhere" / "one.py", LIGHT.format(name="other"))
    with pytest.raises(plugins.PluginError, match="one is the name of another module"):
        plugins.load(elsewhere)
    assert registries.ORDERINGS.owner("mine") == "one"


def test_one_that_python_imported_as_something_else_stays_as_it_is(tmp_path: Path, fresh: None) -> None:
    file = written(tmp_path / "one.py", LIGHT.format(name="mine"))
    spec = importlib.util.spec_from_file_location("inside.one", file)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    with pytest.raises(plugins.PluginError, match="Python has imported it already, but not as one"):
        plugins.load(file)
    assert registries.ORDERINGS.owner("mine") == "one"


def test_a_plugin_that_changes_is_not_loaded_again(tmp_path: Path, fresh: None) -> None:
    """Programs that were compiled with it are still there."""
    file = written(tmp_path / "one.py", LIGHT.format(name="mine"))
    plugins.load(file)
    file.write_text(LIGHT.format(name="yours"))
    with pytest.raises(plugins.PluginError, match="has changed since it was loaded; restart Python"):
        plugins.load(file)
    assert "mine" in registries.ORDERINGS


def folder_of(path: Path, name: str = "mine") -> Path:
    written(path / "__init__.py", "from .orders import order\nfrom . import helpers\n")
    written(path / "orders.py", LIGHT.format(name=name))
    written(path / "helpers.py", "VALUE = 1\n")
    return path


def test_a_folder_is_a_plugin_with_all_its_files(tmp_path: Path, fresh: None) -> None:
    folder = folder_of(tmp_path / "mylab")
    plugins.load(folder)
    record = RegressionConfig(train=ContextConfig(ordering="mine")).plugins
    assert record == (LOADED["mylab"].record,)
    assert not list(folder.rglob("*.pyc"))
    digests = {LOADED["mylab"].digest}
    for file, text in {"helpers.py": "VALUE = 2\n", "orders.py": "", "new.py": ""}.items():
        written(folder / file, text)
        digests.add(digest_of(folder))
    (folder / "new.py").rename(folder / "newer.py")
    digests.add(digest_of(folder))
    written(folder / "notes.txt", "no source")
    assert digest_of(folder) in digests
    assert len(digests) == 5


def test_a_broken_file_of_a_folder_is_named(tmp_path: Path, fresh: None) -> None:
    folder = folder_of(tmp_path / "mylab", "random")
    with pytest.raises(plugins.PluginError, match=r"plugin \S+/mylab/orders.py, line 5: ordering 'random' is built in"):
        plugins.load(folder)
    assert not [name for name in sys.modules if name.startswith("mylab")]


def test_the_hash_of_a_file_is_that_of_its_bytes(tmp_path: Path, fresh: None) -> None:
    file = written(tmp_path / "one.py", LIGHT.format(name="mine"))
    plugins.load(file)
    assert LOADED["one"].record == f"one:{hashlib.sha256(file.read_bytes()).hexdigest()[:16]}"


STATED = """from icl_lab.lab import plugins

def mine(run):
    return 1.0

{before}plugins.conjecture("It does.", algorithm={algorithm!r},
    settings={settings}, cosine={cosine}, measure=mine, accepted=(0, 2)){behind}
"""
AS_IT_IS = {"algorithm": "gd", "settings": "{'lr': 1e-3}", "cosine": "(0.9, 1.0)", "before": "", "behind": ""}


@pytest.mark.parametrize(
    ("changed", "trained_again"),
    [
        ({"cosine": "(0.95, 1.0)"}, False),
        ({"cosine": "(\n0.9,\n1.0)"}, False),
        ({"algorithm": "ridge"}, False),
        ({"settings": "{'lr': 1e-2}"}, False),  # it is in the config of the runs
        ({"settings": "dict(lr=1e-2)"}, True),  # what is computed may depend on anything
        ({"behind": "\nVALUE = 1"}, True),
        ({"before": "VALUE = 1; "}, True),
        ({"before": "if True: "}, True),  # it is not at the top level
        ({"before": "plugins = OWN\n"}, True),  # what is called may be another
    ],
)
def test_the_values_of_a_conjecture_are_no_part_of_the_hash_that_runs_have(
    changed: dict[str, str], trained_again: bool, tmp_path: Path
) -> None:
    one = written(tmp_path / "one.py", STATED.format(**AS_IT_IS))
    other = written(tmp_path / "other.py", STATED.format(**AS_IT_IS | changed))
    assert digest_of(one) != digest_of(other)
    assert (trained_digest_of(one) != trained_digest_of(other)) is trained_again


@pytest.mark.parametrize(
    ("head", "call", "is_ours"),
    [
        ("from icl_lab.lab.plugins import conjecture", "conjecture", True),
        ("from icl_lab.lab import plugins as ours", "ours.conjecture", True),
        ("from helpers import conjecture", "conjecture", False),
        ("import plugins", "plugins.conjecture", False),
        ("from icl_lab.lab.plugins import conjecture\ndef conjecture(scale): pass", "conjecture", False),
        ("from icl_lab.lab import plugins\ndef conjecture(scale): pass", "conjecture", False),
    ],
)
def test_another_function_of_that_name_is_hashed_with_its_values(
    head: str, call: str, is_ours: bool, tmp_path: Path
) -> None:
    """What it registers may depend on them."""
    one = written(tmp_path / "one.py", f"{head}\n{call}(1)\n")
    other = written(tmp_path / "other.py", f"{head}\n{call}(2)\n")
    assert (trained_digest_of(one) == trained_digest_of(other)) is is_ours


def test_without_a_conjecture_there_is_one_hash(tmp_path: Path) -> None:
    for text in (LIGHT.format(name="mine"), "def (:", "conjecture = 1\n"):
        file = written(tmp_path / "one.py", text)
        assert trained_digest_of(file) == digest_of(file)


# The doors


@pytest.mark.parametrize("name", [*COMMANDS, *SWEEPS, "store.runs", "lab.executors.worker", "baselines.gd_step"])
def test_every_command_shows_the_flag(name: str, ran) -> None:
    done = ran(name, "--help")
    assert done.status == 0
    assert "--plugin FILE" in " ".join(done.out.split())


def test_choices_and_help_know_the_names_without_jax(tmp_path: Path) -> None:
    """Of every kind that a runner lists; a plugin may do without JAX, and then so does the help."""
    kinds = {
        "ordering": "batch, difficulty",
        "noise_mode": "key, batch, hit, sigma, data",
        "input_distribution": "key, input_range, shape",
        "task_distribution": "key, dim",
        "attention": "scores, key_size",
        "baseline": "batch, config",
    }
    lines = [f"plugins.{kind}('my_{kind}')(lambda {arguments}: 0)" for kind, arguments in kinds.items()]
    file = written(
        tmp_path / "light.py",
        "\n".join(["from icl_lab.lab import plugins; import sys", "sys.modules['jax'] = None", *lines]),
    )
    helped = command("-m", RUNNER, "--help", f"--plugin={file}")
    assert "hard2easy,my_ordering}" in helped.stdout
    assert "random_pairs,my_noise_mode}" in helped.stdout
    listed = command("-m", RUNNER, "--plugin", file, "--config.help").stdout
    for kind in ("ordering", "noise_mode", "input_distribution", "attention", "baseline"):
        assert f", my_{kind}\n" in listed or f": my_{kind}\n" in listed
    decoder = command("-m", "runners.run_task_diversity", "--plugin", file, "--help")
    assert "my_task_distribution" in decoder.stdout
    assert [done.returncode for done in (helped, decoder)] == [0, 0]
    assert "my_" not in command("-m", RUNNER, "--help").stdout


def test_what_a_plugin_prints_is_no_result(tmp_path: Path) -> None:
    file = written(tmp_path / "loud.py", "print('hello')")
    done = command("-m", "store.runs", "--plugin", file, tmp_path)
    assert "hello" not in done.stdout
    assert "hello" in done.stderr


# Python

IMPORTED = """
import sys
sys.path.insert(0, {folder!r})
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.src.config import ContextConfig
{how}
from icl_lab.lab import plugins
from icl_lab.lab.configs.identity import config_id
config = RegressionConfig(train=ContextConfig(ordering="mine"))
print(*config.plugins, config_id(config))
"""


def test_an_import_gives_the_ids_that_the_flag_gives(tmp_path: Path) -> None:
    written(tmp_path / "one.py", LIGHT.format(name="mine"))
    folder_of(tmp_path / "mylab")
    for name, path in {"one": "one.py", "mylab": "mylab"}.items():
        ways = (
            f"import {name}",
            f"from icl_lab.lab import plugins; plugins.load({str(tmp_path / path)!r})",
            f"from icl_lab.lab import plugins; plugins.load({str(tmp_path / path)!r}); import {name}",
            f"from icl_lab.lab import plugins; import {name}; plugins.load({str(tmp_path / path)!r})",
        )
        done = [command("-c", IMPORTED.format(folder=str(tmp_path), how=way)) for way in ways]
        assert [each.stderr for each in done] == [""] * 4
        assert len({each.stdout for each in done}) == 1
        assert done[0].stdout.startswith(f"{name}:")


def test_a_line_that_is_in_no_file_registers_nothing() -> None:
    code = "from icl_lab.lab import plugins; plugins.ordering('mine')(lambda batch, difficulty: 0)"
    done = command("-c", code)
    assert "ConfigError: a plugin must be a file; put this code into one" in done.stderr


# Data files

READER = """
from pathlib import Path
from typing import Any

from icl_lab.lab import plugins

FILES = ("steps.csv", "more/table.csv")
STEPS = [float(line) for line in Path(__file__).with_name(FILES[0]).read_text().split()]


@plugins.schedule("tabled")
def tabled(lr, config, step):
    return lr * STEPS[0]
"""


def reader(folder: Path) -> Path:
    written(folder / "steps.csv", "1.0\n")
    written(folder / "more" / "table.csv", "a,b\n")
    return written(folder / "reader.py", READER)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_data_file_counts_for_the_hash_and_so_for_the_id(kind: str, tmp_path: Path) -> None:
    """The hash is that of the sources' hash and of the files', as sha256sum gives them."""
    file = reader(tmp_path / "mylab")
    plugin = file if kind == "file" else tmp_path / "mylab"
    with_data = digest_of(plugin)
    hashes = [hashlib.sha256(content).hexdigest() for content in (READER.encode(), b"1.0\n", b"a,b\n")]
    if kind == "file":
        assert with_data == hashlib.sha256(" ".join(hashes).encode()).hexdigest()[:16]
    digests = {with_data}
    for name, text in {"steps.csv": "2.0\n", "more/table.csv": "b,a\n"}.items():
        written(tmp_path / "mylab" / name, text)
        digests.add(digest_of(plugin))
    assert len(digests) == 3
    written(tmp_path / "mylab" / "other.csv", "not declared")
    assert digest_of(plugin) in digests


def test_a_run_is_of_the_data_it_was_made_with(tmp_path: Path, fresh: None) -> None:
    """In processes of their own: what is loaded stays as it was."""
    file = reader(tmp_path)
    code = f"""
from icl_lab.lab import plugins; plugins.load({str(file)!r})
from dataclasses import replace
from icl_lab.lab.configs.identity import config_id
from icl_lab.families.regression.config import RegressionConfig
config = RegressionConfig()
print(config_id(replace(config, training=replace(config.training, schedule="tabled"))), config_id(config))
"""
    said = [command("-c", code).stdout.split()]
    written(tmp_path / "steps.csv", "0.5\n")
    said.append(command("-c", code).stdout.split())
    assert said[0][0] != said[1][0]
    assert said[0][1] == said[1][1] == config_id(RegressionConfig())


def test_a_data_file_that_changes_while_its_plugin_is_loaded_is_refused(tmp_path: Path, fresh: None) -> None:
    file = reader(tmp_path)
    file.write_text(READER + "\nPath(__file__).with_name('steps.csv').write_text('3.0')\n")
    with pytest.raises(plugins.PluginError, match="it has changed while it was loaded"):
        plugins.load(file)
    assert "tabled" not in registries.SCHEDULES


NOT_WRITTEN_OUT = {
    "a word": 'FILES = "data.csv"',
    "computed": 'FILES = tuple(["data.csv"])',
    "twice": 'FILES = ("data.csv",)\nFILES = ("more.csv",)',
    "added to": 'FILES = ("data.csv",)\nFILES += ("more.csv",)',
    "in a branch": 'if True:\n    FILES = ("data.csv",)',
    "of another module": "from helpers import names as FILES",
    "numbers": "FILES = (1, 2)",
    "annotated": 'FILES: tuple[str, ...] = ("data.csv",)',
}


@pytest.mark.parametrize("case", NOT_WRITTEN_OUT)
def test_files_that_are_not_written_out_are_refused(case: str, tmp_path: Path, refused: Refused, fresh: None) -> None:
    written(tmp_path / "data.csv", "")
    file = written(tmp_path / "broken.py", NOT_WRITTEN_OUT[case])
    sentence = "FILES must be written out once, at the top level: FILES = ('data.csv',)"
    assert refused("store.runs", "--plugin", file) == f"error: plugin {file}: {sentence}\n"


def unreadable(place: Path, kind: str) -> None:
    """Something at a place that cannot be read as a file; only what opens it finds out."""
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(place))
    elif kind == "huge":
        with open(place, "wb") as file:
            file.truncate(2**24 + 1)
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to({"device": "/dev/zero", "dangling": "nowhere.csv", "loop": place.name}[kind])


ODD = ("pipe", "socket", "device", "dangling", "loop", "folder")


@pytest.mark.parametrize("kind", [*ODD, "huge"])
def test_an_odd_file_among_the_sources_is_one_sentence(
    kind: str, tmp_path: Path, fresh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_of(tmp_path / "mylab")
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    unreadable(Path("mylab/odd.py"), kind)
    with pytest.raises(plugins.PluginError, match=r"^plugin mylab: its file odd\.py cannot be read: .*\w$"):
        plugins.load("mylab")


@pytest.mark.parametrize("kind", ODD)
def test_so_is_one_among_the_data(kind: str, tmp_path: Path, fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "one.py", 'FILES = ("odd",)')
    monkeypatch.chdir(tmp_path)
    unreadable(Path("odd"), kind)
    with pytest.raises(plugins.PluginError, match=r"^plugin one\.py: its file odd cannot be read: .*\w$"):
        plugins.load("one.py")


def test_so_is_one_that_may_not_be_read(
    tmp_path: Path, refused: Refused, fresh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user of the tests may be root, who may read all: the system's answer is made."""
    folder, system = folder_of(tmp_path / "mylab"), os.open

    def denied(path: Any, *more: Any, **others: Any) -> int:
        if str(path).endswith("helpers.py"):
            raise PermissionError(13, "Permission denied", str(path))
        return system(path, *more, **others)

    monkeypatch.setattr(os, "open", denied)
    said = refused("store.runs", "--plugin", folder)
    assert said == f"error: plugin {folder}: its file helpers.py cannot be read: Permission denied\n"


@pytest.mark.parametrize("seeds", ["10**9", "2", "True", "8.5", "-1"])
def test_a_conjecture_of_more_seeds_than_can_be_trained_is_refused_as_it_is_read(
    seeds: str, tmp_path: Path, fresh: None
) -> None:
    """Before a seed is listed: a list of a billion takes minutes, in which no signal is heard."""
    said = f"plugins.conjecture('it is', algorithm='gd', cosine=(0, 1), seeds={seeds})"
    file = written(tmp_path / "mine.py", f"from icl_lab.lab import plugins\n{said}\n")
    with pytest.raises(plugins.PluginError, match=r"line 2: .*it must be a whole number from 3 to 1000 \(each is a"):
        plugins.load(file)
