"""The decoder is the one of the equations, recomputed here in NumPy; no prediction sees what comes after it."""

import math
from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.families.diversity.task import make_model
from icl_lab.lab.configs.presets import preset, resolve
from icl_lab.src.batch import Batch
from icl_lab.src.config import TrainConfig
from icl_lab.src.data_config import PoolData
from icl_lab.src.decoder import block_kernels
from icl_lab.src.decoder_config import DecoderConfig
from icl_lab.src.prng import key
from icl_lab.src.sequences import tokenise
from icl_lab.src.train import Hyperparameters, make_trainer
from tests import reference

PAIRS, DIM, WIDTH, LAYERS, SIZE = 3, 2, 6, 2, 7
GPT2 = DecoderConfig(d_model=WIDTH, num_heads=2, num_layers=LAYERS, mlp_width=5, layer_norm=True)
REGRESSION = replace(GPT2, block="regression", num_heads=3)
MODELS = {
    "gpt2": GPT2,
    "gpt2 without layer norm": replace(GPT2, layer_norm=False),
    "gpt2 without output matrix": replace(GPT2, attention_output=False),
    "gpt2 doubled": replace(GPT2, doubled_residual=True),
    "regression": REGRESSION,
    "regression without layer norm": replace(REGRESSION, layer_norm=False),
    "regression without output matrix": replace(REGRESSION, attention_output=False),
    "regression doubled": replace(REGRESSION, doubled_residual=True),
}
BOTH = {"gpt2": GPT2, "regression, doubled": replace(REGRESSION, doubled_residual=True)}


def config_of(model, dim=DIM, num_pairs=PAIRS):
    return DiversityConfig(data=PoolData(dim=dim, num_pairs=num_pairs), model=model)


def shapes_of(config):
    return jax.eval_shape(make_model(config).init, key(0))


def setting(model, kind=np.float64):
    """A model, parameters no entry of which is 0 or 1 by design, and sequences, which need no teacher."""
    rng, config = np.random.default_rng(0), config_of(model)
    params = jax.tree.map(lambda leaf: (0.5 * rng.normal(size=leaf.shape)).astype(kind), shapes_of(config))
    x, y = rng.normal(size=(SIZE, PAIRS, DIM)).astype(kind), rng.normal(size=(SIZE, PAIRS)).astype(kind)
    return make_model(config), params, batch_of(x, y)


def batch_of(x, y):
    return Batch(x, y, x, y, x[:, 0])


# Programs that run once: compiling them for speed would take most of the time.
compiled = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


@cache
def looked_at(model):
    """(params, batch) -> what the model predicts, and its trace."""
    return compiled(lambda params, batch: (model.predict(params, batch), model.trace(params, batch)))


# The reference


def linear(parameters, rows):
    return rows @ parameters["w"] + parameters.get("b", 0.0)


def numpy_attention(params, layer, seen, num_heads, weights=None):
    """Causal softmax attention, head by head and row by row: the update [B, T, d] and the weights [B, H, T, T].

    `weights` that are given are used instead of its own.
    """
    stacked = linear(params[f"layer_{layer}/attention/query_key_value"], seen)
    (size, rows, width), channels = seen.shape, seen.shape[-1] // num_heads
    pooled, maps = np.zeros_like(seen), np.zeros((size, num_heads, rows, rows))
    for head in range(num_heads):
        own = slice(head * channels, (head + 1) * channels)
        query, key_, value = (stacked[..., part * width : (part + 1) * width][..., own] for part in range(3))
        for row in range(rows):
            scores = np.einsum("bc,btc->bt", query[:, row], key_[:, : row + 1]) / np.sqrt(channels)
            maps[:, head, row, : row + 1] = reference.softmax(scores)
        used = maps if weights is None else weights
        pooled[..., own] = np.einsum("brt,btc->brc", used[:, head], value)
    out = params.get(f"layer_{layer}/attention/output")
    return (pooled if out is None else linear(out, pooled)), maps


