"""The ids that runs had before ids had the family's tag."""

from dataclasses import replace
from typing import Any

import pytest

from configs.identity import config_id
from configs.overrides import resolve, set_values
from configs.presets import preset
from configs.run import RunConfig
from configs.schema_1 import earlier_id

# id of then, in the names of cells that sweeps of that version wrote -> model and settings
EARLIER: dict[str, tuple[str, dict[str, Any]]] = {
    "bff51026": ("lsa1", {}),
    "f22bc825": ("lsa", {}),
    "3d35b384": ("sine", {}),
    "552ca7d7": ("sine_control", {}),
    "fc6c4091": ("linear", {"deep_supervision": True}),
}


def config_of(model: str, settings: dict[str, Any]) -> RunConfig:
    config = preset(model)
    set_values(config, settings)
    resolved: RunConfig = resolve(config)
    return resolved


@pytest.mark.parametrize("identity", EARLIER)
def test_runs_of_every_family_are_known_by_the_ids_that_they_had(identity: str) -> None:
    assert earlier_id(config_of(*EARLIER[identity]))[:8] == identity


def test_what_could_not_be_said_then_has_its_id_of_today() -> None:
    """Else a run of another optimiser would lay claim to the results of the run without one."""
    config = config_of("lsa1", {})
    descent = replace(config, training=replace(config.training, optimizer="sgd"))
    assert earlier_id(config) != config_id(config)
    assert earlier_id(descent) == config_id(descent)
