"""`python -m analysis.developmental_metrics`: its table, figure and sentences, on short runs, and what a row holds."""

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file

from icl_lab.analysis import developmental_metrics
from icl_lab.analysis.loaded_run import LoadedRun, load_run
from icl_lab.baselines import bayes
from icl_lab.families.diversity.task import EvalSet, pool_sequences
from icl_lab.families.diversity.task import measured as family_metrics
from icl_lab.src.model import Model
from icl_lab.store import layout
from icl_lab.store.atomic import write_safetensors
from icl_lab.store.readers import read_json_lines
from tests.analysis.llc_runs import DECODER_SIZES, KEEPING, trained
from tests.doors import Refused, ran, refused
from tests.runners.tiny import Workshop, copied

__all__ = ["ran", "refused"]
COMMAND = "analysis.developmental_metrics"
STEPS = (0, 10, 20, 30, 40)


@pytest.fixture
def decoder(workshop: Workshop) -> Path:
    """A finished run of a small decoder. Read only."""
    sizes = [*DECODER_SIZES, KEEPING, "--config.log_records=0", "--config.d_model=16", "--config.mlp_width=16"]
    return workshop.finished("development_decoder", "runners.run_task_diversity", sizes=sizes)


@pytest.fixture
def lsa1(workshop: Workshop) -> Path:
    """A finished run of one linear layer. Read only."""
    return trained(workshop, "lsa1")


def table(run: Path) -> pd.DataFrame:
    """developmental_metrics.csv."""
    return pd.read_csv(run / layout.DEVELOPMENTAL_METRICS)


@pytest.mark.slow
def test_a_decoder_has_all_parts_at_every_checkpoint(workshop: Workshop, decoder: Path, tmp_path: Path) -> None:
    run = copied(decoder, tmp_path / "run")
    done = workshop.run(COMMAND, "--run", run, "--hessian", "--probes", 3)
    assert done.returncode == 0, done.stderr
    rows = table(run)
    assert tuple(rows["step"]) == STEPS
    assert rows.notna().all(axis=None)
    records = {record["step"]: record for record in read_json_lines(run / layout.METRICS)}
    own = [records[step] for step in STEPS]
    np.testing.assert_allclose(rows["loss"], [record["eval_loss"] for record in own], rtol=1e-5)
    np.testing.assert_allclose(rows["id_mse_noisy"], 2 * rows["loss"], rtol=1e-5)
    for prefix in ("id", "ood"):
        np.testing.assert_allclose(
            rows[f"{prefix}_mse_noiseless"] / 4, [record[f"eval_{prefix}_loss"] for record in own], rtol=1e-5
        )
        for name in ("delta_ridge", "delta_dmmse"):
            np.testing.assert_allclose(
                rows[f"{prefix}_{name}"], [record[f"eval_{prefix}_{name}"] for record in own], rtol=1e-5
            )
    gained = rows["id_mse_noisy_1"] - rows["id_mse_noisy_6"]
    np.testing.assert_allclose(rows["id_icl_1_k_text"], gained, atol=1e-9)
    stored = load_file(run / layout.SNAPSHOTS)
    norms = np.sqrt(sum((leaf.astype(float) ** 2).reshape(5, -1).sum(1) for n, leaf in stored.items() if n != "step"))
    np.testing.assert_allclose(rows["weight_norm"], norms, rtol=1e-6)
    np.testing.assert_allclose(rows["read_out_norm_gamma_mean"], stored["read_out/norm/scale"].mean(axis=1), rtol=1e-5)
    assert {"layer_1_head_3_previous", "attention_inputs", "hessian_trace_se"} <= set(rows)
    assert "layer_1_head_0_entropy_y" not in rows  # nothing reads the labels' rows of the last layer
    assert "not measured           nothing\n" in done.stdout
    assert (run / layout.DEVELOPMENTAL_METRICS_FIGURE).read_bytes().startswith(b"\x89PNG")


def test_linear_attention_has_what_any_family_has(workshop: Workshop, lsa1: Path, tmp_path: Path) -> None:
    run = copied(lsa1, tmp_path / "run")
    done = workshop.run(COMMAND, "--run", run)
    assert done.returncode == 0, done.stderr
    rows = table(run)
    assert list(rows) == ["step", "loss", "loss_se", "weight_norm"]
    records = [record["eval_loss"] for record in read_json_lines(run / layout.METRICS)]
    np.testing.assert_allclose(rows["loss"], records, rtol=1e-5)
    for sentence in (
        "no Hessian: --hessian measures it",
        "no losses by position: predictions of the family regression have no positions",
        "no layer norms: the model has none",
        "no attention patterns: its weights are no distribution",
    ):
        assert sentence in done.stdout
    assert (run / layout.DEVELOPMENTAL_METRICS_FIGURE).exists()


