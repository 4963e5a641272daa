"""What a decoder is compared with, by hand: losses, distances, verdicts, and snapshots that are another model's."""

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.analysis.task_diversity import measure_test_set, verdict_of
from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.families.diversity.outputs import MEASURED, summary_lines
from icl_lab.families.diversity.task import (
    EvalSet,
    distance,
    eval_metrics,
    latent_sequences,
    make_eval_sets,
    make_model,
    measured,
    pool_sequences,
    references,
)
from icl_lab.families.summary import shown
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.src.checks import ConfigError
from icl_lab.src.prng import key
from icl_lab.src.registries import POSTERIOR_MEANS, TASK_DISTRIBUTIONS, TaskDistribution
from icl_lab.src.tasks import gaussian
from icl_lab.store import layout
from icl_lab.store.atomic import write_safetensors
from icl_lab.store.params import flattened
from icl_lab.store.readers import StoreError
from icl_lab.studies.task_diversity.pool_losses import exact_losses


def config(**values: object) -> DiversityConfig:
    chosen = preset("tiny")
    set_values(chosen, {"eval_tasks": 32, **values})
    return resolve(chosen)


def test_losses_and_distances_are_mean_squares_over_the_dimension() -> None:
    targets = np.array([[1.0, 2.0], [3.0, 4.0]])
    eval_set = EvalSet(None, targets, {"ridge": targets + 2})
    found = measured(targets + np.array([[0.0, 1.0], [0.0, 3.0]]), eval_set, dim=5)
    assert found["errors"] == pytest.approx([0.0, 1.0])
    assert found["loss"] == pytest.approx(0.5)
    assert found["delta_ridge"] == pytest.approx((4 + 1 + 4 + 1) / 4 / 5)
    assert distance(targets, targets, 3) == 0


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"num_tasks": 4}, {"ridge", "dmmse"}),
        ({"num_tasks": float("inf")}, {"ridge"}),
        ({"num_tasks": 4, "task_distribution": "laplace"}, {"ridge", "dmmse", "laplace"}),
        ({"num_tasks": 4, "task_distribution": "mixture"}, {"ridge", "dmmse", "mixture"}),
        ({"num_tasks": 4, "task_distribution": "sparse"}, {"ridge", "dmmse", "sparse"}),
        ({"num_tasks": 4, "task_distribution": "sphere", "noise_std": 0.0}, set()),
    ],
)
def test_the_predictors_are_those_that_the_law_allows(values: dict[str, object], expected: set[str]) -> None:
    chosen = config(**values)
    assert set(references(chosen, latent_sequences(chosen))[0]) == expected


def test_dmmse_knows_the_runs_own_pool() -> None:
    """On sequences of a pool of one task it predicts that task's labels without noise, from the first pair on."""
    chosen = config(num_tasks=1)
    batch = pool_sequences(chosen)
    targets = np.einsum("bkd,bd->bk", batch.x, batch.w)
    np.testing.assert_allclose(references(chosen, batch)[0]["dmmse"], targets, atol=1e-5)


@pytest.mark.parametrize("values", [{"task_distribution": "sphere"}, {"weight_scale": 3.0}])
def test_ridge_weighs_the_noise_against_the_variance_of_the_tasks(values: dict[str, object]) -> None:
    """x_k.(X'X + sigma^2/s^2 I)^-1 X'y with s^2 of a coordinate: 1/D on the sphere, else the scale's square."""
    chosen = config(num_tasks=0, **values)
    batch = latent_sequences(chosen)
    variance = 1 / 4 if "task_distribution" in values else 9.0
    found = references(chosen, batch)[0]["ridge"]
    for x, y, predictions in zip(np.asarray(batch.x, float)[:4], np.asarray(batch.y, float), found, strict=False):
        penalty = chosen.data.noise_std**2 / variance * np.eye(x.shape[1])
        expected = [x[k] @ np.linalg.solve(x[:k].T @ x[:k] + penalty, x[:k].T @ y[:k]) for k in range(len(x))]
        np.testing.assert_allclose(predictions, expected, atol=1e-4)


