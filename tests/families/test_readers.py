"""Sequences of tokens, of a folder that is no part of the tree: own batches, shared arrays and required runs."""

import csv
import hashlib
import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab import analysis, store
from icl_lab.families.shared_arrays import shared_with
from icl_lab.lab.configs.identity import config_id, with_dependencies
from icl_lab.runners.static_shape import static_shape
from icl_lab.src.checks import ConfigError
from icl_lab.store import checkpoint, layout, rundir
from icl_lab.store.metrics import read_metrics
from icl_lab.store.params import flattened, write_params
from icl_lab.store.readers import StoreError, read_csv, read_safetensors
from tests.doors import snapshot
from tests.families.small import (
    KEPT,
    PACK,
    READERS,
    RECORDED,
    RUN,
    SIZES,
    SWEEP,
    TASKS,
    killed_and_resumed,
    trained,
)
from tests.runners.tiny import INTERRUPTED, Workshop, copied, results

PLUGIN = ["--plugin", READERS]
VOCAB, LENGTH, CHANNELS = 6, 16, 8

# another matrix of the same seed, as another version of NumPy might make it
OTHER = """
import numpy as np
from readers import config
config.embedding = lambda of: np.ones((of.data.vocab, of.model.channels), np.float32)
"""


@pytest.fixture
def reader(workshop: Workshop) -> Path:
    """A run of the first model. Read only."""
    return trained(workshop, "reader", READERS, "reader")


@pytest.fixture
def boosted(workshop: Workshop, reader: Path) -> Path:
    """A run of the model that builds on it, beside it. Read only."""
    return trained(workshop, "boosted_reader", READERS, "boosted")


@pytest.fixture
def other(tmp_path: Path) -> list[object]:
    """Flags with which the shared array is another."""
    (tmp_path / "other.py").write_text(OTHER)
    return [*PLUGIN, "--plugin", tmp_path / "other.py"]


