"""Scores of pairs: identities of linear layers, and what the constructed layer cannot know."""

import json
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.analysis.attention_stats import attention_scores, attention_stats, gd_scores, influence
from icl_lab.analysis.loaded_run import ComparedRun
from icl_lab.baselines.construction import gd_params
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import GradientDescent, clean_twin, evaluation_context, make_model
from icl_lab.src.config import ContextConfig, ModelConfig
from icl_lab.src.data import sample_batch
from icl_lab.src.data_config import DataConfig
from icl_lab.src.prng import key
from icl_lab.store import layout
from tests.runners.tiny import Workshop, copied

NOISE = ContextConfig(noise_mode="random_pairs", noise_p=0.3, noise_placement="mixed")
STEP = 0.6
TWOLAYER = ModelConfig(tokens="interleaved", attention=("softmax", "linear"), num_layers=2, pos_enc_size=4)


def subject(config, params=None, seed=0):
    model = make_model(config)
    weights = params if params is not None else model.init(key(seed))
    batch = jax.tree.map(np.asarray, evaluation_context(config).batch)
    return ComparedRun(Path("nowhere"), config, model, weights, batch, GradientDescent(1, STEP, "given"))


def constructed(**changes):
    config = RegressionConfig(eval_tasks=1500, eval=NOISE, **changes)
    return subject(config, gd_params(config.architecture, STEP))


def test_contributions_of_a_linear_layer_sum_to_the_prediction():
    """The prediction of one linear layer is linear in its attention and 0 without it."""
    looked_at = subject(RegressionConfig(), seed=3)
    batch = sample_batch(key(1), RegressionConfig().data, 20)
    scores = attention_scores(looked_at, batch)[0]
    np.testing.assert_allclose(scores["contribution"].sum(axis=(1, 2)), looked_at.predict(batch), atol=1e-7)


def test_the_constructed_layer_has_gradient_descents_scores():
    looked_at = constructed()
    batch = sample_batch(key(1), looked_at.config.data, 20)
    own, descent = attention_scores(looked_at, batch)[0], gd_scores(looked_at, batch)
    for name in ("attention", "abs_attention", "contribution"):
        np.testing.assert_allclose(own[name][:, 0], descent[name], atol=1e-5)
    expected = STEP * np.einsum("bnd,bd->bn", batch.x, batch.x_query)
    np.testing.assert_allclose(influence(looked_at.predict, batch), expected, atol=1e-6)
    np.testing.assert_allclose(descent["influence"], expected, atol=1e-6)


def test_the_slope_of_the_attention_is_a_derivative():
    """Contribution over attention, against finite differences through a patched pass, in the softmax layer too."""
    config = RegressionConfig(data=DataConfig(dim=3, num_pairs=4), model=replace(TWOLAYER, init_scale=2.0))
    looked_at = subject(config, seed=1)
    batch = sample_batch(key(2), config.data, 5)
    from icl_lab.src.data import tokenise

    def scaled(layer, pair, factor):
        def patch(name, at, value):
            columns = jnp.repeat(jnp.where(jnp.arange(4) == pair, factor, 1.0), 2)
            return value * columns[None, None, None] if name == "attn.pattern" and at == layer else value

        return looked_at.model.forward(looked_at.params, tokenise(batch, config.model), patch)

    for layer, scores in enumerate(attention_scores(looked_at, batch)):
        for pair in range(4):
            slope = (scaled(layer, pair, 1.01) - scaled(layer, pair, 0.99)) / 0.02
            np.testing.assert_allclose(scores["contribution"][:, 0, pair], slope, atol=2e-4)


def test_the_constructed_layer_does_not_see_noise():
    """x_j.x_query of a random pair is distributed as a clean one's: AUROC .5 within its interval, for a and |a|."""
    looked_at = constructed()
    stats = attention_stats(looked_at, evaluation_context(looked_at.config))
    scores = stats["layers"][0]["heads"][0]["scores"]
    for name in ("attention", "abs_attention"):
        low, high = scores[name]["auroc_interval"]
        assert low < 0.5 < high
        assert high - low < 0.05
    assert stats["influence"]["auroc"] == pytest.approx(stats["gd"]["influence"]["auroc"], abs=1e-6)


def test_the_clean_twin_is_the_same_contexts_without_corruption():
    settings = replace(NOISE, ordering="smallnorm2largenorm", noise_placement="noisy_first")
    config = RegressionConfig(eval_tasks=30, eval=settings)
    context = evaluation_context(config)
    twin, hit = clean_twin(config, context), np.asarray(context.hit)
    np.testing.assert_array_equal(np.asarray(twin.x)[~hit], np.asarray(context.batch.x)[~hit])
    np.testing.assert_array_equal(np.asarray(twin.y)[~hit], np.asarray(context.batch.y)[~hit])
    assert (np.asarray(twin.y)[hit] != np.asarray(context.batch.y)[hit]).all()
    np.testing.assert_allclose(np.einsum("bnd,bd->bn", twin.x, twin.w), twin.y, atol=1e-6)


@pytest.mark.slow
def test_the_command_writes_null_and_never_nan(workshop: Workshop, twolayer_run: Path, tmp_path: Path) -> None:
    run = copied(twolayer_run, tmp_path / "run")
    done = workshop.run("analysis.attention_stats", "--run", run)
    assert done.returncode == 0, done.stderr
    assert "no AUROC" in done.stdout
    text = (run / layout.ATTENTION_STATS).read_text()
    assert "NaN" not in text
    stats = json.loads(text)
    assert stats["influence"]["auroc"] is None
    assert stats["influence"]["clean_mean"] is not None
    assert (run / layout.ATTENTION_STATS_FIGURE).stat().st_size > 5000
