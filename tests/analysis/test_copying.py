"""Does the first layer copy? Layers made by hand, for which the answer is known."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from icl_lab.analysis.copying import copying, first_layer_gradients, own_next_other
from icl_lab.analysis.loaded_run import ComparedRun
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import GradientDescent, evaluation_context, make_model
from icl_lab.src.checks import ConfigError
from icl_lab.src.config import ModelConfig
from icl_lab.src.data_config import DataConfig
from icl_lab.src.prng import Purpose, key, purpose_key
from icl_lab.store import layout
from tests.runners.tiny import Workshop, copied, tokens

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
    """A run whose first layer is made by hand, and whose second does nothing."""
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
        assert values["next_over_other_with_next"] == pytest.approx(2 * PAIRS - 1, rel=1e-2)  # its largest value
    assert found["tasks"] == 8


def test_a_layer_that_does_nothing_depends_on_itself_alone() -> None:
    """The gradient of its sum is 1 in each channel: the norm is sqrt(D + 1) of x and y, sqrt(D) of x alone."""
    found = copying(subject(CONFIG, sharpness=1000, data=0))
    for version in ("averaged_before_norm", "per_task"):
        for suffix, channels in (("", DIM + 1), ("_x", DIM)):
            values = found[version + suffix]
            np.testing.assert_allclose(values["own"], math.sqrt(channels), rtol=1e-6)
            assert (values["next"], values["other"], values["other_with_next"]) == (0, 0, 0)


def test_at_dimension_10_the_channels_of_x_give_the_papers_root_of_10() -> None:
    """Fig. 5's own sensitivity, 3.15; with the label in a channel of its own it is the root of 11."""
    config = replace(CONFIG, data=DataConfig(dim=10, num_pairs=3))
    width = 10 + 1 + CODE
    nothing = {name: np.zeros((width, 1, width), np.float32) for name in ("query", "key", "value")}
    nothing["projection"] = np.zeros((1, width, width), np.float32)
    params = {f"layer_{layer}/attention": nothing for layer in (0, 1)}
    found = copying(replace(subject(config, 0, 0), params=params))
    assert found["averaged_before_norm_x"]["own"] == pytest.approx(math.sqrt(10), rel=1e-6)
    assert found["averaged_before_norm"]["own"] == pytest.approx(math.sqrt(11), rel=1e-6)


def test_labels_in_a_channel_of_x_leave_the_root_of_10() -> None:
    """The published tokens: a row has ten channels of data, whether it holds an input or a label."""
    model = replace(MODEL, tokens="interleaved_shared", prediction_channel="last")
    config = replace(CONFIG, data=DataConfig(dim=10, num_pairs=3), model=model)
    width = 10 + CODE
    nothing = {name: np.zeros((width, 1, width), np.float32) for name in ("query", "key", "value")}
    nothing["projection"] = np.zeros((1, width, width), np.float32)
    found = copying(replace(subject(config, 0, 0), params={f"layer_{layer}/attention": nothing for layer in (0, 1)}))
    for version in ("averaged_before_norm", "averaged_before_norm_x"):
        assert found[version]["own"] == pytest.approx(math.sqrt(10), rel=1e-6)
        assert found[version]["other_with_next"] == 0


def test_channels_of_x_leave_out_what_is_copied_of_the_label_alone() -> None:
    """A value matrix that takes y alone from the next row: in the channels of x that row does not count."""
    run = subject(CONFIG, sharpness=1000, data=1)
    layer = dict(run.params["layer_0/attention"])
    layer["value"] = layer["value"] * (np.arange(WIDTH) == DIM)[:, None, None]
    found = copying(replace(run, params=dict(run.params) | {"layer_0/attention": layer.copy()}))
    assert found["per_task"]["next"] == pytest.approx(1, rel=1e-3)
    assert found["per_task_x"]["next"] < 1e-3


