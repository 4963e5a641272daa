"""Configs that earlier versions wrote are read, keep the id they had, and mean what they meant.

schema_1.json holds config.json and the id of meta.json of six runs, as the version before the families' own configs
wrote them.
"""

import json
import math
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.families.layerwise.config import LayerwiseConfig
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.sine.config import SineConfig
from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.configs.registry import from_dict
from icl_lab.lab.configs.run import RunConfig, fields_of, to_dict
from icl_lab.lab.configs.schema_1 import earlier_id, is_earlier
from icl_lab.src.checks import ConfigError
from icl_lab.src.config import (
    ContextConfig,
    DecoderConfig,
    EmbeddedModel,
    LayersTrainConfig,
    ModelConfig,
    SineModel,
    TrainConfig,
)
from icl_lab.src.data_config import PoolData, QueriesData, SineData

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = {run["config"]["name"]: run for run in json.loads((Path(__file__).parent / "schema_1.json").read_text())}
WRITTEN["example"] = {  # a finished run of this repository
    "config": json.loads((ROOT / "demos_ref/lsa1/config.json").read_text()),
    "config_id": "9b7cb34833b2c1dc",
}
NOISY = ContextConfig("easy2hard", "residual", "label_noise", 0.25, 0.5)
LINEAR_20 = QueriesData(20, 20, "gaussian", noise_std=0.05, num_queries=20)
# what the runs were, written down anew
MEANT: dict[str, RunConfig] = {
    "example": RegressionConfig(eval_every=100),
    "lsa1": RegressionConfig(
        eval_every=100,
        snapshots=True,
        model=ModelConfig(num_layers=2),
        training=TrainConfig(steps=200, batch_size=256),
        base=NOISY,
        train=NOISY,
        eval=NOISY,
    ),
    "lsa": LayerwiseConfig(
        name="lsa",
        eval_every=50,
        test_tasks=5000,
        data=LINEAR_20,
        model=EmbeddedModel(init_scale=2e-4),
        training=LayersTrainConfig(steps=100, batch_size=64, schedule="cosine"),
    ),
    "softmax": LayerwiseConfig(
        name="softmax",
        eval_every=10,
        test_tasks=5000,
        data=LINEAR_20,
        model=EmbeddedModel(("softmax",), 4, 4, 128, layer_norm=True, mlp_width=512, init_scale=1.0, d_model=128),
        training=LayersTrainConfig(20, 64, 3e-4, weight_decay=0.01, grad_clip=1.0, warmup_steps=2000),
    ),
    "sine": SineConfig(
        eval_every=100,
        data=SineData(input_range=10.0),
        model=SineModel(key_size=40, mlp_width=160, d_model=40),
        training=TrainConfig(steps=200, batch_size=256, grad_clip=100.0),
    ),
    "sine_control": SineConfig(
        name="sine_control",
        eval_every=100,
        data=SineData(input_range=10.0),
        model=SineModel(mlp_width=160, d_model=40, step_size=0.01),
        training=TrainConfig(steps=200, batch_size=256, lr=3e-3, grad_clip=100.0),
    ),
    "carroll": DiversityConfig(
        name="carroll",
        eval_every=3,
        eval_tasks=1024,
        test_tasks=4096,
        snapshots=True,
        log_records=30,
        data=PoolData(8, 16, "gaussian", noise_std=0.5),
        model=DecoderConfig(2, 4, 512, 512, layer_norm=True, block="regression", attention_output=False),
        training=TrainConfig(steps=6, batch_size=256, b2=0.999, grad_clip=0.0, schedule="triangle"),
    ),
}


def earlier(name: str) -> dict[str, Any]:
    """A written config as an earlier version wrote it, which a test may change."""
    return deepcopy(WRITTEN[name]["config"])


@pytest.mark.parametrize("name", MEANT)
def test_an_earlier_config_means_what_it_meant(name: str) -> None:
    assert is_earlier(earlier(name))
    assert from_dict(earlier(name)) == MEANT[name]


@pytest.mark.parametrize("name", MEANT)
def test_upgraded_it_is_written_in_the_new_form_and_read_again(name: str) -> None:
    config = from_dict(earlier(name))
    written = json.loads(json.dumps(to_dict(config)))
    assert not is_earlier(written)
    assert (written["schema_version"], written["family"]) == (2, MEANT[name].family)
    assert from_dict(written) == config


@pytest.mark.parametrize("name", MEANT)
def test_its_id_of_then_is_that_of_its_meta(name: str) -> None:
    config = from_dict(earlier(name))
    assert earlier_id(config) == WRITTEN[name]["config_id"]
    assert config_id(config) != WRITTEN[name]["config_id"]


