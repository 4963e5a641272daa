"""A run that starts from given parameters: they are its step 0, all else begins anew, and their source is in its id."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from safetensors.numpy import save_file

from icl_lab.families.regression.task import first_training_context, make_model
from icl_lab.lab.configs.identity import config_id
from icl_lab.runners.loop import run_one
from icl_lab.src.checks import ConfigError
from icl_lab.store import StoreError, checkpoint, layout, rundir, snapshots
from icl_lab.store.params import flattened, read_params
from icl_lab.store.weights import read_given, weights_of
from tests.runners.test_extend import SHORT
from tests.runners.tiny import results

FINE_TUNED = replace(SHORT, training=replace(SHORT.training, steps=12), eval_every=5)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of 25 steps with snapshots. Read only."""
    run = tmp_path_factory.mktemp("source") / "lsa1"
    assert run_one(SHORT, run) == "done"
    return run


@pytest.fixture(scope="module")
def tuned(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of 12 steps from the parameters that the other ended with. Read only."""
    run = tmp_path_factory.mktemp("tuned") / "lsa1"
    assert run_one(FINE_TUNED, run, init_from=source) == "done"
    return run


def assert_equal(found: Any, expected: Any) -> None:
    found, expected = flattened(found), flattened(expected)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)


def test_its_step_0_has_the_parameters_of_the_source_and_its_losses(tuned: Path, source: Path) -> None:
    """On the same evaluation batch, so the first record has the loss of the source's last one."""
    assert_equal(dict(snapshots.read(tuned))[0], read_params(source))
    first, last = (
        [json.loads(line) for line in (run / layout.METRICS).read_text().splitlines()][at]
        for run, at in ((tuned, 0), (source, -1))
    )
    assert (first["step"], first["eval_loss"]) == (0, last["eval_loss"])


def test_one_step_is_that_of_fresh_moments_on_its_own_batch(tuned: Path, source: Path, tmp_path: Path) -> None:
    """Of plain gradient descent, w - lr g, with the gradient at the source on the batch of the folded key."""
    config = replace(SHORT, training=replace(SHORT.training, steps=1, optimizer="sgd", lr=0.5, grad_clip=0.0))
    run_one(config, tmp_path / "lsa1", init_from=source)
    named = rundir.read_config(tmp_path / "lsa1")
    batch = first_training_context(named).batch
    fresh = first_training_context(replace(named, init_from="")).batch
    assert not np.allclose(batch.x, fresh.x)
    params, after = read_params(source), read_params(tmp_path / "lsa1")
    gradient = flattened(jax.grad(make_model(named).loss)(params, batch))
    for name, value in flattened(after).items():
        expected = flattened(params)[name] - 0.5 * np.asarray(gradient[name])
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-7)  # another program's rounding in float32


def test_the_source_is_in_the_id_and_in_meta_json(tuned: Path, source: Path) -> None:
    config, meta = rundir.read_config(tuned), rundir.read_meta(tuned)
    assert config.init_from.startswith(f"{config_id(SHORT)}@25:")
    assert meta["config_id"] == config_id(config) != config_id(FINE_TUNED)
    assert meta["init_from"] == {
        "source": config.init_from,
        "run": str(source),
        "step": 25,
        "config_id": config_id(SHORT),
        "model": "lsa1",
    }
    assert_equal(read_given(tuned), read_params(source))


def test_a_snapshot_is_another_source(source: Path) -> None:
    weights = weights_of(f"{source}@10")
    assert_equal(weights.params, dict(snapshots.read(source))[10])
    assert weights.source.startswith(f"{config_id(SHORT)}@10:")
    with pytest.raises(StoreError, match=r"no snapshot of step 7: .* of steps 0, 10, 20, 25"):
        weights_of(f"{source}@7")
    with pytest.raises(ConfigError, match="'seven' is not a step"):
        weights_of(f"{source}@seven")


