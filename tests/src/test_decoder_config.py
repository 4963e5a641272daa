"""Every choice of a decoder is the one of its equation, recomputed here in NumPy; with none a row sees what follows."""

from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.families.diversity.task import eval_metrics, make_eval_sets, make_model
from icl_lab.families.own_batches import loss_unit
from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.configs.presets import preset, resolve
from icl_lab.lab.configs.registry import outputs_of
from icl_lab.lab.registries import FAMILIES
from icl_lab.src import causal, losses, registries
from icl_lab.src.attn import linear_weights
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError
from icl_lab.src.data_config import PoolData
from icl_lab.src.decoder import ACTIVATIONS
from icl_lab.src.decoder_config import ACTIVATIONS as NAMES
from icl_lab.src.decoder_config import LOSSES, DecoderConfig
from icl_lab.src.patching import capture
from icl_lab.src.positions import rotated
from icl_lab.src.prng import key
from icl_lab.sweeps.grid import canonical
from tests import reference

PAIRS, DIM, SIZE = 3, 2, 7  # a sequence, and one with another value in each of its six tokens
GPT2 = DecoderConfig(d_model=8, num_heads=2, num_layers=2, mlp_width=5, layer_norm=True)
REGRESSION = replace(GPT2, block="regression")
MODELS = {
    "linear": replace(GPT2, attention=("linear",)),
    "softmax below linear": replace(GPT2, attention=("softmax", "linear")),
    "shared tokens": replace(REGRESSION, tokens="interleaved_shared"),
    "sinusoidal": replace(GPT2, positions="sinusoidal"),
    "rotary": replace(REGRESSION, positions="rotary"),
    "rotary, linear": replace(GPT2, positions="rotary", attention=("linear",)),
    "no positions": replace(GPT2, positions="none"),
    "post": replace(GPT2, norm="post"),
    "post, doubled": replace(REGRESSION, norm="post", doubled_residual=True),
    "silu, wide": replace(GPT2, activation="silu", mlp_ratio=1.5),
    "tanh": replace(REGRESSION, activation="tanh"),
    "other activation, other read-out": replace(GPT2, activation="relu", read_out="token"),
    "regression with gelu and one channel": replace(REGRESSION, activation="gelu", read_out="label"),
}
CURVES = {
    "gelu": reference.gelu,
    "relu": lambda x: np.where(x > 0, x, 0),
    "silu": lambda x: x * special.expit(x),
    "tanh": np.tanh,
}
OWN = {"gpt2": {"activation": "gelu", "read_out": "label"}, "regression": {"activation": "relu", "read_out": "token"}}


def config_of(model, dim=DIM):
    return DiversityConfig(data=PoolData(dim=dim, num_pairs=PAIRS), model=model)


def batch_of(x, y):
    return Batch(x, y, x, y, x[:, 0])


