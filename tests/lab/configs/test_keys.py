"""Fields that had other names in earlier versions: those are still read, and ids are what they were under them."""

import dataclasses
from typing import Any

import pytest

from icl_lab.lab.configs.earlier_names import FIRST_NAMES, RENAMED, TODAYS, first_fields, renamed
from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.configs.keys import find_key, leaves
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.lab.configs.registry import FAMILIES, from_dict, models, named
from icl_lab.lab.configs.run import to_dict
from icl_lab.runners import flags
from icl_lab.src.checks import ConfigError, UsageError
from icl_lab.sweeps.plan import planned_run


def schedule(model: str, *words: str) -> str:
    """The schedule that a runner's command line gives."""
    config: Any = flags.read(model, "prog", "text", words).config
    return str(config.training.schedule)


@pytest.mark.parametrize("prefix", ["", "training."])
@pytest.mark.parametrize(
    ("model", "typed", "found"),
    [
        ("lsa1", "cosine=true", "cosine"),  # constant in the preset
        ("lsa1", "cosine=1", "cosine"),
        ("lsa1", "cosine=False", "constant"),
        ("lsa1", "triangle=TRUE", "linear_up_down"),
        ("lsa1", "triangle=0", "constant"),
        ("lsa", "cosine=false", "constant"),  # cosine in the preset
        ("lsa", "cosine=true", "cosine"),
        ("lsa", "triangle=false", "cosine"),
        ("tiny", "triangle=false", "constant"),  # linear_up_down in the preset
        ("tiny", "triangle=true", "linear_up_down"),
        ("tiny", "cosine=false", "linear_up_down"),
    ],
)
def test_a_schedule_that_had_a_truth_value_of_its_own(model: str, prefix: str, typed: str, found: str) -> None:
    assert schedule(model, f"--config.{prefix}{typed}") == found


def test_values_that_are_read_already_serve_too() -> None:
    config = preset("lsa1")
    set_values(config, {"cosine": True})
    assert resolve(config).training.schedule == "cosine"
    set_values(config, {"training.cosine": False})
    assert resolve(config).training.schedule == "constant"


@pytest.mark.parametrize("value", ["yes", "", "cosine", "2"])
@pytest.mark.parametrize("name", ["cosine", "triangle"])
def test_another_value_is_refused_under_the_name_that_was_typed(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"^{name} is '{value}'; it must be true or false$"):
        schedule("lsa1", f"--config.{name}={value}")


def test_todays_name_is_listed_and_the_earlier_ones_are_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        schedule("tiny", "--config.help")
    assert not ended.value.code
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    assert "training.schedule" in listed
    assert not listed & {*RENAMED}


@pytest.mark.parametrize("model", ["lsa1", "lsa", "sine", "tiny"])
def test_a_renamed_key_is_no_field_and_what_it_became_is_one(model: str) -> None:
    known = leaves(preset(model).to_dict())
    for name, new in RENAMED.items():
        assert name not in known
        assert find_key(preset(model).to_dict(), new.key) == new.key
        assert renamed(name) is renamed(name.rpartition(".")[2]) is new
    assert renamed("schedule") is renamed("training.schedule") is renamed("training.cosines") is None


@pytest.mark.parametrize(
    ("earlier", "today"), [("triangle", "linear_up_down"), ("swing", "cosine_oscillation"), ("cosine", "cosine")]
)
def test_a_schedule_is_read_under_its_earlier_name(earlier: str, today: str) -> None:
    """On command lines and in written configs; the id is that of a run of then."""
    assert schedule("lsa1", f"--config.schedule={earlier}") == schedule("lsa1", f"--config.schedule={today}") == today
    assert schedule("tiny", "--schedule", earlier) == today
    config = preset("lsa1")
    set_values(config, {"schedule": earlier})
    run = resolve(config)
    written = to_dict(run)
    assert written["training"]["schedule"] == today
    assert from_dict(written | {"training": written["training"] | {"schedule": earlier}}) == run
    assert first_fields(run)["training"]["schedule"] == earlier


def test_directories_of_sweeps_keep_the_earlier_word() -> None:
    assert planned_run(resolve(preset("tiny"))).name == "tiny_D4_M16_triangle_steps20000_seed0-f5038c2b"