@pytest.mark.slow
def test_softmax_layers_of_a_stack_have_patterns_and_linear_ones_none(workshop: Workshop) -> None:
    run = workshop.finished("development_twolayer", "runners.run_softmax_copy", KEEPING)
    rows = developmental_metrics.measure_checkpoints(load_run(run), False, 2, 0)
    patterns = {name for name in rows[-1] if name.startswith("layer_")}
    assert {"layer_0_head_0_entropy", "layer_0_head_0_inputs", "layer_0_head_0_self"} <= patterns
    assert not any(name.startswith("layer_1") for name in patterns)
    loaded = load_run(run)
    first = loaded.model.trace(loaded.params, loaded.batch).attention[0]
    expected = np.mean([np.diagonal(np.asarray(own)[0]).mean() for own in first])
    assert rows[-1]["layer_0_head_0_self"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
def test_ridge_in_the_models_place_has_no_distance_to_ridge(decoder: Path) -> None:
    loaded = load_run(decoder)
    penalty = loaded.config.data.noise_std**2
    row = developmental_metrics.measure_checkpoints(
        standing_in(loaded, lambda _, batch: bayes.ridge(batch, penalty)), False, 2, 0
    )[0]
    assert row["id_delta_ridge"] < 1e-10
    assert row["ood_delta_ridge"] < 1e-10
    assert row["ood_icl_1_k_text"] > 1  # of 4 that labels have: learning from the context is positive
    batch = pool_sequences(loaded.config)
    values = family_metrics(np.asarray(bayes.ridge(batch, penalty)), EvalSet(batch, np.asarray(batch.y), {}), 1)
    assert row["id_mse_noisy"] == pytest.approx(values["loss"], rel=1e-5)
    assert row["gain_10_icl_over_g_text"] == pytest.approx(10 * row["gain_5_icl_over_g_text"] / 5, rel=0.2)


@pytest.mark.slow
def test_one_program_serves_all_checkpoints(decoder: Path) -> None:
    traced: Counter[str] = Counter()
    loaded = load_run(decoder)

    def counted(name: str, function: Any) -> Any:
        def count(*args: Any) -> Any:
            traced[name] += 1
            return function(*args)

        return count

    kinds = ("predict", "losses", "trace")
    model = loaded.model._replace(**{name: counted(name, getattr(loaded.model, name)) for name in kinds})
    rows = developmental_metrics.measure_checkpoints(replace(loaded, model=model), True, 2, 0)
    assert len(rows) == len(STEPS)
    assert traced == {"predict": 1, "losses": 3, "trace": 2}  # losses: mean, Hutchinson, Lanczos; trace: kinds, maps


@pytest.mark.slow
def test_the_same_seed_gives_the_same_trace_and_another_another(decoder: Path) -> None:
    loaded = load_run(decoder)
    traces = [
        [row["hessian_trace"] for row in developmental_metrics.measure_checkpoints(loaded, True, 2, s)]
        for s in (0, 0, 1)
    ]
    assert traces[0] == traces[1] != traces[2]


def standing_in(loaded: LoadedRun, predict: Any) -> LoadedRun:
    """A run whose model predicts as a function does, and shows nothing else."""
    own = loaded.model
    return replace(loaded, model=Model(own.init, jax.tree_util.Partial(predict), own.losses))


@pytest.mark.slow
def test_a_model_without_hooks_says_so(decoder: Path) -> None:
    loaded = load_run(decoder)
    hidden = standing_in(loaded, loaded.model.predict)
    missing = [sentence for part in developmental_metrics.parts_of(hidden, False, 2, 0) for sentence in part.missing]
    assert "no attention patterns: the model shows none" in missing
    assert not any(
        name.startswith("layer_0_head") for name in developmental_metrics.measure_checkpoints(hidden, False, 2, 0)[0]
    )


@pytest.mark.slow
def test_an_infinite_pool_has_no_distance_to_dmmse(decoder: Path) -> None:
    loaded = load_run(decoder)
    data = replace(loaded.config.data, num_tasks=math.inf)
    row = developmental_metrics.measure_checkpoints(
        replace(loaded, config=replace(loaded.config, data=data)), False, 2, 0
    )[0]
    assert "id_delta_dmmse" not in row
    assert "id_delta_ridge" in row


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--hessian", "--probes", 0], "argument --probes: '0' is not a whole number from 2 to 10000"),
        (["--hessian", "--seed", -1], "argument --seed: '-1' is not a whole number from 0 to 2^32 - 1"),
        (["--probes", 9], "--probes ask for the Hessian's trace; add --hessian"),
    ],
)
def test_bad_input_is_one_sentence(
    flags: list[object], sentence: str, refused: Refused, lsa1: Path, tmp_path: Path
) -> None:
    run = copied(lsa1, tmp_path / "run")
    assert sentence in refused(COMMAND, "--run", run, *flags)


def test_a_run_without_snapshots_or_with_another_models_is_refused(
    lsa1_run: Path, lsa1: Path, refused: Refused, tmp_path: Path
) -> None:
    bare, other = copied(lsa1_run, tmp_path / "bare"), copied(lsa1, tmp_path / "other")
    assert "has no snapshots of its training; --config.snapshots=true keeps them" in refused(COMMAND, "--run", bare)
    arrays = load_file(other / layout.SNAPSHOTS)
    write_safetensors(other / layout.SNAPSHOTS, {"step": arrays["step"], "read_out": arrays["step"][:, None]}, {})
    assert "does not hold the arrays of this run's config" in refused(COMMAND, "--run", other)