def reference_gradient(params: dict[str, np.ndarray], tokens: np.ndarray, row: int) -> np.ndarray:
    """d sum(row of the first layer) / d tokens [R, W] of one task, for one softmax head; float64, from the equations.

    out_r = e_r + sum_j a_rj e_j V P with a = softmax(e_r Q K^T e_j / sqrt(W)): through the residual, the values, and
    the weights of row r, which depend on e_r and on every e_j.
    """
    q, k, v = (params[name][:, 0].astype(float) for name in ("query", "key", "value"))
    scores, moved = q @ k.T / math.sqrt(WIDTH), (v @ params["projection"][0].astype(float)).sum(axis=1)
    context, asked = tokens[:-1], tokens[row] @ scores
    weights = np.exp(context @ asked - (context @ asked).max())
    weights /= weights.sum()
    from_scores = weights * (context @ moved - weights @ context @ moved)
    gradient = np.zeros_like(tokens)
    gradient[:-1] = weights[:, None] * moved + from_scores[:, None] * asked
    gradient[row] += 1 + scores @ context.T @ from_scores
    return gradient


@pytest.mark.usefixtures("x64")
def test_both_definitions_of_other_and_both_sets_of_channels_are_those_of_the_gradient() -> None:
    """Of random weights, against gradients written out in NumPy: the published "other" sums all but own over 2N - 1."""
    rng, run = np.random.default_rng(0), subject(CONFIG, 0, 0)
    layer = {name: 0.3 * rng.normal(size=w.shape) for name, w in run.params["layer_0/attention"].items()}
    batch = type(run.batch)(*(np.asarray(part, np.float64) for part in run.batch))
    run = replace(run, params=dict(run.params) | {"layer_0/attention": layer}, batch=batch)
    gradients = np.array(
        [
            [reference_gradient(layer, task, row)[:-1] for row in range(2 * PAIRS - 1)]
            for task in tokens(batch, "interleaved", CODE)
        ]
    )
    found = copying(run)
    for suffix, channels in (("", DIM + 1), ("_x", DIM)):
        seen = gradients[..., :channels]
        for version, norms in {
            "averaged_before_norm": np.linalg.norm(seen.mean(axis=0), axis=-1),
            "per_task": np.linalg.norm(seen, axis=-1).mean(axis=0),
        }.items():
            own = np.array([norms[row, row] for row in range(2 * PAIRS - 1)])
            following = np.array([norms[row, row + 1] for row in range(2 * PAIRS - 1)])
            published = (norms.sum(axis=1) - own) / (2 * PAIRS - 1)
            others = (norms.sum(axis=1) - own - following) / (2 * PAIRS - 2)
            expected = {"own": own, "next": following, "other": others, "other_with_next": published}
            values = found[version + suffix]
            for name, each in expected.items():
                assert values[name] == pytest.approx(each.mean(), rel=1e-9), (version + suffix, name)
            ratio = following.mean() / published.mean()
            assert values["next_over_other_with_next"] == pytest.approx(ratio, rel=1e-9)


def test_a_layer_that_looks_everywhere_alike_has_no_favourite() -> None:
    """Each of 2N rows has weight 1/2N, so next and other are sqrt(D + 1) / 2N and own is that much more than alone."""
    found = copying(subject(CONFIG, sharpness=0, data=1))["per_task"]
    share = math.sqrt(DIM + 1) / (2 * PAIRS)
    np.testing.assert_allclose([found["next"], found["other"]], share, rtol=1e-5)
    np.testing.assert_allclose(found["own"], math.sqrt(DIM + 1) + share, rtol=1e-5)
    assert found["next_over_other"] == pytest.approx(1, rel=1e-5)


def test_gradients_are_of_every_row_but_the_last_two_towards_the_context() -> None:
    """The last context row has none after it, and the query is not looked at."""
    for norms in first_layer_gradients(subject(CONFIG, sharpness=1000, data=1))[""]:
        assert norms.shape == (2 * PAIRS - 1, 2 * PAIRS)
        expected = math.sqrt(DIM + 1) * (np.eye(2 * PAIRS) + np.eye(2 * PAIRS, k=1))[:-1]
        np.testing.assert_allclose(norms, expected, atol=2e-3)


