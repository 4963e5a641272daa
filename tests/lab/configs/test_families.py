"""A field that a family does not have does not exist there: it is refused by name, with the nearest one."""

from dataclasses import fields

import pytest

from icl_lab.families.functions.config import Curriculum
from icl_lab.families.languages.data import CodeConfig, LanguageData
from icl_lab.families.tokens.data import TokenData
from icl_lab.lab.configs.keys import OUTSIDE, find_key, leaves
from icl_lab.lab.configs.presets import preset, set_values
from icl_lab.lab.configs.registry import family_of_model, from_dict, models
from icl_lab.lab.configs.run import fields_of, to_dict
from icl_lab.lab.registries import FAMILIES
from icl_lab.src.checks import ConfigError, UsageError

FIRST = {name: next(iter(family.models)) for name, family in FAMILIES.items()}  # a model of each family


def keys_of(family: str) -> dict[str, str]:
    """Every dotted key of a family's config -> its section."""
    values = fields_of(FAMILIES[family].config())
    return {key: key.rpartition(".")[0] for key in leaves(values).values()}


OF_OTHERS = [
    (family, key)
    for family in FAMILIES
    for key in sorted({key for other in FAMILIES for key in keys_of(other)} - {*keys_of(family)})
]


def test_families_differ_in_their_fields() -> None:
    assert {key for family, key in OF_OTHERS if family == "regression"} == {
        *("data.num_queries", "data.num_tasks", "data.amplitude_low", "data.amplitude_high"),
        "data.tied_phase",
        *("model.d_model", "model.embedded", "model.step_size", "model.block", "model.attention_output"),
        *("model.doubled_residual", "training.deep_supervision"),
        *(f"model.{name}" for name in ("positions", "norm", "mlp_ratio", "activation", "read_out", "loss")),
        *(f"data.{field.name}" for field in fields(LanguageData) if field.name != "num_pairs"),
        *(f"code.{field.name}" for field in fields(CodeConfig)),
        *("model.features", "model.features_width", "model.query_in_keys"),
        *("negative_share", "model.dim", "model.hidden", "model.input"),
        *(f"data.{field.name}" for field in fields(TokenData) if field.name != "file"),
        "model.embedding_std",
        *("function.kind", "data.num_functions", "data.num_prompts", "fitted_prompts"),
        *(f"curriculum.{field.name}" for field in fields(Curriculum)),
    }
    assert {family for family, _ in OF_OTHERS} == {*FAMILIES}


@pytest.mark.parametrize(("family", "key"), OF_OTHERS)
def test_a_field_of_another_family_is_refused_by_name_with_the_nearest(family: str, key: str) -> None:
    config = preset(FIRST[family])
    with pytest.raises(UsageError) as error:
        set_values(config, {key: "1"})
    sentence = str(error.value)
    assert sentence.startswith(f"unknown config key '{key}' of the family {family}")
    _, _, nearest = sentence.partition(", did you mean ")
    assert not nearest or nearest.removesuffix("?") in leaves(config.to_dict())
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("model", "typed", "nearest"),
    [
        ("lsa", "train.steps", "training.steps"),
        ("lsa1", "data.num_queries", "data.num_pairs"),
        ("sine", "test_task", "test_tasks"),
        ("tiny", "model.num_layer", "model.num_layers"),
        ("softmax", "dmodel", "d_model"),
    ],
)
def test_the_nearest_field_is_one_of_the_family(model: str, typed: str, nearest: str) -> None:
    with pytest.raises(UsageError, match=f"did you mean {nearest}"):
        find_key(preset(model).to_dict(), typed)


@pytest.mark.parametrize(("family", "key"), OF_OTHERS)
def test_a_written_config_with_it_is_refused(family: str, key: str) -> None:
    """Whatever its value: it is not that of any default."""
    section, _, field = key.rpartition(".")
    written = to_dict(FAMILIES[family].config())
    changed = written | ({section: written.get(section, {}) | {field: 1}} if section else {field: 1})
    with pytest.raises(
        ConfigError, match=f"unknown config fields: {field if section in written else section or field}"
    ):
        from_dict(changed)


@pytest.mark.parametrize("model", models())
def test_a_configs_type_is_its_familys(model: str) -> None:
    family = family_of_model(model)
    written = to_dict(family.config(name=model))
    assert (written["schema_version"], written["family"]) == (2, family.name)
    assert type(from_dict(written)) is family.config


@pytest.mark.parametrize("name", ["plugins", "shared", "requires", "init_from", "family"])
def test_what_comes_with_the_model_and_the_flags_is_no_key(name: str) -> None:
    assert name in OUTSIDE
    with pytest.raises(UsageError, match=f"unknown config key '{name}'"):
        set_values(preset("lsa1"), {name: "x"})
