"""Written configs: their schema, their family, and what is refused."""

import json
import math
from typing import Any

import pytest

from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.families.layerwise.config import LayerwiseConfig
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.sine.config import SineConfig
from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.configs.registry import from_dict
from icl_lab.lab.configs.run import fields_of, to_dict
from icl_lab.src.checks import ConfigError
from icl_lab.src.config import LayersTrainConfig

TAGS = {"schema_version": 2, "family": "regression"}


@pytest.mark.parametrize("kind", [RegressionConfig, LayerwiseConfig, SineConfig, DiversityConfig])
def test_a_written_config_is_read_again(kind: Any) -> None:
    written = json.loads(json.dumps(to_dict(kind()), allow_nan=False))
    assert (written["schema_version"], written["family"]) == (2, kind.family)
    assert from_dict(written) == kind()


def test_a_field_of_no_version_is_refused() -> None:
    for change in ({"dims": 3}, {"data": {"dims": 3}}, {"training": {"schedules": "cosine"}}):
        with pytest.raises(ConfigError, match=r"unknown config fields: (dims|schedules)$"):
            from_dict(TAGS | change)
    with pytest.raises(ConfigError, match=r"^a config must be an object, not int$"):
        from_dict(TAGS | {"data": 3})


def test_no_tasks_stood_for_infinitely_many() -> None:
    written = to_dict(DiversityConfig())
    written["data"]["num_tasks"] = 0
    config: Any = from_dict(written)
    assert config.data.num_tasks == math.inf
    assert json.loads(json.dumps(to_dict(config), allow_nan=False))["data"]["num_tasks"] == "inf"


@pytest.mark.parametrize("value", ["many", 1.5, None, True, "-inf"])
def test_a_pool_of_what_is_no_number_of_tasks_is_refused(value: Any) -> None:
    written = to_dict(DiversityConfig())
    written["data"]["num_tasks"] = value
    with pytest.raises(ConfigError, match=f"^num_tasks is {value!r}; it must be a whole number or inf$"):
        from_dict(written)


@pytest.mark.parametrize("version", [1, 99, None, "2"])
def test_a_schema_that_is_not_known_is_refused(version: Any) -> None:
    with pytest.raises(ConfigError, match=f"^unknown schema_version {version!r}; this version reads 2$"):
        from_dict({**to_dict(RegressionConfig()), "schema_version": version})


def test_what_is_left_out_has_its_default() -> None:
    assert from_dict(TAGS) == RegressionConfig()
    assert from_dict({"schema_version": 2, "family": "layerwise", "name": "linear"}) == LayerwiseConfig(
        training=LayersTrainConfig()
    )


def test_an_id_holds_the_family() -> None:
    """Configs of two families without any field that differs from a default, but for the name, are two runs."""
    ids = {kind.family: config_id(kind()) for kind in (RegressionConfig, LayerwiseConfig, SineConfig, DiversityConfig)}
    assert len({*ids.values()}) == len(ids)


def test_an_id_depends_on_what_is_off_its_default_alone() -> None:
    base = RegressionConfig()
    assert config_id(base) == config_id(RegressionConfig(preset="paper"))
    assert (
        len({config_id(config) for config in (base, RegressionConfig(data_seed=1), RegressionConfig(init_seed=1))}) == 3
    )
    assert fields_of(base)["preset"] == "default"


@pytest.mark.parametrize("family", ["vision", "", None, 3])
def test_a_family_that_is_not_there_is_refused(family: Any) -> None:
    with pytest.raises(ConfigError, match="unknown family"):
        from_dict({"schema_version": 2, "family": family})