def test_the_id_of_the_example_is_in_its_meta() -> None:
    meta = json.loads((ROOT / "demos_ref/lsa1/meta.json").read_text())
    assert WRITTEN["example"]["config_id"] in meta.values()


@pytest.mark.parametrize(
    ("name", "section", "field", "value"),
    [
        ("lsa1", "data", "num_queries", 2),
        ("lsa1", "data", "task_law", "laplace"),
        ("lsa1", "model", "embed_size", 4),
        ("lsa1", "training", "deep_supervision", True),
        ("lsa", "", "step_size_tasks", 7),
        ("lsa", "model", "tokens", "interleaved"),
        ("softmax", "eval", "ordering", "easy2hard"),
        ("sine", "data", "noise_std", 0.5),
        ("sine", "data", "dim", 3),
        ("sine_control", "train", "noise_p", 0.5),
        ("carroll", "model", "damping", 0.5),
        ("carroll", "data", "amplitude_low", 0.2),
    ],
)
def test_a_field_that_meant_nothing_must_be_at_its_default_of_then(
    name: str, section: str, field: str, value: Any
) -> None:
    config = earlier(name)
    owner = config[section] if section else config
    assert owner[field] != value
    owner[field] = value
    with pytest.raises(ConfigError) as error:
        from_dict(config)
    assert str(error.value) == f"{field} is {value}, but has no meaning for the family {MEANT[name].family}"


def test_a_field_of_no_version_is_refused() -> None:
    for change in ({"dims": 3}, {"data": {"dims": 3}}, {"training": {"schedule": "cosine"}}):
        with pytest.raises(ConfigError, match=r"unknown config fields: (dims|schedule)$"):
            from_dict(change)
    with pytest.raises(ConfigError, match="data must be an object"):
        from_dict({"data": 3})


def test_no_tasks_stood_for_infinitely_many() -> None:
    written = earlier("carroll")
    assert written["data"]["num_tasks"] == 0
    config: Any = from_dict(written)
    assert config.data.num_tasks == math.inf
    assert json.loads(json.dumps(to_dict(config), allow_nan=False))["data"]["num_tasks"] == "inf"


@pytest.mark.parametrize("value", ["many", 1.5, None, True, "-inf"])
def test_a_pool_of_what_is_no_number_of_tasks_is_refused(value: Any) -> None:
    written = to_dict(DiversityConfig())
    written["data"]["num_tasks"] = value
    with pytest.raises(ConfigError, match=f"^num_tasks is {value!r}; it must be a whole number or inf$"):
        from_dict(written)


def test_a_boolean_that_is_none_is_refused() -> None:
    config = earlier("lsa1")
    config["training"]["cosine"] = "maybe"
    with pytest.raises(ConfigError, match=r"^cosine is 'maybe'; it must be of type bool$"):
        from_dict(config)


@pytest.mark.parametrize("version", [1, 99, None, "2"])
def test_a_schema_that_is_not_known_is_refused(version: Any) -> None:
    with pytest.raises(ConfigError, match=f"^unknown schema_version {version!r}; this version reads 2 and, "):
        from_dict({**to_dict(RegressionConfig()), "schema_version": version})


def test_what_was_left_out_had_its_default_of_then() -> None:
    """As in the oldest runs, whose configs lack the fields that came later."""
    config = earlier("lsa")
    del config["log_records"], config["training"]["triangle"], config["training"]["full_batch"]
    assert from_dict(config) == MEANT["lsa"]
    assert from_dict({}) == RegressionConfig()
    assert from_dict({"family": "layerwise", "name": "linear"}) == LayerwiseConfig(
        test_tasks=10_000, training=LayersTrainConfig()
    )


def test_an_id_holds_the_family() -> None:
    """Configs of two families without any field that differs from a default, but for the name, are two runs."""
    ids = {kind.family: config_id(kind()) for kind in (RegressionConfig, LayerwiseConfig, SineConfig, DiversityConfig)}
    assert len({*ids.values()}) == len(ids)


def test_an_id_depends_on_what_is_off_its_default_alone() -> None:
    base = RegressionConfig()
    assert config_id(base) == config_id(RegressionConfig(preset="paper"))
    assert config_id(base) != config_id(RegressionConfig(data_seed=1))
    assert fields_of(base)["preset"] == "default"


@pytest.mark.parametrize("family", ["vision", "", None, 3])
def test_a_family_that_is_not_there_is_refused(family: Any) -> None:
    with pytest.raises(ConfigError, match="unknown family"):
        from_dict({"schema_version": 2, "family": family})