TINY = {"num_layers": 1, "num_heads": 1, "d_model": 4, "mlp_width": 4, "test_tasks": 8, "eval_tasks": 8}
OF_NOISE, OF_FLOAT32 = (
    "noise_std is 0; this predictor needs noise",
    "its predictions on these sequences are not finite in float32",
)


@pytest.mark.parametrize("distribution", TASK_DISTRIBUTIONS.built_in)
@pytest.mark.parametrize(
    ("values", "reasons"),
    [
        pytest.param({"dim": 2, "num_tasks": 2}, {}, marks=pytest.mark.slow),
        ({"dim": 2, "num_tasks": 2, "noise_std": 0.0}, dict.fromkeys(("ridge", "dmmse", "own"), OF_NOISE)),
        pytest.param({"dim": 2, "num_tasks": 2, "noise_std": 1e-30}, {"dmmse": OF_FLOAT32}, marks=pytest.mark.slow),
        pytest.param({"dim": 2, "num_tasks": 2, "weight_scale": 1e-30}, {}, marks=pytest.mark.slow),
        ({"dim": 13, "num_tasks": float("inf")}, {"sparse": "a sum over 2^dim supports"}),
    ],
)
def test_of_every_prior_a_predictor_is_defined_or_null_with_its_reason(
    distribution: str, values: dict[str, Any], reasons: dict[str, str]
) -> None:
    """Records, the summary, the row of a table and the printed lines, none of which an undefined predictor stops."""
    chosen = config(**TINY, num_pairs=3, task_distribution=distribution, **values)
    model = make_model(chosen)
    params = model.init(key(0))
    record = eval_metrics(model, params, make_eval_sets(chosen))
    found = measure_test_set(LoadedRun(Path(), chosen, model, params, None))
    own = {distribution} & set(POSTERIOR_MEANS)
    exact = {"ridge"} | own | ({"dmmse"} if chosen.data.num_tasks == 2 else set())
    for name in exact:
        expected = reasons.get("own" if name in own else name) or reasons.get(name)
        for prefix in ("id", "ood"):
            numbers = [
                found[f"{prefix}_{name}_loss"],
                found[f"{prefix}_delta_{name}"],
                record[f"eval_{prefix}_delta_{name}"],
            ]
            if f"{prefix}_{name}_loss_reason" not in found:
                assert expected in (None, OF_FLOAT32)
                assert all(0 <= number < math.inf for number in numbers)
                continue
            assert numbers == [None] * 3
            assert (expected or OF_FLOAT32) in found[f"{prefix}_{name}_loss_reason"]
    json.dumps([record, found], allow_nan=False)
    row = MEASURED["not_defined"]({"headline": found})
    assert (row is None) == all(f"id_{name}_loss_reason" not in found for name in exact)
    printed = summary_lines({"headline": shown(found)}, Path(), chosen)
    assert sum("not defined: " in line for line in printed) == sum(name.endswith("_reason") for name in found)


@pytest.mark.slow
def test_without_a_variance_of_the_tasks_ridge_is_null_with_the_reason(registered) -> None:
    """dMMSE, which knows the pool alone, stays; the verdict compares with nothing."""
    registered(TASK_DISTRIBUTIONS, "unknown", TaskDistribution(sample=gaussian))
    known = config(num_tasks=4, test_tasks=16, task_distribution="unknown")
    model = make_model(known)
    found = measure_test_set(LoadedRun(Path(), known, model, model.init(key(0)), None))
    for name in ("id_ridge_loss", "ood_ridge_loss", "id_delta_ridge", "ood_delta_ridge"):
        assert (found[name], found[f"{name}_se"]) == (None, None)
        assert "'unknown' is registered without a variance" in found[f"{name}_reason"]
    assert found["id_dmmse_loss"] < found["id_zero_loss"]
    assert "id_apart" not in found
    assert found["verdict"] == "nothing to compare with"
    with pytest.raises(ConfigError, match="without a variance"):
        exact_losses(known.data, 4, 0, count=8)