# model and settings under first names -> the id that the version with these names gave it
IDS: dict[tuple[str, str], str] = {
    ("lsa1", ""): "ad7438153448f986",
    ("lsa1_pe", ""): "903877122dbca8ff",
    ("twolayer", ""): "4553a40b5ae79c39",
    ("lsa", ""): "80e4ddf8d1ce2adc",
    ("linear", ""): "a9d00cd1340d3d7a",
    ("softmax", ""): "2ba0ef21c7fe2e0b",
    ("sine", ""): "215b9ed3a1343328",
    ("sine_control", ""): "5174d6277a731307",
    ("tiny", ""): "f5038c2b49353bfc",
    ("small", ""): "e786679e60a75625",
    ("base", ""): "91c94f0a60a75577",
    ("large", ""): "badcdc50bde7ca79",
    ("hoogland", ""): "12e056621636655c",
    ("carroll", ""): "70541bfe2d0abefb",
    ("lsa1", "input_law=gaussian headline_tasks=50"): "7906a69cfe3d95b5",
    ("softmax", "embed_size=64"): "6522271ae479e384",
    ("sine", "embed_size=6"): "43c04ea103768123",
    ("tiny", "task_law=laplace num_tasks=0 embed_size=16 headline_tasks=50"): "eee55c10b52ba13e",
    ("carroll", "num_tasks=4"): "3f4c470a1ebde711",
    ("lsa1", "schedule=triangle"): "1f91eed383681826",
    ("lsa1", "schedule=swing"): "1387b1e2d1bfcf67",
}


def under_first_names(model: str, settings: str) -> Any:
    config = preset(model)
    set_values(config, dict(setting.split("=") for setting in settings.split()))
    return resolve(config)


@pytest.mark.parametrize(("model", "settings"), IDS)
def test_a_renamed_field_leaves_ids_alone(model: str, settings: str) -> None:
    assert config_id(under_first_names(model, settings)) == IDS[model, settings]


@pytest.mark.parametrize("model", models())
def test_a_config_under_first_names_is_read_and_written_under_todays(model: str) -> None:
    config = resolve(preset(model))
    former = {"schema_version": 2, "family": config.family, **first_fields(config)}
    assert former != to_dict(config)
    assert from_dict(former) == from_dict(to_dict(config)) == config


def test_no_field_has_two_values() -> None:
    written = to_dict(resolve(preset("lsa1")))
    with pytest.raises(ConfigError, match=r"^test_tasks is given under two names$"):
        from_dict(written | {"headline_tasks": 50})


@pytest.mark.parametrize("former", TODAYS)
def test_a_former_name_is_a_key_of_the_families_that_have_todays(former: str) -> None:
    found = {model: leaves(preset(model).to_dict()).get(TODAYS[former]) for model in models()}
    assert set(found.values()) - {None}
    for model, key in found.items():
        if key is None:
            with pytest.raises(UsageError, match=f"^unknown config key '{former}' of the family"):
                find_key(preset(model).to_dict(), former)
        else:
            section, dot, _ = key.rpartition(".")
            for name in (former, f"{section}{dot}{former}"):
                assert find_key(preset(model).to_dict(), name) == key


def test_a_family_that_has_a_former_name_as_its_own_field_keeps_it() -> None:
    config = {"family": "mine", "model": {"embed_size": 3, "d_model": 4}}
    assert find_key(config, "embed_size") == "model.embed_size"


@pytest.mark.parametrize(
    ("words", "key", "value"),
    [
        ("--task_law laplace", "task_distribution", "laplace"),
        ("--task-law=sphere", "task_distribution", "sphere"),
        ("--task_distribution laplace", "task_distribution", "laplace"),
    ],
)
def test_a_former_flag_is_read_and_not_listed(
    words: str, key: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config: Any = flags.read("tiny", "prog", "text", words.split()).config
    assert getattr(config.data, key) == value
    with pytest.raises(SystemExit):
        flags.read("tiny", "prog", "text", ["--help"])
    shown = capsys.readouterr().out
    assert "--task_distribution" in shown
    assert "task_law" not in shown


def test_first_names_are_of_fields_that_are_there() -> None:
    """Of all runs or, where they stand with `RunConfig`, of those of some family."""
    of_families = [named(name).config for name in FAMILIES]
    for kind, names in FIRST_NAMES.items():
        kinds = [kind, *(config for config in of_families if issubclass(config, kind))]
        own = {field.name for each in kinds for field in dataclasses.fields(each)}
        assert {*names} <= own
        assert not {*names.values()} & own
