"""A class of functions of a user's own: its fields are flags, axes and columns; a broken one is one sentence."""

import re
from pathlib import Path

import pytest

from icl_lab.lab import plugins
from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.loaded_plugins import LOADED
from icl_lab.runners.flags import read
from icl_lab.src.registries import FUNCTION_CLASSES
from icl_lab.sweeps.grid import Grid
from tests.doors import Ran, Refused, ran, refused
from tests.lab.test_plugins import fresh, written

__all__ = ["fresh", "ran", "refused"]

BUILT_IN = dict(FUNCTION_CLASSES)  # imported before `fresh`, which would take their modules away
MODEL, RUNNER = "functions_tiny", "runners.run_functions"
HEAD = """
from dataclasses import dataclass
import jax
from icl_lab.families.functions.function_class import FunctionClass
from icl_lab.lab import plugins
from icl_lab.src.fields import field

"""
CUBES = """
@plugins.function_class
@dataclass(frozen=True)
class Cubes(FunctionClass):
    kind: str = "cubes"
    power: int = field(3, "power of each input", least=1)

    def sample(self, key, active):
        return jax.random.normal(key, active.shape)

    def label(self, parameters, x):
        return x**self.power @ parameters
"""


def example(root: Path) -> str:
    """The class of the page."""
    page = (root / "docs/extending.md").read_text()
    found = re.search(r"```python my/splines.py\n(.*?)```", page, re.S)
    assert found is not None
    return found[1]


def test_its_fields_are_flags_and_axes_and_its_file_is_in_the_id(tmp_path: Path, fresh: None) -> None:
    plugins.load(written(tmp_path / "cubes.py", HEAD + CUBES))
    config = read([MODEL], RUNNER, "Trains.", "--function cubes --power 2".split()).config
    assert (config.function.kind, config.function.power) == ("cubes", 2)
    assert config.plugins == (LOADED["cubes"].record,)
    other = read([MODEL], RUNNER, "Trains.", ["--function", "cubes"]).config
    assert config_id(config) != config_id(other)
    grid = Grid([MODEL], {"function": ["cubes"], "power": ["1", "2"]})
    assert [each.function.power for each in grid.points()] == [1, 2]
    assert read([MODEL], RUNNER, "Trains.", []).config.plugins == ()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (CUBES.replace('"cubes"', '"linear"'), "function class 'linear' is built in and cannot be replaced"),
        (CUBES.replace("def label", "def labels_of"), "function class 'cubes' has no label"),
        (
            CUBES.replace("power: int = field(3", "depth: float = field(3.0"),
            "depth of the function class 'cubes' is of",
        ),
        (CUBES.replace("power", "dim"), "dim of the function class 'cubes' has the name of another field of a run"),
        ("@plugins.function_class\ndef cubes(key): pass", "is no dataclass that extends families.functions"),
    ],
)
def test_a_broken_one_is_refused_in_a_sentence(text: str, sentence: str, tmp_path: Path, fresh: None) -> None:
    with pytest.raises(plugins.PluginError, match=re.escape(sentence)):
        plugins.load(written(tmp_path / "cubes.py", HEAD + text))


def test_a_baseline_that_is_not_there_is_refused_before_training(tmp_path: Path, refused: Refused, fresh: None) -> None:
    text = CUBES.replace("    power", '    baselines = ("magic",)\n    power', 1)
    file = written(tmp_path / "cubes.py", HEAD + text)
    said = refused(RUNNER, "--plugin", file, "--function", "cubes", "--out", "run")
    assert said.startswith("error: baselines is 'magic'; it must be one of least_squares, ridge, averaging")


def test_several_numbers_a_label_are_refused_before_training(tmp_path: Path, ran: Ran, fresh: None) -> None:
    file = written(tmp_path / "cubes.py", HEAD + CUBES.replace("x**self.power @ parameters", "x[:, :2]"))
    done = ran(RUNNER, "--plugin", file, "--function", "cubes", "--num_pairs", 7, "--out", tmp_path / "run")
    assert (done.status, (tmp_path / "run").exists()) == (2, False)
    assert done.err.startswith(
        "error: labels of 7 inputs have the shape (7, 2) in the class cubes; a label is one number"
    )


def test_the_example_of_the_page_has_at_most_30_lines(root: Path) -> None:
    assert len(example(root).splitlines()) <= 30


@pytest.mark.filterwarnings("ignore")  # of scikit-learn's import, in the same process
def test_the_example_trains_from_a_folder_elsewhere(root: Path, tmp_path: Path, ran, fresh: None) -> None:  # type: ignore[no-untyped-def]
    """It is piecewise linear, has 4 knots, and Bayes loses next to nothing once their values are told."""
    file = written(tmp_path / "elsewhere/splines.py", example(root))
    sizes = "--steps 10 --dim 1 --num_pairs 24 --config.d_model=8 --config.mlp_width=8 --config.num_layers=1"
    tasks = "--config.eval_tasks=16 --config.test_tasks=100 --config.batch_size=8"
    words = [*sizes.split(), *tasks.split(), "--function", "splines", "--knots", 4]
    done = ran(RUNNER, "--plugin", file, *words, "--out", tmp_path / "run")
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    assert any(
        line.startswith("a decoder of one layer on functions of the class splines, seed 0: gains ") for line in lines
    )
    bayes = next(line for line in lines if line.strip().startswith("Bayes (exact)"))
    losses = [float(cell) for cell in re.findall(r"(\d\.\d+) ±", bayes)]
    assert losses[0] > 0.3
    assert losses[-2] < 0.05