@cache
def setting(model):
    """A model, parameters no entry of which is 0 or 1 by design, and x, y: sequence 0 with each token changed once."""
    rng, made = np.random.default_rng(0), make_model(config_of(model))
    shapes = jax.eval_shape(made.init, key(0))
    params = jax.tree.map(lambda leaf: 0.5 * rng.normal(size=leaf.shape), shapes)
    x = np.repeat(rng.normal(size=(1, PAIRS, DIM)), SIZE, axis=0)
    y = np.repeat(rng.normal(size=(1, PAIRS)), SIZE, axis=0)
    for token in range(2 * PAIRS):
        if token % 2 == 0:
            x[1 + token, token // 2] += 1.0
        else:
            y[1 + token, token // 2] += 1.0
    return made, params, x, y


# Programs that run once: compiling them for speed would take most of the time.
compiled = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


# The reference, row by row


def linear(parameters, rows):
    return rows @ parameters["w"] + parameters.get("b", 0.0)


def tokens_of(x, y, layout):
    rows = []
    for pair in range(x.shape[1]):
        zeros = np.zeros((len(x), DIM))
        if layout == "interleaved":
            rows += [np.hstack([zeros[:, :1], x[:, pair]]), np.hstack([y[:, pair : pair + 1], zeros])]
        else:
            rows += [x[:, pair], np.hstack([y[:, pair : pair + 1], zeros[:, 1:]])]
    return np.stack(rows, axis=1)


def score(query, key_, row, other, positions):
    """q . k; rotary, with channels (2i, 2i + 1) as a complex number, Re sum_i q_i conj(k_i) exp(i (r - t) theta_i)."""
    if positions != "rotary":
        return np.sum(query * key_, axis=-1)
    pairs = [part[:, 0::2] + 1j * part[:, 1::2] for part in (query, key_)]
    theta = 1e4 ** -np.linspace(0, 1, pairs[0].shape[1], endpoint=False)
    return np.sum((pairs[0] * pairs[1].conj() * np.exp(1j * (row - other) * theta)).real, axis=-1)


def attended(params, layer, seen, model):
    stacked = linear(params[f"layer_{layer}/attention/query_key_value"], seen)
    (_, rows, width), channels = seen.shape, seen.shape[-1] // model.num_heads
    kind = model.attention[0] if layer < len(model.attention) - 1 else model.attention[-1]
    pooled = np.zeros_like(seen)
    for start in range(0, width, channels):
        query, key_, value = (stacked[..., part * width + start :][..., :channels] for part in range(3))
        for row in range(rows):
            scores = np.stack(
                [score(query[:, row], key_[:, t], row, t, model.positions) for t in range(row + 1)], axis=1
            )
            weights = reference.softmax(scores / channels**0.5) if kind == "softmax" else scores / (row + 1)
            pooled[:, row, start : start + channels] = sum(weights[:, [t]] * value[:, t] for t in range(row + 1))
    return linear(params[f"layer_{layer}/attention/output"], pooled)


def numpy_predictions(params, model, x, y):
    """Predictions [B, K]."""

    def norm(name, rows, wanted="pre"):
        return reference.layer_norm(params[name], rows) if model.norm == wanted else rows

    def chosen(name):
        word = getattr(model, name)
        return OWN[model.block][name] if word == "block" else word

    stream = linear(params["embed/linear"], tokens_of(x, y, model.tokens))
    if model.positions == "learned":
        stream = stream + params["embed"]["positions"]
    for row in range(2 * PAIRS) if model.positions == "sinusoidal" else ():
        for channel in range(model.d_model):
            angle = row / 1e4 ** ((channel - channel % 2) / model.d_model)
            stream[:, row, channel] += np.cos(angle) if channel % 2 else np.sin(angle)
    for layer in range(model.num_layers):
        before, names = stream, (f"layer_{layer}/attention_norm", f"layer_{layer}/mlp_norm")
        stream = norm(names[0], stream + attended(params, layer, norm(names[0], stream), model), "post")
        hidden = CURVES[chosen("activation")](linear(params[f"layer_{layer}/mlp_in"], norm(names[1], stream)))
        stream = norm(names[1], stream + linear(params[f"layer_{layer}/mlp_out"], hidden), "post")
        stream = stream + before if model.doubled_residual else stream
    read = params["read_out/linear"]
    assert read["w"].shape == (model.d_model, tokens_of(x, y, model.tokens).shape[-1] if "b" in read else 1)
    assert ("b" in read) == (chosen("read_out") == "token")
    return linear(read, norm("read_out/norm", stream[:, ::2]))[..., 0]


# The forward pass


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", MODELS)
def test_equals_an_independent_decoder_and_sees_nothing_that_follows(name):
    """In float64. Token 2j is input j, token 2j + 1 its label; prediction k may depend on tokens up to 2k."""
    model, params, x, y = setting(MODELS[name])
    predictions, seen = compiled(
        lambda batch: (model.predict(params, batch), capture(model, params, batch, "prediction"))
    )(batch_of(x, y))
    np.testing.assert_allclose(predictions, numpy_predictions(params, MODELS[name], x, y), atol=1e-10)
    np.testing.assert_allclose(seen["prediction"], predictions, atol=1e-10)
    changes = np.abs(predictions[1:] - predictions[:1])  # [token, prediction]
    visible = np.arange(2 * PAIRS)[:, None] <= 2 * np.arange(PAIRS)[None]
    assert changes[~visible].max() < 1e-12
    assert changes[visible].min() > 1e-5


def test_the_reference_tells_the_choices_apart():
    """Predictions of any two models above differ, wherever both have the same parameters."""
    found = {}
    for name, model in MODELS.items():
        _, params, x, y = setting(model)
        found[name] = numpy_predictions(params, model, x, y)
    for one in found:
        for other in found:
            assert one == other or np.abs(found[one] - found[other]).max() > 1e-4


def test_positions_that_are_not_learned_have_no_parameters():
    for positions in ("sinusoidal", "rotary", "none"):
        shapes = jax.eval_shape(make_model(config_of(replace(GPT2, positions=positions))).init, key(0))
        learned = jax.eval_shape(make_model(config_of(GPT2)).init, key(0))
        assert {*learned} - {*shapes} == {"embed"}  # the module that has the positions alone
        assert {*shapes} < {*learned}


def test_without_positions_the_order_of_pairs_before_the_last_layer_does_not_matter():
    """Of one layer: its rows are a set, so a prediction is the same for any order of the pairs before it."""
    model = replace(GPT2, num_layers=1, positions="none")
    made, params, x, y = setting(model)
    swapped = [1, 0, 2]
    plain, other = (made.predict(params, batch_of(*pairs)) for pairs in ((x, y), (x[:, swapped], y[:, swapped])))
    np.testing.assert_allclose(plain[:, 2], other[:, 2], atol=1e-5)  # sums of float32 in another order
    learned, params, *_ = setting(replace(model, positions="learned"))
    plain, other = (learned.predict(params, batch_of(*pairs)) for pairs in ((x, y), (x[:, swapped], y[:, swapped])))
    assert np.abs(plain[:, 2] - other[:, 2]).min() > 1e-3


@pytest.mark.usefixtures("x64")
def test_rotary_scores_depend_on_differences_of_positions_alone():
    """Of a sequence whose tokens are all equal: x = y = 1 in one channel. And a turn changes no length."""
    model = replace(GPT2, positions="rotary", tokens="interleaved_shared", num_layers=1)
    made, rng = make_model(config_of(model, dim=1)), np.random.default_rng(1)
    params = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape), jax.eval_shape(made.init, key(0)))
    batch = batch_of(np.ones((1, PAIRS, 1)), np.ones((1, PAIRS)))
    seen = capture(made, params, batch, ["*.attn.q", "*.attn.k", "*.attn.scores"])
    scores = seen["blocks.0.attn.scores"]
    np.testing.assert_allclose(scores[..., 1:, 1:], scores[..., :-1, :-1], atol=1e-12)
    assert np.ptp(np.asarray(scores)[0, 0, :, 0]) > 0.1
    products = np.einsum("brhc,bthc->bhrt", seen["blocks.0.attn.q"], seen["blocks.0.attn.k"])
    np.testing.assert_allclose(scores, products, atol=1e-12)  # what is shown is what enters the scores
    vectors = rng.normal(size=(2, 5, 3, 6))
    lengths = (np.linalg.norm(part, axis=-1) for part in (rotated(jnp.asarray(vectors)), vectors))
    np.testing.assert_allclose(*lengths, atol=1e-12)