def test_the_prior_of_a_sphere_has_the_variance_of_its_coordinates() -> None:
    assert config(task_distribution="sphere").data.task_variance == pytest.approx(1 / 4)
    assert config(task_distribution="laplace", weight_scale=3.0).data.task_variance == pytest.approx(9)


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ({"id_delta_dmmse": 0.02, "id_apart": 0.2, "ood_delta_ridge": 0.6, "ood_apart": 0.6}, "dmmse"),
        ({"id_delta_dmmse": 0.2, "id_apart": 0.2, "ood_delta_ridge": 0.15, "ood_apart": 0.6}, "ridge"),
        ({"id_delta_dmmse": 0.1, "id_apart": 0.2, "ood_delta_ridge": 0.3, "ood_apart": 0.6}, "between"),
        ({"ood_delta_ridge": 0.06}, "ridge"),
        ({"ood_delta_ridge": 0.07}, "between"),
        ({}, "nothing to compare with"),
    ],
)
def test_verdicts(found: dict[str, float], verdict: str) -> None:
    assert verdict_of(found) == verdict


@pytest.mark.slow
def test_a_snapshot_of_another_model_is_refused(tmp_path: Path) -> None:
    chosen = config()
    model = make_model(chosen)
    params = model.init(key(0))
    other = make_model(replace(chosen, model=replace(chosen.model, d_model=16))).init(key(0))
    subject = LoadedRun(tmp_path, chosen, model, params, None)
    for kept, refused in ((params, False), (other, True)):
        rows = {name: np.asarray(value)[None] for name, value in flattened(kept).items()}
        write_safetensors(tmp_path / layout.SNAPSHOTS, rows | {"step": np.array([7])}, {"rows": 1})
        if refused:
            with pytest.raises(StoreError, match=str(layout.SNAPSHOTS)):
                list(subject.checkpoints())
        else:
            assert [step for step, _ in subject.checkpoints()] == [7]


def test_a_further_posterior_mean_is_measured_and_has_columns(root: Path) -> None:
    """That of a plugin, in rows of its tasks alone. The other columns stay as they are, in their order."""
    code = (
        "from pathlib import Path; import sys; from icl_lab.sweeps.collect import row_values, setting_columns\n"
        "from icl_lab.src.registries import TASK_DISTRIBUTIONS, TaskDistribution\n"
        "from icl_lab.lab.loaded_plugins import LOADED, Plugin\n"
        "from icl_lab.sweeps.grid import Grid; from icl_lab.sweeps.plan import plan\n"
        "LOADED['p'] = Plugin('p', Path('p.py'), '0', '0'); entry = TaskDistribution(bayes='own', sample=len)\n"
        "TASK_DISTRIBUTIONS.add('mystery', entry, 'p')\n"
        "grids = [Grid(('tiny',), {'task_distribution': [law]}) for law in ('laplace', 'mystery')]\n"
        "rows = [row_values(plan([grid])[0], Path('x')) for grid in grids]\n"
        "print(*[name for name in rows[0] if name.startswith(('test_id_', 'test_ood_'))])\n"
        "print(*[name for name in rows[1] if name not in rows[0]])\n"
        "print(not (set(rows[1]) - set(rows[0])) & set(setting_columns(rows[1:])), 'jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    now, further, heavy = done.stdout.splitlines()
    half = "tf_loss tf_loss_se ridge_loss ridge_loss_se dmmse_loss dmmse_loss_se laplace_loss laplace_loss_se "
    half += "delta_ridge delta_ridge_se delta_dmmse delta_dmmse_se delta_laplace delta_laplace_se apart"
    assert now.split() == [f"test_{prefix}_{name}" for prefix in ("id", "ood") for name in half.split()]
    names = [*(f"mystery_loss{se}" for se in ("", "_se")), *(f"delta_mystery{se}" for se in ("", "_se"))]
    assert further.split() == [f"test_{prefix}_{name}" for prefix in ("id", "ood") for name in names]
    assert heavy == "True False"
