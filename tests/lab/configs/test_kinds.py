"""A section of several kinds: its kind is chosen by name, and only the fields of that kind exist."""

from dataclasses import dataclass
from typing import Any

import pytest

from icl_lab.families.functions.classes.linear import Linear, SparseLinear
from icl_lab.families.functions.classes.tree import DecisionTree
from icl_lab.families.functions.config import FAMILY, FunctionsConfig
from icl_lab.families.functions.function_class import FunctionClass
from icl_lab.lab.configs.config_help import listing
from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.configs.presets import command_of, preset, resolve, set_values
from icl_lab.lab.configs.registry import from_dict
from icl_lab.lab.configs.run import default_like, to_dict
from icl_lab.runners.flags import config_flags, read
from icl_lab.src.checks import ConfigError
from icl_lab.src.fields import every_kind, field
from icl_lab.src.registries import FUNCTION_CLASSES
from icl_lab.sweeps.grid import Grid

MODEL, RUNNER = "functions_tiny", "runners.run_functions"


def config_of(**values: Any) -> FunctionsConfig:
    config = preset(MODEL)
    set_values(config, values)
    resolved: FunctionsConfig = resolve(config)
    return resolved


def test_the_kind_decides_which_fields_a_section_has() -> None:
    assert config_of().function == Linear()
    tree = config_of(**{"function.kind": "decision_tree", "depth": "2"})
    assert tree.function == DecisionTree(depth=2)
    assert tree.data.num_pairs == 5 * 5 + 1  # that of the class, where nobody says it


def test_a_config_of_any_kind_is_read_back_from_what_is_written() -> None:
    for name in FUNCTION_CLASSES.built_in:
        config = config_of(**{"function.kind": name, "num_pairs": 20})
        assert from_dict(to_dict(config)) == config
        assert to_dict(config)["function"]["kind"] == name


def test_ids_tell_kinds_and_their_fields_apart_and_know_no_defaults_of_kinds() -> None:
    """A field of a kind that is at its default is in no id, so that kinds may get further fields."""
    configs = [config_of(**{"function.kind": "decision_tree", "depth": depth, "num_pairs": 9}) for depth in (2, 3)]
    ids = {config_id(config) for config in (*configs, config_of(num_pairs=9))}
    assert len(ids) == 3

    @dataclass(frozen=True)
    class DeeperTree(DecisionTree):
        further: int = field(7, "a field that came later")

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FUNCTION_CLASSES._entries, "decision_tree", DeeperTree)
        later = config_of(**{"function.kind": "decision_tree", "depth": 2, "num_pairs": 9})
        assert isinstance(later.function, DeeperTree)
        assert config_id(later) == config_id(configs[0])


def test_a_field_of_another_kind_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="depth is a field of decision_tree, but function is linear"):
        config_of(depth=3)
    with pytest.raises(ConfigError, match="kind is 'lineal'; it must be one of linear, noisy_linear"):
        config_of(**{"function.kind": "lineal"})


def test_each_field_of_a_kind_is_a_flag_an_axis_and_a_column() -> None:
    from icl_lab.families.functions.outputs import ASKED

    fields = {*every_kind(FunctionClass)}
    assert {"depth", "sparsity", "hidden", "noise_std"} <= fields
    assert fields <= {flag.name for flag in config_flags(FAMILY)}
    assert fields <= {flag.name for flag in FAMILY.all_axes}
    assert fields <= {*ASKED}
    assert (ASKED["sparsity"](config_of()), ASKED["sparsity"](config_of(**{"function.kind": "sparse_linear"}))) == (
        None,
        3,
    )
    assert len({*ASKED}) == len([*ASKED])


def test_flags_and_grids_set_them() -> None:
    words = "--function sparse_linear --sparsity 2 --dim 4".split()
    request = read([MODEL], RUNNER, "Trains.", words)
    assert request.config.function == SparseLinear(sparsity=2)
    grid = Grid([MODEL], {"function": ["sparse_linear"], "sparsity": ["1", "2"]})
    assert [config.function.sparsity for config in grid.points()] == [1, 2]


def test_the_command_of_a_config_gives_it_again() -> None:
    config = config_of(**{"function.kind": "sparse_linear", "sparsity": 2})
    words = command_of(config).split()
    assert {"--config.function.kind=sparse_linear", "--config.function.sparsity=2"} <= {*words}
    again = read([MODEL], RUNNER, "Trains.", [word for word in words if word.startswith("--config")])
    assert again.config == config


def test_help_lists_the_fields_of_the_kind() -> None:
    values = preset(MODEL)
    set_values(values, {"function.kind": "sparse_linear"})
    lines = listing(values).splitlines()
    assert any(line.split()[:5] == ["function.sparsity", "whole", "number", "3", "coordinates"] for line in lines)
    assert not any("function.depth" in line for line in lines)


def test_the_default_of_the_same_kinds() -> None:
    config = config_of(**{"function.kind": "sparse_linear", "sparsity": 2, "dim": 7})
    assert default_like(config) == FunctionsConfig(function=SparseLinear())