def numpy_decoder(params, model, x, y, weights=None):
    """Predictions, attention and stream after every layer; `weights` replace the attention of the last one."""
    size, pairs, dim = x.shape
    tokens = np.zeros((size, 2 * pairs, dim + 1))
    tokens[:, 0::2, 1:], tokens[:, 1::2, 0] = x, y

    def norm(name, rows):
        return reference.layer_norm(params[name], rows) if model.layer_norm else rows

    def read_out(stream):
        return linear(params["read_out/linear"], norm("read_out/norm", stream[:, ::2]))[..., 0]

    stream, history = linear(params["embed/linear"], tokens) + params["embed"]["positions"], []
    for layer in range(model.num_layers):
        patch = weights if layer == model.num_layers - 1 else None
        before, seen = stream, norm(f"layer_{layer}/attention_norm", stream)
        update, maps = numpy_attention(params, layer, seen, model.num_heads, patch)
        stream = stream + update
        hidden = linear(params[f"layer_{layer}/mlp_in"], norm(f"layer_{layer}/mlp_norm", stream))
        hidden = reference.gelu(hidden) if model.block == "gpt2" else np.maximum(hidden, 0)
        stream = stream + linear(params[f"layer_{layer}/mlp_out"], hidden)
        stream = stream + before if model.doubled_residual else stream
        history.append((stream, maps, read_out(stream)))
    return history


# Parameters


BASE = {"block": "gpt2", "layer_norm": True}
SMALLER = {"block": "regression", "layer_norm": True, "num_layers": 2, "num_heads": 4}
NINE_MILLION = BASE | {"num_layers": 12, "d_model": 256, "mlp_width": 1024, "num_heads": 4}
COUNTS = {
    # Raventos et al. 2023: GPT-2 without biases in embedding and read-out, positions for 2K rows
    202_752: (BASE | {"num_layers": 4, "d_model": 64, "mlp_width": 256, "num_heads": 2}, 8, 16),
    1_591_808: (BASE | {"num_layers": 8, "d_model": 128, "mlp_width": 512, "num_heads": 2}, 8, 16),
    9_488_384: (NINE_MILLION, 8, 16),
    9_519_104: (NINE_MILLION, 32, 64),
    # Hoogland et al. 2024, for sequences of 8 and of 16 pairs
    51_717: (SMALLER | {"d_model": 64, "mlp_width": 64}, 4, 8),
    52_741: (SMALLER | {"d_model": 64, "mlp_width": 64}, 4, 16),
    # the 2.65M of Carroll et al. 2025
    2_654_217: (SMALLER | {"d_model": 512, "mlp_width": 512, "attention_output": False}, 8, 16),
}


@pytest.mark.parametrize("count", COUNTS)
def test_the_number_of_parameters_is_the_papers(count):
    parts, dim, num_pairs = COUNTS[count]
    shapes = shapes_of(config_of(DecoderConfig(**parts), dim, num_pairs))
    assert sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes)) == count


@pytest.mark.parametrize(
    ("name", "count"),
    [("small", 202_752), ("base", 1_591_808), ("large", 9_488_384), ("hoogland", 51_717), ("carroll", 2_654_217)],
)
def test_the_presets_are_these_models(name, count):
    config, (parts, dim, num_pairs) = resolve(preset(name)), COUNTS[count]
    assert (config.model, config.data.dim, config.data.num_pairs) == (DecoderConfig(**parts), dim, num_pairs)


def test_configs_that_differ_in_no_model_share_one():
    base = config_of(GPT2)
    other_data = replace(base.data, num_tasks=7, noise_std=1.0, task_distribution="laplace", weight_scale=3.0)
    assert make_model(replace(base, data_seed=3, data=other_data, training=TrainConfig(steps=7))) is make_model(base)
    for other in (config_of(REGRESSION), config_of(GPT2, dim=3), config_of(GPT2, num_pairs=4)):
        assert make_model(other) is not make_model(base)