def softmax(values: np.ndarray) -> np.ndarray:
    powers = np.exp(values - values.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def logits_of(params: Any, tokens: np.ndarray) -> np.ndarray:
    """Causal attention on the frozen embedding, in float64 and apart from the library."""
    matrix = np.random.default_rng(0).standard_normal((VOCAB, CHANNELS), np.float32)
    rows = matrix[tokens].astype(float) + params["~"]["place"]
    query, key, value = (rows @ params[name]["w"] + params[name]["b"] for name in ("query", "key", "value"))
    scores = query @ key.swapaxes(1, 2) / math.sqrt(CHANNELS)
    scores[:, np.triu(np.ones((LENGTH, LENGTH), bool), 1)] = -np.inf
    seen = np.concatenate([rows, softmax(scores) @ value], axis=2)
    return np.tanh(seen) @ params["read_out"]["w"] + params["read_out"]["b"]


def losses_of(batch: Any, *models: Any) -> np.ndarray:
    """The cross-entropies of sequences, each the mean over its own tokens, of a model or of the sum of several."""
    p = softmax(sum(logits_of(params, batch.tokens) for params in models))
    chosen = np.take_along_axis(p, batch.targets[..., None], axis=2)[..., 0]
    return np.array([-np.log(row[there]).mean() for row, there in zip(chosen, batch.mask, strict=True)])


# One run


def test_its_batch_is_its_own(reader: Path, both: None) -> None:
    """Tokens are whole numbers, the targets are the tokens one later, and every sequence has its own length."""
    config, _, batch = store.load(reader)
    assert batch._fields == ("tokens", "targets", "mask")
    assert [part.dtype.name for part in batch] == ["int32", "int32", "bool"]
    assert {part.shape for part in batch} == {(TASKS, LENGTH)}
    np.testing.assert_array_equal(batch.tokens[:, 1:], batch.targets[:, :-1])
    assert {*np.unique(batch.tokens)} == {*range(VOCAB)}
    assert (np.diff(batch.mask.astype(int), axis=1) <= 0).all()
    assert len({*batch.mask.sum(1)}) > 5
    assert config.eval_tasks == TASKS


def test_targets_follow_a_chain(both: None) -> None:
    """Over many sequences of one chain, the share of each transition is its probability."""
    import jax
    from readers import config, task

    long = config.ReadersConfig(data=config.ChainData(vocab=3, length=20_000))
    chains = task.sample(jax.random.key(0), long, 1)
    pairs = Counter(zip(chains.batch.tokens[0].tolist(), chains.batch.targets[0].tolist(), strict=True))
    for state in range(3):
        total = sum(pairs[state, then] for then in range(3))
        for then in range(3):
            p = float(chains.transitions[0, state, then])
            assert abs(pairs[state, then] / total - p) < 4 * math.sqrt(p * (1 - p) / total)


def test_its_numbers_are_those_of_a_forward_pass_by_hand(reader: Path, both: None) -> None:
    _, params, batch = store.load(reader)
    records = read_metrics(reader)
    assert tuple(record["step"] for record in records) == RECORDED
    assert records[0]["eval_loss"] == pytest.approx(math.log(VOCAB), rel=1e-6)  # its read-out begins at 0
    assert records[-1]["eval_loss"] == pytest.approx(losses_of(batch, params).mean(), rel=1e-5)
    assert abs(records[-1]["eval_loss"] - math.log(VOCAB)) > 1e-3


@pytest.mark.slow
def test_the_common_analysis_measures_both_models(
    reader: Path, boosted: Path, workshop: Workshop, tmp_path: Path, both: None
) -> None:
    base, own = copied(reader, tmp_path / "reader"), copied(boosted, tmp_path / "boosted")
    (_, first, batch), (_, second, _) = store.load(base), store.load(own)
    for run, models in ((base, [first]), (own, [first, second])):
        done = workshop.run("analysis.losses", "--run", run, *PLUGIN)
        assert done.returncode == 0, done.stderr
        last = read_csv(run / layout.LOSSES, ["step", "loss", "loss_se"]).iloc[-1]
        expected = losses_of(batch, *models)
        assert last["loss"] == pytest.approx(expected.mean(), rel=1e-5)
        assert last["loss_se"] == pytest.approx(expected.std(ddof=1) / math.sqrt(TASKS), rel=1e-4)


@pytest.mark.slow
def test_it_is_loaded_with_its_checkpoints(reader: Path, boosted: Path, both: None) -> None:
    base, own = analysis.load_run(reader), analysis.load_run(boosted)
    expected = logits_of(base.params, base.batch.tokens) + logits_of(own.params, own.batch.tokens)
    np.testing.assert_allclose(own.predict(own.batch), expected, atol=1e-4)
    moments = dict(own.checkpoints())
    assert tuple(moments) == RECORDED
    np.testing.assert_allclose(moments[0].predict(own.batch), base.predict(base.batch), atol=1e-6)
    assert layout.figure(boosted, "loss").stat().st_size > 1000


@pytest.mark.slow
def test_killed_it_ends_with_the_same_bytes(boosted: Path, reader: Path, workshop: Workshop, tmp_path: Path) -> None:
    copied(reader, tmp_path / "reader")
    found = killed_and_resumed(workshop, tmp_path / "run", "boosted_reader", *SIZES, KEPT, *PLUGIN)
    assert found == results(boosted)


# The shared array


@pytest.mark.slow
def test_a_pack_holds_the_shared_arrays_once(boosted: Path, workshop: Workshop, tmp_path: Path, reader: Path) -> None:
    """Three seeds on one base: their states have an axis of runs and the shared arrays none. Bits are those alone."""
    copied(reader, tmp_path / "reader")
    values = [{"data_seed": seed, "init_seed": seed} for seed in range(3)]
    done = workshop.python("-c", PACK, boosted, tmp_path, READERS, json.dumps(values))
    assert done.returncode == 0, done.stderr
    together, alone = ([results(tmp_path / f"{how}_{i}") for i in range(3)] for how in ("together", "alone"))
    assert together == alone
    assert len({files[layout.PARAMS] for files in together}) == 3
    found = json.loads(done.stdout)
    frozen = {f"base.{name}": list(array.shape) for name, array in flattened(params_of(reader)).items()}
    assert found["shared"] == {"embedding": [VOCAB, CHANNELS], **frozen}
    assert {shape[0] for shape in found["state"]} == {3}
    assert found["arguments"].count([VOCAB, CHANNELS]) == 1
    assert [3, VOCAB, CHANNELS] not in found["arguments"]


def params_of(run: Path) -> dict[str, dict[str, np.ndarray]]:
    from icl_lab.store.params import read_params

    return read_params(run)


@pytest.mark.slow
def test_checkpoints_hold_no_shared_array(reader: Path, workshop: Workshop, tmp_path: Path) -> None:
    copied(reader, tmp_path / "reader")
    line = [RUN, "boosted_reader", *SIZES, *PLUGIN, "--checkpoint_seconds", "0", "--out", tmp_path / "run", KEPT]
    stopped = workshop.run(*line, INTERRUPT="after:step_*.safetensors:SIGTERM", PYTHONPATH=INTERRUPTED)
    assert stopped.returncode == 143, stopped.stderr
    arrays, _ = read_safetensors(layout.checkpoint(tmp_path / "run", checkpoint.steps(tmp_path / "run")[-1]))
    matrix, params = np.random.default_rng(0).standard_normal((VOCAB, CHANNELS), np.float32), params_of(reader)
    kept = [matrix, *(array for array in flattened(params).values() if array.any())]
    assert not [name for name in arrays if "embedding" in name or "base." in name]
    assert not [1 for array in arrays.values() for other in kept if np.array_equal(array, other)]


def test_the_hash_of_the_array_is_in_the_id_and_in_the_static_shape(both: None) -> None:
    """SHA-256 of type and shape in JSON, then the bytes."""
    from readers.config import ReaderModel, ReadersConfig

    config = with_dependencies(ReadersConfig())
    matrix = np.random.default_rng(0).standard_normal((VOCAB, CHANNELS), np.float32)
    digest = hashlib.sha256(b'["<f4", [6, 8]]' + matrix.tobytes()).hexdigest()[:16]
    assert config.shared == (f"embedding:{digest}",)
    changed = replace(config, shared=("embedding:0123456789abcdef",))
    assert config_id(changed) != config_id(config)
    assert static_shape(changed) != static_shape(config)
    assert static_shape(replace(config, data_seed=7)) == static_shape(config)
    assert with_dependencies(ReadersConfig(model=ReaderModel(embedding_seed=1))).shared != config.shared
    assert with_dependencies(ReadersConfig(model=ReaderModel(boosted=True))).requires == (config_id(config),)


def test_an_array_that_changed_is_refused(
    reader: Path, workshop: Workshop, tmp_path: Path, other: list[object]
) -> None:
    run = copied(reader, tmp_path / "reader")
    before = snapshot(run)
    said = {
        ("analysis.losses", "--run", run): "the shared array embedding has changed since the config of reader was made",
        (RUN, "reader", *SIZES, KEPT, "--out", run): f"the shared array embedding has changed since {run} began;",
    }
    for words, sentence in said.items():
        done = workshop.run(*words, *other)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert done.stderr.startswith(f"error: {sentence}")
    after = snapshot(run)
    after.pop(layout.LOCK, None)
    assert after == {name: value for name, value in before.items() if name != layout.LOCK}


# Required runs


def test_one_that_is_missing_is_said_before_anything_begins(workshop: Workshop, tmp_path: Path) -> None:
    done = workshop.run(RUN, "boosted_reader", *SIZES, *PLUGIN, "--out", tmp_path / "runs" / "own")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "runs/own builds on a run of reader, seed 0 (id " in done.stderr
    assert f"which is not in {tmp_path / 'runs'}; train it first" in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_so_is_one_that_is_unfinished(workshop: Workshop, tmp_path: Path) -> None:
    line = [RUN, "reader", *SIZES, *PLUGIN, "--out", tmp_path / "base", "--checkpoint_seconds", "0"]
    stopped = workshop.run(*line, INTERRUPT="after:step_*.safetensors:SIGTERM", PYTHONPATH=INTERRUPTED)
    assert stopped.returncode == 143, stopped.stderr
    before = snapshot(tmp_path)
    done = workshop.run(RUN, "boosted_reader", *SIZES, *PLUGIN, "--out", tmp_path / "own")
    assert (done.returncode, done.stdout) == (2, "")
    base = f"{tmp_path / 'own'} builds on a run of reader, seed 0, {tmp_path / 'base'}, which is stopped"
    assert done.stderr == f"error: {base}; let it finish first\n"
    assert snapshot(tmp_path) == before


def test_one_that_was_trained_anew_is_not_what_a_run_began_with(
    reader: Path, boosted: Path, tmp_path: Path, both: None
) -> None:
    """Nor what any run of a pack did."""
    base, run = copied(reader, tmp_path / "reader"), copied(boosted, tmp_path / "boosted")
    fresh = copied(boosted, tmp_path / "fresh")
    config = rundir.read_config(run)
    params = params_of(base)
    assert set(shared_with(config, run, fresh)) == {"embedding", *(f"base.{name}" for name in flattened(params))}
    params["query"]["w"] = params["query"]["w"] + 1
    write_params(base, params, {})
    (fresh / layout.META).write_text("{}")  # as of a run that has not begun
    sentence = "boosted requires runs whose base.query/w has changed since it began"
    for runs in ((run,), (fresh, run)):
        with pytest.raises(StoreError, match=sentence):
            shared_with(config, *runs)
    with pytest.raises(StoreError, match=sentence):
        analysis.load_run(run)


def test_a_boosted_run_begins_where_its_base_ended(reader: Path, boosted: Path) -> None:
    """Its own read-out is 0 at the start, and the evaluation set is that of the base, which has its seed."""
    (first, *_), (*_, last) = read_metrics(boosted), read_metrics(reader)
    assert first["eval_loss"] == pytest.approx(last["eval_loss"], rel=1e-6)
    assert read_metrics(boosted)[-1]["eval_loss"] != first["eval_loss"]


def test_a_base_seed_is_refused_where_nothing_is_boosted(both: None) -> None:
    from readers.config import ReaderModel

    with pytest.raises(ConfigError, match="base_seed is 1, but the model is not a boosted one"):
        ReaderModel(base_seed=1)


@pytest.mark.slow
def test_a_sweep_trains_them_first(workshop: Workshop, tmp_path: Path) -> None:
    """Two dependents, planned alone; what they build on is a cell of the sweep, and no row of its table."""
    runs, out = tmp_path / "runs", tmp_path / "out.csv"
    words = [SWEEP, "boosted_reader", *SIZES, "--seeds", "0,1", *PLUGIN, "--executor", "process", "--runs_dir", runs]
    done = workshop.run(*words, "--out", out)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [*rows[0]] == (
        "exp model length channels base_seed seed test_loss status test_loss_se chain_loss results_version runs_dir "
        "bitwise"
    ).split()
    assert [(row["model"], row["seed"], row["status"]) for row in rows] == [
        ("boosted_reader", seed, "done") for seed in ("0", "1")
    ]
    (base,) = [run for run in runs.iterdir() if run.name.startswith("reader_")]
    *_, last = read_metrics(base)
    metas = {row["seed"]: rundir.read_meta(runs / row["exp"]) for row in rows}
    assert all(meta["start"] >= rundir.read_meta(base)["end"] for meta in metas.values())
    assert read_metrics(runs / rows[0]["exp"])[0]["eval_loss"] == pytest.approx(last["eval_loss"], rel=1e-6)
    for row in rows:
        headline = json.loads((runs / row["exp"] / layout.SUMMARY).read_text())["headline"]
        assert [float(row["test_loss"]), float(row["chain_loss"])] == [headline["loss"], headline["chain_loss"]]
        digest = metas[row["seed"]]["frozen"]["base.read_out/w"]
        weight = params_of(base)["read_out"]["w"]
        assert digest == hashlib.sha256(b'["<f4", [16, 6]]' + weight.tobytes()).hexdigest()[:16]