def test_what_the_second_layer_does_does_not_count() -> None:
    idle = subject(CONFIG, sharpness=1000, data=1)
    busy = replace(idle, params=idle.params | {"layer_1/attention": first_layer(1, 1)})
    for ours, theirs in zip(first_layer_gradients(idle)[""], first_layer_gradients(busy)[""], strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-6)


def test_averaging_before_the_norm_hides_what_changes_sign() -> None:
    """A norm of a mean is at most the mean of the norms."""
    averaged, per_task = first_layer_gradients(subject(CONFIG, sharpness=3, data=1))[""]
    assert (averaged <= per_task + 1e-6).all()


def test_own_next_and_other_partition_the_rows() -> None:
    norms = np.array([[1.0, 10, 3, 5], [3, 1, 20, 5], [5, 3, 2.5, 30]])
    found = own_next_other(norms)
    assert found["own"] == pytest.approx((1 + 1 + 2.5) / 3)
    assert found["next"] == pytest.approx(20)
    assert found["other"] == pytest.approx((3 + 5 + 3 + 5 + 5 + 3) / 6)
    assert found["next_over_other"] == pytest.approx(20 / 4)
    assert found["other_with_next"] == pytest.approx((10 + 3 + 5 + 3 + 20 + 5 + 5 + 3 + 30) / 9)
    assert found["next_over_other_with_next"] == pytest.approx(20 / (84 / 9))
    assert found["next_over_other_with_next"] == pytest.approx(3 * 5 / (5 + 2))  # (2N - 1) r / (r + 2N - 2), r = 5


def test_untrained_is_the_layer_that_training_began_with() -> None:
    """Drawn again from the run's seed, whatever the layer has become: at the default variance it copies nothing."""
    trained = copying(subject(CONFIG, sharpness=1000, data=1))
    run = subject(CONFIG, 0, 0)
    drawn = run.model.init(purpose_key(key(CONFIG.init_seed), Purpose.INIT))
    at_start = copying(replace(run, params=drawn))
    for version, values in trained["untrained"].items():
        assert values == pytest.approx(at_start[version], rel=1e-5)
        assert values["next_over_other"] == pytest.approx(1, abs=0.05)
    other = copying(subject(replace(CONFIG, init_seed=1), sharpness=1000, data=1))
    assert other["untrained"]["per_task"] != trained["untrained"]["per_task"]


def test_concatenated_tokens_have_nothing_to_copy() -> None:
    config = RegressionConfig(data=CONFIG.data, eval_tasks=8)
    with pytest.raises(ConfigError, match="copying is defined for interleaved tokens; run has concatenated tokens"):
        copying(replace(subject(CONFIG, 0, 0), config=config))


def test_the_command_refuses_a_run_of_concatenated_tokens(lsa1_run: Path, workshop: Workshop) -> None:
    done = workshop.run("analysis.copying", "--run", lsa1_run)
    assert done.returncode == 2
    assert done.stderr == (f"error: copying is defined for interleaved tokens; {lsa1_run} has concatenated tokens\n")
    assert not (lsa1_run / layout.COPYING).exists()


def test_the_command_measures_again_what_the_run_did(twolayer_run: Path, workshop: Workshop, tmp_path: Path) -> None:
    run = copied(twolayer_run, tmp_path / "run")
    (run / layout.COPYING).unlink()
    done = workshop.run("analysis.copying", "--run", run)
    assert done.returncode == 0, done.stderr
    assert (run / layout.COPYING).read_bytes() == (twolayer_run / layout.COPYING).read_bytes()
    assert json.loads((run / layout.SUMMARY).read_text())["copying"] == json.loads((run / layout.COPYING).read_text())
