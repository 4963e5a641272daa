"""What a run may have besides its training changes no bit of it, in every family."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab.lab.registries import FAMILIES
from icl_lab.runners.pack import NORMS
from icl_lab.store import layout, rundir
from icl_lab.store.params import flattened, read_params
from tests.doors import Ran, ran
from tests.runners.tiny import results

__all__ = ["ran"]

pytestmark = pytest.mark.slow

SIZES = "--steps 20 --config.batch_size=16 --config.eval_every=10 --config.eval_tasks=64 --config.test_tasks=64 --quiet"
MODELS = {
    "lsa1": "--config.step_size_tasks=64 --num_layers 2 --noise_mode label_noise --noise_p 0.5 --noise_sigma 0.5",
    "twolayer": "--config.step_size_tasks=64",
    "linear": "--num_layers 2",
    "sine": "--config.d_model=6 --config.mlp_width=8 --config.key_size=6 --config.num_pairs=6",
    "tiny": "--num_tasks 4 --config.d_model=8 --config.mlp_width=16 --config.num_heads=2 --num_layers 1",
    "autoencoder": "",
    "languages": "--code_dim 8 --config.pool_size=128 --max_length 10",
    "markov": "--num_tokens 12",
    "functions_tiny": "--dim 2 --config.d_model=8 --config.mlp_width=16 --config.num_layers=1",
}
# rules that never end this training, and what is kept and recorded besides
ADDITIONS = ["--stop_when", "eval_loss < -1", "--patience", "50", "--keep_best", "--log_norms"]
OF_THE_CONFIG = {layout.CONFIG, layout.SUMMARY, layout.METRICS, layout.PARAMS, "params.pkl", layout.BEST_PARAMS}


def records(run: Path) -> list[dict[str, Any]]:
    lines = map(json.loads, (run / layout.METRICS).read_text().splitlines())
    return [{name: value for name, value in record.items() if name not in NORMS} for record in lines]


def test_every_family_is_trained_here() -> None:
    from icl_lab.lab.configs.registry import family_of_model

    assert {family_of_model(model).name for model in MODELS} == {*FAMILIES.built_in}


@pytest.mark.parametrize("model", MODELS)
def test_additions_change_no_bit(model: str, ran: Ran, tmp_path: Path) -> None:
    words = [model, *SIZES.split(), *MODELS[model].split()]
    assert ran("runners.run", *words, "--out", "plain").status == 0
    assert ran("runners.run", *words, *ADDITIONS, "--out", "more").status == 0
    plain, more = tmp_path / "plain", tmp_path / "more"
    assert rundir.stored_id(plain) != rundir.stored_id(more)
    assert records(more) == records(plain)
    assert {record["step"] for record in records(plain)} >= {0, 10, 20}
    found, expected = flattened(read_params(more)), flattened(read_params(plain))
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, strict=True)
    kept, without = results(more), results(plain)
    assert {*kept} - {*without} == {layout.BEST_PARAMS}
    for name in {*without} - OF_THE_CONFIG:
        assert kept[name] == without[name], name
    summaries = [json.loads((run / layout.SUMMARY).read_text()) for run in (plain, more)]
    assert {name: summaries[1][name] for name in summaries[0]} == summaries[0]