def test_own_arrays_and_a_file_of_them_are_one_source(source: Path, tuned: Path, tmp_path: Path) -> None:
    params = read_params(source)
    save_file({name: np.asarray(value) for name, value in flattened(params).items()}, tmp_path / "own.safetensors")
    ways = [weights_of(given) for given in (params, flattened(params), tmp_path / "own.safetensors")]
    assert len({weights.source for weights in ways}) == 1
    assert ways[0].source.startswith("weights:")
    other = {module: {name: value + 1 for name, value in leaves.items()} for module, leaves in params.items()}
    assert weights_of(other).source != ways[0].source
    run_one(FINE_TUNED, tmp_path / "lsa1", init_from=params)
    assert_equal(dict(snapshots.read(tmp_path / "lsa1"))[0], params)
    tuned_metrics = (tuned / layout.METRICS).read_text()
    assert (tmp_path / "lsa1" / layout.METRICS).read_text() != tuned_metrics  # another source, so other batches


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"a/w": [1.0, np.nan]}, "a/w of arrays has values that are not finite"),
        ({"a/w": ["x"]}, "a/w of arrays is of type"),
        ({"w": [1.0]}, "arrays has 'w'; parameters are named module/name"),
        ({}, "arrays has no parameters"),
    ],
)
def test_what_is_no_parameters_is_refused(given: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        weights_of(given)


def test_other_shapes_are_listed_before_anything_is_written(source: Path, tmp_path: Path) -> None:
    wider = replace(FINE_TUNED, data=replace(FINE_TUNED.data, dim=3))
    with pytest.raises(ConfigError, match=r"do not fit the model lsa1: .*query is \[3, 1, 3\], not \[4, 1, 4\]"):
        run_one(wider, tmp_path / "lsa1", init_from=source)
    params = read_params(source)
    module = next(iter(params))
    with pytest.raises(ConfigError, match=r"is not there.*other/w is unknown"):
        run_one(FINE_TUNED, tmp_path / "lsa1", init_from={**params, module: {}, "other": {"w": np.ones(2)}})
    assert not (tmp_path / "lsa1" / layout.CONFIG).exists()


def test_a_run_whose_parameters_are_not_given_does_not_begin(source: Path, tmp_path: Path) -> None:
    named = replace(FINE_TUNED, init_from=weights_of(source).source)
    with pytest.raises(StoreError, match="which --init_from must name"):
        run_one(named, tmp_path / "lsa1")


def test_it_is_resumed_and_extended_like_any_other(
    tuned: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill before the first checkpoint, and a shorter run of the same source beside it."""
    shorter = replace(FINE_TUNED, training=replace(FINE_TUNED.training, steps=5))
    run_one(shorter, tmp_path / "shorter", init_from=source)
    run = tmp_path / "lsa1"
    with monkeypatch.context() as patch:

        def killed(*_: Any) -> None:
            raise KeyboardInterrupt

        patch.setattr(checkpoint, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            run_one(FINE_TUNED, run, init_from=source)
    run_one(FINE_TUNED, run, init_from=source)
    assert rundir.read_meta(run)["extends"]["step"] == 5
    assert results(run) == results(tuned)


def test_a_layer_that_is_not_trained_stays_to_the_bit(source: Path, tmp_path: Path) -> None:
    frozen = replace(FINE_TUNED, training=replace(FINE_TUNED.training, train_only="value|projection"))
    run_one(frozen, tmp_path / "lsa1", init_from=source)
    before, after = flattened(read_params(source)), flattened(read_params(tmp_path / "lsa1"))
    same = {name.rpartition("/")[2] for name, value in before.items() if (after[name] == value).all()}
    assert same == {"query", "key"}


def test_what_trains_nothing_or_all_is_a_sentence_before_anything_is_written(tmp_path: Path) -> None:
    for pattern, said in (("nothing", "matches none"), ("layer_0", "matches all")):
        config = replace(FINE_TUNED, training=replace(FINE_TUNED.training, train_only=pattern))
        with pytest.raises(ConfigError, match=said):
            run_one(config, tmp_path / "lsa1")
        assert not (tmp_path / "lsa1" / layout.CONFIG).exists()