@pytest.mark.usefixtures("x64")
def test_norms_after_the_sums_leave_a_normalised_stream():
    """With scales 1 and offsets 0, as they start, rows of resid_mid and resid_post have mean 0 and variance 1."""
    made, params, x, y = setting(MODELS["post"])
    starting = {"scale": np.ones_like, "offset": np.zeros_like}
    params = {
        module: {name: starting.get(name, lambda leaf: leaf)(leaf) for name, leaf in part.items()}
        for module, part in params.items()
    }
    for stream in capture(made, params, batch_of(x, y), ["*.resid_mid", "*.resid_post"]).values():
        np.testing.assert_allclose(stream.mean(axis=-1), 0, atol=1e-10)
        np.testing.assert_allclose(stream.var(axis=-1), 1, rtol=1e-3)  # the norm adds 1e-5 to a variance of order 1


# The loss


@pytest.mark.usefixtures("x64")
def test_the_absolute_error_is_trained_on_and_recorded():
    """The mean of |prediction - y| over a sequence; of predicting zero, of |y|. eval_loss is of all sequences."""
    config = replace(config_of(replace(GPT2, loss="absolute_error")), eval_tasks=5)
    made, params, x, y = setting(config.model)
    batch = batch_of(x, y)
    predictions = numpy_predictions(params, config.model, x, y)
    np.testing.assert_allclose(made.losses(params, batch), np.abs(predictions - y).mean(axis=1), rtol=1e-10)
    np.testing.assert_allclose(made.null_losses(batch), np.abs(y).mean(axis=1), rtol=1e-10)
    for loss, expected in (
        ("absolute_error", lambda errors: np.abs(errors).mean()),
        ("half_squared_error", lambda errors: (errors**2).mean() / 2),
    ):
        config = replace(config, model=replace(config.model, loss=loss))
        sets = make_eval_sets(config)
        seen = np.asarray(sets.batch.x, np.float64), np.asarray(sets.batch.y, np.float64)
        errors = numpy_predictions(params, config.model, *seen) - seen[1]
        assert eval_metrics(made, params, sets)["eval_loss"] == pytest.approx(expected(errors), rel=1e-6)  # of float32


def test_losses_of_standardised_labels_are_taken_back_by_their_degree():
    """Labels of a file are divided by their deviation s: a squared loss is s^2 times as large in their own units."""
    file = {"standardize": True, "x_mean": (0.0,) * DIM, "x_scale": (1.0,) * DIM, "y_mean": 0.0, "y_scale": 3.0}
    units = {}
    for loss in LOSSES:
        config = config_of(replace(GPT2, loss=loss))
        units[loss] = loss_unit(SimpleNamespace(model=config.model, data=SimpleNamespace(**file)))
    assert units == {"half_squared_error": 9.0, "absolute_error": 3.0}