# The forward pass


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", MODELS)
def test_equals_an_independent_decoder(name):
    """Predictions, which have a last block of their own, and everything in the trace."""
    model, params, batch = setting(MODELS[name])
    history = numpy_decoder(params, MODELS[name], batch.x, batch.y)
    predictions, trace = looked_at(model)(params, batch)
    np.testing.assert_allclose(predictions, history[-1][2], atol=1e-10)
    assert len(trace.tokens) == len(trace.attention) == len(trace.layer_predictions) == LAYERS
    for layer, (stream, maps, predictions) in enumerate(history):
        np.testing.assert_allclose(trace.tokens[layer], stream, atol=1e-10)
        np.testing.assert_allclose(trace.attention[layer], maps, atol=1e-10)
        np.testing.assert_allclose(trace.layer_predictions[layer], predictions, atol=1e-10)


def test_the_options_of_the_tests_above_act():
    """The references of any two models differ, on parameters that both have."""
    _, params, batch = setting(REGRESSION)
    found = {
        name: numpy_decoder(params, replace(model, num_heads=REGRESSION.num_heads), batch.x, batch.y)[-1][2]
        for name, model in MODELS.items()
        if model.attention_output
    }
    for one in found:
        for other in found:
            assert one == other or np.abs(found[one] - found[other]).min() > 1e-4
    bare = {name: leaf for name, leaf in params.items() if not name.endswith("attention/output")}
    assert np.abs(numpy_decoder(bare, REGRESSION, batch.x, batch.y)[-1][2] - found["regression"]).min() > 1e-4


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", BOTH)
def test_a_prediction_does_not_depend_on_what_comes_later(name):
    """Sequence 0 is the original; in the others one input or one label is another. In float64, to 1e-12."""
    model, params, batch = setting(BOTH[name])
    x, y = (np.repeat(part[:1], 1 + 2 * PAIRS, axis=0) for part in (batch.x, batch.y))
    for pair in range(PAIRS):
        x[1 + pair, pair] += 1.0
        y[1 + PAIRS + pair, pair] += 1.0
    predictions = np.asarray(looked_at(model)(params, batch_of(x, y))[0])
    changes = np.abs(predictions[1:] - predictions[0]).reshape(2, PAIRS, PAIRS)  # of input or label j, prediction k
    later = np.tril(np.ones((PAIRS, PAIRS), bool), -1)  # k < j
    by_input, by_label = changes
    assert by_input[later].max() < 1e-12
    assert by_input[~later].min() > 1e-4
    assert by_label[later | np.eye(PAIRS, dtype=bool)].max() < 1e-12
    assert by_label[np.triu(np.ones((PAIRS, PAIRS), bool), 1)].min() > 1e-4


@pytest.mark.usefixtures("x64")
def test_gradients_with_respect_to_later_tokens_are_zero():
    """Exactly: their weights in the softmax are exp(-inf). Row 2j is input j, row 2j + 1 its label."""
    model, params, batch = setting(GPT2)

    def predict(tokens):
        x, y = tokens[None, ::2, 1:], tokens[None, 1::2, 0]
        return model.predict(params, batch_of(x, y))[0]

    found = np.abs(compiled(jax.jacobian(predict))(tokenise(batch)[0])).max(axis=-1)  # [K, 2K]
    visible = 2 * np.arange(PAIRS)[:, None] >= np.arange(2 * PAIRS)[None]
    np.testing.assert_array_equal(found[~visible], 0.0)
    assert found[visible].min() > 1e-4


