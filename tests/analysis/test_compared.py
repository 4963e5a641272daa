"""What runs of each family are compared with on test tasks: NumPy, closed forms, and the family's own analysis."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from icl_lab.analysis.algorithm_distance import matrix, responses_on
from icl_lab.analysis.compared import compared, has_queries, plugins_baselines, why_not
from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.analysis.task_diversity import measure_test_set
from icl_lab.families.regression.baselines import defined
from icl_lab.families.task import model_of
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.src.checks import ConfigError
from icl_lab.src.prng import key
from icl_lab.src.registries import BASELINES, NAMED, Baseline
from icl_lab.store import layout
from icl_lab.store.readers import read_csv, read_json
from tests.doors import Ran, ran
from tests.runners.tiny import copied, workshop
from tests.test_icl_lab import decoder_run

__all__ = ["decoder_run", "ran", "workshop"]

SIZES: dict[str, Any] = {"eval_tasks": 32, "test_tasks": 40}


def config_of(model: str, **values: Any) -> Any:
    chosen = preset(model)
    set_values(chosen, SIZES | values)
    return resolve(chosen)


def untrained(model: str, **values: Any) -> LoadedRun:
    """A run as it begins, without a directory."""
    config = config_of(model, **values)
    made = model_of(config)
    return LoadedRun(Path(), config, made, made.init(key(0)), None)


DECODER = untrained("tiny", num_tasks=4, noise_std=0.5)


def values_of(rows: list[dict[str, Any]]) -> dict[tuple[str, str, str], float]:
    return {(row["row"], row["column"], row["measure"]): row["value"] for row in rows}


def test_queries_are_each_compared_with_one_step_of_numpys() -> None:
    """Predictions [B, Q] of gradient descent, ridge and zero, and the sensitivity of a step, eta X^T y / N."""
    loaded = untrained("lsa", dim=3, num_pairs=6, num_queries=4)
    tasks = compared(loaded, ("gd", "ridge", "zero"))
    x, y, queries = (np.asarray(part, np.float64) for part in (tasks.batch.x, tasks.batch.y, tasks.batch.x_query))
    assert queries.shape == (40, 4, 3)
    sums = np.einsum("bnd,bn->bd", x, y)
    found = responses_on(tasks, defined(tasks.predictors))
    ratio = found["gd"].predictions / np.einsum("bd,bqd->bq", sums, queries)
    np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-4)  # float32; one step size for all tasks
    expected = ratio[0, 0] * np.repeat(sums[:, None], 4, axis=1)
    np.testing.assert_allclose(found["gd"].sensitivities, expected, atol=1e-5)
    scatter = np.einsum("bnd,bne->bde", x, x) + 0.05**2 * np.eye(3)
    weights = np.linalg.solve(scatter, sums[..., None])[..., 0]
    np.testing.assert_allclose(found["ridge"].predictions, np.einsum("bd,bqd->bq", weights, queries), atol=1e-3)
    assert not found["zero"].predictions.any()


def test_steps_of_deep_stacks_have_rates_that_nobody_waits_for() -> None:
    config = config_of("linear", num_layers=4)
    reasons = why_not(config)
    assert "its rates take minutes to fit" in reasons["gd_plus_plus"]
    assert reasons["gd"] == ""
    assert why_not(config_of("linear", num_layers=2))["gd_plus_plus"] == ""


def test_a_decoder_is_compared_with_what_its_own_analysis_compares_it_with() -> None:
    """Ratios of losses, the loss itself and Delta are those of `analysis.task_diversity`, on the same sequences."""
    values, own = values_of(matrix(DECODER)), measure_test_set(DECODER)
    assert values["tf", "", "loss"] == pytest.approx(own["id_tf_loss"])
    for name in ("ridge", "dmmse", "zero"):
        assert values[name, "", "loss"] == pytest.approx(own[f"id_{name}_loss"])
        assert values["tf", name, "loss_ratio"] == pytest.approx(own["id_tf_loss"] / own[f"id_{name}_loss"])
    assert values["dmmse", "dmmse", "cosine"] == pytest.approx(1)
    assert np.isnan(values["tf", "zero", "cosine"])


def test_the_sensitivity_of_a_sequence_is_that_of_its_last_prediction() -> None:
    """Of ridge regression it is the posterior mean of the weights after all pairs but the last."""
    tasks = compared(DECODER, ("ridge",))
    found = responses_on(tasks, defined(tasks.predictors))["ridge"]
    x, y = (np.asarray(part, np.float64)[:, :-1] for part in (tasks.batch.x, tasks.batch.y))
    data = DECODER.config.data
    scatter = np.einsum("bnd,bne->bde", x, x) + data.noise_std**2 / data.weight_scale**2 * np.eye(data.dim)
    weights = np.linalg.solve(scatter, np.einsum("bnd,bn->bd", x, y)[..., None])[..., 0]
    np.testing.assert_allclose(found.sensitivities, weights, atol=1e-4)
    assert found.predictions.shape == (40, data.num_pairs)


def test_parts_of_the_sequences_give_what_all_of_them_give(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = matrix(DECODER)
    monkeypatch.setattr("icl_lab.analysis.algorithm_distance.CHUNK", 16)
    parts = values_of(matrix(DECODER))
    for cell, value in values_of(whole).items():
        assert parts[cell] == pytest.approx(value, rel=1e-5, nan_ok=True)


CASES: dict[str, dict[str, Any]] = {
    "sine": {"num_pairs": 6, "d_model": 6, "mlp_width": 8},
    "lsa": {"dim": 3, "num_pairs": 6, "num_queries": 4},
    "tiny": {"num_tasks": 4},
    "languages": {},
}


@pytest.mark.parametrize("model", CASES)
def test_a_plugins_baseline_is_one_of_any_family(model: str, registered: Any) -> None:
    """It is given the run's config, and gives a prediction for each label; what is asked for is known before."""

    def mean_label(batch: Any, config: Any) -> Any:
        assert config.family
        mean = jnp.mean(batch.y, axis=1)
        return jnp.broadcast_to(mean.reshape(-1, *[1] * (batch.y_query.ndim - 1)), batch.y_query.shape)

    registered(BASELINES, "mean_label", Baseline(compared=NAMED, predict=mean_label))
    config = config_of(model, **CASES[model])
    assert "mean_label" in why_not(config)
    assert [*plugins_baselines(config)] == ["mean_label"]
    if model != "languages":  # whose codes come with a directory
        tasks = compared(untrained(model, **CASES[model]))
        assert {*tasks.predictors} == {*why_not(config)}
        shape = responses_on(tasks, {"mean_label": tasks.predictors["mean_label"]})["mean_label"].predictions.shape
        assert shape == tasks.targets.shape


