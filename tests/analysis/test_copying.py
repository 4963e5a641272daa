"""Does the first layer copy? Layers made by hand, for which the answer is known."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis.compared_run import ComparedRun
from analysis.measures.copying import copying, first_layer_gradients, own_next_other
from configs.regression import RegressionConfig
from families.regression import GradientDescent, evaluation_context, make_model
from src.checks import ConfigError
from src.config import DataConfig, ModelConfig
from store import layout
from tests.runners.tiny import Workshop, copied

DIM, PAIRS, CODE = 4, 6, 10
WIDTH = DIM + 1 + CODE
MODEL = ModelConfig(tokens="interleaved", attention=("softmax", "linear"), num_layers=2, pos_enc_size=CODE)
CONFIG = RegressionConfig(data=DataConfig(dim=DIM, num_pairs=PAIRS), model=MODEL, eval_tasks=8)


def to_the_code_of_the_next_row() -> np.ndarray:
    """The matrix that turns the code of row r, (sin r f_i, cos r f_i), into that of row r + 1."""
    half = CODE // 2
    matrix = np.zeros((CODE, CODE))
    for i in range(half):
        angle = 1 / 10_000 ** (2 * i / CODE)
        matrix[i, i] = matrix[half + i, half + i] = math.cos(angle)
        matrix[i, half + i], matrix[half + i, i] = math.sin(angle), -math.sin(angle)
    return matrix


def first_layer(sharpness: float, data: float) -> dict[str, np.ndarray]:
    """Every row looks at the row after it, by its code, and adds `data` times that row's data channels to its own."""
    codes, channels = np.zeros((WIDTH, WIDTH)), np.zeros((WIDTH, WIDTH))
    codes[DIM + 1 :, DIM + 1 :] = np.eye(CODE)
    channels[: DIM + 1, : DIM + 1] = np.eye(DIM + 1)
    shift = np.zeros((WIDTH, WIDTH))
    shift[DIM + 1 :, DIM + 1 :] = to_the_code_of_the_next_row().T
    weights = {"query": sharpness * shift, "key": codes, "value": data * channels}
    return {name: w[:, None].astype(np.float32) for name, w in weights.items()} | {
        "projection": np.eye(WIDTH, dtype=np.float32)[None]
    }


def subject(config: RegressionConfig, sharpness: float, data: float) -> ComparedRun:
    params = {"layer_0/attention": first_layer(sharpness, data), "layer_1/attention": first_layer(0, 0)}
    batch = evaluation_context(config).batch
    return ComparedRun(Path("run"), config, make_model(config), params, batch, GradientDescent(1, 0.5, "given"))


def test_a_layer_that_copies_is_seen_to_copy() -> None:
    """Row k holds e_k + e_(k+1): the sum of its channels has gradient 1 in every data channel of both."""
    found = copying(subject(CONFIG, sharpness=1000, data=1))
    for version in ("averaged_before_norm", "per_task"):
        values = found[version]
        np.testing.assert_allclose([values["own"], values["next"]], math.sqrt(DIM + 1), rtol=1e-3)
        assert values["other"] < 1e-3
        assert values["next_over_other"] > 1000
    assert found["tasks"] == 8


def test_a_layer_that_does_nothing_depends_on_itself_alone() -> None:
    found = copying(subject(CONFIG, sharpness=1000, data=0))
    for version in ("averaged_before_norm", "per_task"):
        values = found[version]
        np.testing.assert_allclose(values["own"], math.sqrt(DIM + 1), rtol=1e-6)
        assert (values["next"], values["other"]) == (0, 0)


def test_a_layer_that_looks_everywhere_alike_has_no_favourite() -> None:
    """Each of 2N rows has weight 1/2N, so next and other are sqrt(D + 1) / 2N and own is that much more than alone."""
    found = copying(subject(CONFIG, sharpness=0, data=1))["per_task"]
    share = math.sqrt(DIM + 1) / (2 * PAIRS)
    np.testing.assert_allclose([found["next"], found["other"]], share, rtol=1e-5)
    np.testing.assert_allclose(found["own"], math.sqrt(DIM + 1) + share, rtol=1e-5)
    assert found["next_over_other"] == pytest.approx(1, rel=1e-5)


def test_gradients_are_of_every_row_but_the_last_two_towards_the_context() -> None:
    """The last context row has none after it, and the query is not looked at."""
    for norms in first_layer_gradients(subject(CONFIG, sharpness=1000, data=1)):
        assert norms.shape == (2 * PAIRS - 1, 2 * PAIRS)
        expected = math.sqrt(DIM + 1) * (np.eye(2 * PAIRS) + np.eye(2 * PAIRS, k=1))[:-1]
        np.testing.assert_allclose(norms, expected, atol=2e-3)


def test_what_the_second_layer_does_does_not_count() -> None:
    idle = subject(CONFIG, sharpness=1000, data=1)
    busy = replace(idle, params=idle.params | {"layer_1/attention": first_layer(1, 1)})
    for ours, theirs in zip(first_layer_gradients(idle), first_layer_gradients(busy), strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-6)


def test_averaging_before_the_norm_hides_what_changes_sign() -> None:
    """A norm of a mean is at most the mean of the norms."""
    averaged, per_task = first_layer_gradients(subject(CONFIG, sharpness=3, data=1))
    assert (averaged <= per_task + 1e-6).all()


def test_own_next_and_other_partition_the_rows() -> None:
    norms = np.array([[1.0, 10, 3, 5], [3, 1, 20, 5], [5, 3, 2.5, 30]])
    found = own_next_other(norms)
    assert found["own"] == pytest.approx((1 + 1 + 2.5) / 3)
    assert found["next"] == pytest.approx(20)
    assert found["other"] == pytest.approx((3 + 5 + 3 + 5 + 5 + 3) / 6)
    assert found["next_over_other"] == pytest.approx(20 / 4)


def test_concatenated_tokens_have_nothing_to_copy() -> None:
    config = RegressionConfig(data=CONFIG.data, eval_tasks=8)
    with pytest.raises(ConfigError, match="copying is defined for interleaved tokens; run has concatenated ones"):
        copying(replace(subject(CONFIG, 0, 0), config=config))


def test_the_command_refuses_a_run_of_concatenated_tokens(lsa1_run: Path, workshop: Workshop) -> None:
    done = workshop.run("analysis.copying", "--run", lsa1_run)
    assert done.returncode == 2
    assert done.stderr == (f"error: copying is defined for interleaved tokens; {lsa1_run} has concatenated ones\n")
    assert not (lsa1_run / layout.COPYING).exists()


def test_the_command_measures_again_what_the_run_did(twolayer_run: Path, workshop: Workshop, tmp_path: Path) -> None:
    run = copied(twolayer_run, tmp_path / "run")
    (run / layout.COPYING).unlink()
    done = workshop.run("analysis.copying", "--run", run)
    assert done.returncode == 0, done.stderr
    assert (run / layout.COPYING).read_bytes() == (twolayer_run / layout.COPYING).read_bytes()
    assert json.loads((run / layout.SUMMARY).read_text())["copying"] == json.loads((run / layout.COPYING).read_text())