def test_in_float32_a_trace_ends_with_the_prediction():
    """Both are the same sums over rows that the last block computes or leaves out; which order BLAS takes them in
    depends on the number of rows, hence 1e-6 of the largest.
    """
    model, params, batch = setting(GPT2, np.float32)
    predictions, trace = looked_at(model)(params, batch)
    scale = np.abs(predictions).max()
    np.testing.assert_allclose(trace.layer_predictions[-1], predictions, rtol=1e-6, atol=1e-6 * scale)
    for weights in trace.attention:
        np.testing.assert_allclose(weights.sum(axis=-1), 1.0, rtol=1e-6)
        np.testing.assert_array_equal(np.triu(weights, 1), 0.0)
        assert np.asarray(weights)[..., *np.tril_indices(2 * PAIRS)].min() > 0


@pytest.mark.usefixtures("x64")
def test_a_hook_can_patch():
    """Other attention weights in the last layer, and a stream of zeros after it, as the reference has them."""
    model, params, batch = setting(GPT2)
    uniform = np.tril(np.ones((2 * PAIRS, 2 * PAIRS))) / np.arange(1, 2 * PAIRS + 1)[:, None]
    weights = np.broadcast_to(uniform, (SIZE, GPT2.num_heads, *uniform.shape))

    def patched(which, other):
        def hook(name, layer, value):
            return other(value) if (name, layer) == (which, LAYERS - 1) else value

        return compiled(lambda batch: model.forward(params, tokenise(batch), hook))(batch)

    found = patched("attn.pattern", lambda _: jnp.asarray(weights))
    np.testing.assert_allclose(found, numpy_decoder(params, GPT2, batch.x, batch.y, weights)[-1][2], atol=1e-10)
    change = np.abs(found - looked_at(model)(params, batch)[0])
    assert change[:, 1:].min() > 1e-5  # the first input sees itself alone, whatever the weights
    of_nothing = params["read_out/norm"]["offset"] @ params["read_out/linear"]["w"][:, 0]
    np.testing.assert_allclose(patched("resid_post", jnp.zeros_like), np.full((SIZE, PAIRS), of_nothing), atol=1e-10)


# Initial parameters


def initial(model, dim=8, num_pairs=16):
    params = compiled(make_model(config_of(model, dim, num_pairs)).init)(key(1))
    return {
        f"{module}/{name}": np.asarray(leaf, float) for module, part in params.items() for name, leaf in part.items()
    }


def check_norms(params, layers):
    scales, offsets = (
        [leaf for name, leaf in params.items() if name.endswith(f"norm/{kind}")] for kind in ("scale", "offset")
    )
    assert len(scales) == len(offsets) == 2 * layers + 1
    np.testing.assert_array_equal(scales, 1.0)
    np.testing.assert_array_equal(offsets, 0.0)


def check_different(matrices):
    assert len({leaf.ravel()[:3].tobytes() for leaf in matrices}) == len(matrices)


def test_gpt2_starts_as_gpt2_does():
    """N(0, .02^2), before a residual sum N(0, .02^2/(2L)), biases 0. The standard error of a standard deviation of n
    Gaussians is s/sqrt(2n), that of their kurtosis sqrt(24/n); 4 of them.
    """
    params = initial(replace(GPT2, d_model=32, mlp_width=48))
    check_norms(params, LAYERS)
    weights = {name: leaf for name, leaf in params.items() if name.endswith(("/w", "/positions"))}
    assert len(weights) == 4 * LAYERS + 3
    check_different(list(weights.values()))
    for name, leaf in weights.items():
        before_a_sum = name.endswith(("attention/output/w", "mlp_out/w"))
        expected = 0.02 / np.sqrt(2 * LAYERS) if before_a_sum else 0.02
        assert leaf.std() == pytest.approx(expected, rel=4 / np.sqrt(2 * leaf.size)), name
        assert abs(leaf.mean()) < 4 * expected / np.sqrt(leaf.size), name
        assert abs((leaf**4).mean() / leaf.var() ** 2 - 3) < 4 * np.sqrt(24 / leaf.size), name
    biases = {name: leaf for name, leaf in params.items() if name.endswith("/b")}
    assert {name.partition("/")[2] for name in biases} == {
        "attention/query_key_value/b",
        "attention/output/b",
        "mlp_in/b",
        "mlp_out/b",
    }
    assert all((leaf == 0).all() for leaf in biases.values())


