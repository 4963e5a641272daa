"""Ids of runs stay what they were, whatever fields came later."""

import pytest

from icl_lab.lab.configs import identity
from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.configs.presets import preset, resolve

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