def test_the_command_takes_a_run_of_another_family(decoder_run: Path, ran: Ran, tmp_path: Path) -> None:
    """Its table has the decoder, the exact predictors and the pairs of them; a figure is drawn."""
    run = copied(decoder_run, tmp_path / "run")
    done = ran("analysis.algorithm_distance", "--run", run)
    assert "algorithm dmmse" in done.out
    table = read_csv(run / layout.ALGORITHM_DISTANCE, ("value",), ("step", "row", "column", "measure"))
    assert {*table["row"]} == {"tf", "ridge", "dmmse", "zero"}
    own = read_json(run / layout.SUMMARY)["headline"]
    found = table[(table["row"] == "tf") & (table["measure"] == "loss")]["value"].iloc[0]
    assert found == pytest.approx(own["id_tf_loss"])
    assert layout.figure(run, "algorithm_distance").exists()


def test_what_is_not_compared_with_is_said() -> None:
    with pytest.raises(ConfigError, match="gd is not one of the predictors that these runs are compared with"):
        compared(DECODER, ("gd",))
    assert not has_queries(config_of("autoencoder", test_tasks=32))
    assert why_not(config_of("autoencoder", test_tasks=32)) == {}


def test_a_pool_of_any_task_has_no_pool_to_know_and_without_noise_nothing_is_weighed() -> None:
    assert set(why_not(config_of("tiny"))) >= {"ridge", "zero"}
    assert "dmmse" not in why_not(config_of("tiny", num_tasks=float("inf")))
    assert "noise_std is 0" in why_not(config_of("tiny", num_tasks=4, noise_std=0.0))["dmmse"]


def test_a_predictor_that_is_defined_is_a_partial() -> None:
    assert all(isinstance(predict, Partial | str) for predict in compared(DECODER).predictors.values())
