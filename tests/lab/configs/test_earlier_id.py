"""The ids that runs had before ids had the family's tag, and those of presets since."""

from dataclasses import replace
from typing import Any

import pytest

from icl_lab.lab.configs import identity
from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.lab.configs.run import RunConfig
from icl_lab.lab.configs.schema_1 import earlier_id

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


# model -> the ids of its default and of its paper preset, computed before stacks had first_norm, shared_mlp, mlp_bias
# and clip_before_mlp, and sines tied_phase
OF_PRESETS = {
    "lsa1": ("ad7438153448f986", "ad7438153448f986"),
    "lsa1_pe": ("903877122dbca8ff", "903877122dbca8ff"),
    "twolayer": ("4553a40b5ae79c39", "504d7df1a63d0fb7"),
    "lsa": ("80e4ddf8d1ce2adc", "5a424234b1af690b"),
    "linear": ("a9d00cd1340d3d7a", "a219630fd9b14af2"),
    "softmax": ("2ba0ef21c7fe2e0b", "c997397748da6bdc"),
    "sine": ("215b9ed3a1343328", "6bc0b9ddd19044e1"),
    "sine_control": ("5174d6277a731307", "304586a7fd710579"),
}


@pytest.mark.parametrize("model", OF_PRESETS)
def test_fields_that_came_later_change_no_id(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "RESULTS_VERSION", 4)  # of then
    assert tuple(config_id(resolve(preset(model, name))) for name in ("default", "paper")) == OF_PRESETS[model]