def test_the_regression_block_starts_uniform_within_the_root_of_fan_in():
    """U(-a, a) with a = 1/sqrt(fan-in), of a bias its matrix's, of positions 2K. E z^2 = a^2/3 and E z^4 = a^4/5, so
    the variance's relative standard error is sqrt(.8/n); 4 of them, as of the mean.
    """
    params = initial(replace(REGRESSION, num_layers=1, d_model=30, mlp_width=48))
    check_norms(params, 1)
    fan_in = {"embed/positions": 32, "embed/linear/w": 9, "read_out/linear/w": 30, "read_out/linear/b": 30}
    inside = {"attention/query_key_value/w": 30, "attention/output/w": 30}
    inside |= {"mlp_in/w": 30, "mlp_in/b": 30, "mlp_out/w": 48, "mlp_out/b": 48}
    fan_in |= {f"layer_0/{name}": fan for name, fan in inside.items()}
    drawn = {name: leaf for name, leaf in params.items() if "norm/" not in name}
    assert drawn.keys() == fan_in.keys()
    check_different(list(drawn.values()))
    for name, leaf in drawn.items():
        bound = 1 / np.sqrt(fan_in[name])
        assert np.abs(leaf).max() <= bound * (1 + 1e-6), name
        assert np.abs(leaf).max() > bound * (1 - 12 / leaf.size), name  # all of n are below with probability e^-12
        assert abs(leaf.mean()) < 4 * bound / np.sqrt(3 * leaf.size), name
        assert (leaf**2).mean() == pytest.approx(bound**2 / 3, rel=4 * np.sqrt(0.8 / leaf.size)), name


# Weight decay

KERNELS = ("attention/query_key_value", "attention/output", "mlp_in", "mlp_out")


@pytest.mark.parametrize("name", BOTH)
def test_kernels_are_the_matrices_within_the_blocks(name):
    wanted = block_kernels(shapes_of(config_of(BOTH[name])))
    chosen = {(module, leaf) for module, leaves in wanted.items() for leaf, is_one in leaves.items() if is_one}
    assert chosen == {(f"layer_{layer}/{module}", "w") for layer in range(LAYERS) for module in KERNELS}
    assert make_model(config_of(BOTH[name])).decayed is block_kernels


def test_weight_decay_shrinks_kernels_alone():
    """By 1 - lr decay a step where the gradient is 0, as AdamW does (Loshchilov & Hutter 2019). A loss of zero has
    no gradient; float32 rounds each of 3 steps.
    """
    model, params, batch = setting(replace(GPT2, num_layers=1), np.float32)
    perfect = model._replace(init=lambda _: params, losses=lambda _, batch: jnp.zeros(SIZE), mean_loss=None)
    config = TrainConfig(weight_decay=0.1, grad_clip=0.0, batch_size=SIZE, steps=3)
    trainer = make_trainer(lambda shared: perfect, config, lambda *_: jax.tree.map(jnp.asarray, batch))
    pack = Hyperparameters(key(0)[None], key(1)[None], jnp.full(1, 0.5))
    state, info = trainer.chunk(trainer.init(pack, {}), pack, {}, jnp.int32(0), jnp.int32(3))
    assert float(info.loss[0]) == 0.0
    for module, leaves in params.items():
        for name, before in leaves.items():
            is_kernel = module.startswith("layer_") and module.partition("/")[2] in KERNELS and name == "w"
            factor = (1 - 0.5 * 0.1) ** 3 if is_kernel else 1.0
            after = state.params[module][name][0]
            np.testing.assert_allclose(after, before * factor, rtol=1e-6 if is_kernel else 0, err_msg=module)