def test_a_runs_files_say_which_loss_it_is():
    outputs, config = outputs_of(FAMILIES["diversity"]), config_of(GPT2)
    absolute = replace(config, model=replace(GPT2, loss="absolute_error"))
    assert "loss: half the mean squared error" in outputs.of(config).loss_convention
    assert "loss: the mean absolute error" in outputs.of(absolute).loss_convention
    shown = [outputs.panels_of(each)[0].unit for each in (config, absolute)]
    assert shown == ["loss (half MSE, noise included)", "loss (MAE, noise included)"]


# Kinds of attention


@pytest.mark.usefixtures("x64")
def test_causal_linear_attention_is_a_step_on_the_mean_loss_of_what_a_row_has_seen():
    """Scores x_r . x_t and values y_t: minus the gradient at w = 0 of the mean of (w . x_t - y_t)^2 / 2, times x_r."""
    rng, rows = np.random.default_rng(2), np.arange(5)
    x, y = rng.normal(size=(5, DIM)), rng.normal(size=5)
    weights = causal.causal_weights("linear", jnp.asarray(x @ x.T)[None, None], rows, DIM)[0, 0]

    def loss(w, seen):
        return 0.5 * jnp.mean((x[:seen] @ w - y[:seen]) ** 2)

    steps = [-jax.grad(loss)(jnp.zeros(DIM), row + 1) @ x[row] for row in rows]
    np.testing.assert_allclose(weights @ y, steps, atol=1e-12)
    everything = linear_weights(jnp.asarray(x[-1:] @ x.T), DIM)[0]  # of a stack, whose row sees all
    np.testing.assert_allclose(5 * weights[-1], everything, atol=1e-12)


LEAKS = {  # what a plugin's causal form does with what a row must not see
    "looks ahead": (lambda scores, size, visible, count: jax.nn.softmax(scores, axis=-1) * visible, "looks ahead"),
    "weighs it": (lambda scores, size, visible, count: jax.nn.softmax(0 * scores, axis=-1), "looks ahead"),
    "has another shape": (lambda scores, size, visible, count: scores[..., 0], "gives weights of shape"),
    "does neither": (lambda scores, size, visible, count: jnp.where(visible, scores, 0) / count, ""),
}


@pytest.mark.parametrize("name", LEAKS)
def test_attention_of_a_plugin_that_looks_ahead_is_refused(name, registered):
    causal_form, said = LEAKS[name]
    registered(registries.ATTENTION_KINDS, "mine", registries.AttentionKind(None, causal_form))
    if said:
        with pytest.raises(ConfigError, match=f"the attention 'mine' of a decoder {said}"):
            causal.check_kind("mine")
    else:
        causal.check_kind("mine")
    causal.check_kind("softmax")


def test_every_built_in_kind_has_a_causal_form():
    assert {*registries.ATTENTION_KINDS.built_in} <= {*causal.CAUSAL_WEIGHTS}
    assert {*ACTIVATIONS} == {*NAMES} == {*CURVES}
    assert {*LOSSES} < {*losses.OF_A_NUMBER}


# The config


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"positions": "rotary", "d_model": 6},
            "positions is 'rotary', which rotates channels in pairs, but .* is 3; it",
        ),
        (
            {"positions": "sinusoidal", "d_model": 5, "num_heads": 1},
            "d_model is 5; it must be even, one sine and one cosine",
        ),
        ({"norm": "post", "layer_norm": False}, "norm is 'post', but layer_norm is off"),
        ({"mlp_ratio": 0.3}, r"mlp_ratio is 0\.3; times d_model, 8, it must be a whole number of channels"),
    ],
)
def test_choices_that_do_not_fit_are_one_sentence(values, sentence):
    with pytest.raises(ConfigError, match=sentence) as error:
        replace(GPT2, **values)
    assert "\n" not in str(error.value)


def test_the_ratio_sets_the_width():
    assert replace(GPT2, mlp_ratio=4).mlp_width == 32
    assert replace(GPT2, mlp_ratio=4, d_model=16).mlp_width == 64
    assert GPT2.mlp_width == 5


IDS = {"tiny": "f5038c2b49353bfc", "hoogland": "12e056621636655c", "carroll": "70541bfe2d0abefb"}


@pytest.mark.parametrize("name", IDS)
def test_presets_keep_the_ids_that_they_had_before_there_were_choices(name):
    assert config_id(resolve(preset(name))) == IDS[name]


@pytest.mark.parametrize("name", IDS)
def test_what_a_block_has_anyway_is_the_same_run_however_it_is_asked_for(name):
    config = resolve(preset(name))
    asked = replace(config.model, mlp_ratio=config.model.mlp_width / config.model.d_model, **OWN[config.model.block])
    assert canonical(replace(config, model=asked)) == canonical(config) == replace(config, preset="default")
    for other in ({"activation": "tanh"}, {"positions": "none"}, {"mlp_ratio": 8.0}):
        assert canonical(replace(config, model=replace(config.model, **other))) != canonical(config)
