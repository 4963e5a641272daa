"""Names of cells, of today and of earlier versions, which tables, folders and ledgers of then have."""

from dataclasses import replace
from typing import Any

import pytest

from configs.overrides import resolve
from configs.presets import preset
from configs.run import RunConfig
from sweeps.grid import Grid
from sweeps.plan import cells, earlier_name, plan

# model and settings -> the name of its first seed's cell, as written by the version whose ids had no family
EARLIER: dict[str, tuple[str, dict[str, Any]]] = {
    "lsa1_random_seed0-bff51026": ("lsa1", {}),
    "lsa_random_seed0-f22bc825": ("lsa", {}),
    "sine_random_seed0-3d35b384": ("sine", {}),
    "sine_control_random_seed0-552ca7d7": ("sine_control", {}),
    "linear_random_seed0-fc6c4091": ("linear", {"deep_supervision": True}),
}


@pytest.mark.parametrize("name", EARLIER)
def test_a_cell_of_any_family_is_known_by_its_earlier_name(name: str) -> None:
    model, settings = EARLIER[name]
    (cell,) = cells(plan([Grid((model,), {}, (0,), settings)]))
    assert earlier_name(cell.config) == name != cell.name


def test_what_could_not_be_said_then_had_no_name() -> None:
    config: RunConfig = resolve(preset("lsa1"))
    descent = replace(config, training=replace(config.training, optimizer="sgd"))
    assert earlier_name(config) == "lsa1_random_seed0-bff51026"
    assert earlier_name(descent) is None
