"""What depends on the tasks alone is computed once for the runs of a sweep in one process."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from icl_lab.analysis import paired_losses
from icl_lab.families.regression import task
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.runners.loop import run_one
from icl_lab.src.config import ContextConfig, ModelConfig, TrainConfig
from icl_lab.src.data_config import DataConfig
from icl_lab.store import layout
from icl_lab.store.readers import read_json

TINY = RegressionConfig(
    data=DataConfig(dim=3, num_pairs=4),
    model=ModelConfig(num_layers=2),
    training=TrainConfig(steps=2, batch_size=8),
    eval_every=2,
    data_seed=71,  # of no other test, in whose process the same might be computed already
    eval_tasks=16,
    test_tasks=32,
    step_size_tasks=64,
)


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what is computed, each time that it is."""
    names: list[str] = []

    def noted(module: Any, name: str) -> None:
        compute = getattr(module, name)

        def counting(*given: Any) -> Any:
            names.append(name)
            return compute(*given)

        monkeypatch.setattr(module, name, counting)

    noted(task, "search_step_size")
    noted(paired_losses, "_errors_on")
    return names


def finished(config: RegressionConfig, folder: Path) -> dict[str, Any]:
    """The summary of a run that is trained here."""
    assert run_one(config, folder) == "done"
    return read_json(folder / layout.SUMMARY)


def test_two_learning_rates_search_one_step_size_and_measure_their_baselines_once(
    tmp_path: Path, computed: list[str]
) -> None:
    first = finished(TINY, tmp_path / "first")
    other = replace(TINY, training=replace(TINY.training, lr=0.01))
    second = finished(other, tmp_path / "second")
    assert computed == ["search_step_size", "_errors_on"]
    assert first["headline"]["tf_loss"] != second["headline"]["tf_loss"]
    assert first["headline"]["gd_loss"] == second["headline"]["gd_loss"]


@pytest.mark.parametrize(
    ("change", "again"),
    [
        ({"data_seed": 72}, ["search_step_size", "_errors_on"]),
        ({"step_size_tasks": 65}, ["search_step_size", "_errors_on"]),  # whose step size differs
        ({"test_tasks": 33}, ["_errors_on"]),
        ({"eval": ContextConfig(noise_mode="label_noise", noise_p=0.5, noise_sigma=1.0)}, ["_errors_on"]),
        ({"data": DataConfig(dim=3, num_pairs=5)}, ["search_step_size", "_errors_on"]),
        ({"model": ModelConfig(num_layers=3)}, ["search_step_size", "_errors_on"]),
        ({"eval_tasks": 17, "init_seed": 4}, []),
    ],
)
def test_what_differs_is_computed_again(computed: list[str], change: dict[str, Any], again: list[str]) -> None:
    base = replace(TINY, data_seed=74)
    evaluated(base)
    computed.clear()
    evaluated(replace(base, **change))
    assert computed == again


def evaluated(config: RegressionConfig) -> None:
    """What a run of a config asks for of its step size and its baselines."""
    descent = task.make_eval_set(config).gd
    paired_losses._baselines(config, descent, task.make_test_batch(config))
