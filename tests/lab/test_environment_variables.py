"""Each environment variable of JAX and XLA is recorded, has no effect on results, or is refused in a sentence."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from jax._src import config as jax_config

from icl_lab.lab.environment_variables import ANY, GROUP_OF, OFF, ON, RECORDED, refusal, unset_empty
from tests.lab.test_environment import RUNNER, is_refused, python
from tests.thinned import thinned

SIZES = "--steps 20 --eval_every 20 --batch_size 8 --config.eval_tasks=8 --config.test_tasks=8 --quiet".split()
REFUSED = [name for name, group in GROUP_OF.items() if group.values != ANY]
# Values of the table under which results are the same, beside those that are their defaults.
WITHOUT_EFFECT = {
    "JAX_CPU_ENABLE_ASYNC_DISPATCH": "0",
    "JAX_DEFAULT_MATMUL_PRECISION": "float32",
    "JAX_LOG_COMPILES": "",
    "JAX_NUMPY_RANK_PROMOTION": "raise",
    "JAX_PLATFORM_NAME": "cpu",
    "JAX_TRACEBACK_FILTERING": "off",
    "PYTHONHASHSEED": "7",
    "PYTHONOPTIMIZE": "1",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}


def test_the_table_has_every_variable_of_jax_and_no_other() -> None:
    """So a new version's show here."""
    of_jax = {name.upper() for name in jax_config.config._value_holders}
    assert of_jax == {name for name in GROUP_OF if not name.startswith("XLA_")}


DEFAULTS = """
import enum, json, jax
values = {name.upper(): holder.value for name, holder in jax.config._value_holders.items()}
enums = {name: value.name.lower() for name, value in values.items() if isinstance(value, enum.Enum)}
print(json.dumps({name: str(value) for name, value in (values | enums).items() if value is not None}))
"""


def test_jaxs_own_defaults_are_not_refused() -> None:
    """Read in a process that has none of these variables."""
    bare = {name: value for name, value in os.environ.items() if name not in GROUP_OF}
    done = subprocess.run([sys.executable, "-c", DEFAULTS], env=bare, capture_output=True, text=True, check=True)
    defaults = json.loads(done.stdout)
    assert defaults["JAX_THREEFRY_PARTITIONABLE"] == "True"
    assert [said for name, value in defaults.items() if (said := refusal({name: value}))] == []


@pytest.mark.parametrize("name", REFUSED)
def test_another_value_is_one_sentence_that_names_the_variable(name: str) -> None:
    values = GROUP_OF[name].values
    for value in ("zz", *({ON: ["0", "False"], OFF: ["1", "True"]}.get(values, [])), "9\n"):
        said = refusal({name: value})
        assert said is not None
        assert said.startswith(f"{name} is {value!r}: ")
        assert said.endswith("; unset it")


def test_an_empty_variable_is_unset() -> None:
    variables = dict.fromkeys([*GROUP_OF, "OTHER"], "")
    assert refusal(variables) is None
    unset_empty(variables)
    assert variables == {"OTHER": ""}


def test_what_is_recorded_is_not_also_said_to_have_no_effect() -> None:
    assert {name for name in RECORDED if name in GROUP_OF} == {"XLA_FLAGS"}  # of which the name of a file is refused


UNUSABLE = [
    ("JAX_ENABLE_X64", "1", "JAX_ENABLE_X64 is '1': runs compute in float32; unset it"),
    ("XLA_FLAGS", "--nope", "XLA_FLAGS is '--nope', which XLA refuses: Unknown flag in XLA_FLAGS: --nope"),
    ("PYTHONOPTIMIZE", "2", "-OO or PYTHONOPTIMIZE=2"),
    ("JAX_DISABLE_JIT", "1", "JAX_DISABLE_JIT is '1': a training step is a compiled program; unset it"),
    ("JAX_DEFAULT_MATMUL_PRECISION", "zz", "JAX_DEFAULT_MATMUL_PRECISION is 'zz': "),
    ("XLA_FLAGS", "--xla_backend_optimization_level=zz", "Couldn't interpret value zz for flag"),
    ("XLA_FLAGS", "flags.txt", "XLA_FLAGS is 'flags.txt': it names a file"),
    ("JAX_LOG_COMPILES", "zz", "JAX_LOG_COMPILES is 'zz': JAX takes 0 or 1; unset it"),
    *((name, "zz", f"{name} is 'zz': ") for name in REFUSED[::20]),
]


@pytest.mark.parametrize(("name", "value", "said"), thinned(UNUSABLE, 4))
def test_a_runner_refuses_it_before_a_directory_exists(name: str, value: str, said: str, tmp_path: Path) -> None:
    assert said in is_refused(python("-m", RUNNER, *SIZES, "--out", tmp_path / "run", **{name: value}))
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("command", ["lab.executors.worker", "plots.run_figures", "eval_noise", "demos_ref.sine_waves"])
def test_every_door_refuses_a_variable(command: str) -> None:
    assert "JAX_ENABLE_X64 is '1'" in is_refused(python("-m", command, "--help", JAX_ENABLE_X64="1"))


@pytest.mark.parametrize("command", ["analysis.llc", "icl_lab.analysis.alignment"])
def test_an_analysis_refuses_it_before_jax_is_imported(command: str) -> None:
    said = is_refused(python("-m", command, "--help", JAX_LOG_COMPILES="zz"))
    assert said == "error: JAX_LOG_COMPILES is 'zz': JAX takes 0 or 1; unset it\n"


def test_a_training_from_python_is_refused_too(tmp_path: Path) -> None:
    script = (
        "from pathlib import Path; from icl_lab.families.regression.config import RegressionConfig\n"
        "from icl_lab.runners.loop import run_one\n"
        f"run_one(RegressionConfig(), Path({str(tmp_path / 'run')!r}))"
    )
    done = python("-c", script, JAX_DISABLE_JIT="1")
    assert done.stderr.splitlines()[-1].startswith(
        "icl_lab.lab.command_end.UnusableEnvironment: JAX_DISABLE_JIT is '1'"
    )
    assert [*tmp_path.iterdir()] == []


@pytest.mark.slow
def test_what_has_no_effect_changes_no_byte(tmp_path: Path) -> None:
    files = ("metrics.jsonl", "params.safetensors")
    found = {}
    for name, value in {"": "", **WITHOUT_EFFECT}.items():
        run = tmp_path / f"run{name}"
        line = [sys.executable, "-m", RUNNER, *SIZES, "--out", str(run)]
        done = subprocess.run(line, env=os.environ | ({name: value} if name else {}), capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), name
        found[name] = [(run / file).read_bytes() for file in files]
    assert {name for name in found if found[name] != found[""]} == set()
