import ast
import importlib.util
import inspect
import re
import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import make_model
from icl_lab.lab.configs.presets import preset, resolve
from icl_lab.src import attn, decoder, prng, transformer
from icl_lab.src.batch import Batch
from icl_lab.src.config import TOKENS, ModelConfig, TrainConfig
from icl_lab.src.data import sample_batch, tokenise
from icl_lab.src.data_config import DataConfig
from icl_lab.src.decoder_config import DecoderConfig
from tests import reference

DATA = DataConfig(dim=3, num_pairs=4)
PLAIN = ModelConfig()
FULL = ModelConfig(
    tokens="interleaved",
    attention=("softmax", "linear"),
    num_layers=2,
    num_heads=2,
    key_size=6,
    damping=0.7,
    pos_enc_size=4,
    bias=True,
    layer_norm=True,
    mlp_width=5,
)
PUBLISHED = {"first_norm": False, "shared_mlp": True, "mlp_bias": False, "clip_before_mlp": True}
PUBLISHED_TOKENS = {"tokens": "interleaved_shared", "prediction_channel": "last"}
STACKS = {
    "one linear layer": PLAIN,
    "three linear layers": ModelConfig(num_layers=3),
    "recurrent": ModelConfig(num_layers=3, recurrent=True),
    "damped": ModelConfig(num_layers=2, damping=0.5),
    "clipped": ModelConfig(num_layers=2, activation_clip=0.4),
    "layer norm": ModelConfig(num_layers=2, layer_norm=True),
    "mlp": ModelConfig(num_layers=2, mlp_width=5),
    "one mlp for all layers": ModelConfig(num_layers=3, mlp_width=5, shared_mlp=True),
    "an mlp without biases": ModelConfig(num_layers=2, mlp_width=5, mlp_bias=False),
    "no norm before the first layer": ModelConfig(num_layers=2, layer_norm=True, first_norm=False),
    "clipped before the mlp": ModelConfig(num_layers=2, mlp_width=5, activation_clip=0.4, clip_before_mlp=True),
    "recurrent with all": replace(FULL, attention=("softmax",), recurrent=True),
    "with all": FULL,
    "merged": ModelConfig(num_layers=2, num_heads=2, merged=True),
    "labels in a channel of x": replace(FULL, tokens="interleaved_shared"),
    "read from the positional encoding": ModelConfig(num_layers=2, pos_enc_size=4, prediction_channel="last"),
    "published with all": replace(FULL, activation_clip=0.7, **PUBLISHED, **PUBLISHED_TOKENS),
}


def run(model, **parts):
    return RegressionConfig(data=DATA, model=model, **parts)


def random_params(config, seed=0):
    """Float64 parameters of the model's own structure, no entry of which is 0 or 1 by design."""
    rng = np.random.default_rng(seed)
    shapes = jax.eval_shape(make_model(config).init, prng.key(0))
    return jax.tree.map(lambda leaf: 0.5 * rng.normal(size=leaf.shape), shapes)


def setting(model, seed=0):
    config = run(model)
    return config, make_model(config), random_params(config, seed), reference.random_batch(seed, 3, 4, 3)


@pytest.mark.parametrize("name", STACKS)
def test_equals_an_independent_stack(name, x64):
    """Predictions, and everything in the trace, against plain NumPy."""
    config, model, params, batch = setting(STACKS[name])
    history = reference.stack(params, config, np.asarray(tokenise(batch, config.model)))
    np.testing.assert_allclose(model.predict(params, batch), history[-1][2], rtol=1e-10, atol=1e-10)
    trace = model.trace(params, batch)
    assert len(trace.tokens) == len(trace.attention) == len(history) == config.model.num_layers
    for layer, (tokens, maps, prediction) in enumerate(history):
        np.testing.assert_allclose(trace.tokens[layer], tokens, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(trace.attention[layer], maps, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(trace.layer_predictions[layer], prediction, rtol=1e-10, atol=1e-10)


def test_the_clip_and_the_damping_of_the_tests_above_act(x64):
    for name in ("clipped", "damped"):
        config, model, params, batch = setting(STACKS[name])
        free = make_model(run(replace(config.model, activation_clip=0.0, damping=1.0)))
        assert np.abs(model.predict(params, batch) - free.predict(params, batch)).min() > 1e-3


def test_an_mlp_for_all_layers_is_a_copy_of_it_in_each(x64):
    """And without biases it is one whose biases are zero."""
    config, model, params, batch = setting(ModelConfig(num_layers=3, mlp_width=5, shared_mlp=True, mlp_bias=False))
    assert set(params) == {"mlp_in", "mlp_out", *(f"layer_{layer}/attention" for layer in range(3))}
    assert all(set(params[name]) == {"w"} for name in ("mlp_in", "mlp_out"))
    own = make_model(run(replace(config.model, shared_mlp=False, mlp_bias=True)))
    biased = {"mlp_in": params["mlp_in"] | {"b": np.zeros(5)}, "mlp_out": params["mlp_out"] | {"b": np.zeros(4)}}
    copies = {f"layer_{layer}/{name}": values for layer in range(3) for name, values in biased.items()}
    attention = {name: values for name, values in params.items() if name not in biased}
    np.testing.assert_allclose(model.predict(params, batch), own.predict(attention | copies, batch), rtol=1e-10)


def test_the_first_norm_is_left_out_and_no_other(x64):
    """Also where the last block computes the query's row alone."""
    config, model, params, batch = setting(ModelConfig(num_layers=2, layer_norm=True, mlp_width=5, first_norm=False))
    norms = {"layer_0/mlp_norm", "layer_1/attention_norm", "layer_1/mlp_norm"}
    assert {name for name in params if name.endswith("norm")} == norms
    normed = make_model(run(replace(config.model, first_norm=True)))
    first = {"layer_0/attention_norm": {"scale": np.ones(4), "offset": np.zeros(4)}}
    assert np.abs(model.predict(params, batch) - normed.predict(params | first, batch)).min() > 1e-3


def test_the_clip_before_the_mlp_acts_on_what_it_takes(x64):
    """Without an MLP it is the clip after the layer: then it changes nothing."""
    for width, acts in ((5, True), (0, False)):
        settings = ModelConfig(num_layers=2, mlp_width=width, activation_clip=0.8, clip_before_mlp=True)
        config, model, params, batch = setting(settings)
        after = make_model(run(replace(config.model, clip_before_mlp=False)))
        change = np.abs(model.trace(params, batch).tokens[0] - after.trace(params, batch).tokens[0]).max()
        assert (change > 1e-3) == acts


def test_layer_predictions_are_those_of_shallower_stacks(x64):
    config, model, params, batch = setting(FULL)
    deep = model.trace(params, batch).layer_predictions
    for depth in (1, 2):
        shallow = make_model(run(replace(config.model, num_layers=depth)))
        kept = {name: values for name, values in params.items() if int(name[len("layer_")]) < depth}
        np.testing.assert_allclose(shallow.predict(kept, batch), deep[depth - 1], rtol=1e-10, atol=1e-10)


def test_recurrent_layers_are_one_layer_applied_again(x64):
    """K recurrent layers equal K layers with the same weights, and have a K-th of the parameters."""
    recurrent, shared, params, batch = setting(ModelConfig(num_layers=3, recurrent=True))
    assert set(params) == {"layer/attention"}
    unrolled = make_model(run(replace(recurrent.model, recurrent=False)))
    copies = {f"layer_{layer}/attention": params["layer/attention"] for layer in range(3)}
    np.testing.assert_allclose(shared.predict(params, batch), unrolled.predict(copies, batch), rtol=1e-10, atol=1e-10)


def test_initial_scale_is_shared_by_the_layers():
    """Variance init_scale / (L fan-in) in each layer, from the initialiser of von Oswald et al. 2023, App. A."""
    data, num_layers = DataConfig(dim=49, num_pairs=2), 3
    model = make_model(RegressionConfig(data=data, model=ModelConfig(num_layers=num_layers)))
    params = jax.jit(model.init)(prng.key(1))
    values = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(params)]).astype(float)
    assert values.var() == pytest.approx(0.002 / num_layers / 50, rel=4 * np.sqrt(2 / values.size))


def test_initial_parameters_depend_on_the_key_alone():
    """And no two matrices are drawn alike."""
    init = jax.jit(make_model(run(ModelConfig(num_layers=2))).init)
    one, again, other = (init(prng.key(seed)) for seed in (1, 1, 2))
    jax.tree.map(np.testing.assert_array_equal, one, again)
    matrices = [np.sort(np.ravel(leaf)) for leaf in jax.tree.leaves((one, other))]
    assert len(np.unique(matrices, axis=0)) == 2 * 2 * 4


def test_the_published_prediction_starts_at_minus_a_channel_of_the_code():
    """Untrained, it is -cos(2N / 10000^.8) = -.99992, so the loss is (D/12 + 1)/2 = .917 and not D/24 = .417.

    The rows are 0, ..., 2N, the channels of the encoding 0, ..., 9; the last one is the cosine of the slowest angle.
    """
    config = resolve(preset("twolayer", "published"))
    model, batch = make_model(config), sample_batch(prng.key(1), config.data, 4000)
    params = model.init(prng.key(0))
    np.testing.assert_allclose(model.predict(params, batch), -np.cos(20 / 10_000**0.8), atol=0.01)
    assert float(model.loss(params, batch)) == pytest.approx((10 / 12 + 1) / 2, rel=0.05)
    ours = replace(config, model=replace(config.model, tokens="interleaved", prediction_channel="label"))
    np.testing.assert_allclose(make_model(ours).predict(make_model(ours).init(prng.key(0)), batch), 0, atol=0.01)


@pytest.mark.parametrize("tokens", TOKENS)
def test_the_last_layer_computes_the_querys_row_alone(tokens):
    """The only attention of one layer is [B, 1, 1, N], where a trace has all rows."""
    config = run(ModelConfig(tokens=tokens))
    model, batch, rows = make_model(config), sample_batch(prng.key(1), DATA, 8), config.architecture.num_rows
    params = jax.eval_shape(model.init, prng.key(0))
    all_rows, one_row = f"f32[8,1,{rows},{rows - 1}]", f"f32[8,1,1,{rows - 1}]"
    predict, trace = str(jax.make_jaxpr(model.predict)(params, batch)), str(jax.make_jaxpr(model.trace)(params, batch))
    assert one_row in predict
    assert all_rows not in predict
    assert all_rows in trace


# What order can do.


@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize("size", [0, 4])
def test_the_order_of_pairs_counts_only_with_codes(tokens, size, x64):
    model = ModelConfig(tokens=tokens, attention=("softmax", "linear"), num_layers=2, pos_enc_size=size)
    _, model, params, batch = setting(model)
    order = np.array([2, 0, 3, 1])
    moved = batch._replace(x=batch.x[:, order], y=batch.y[:, order])
    change = np.abs(model.predict(params, moved) - model.predict(params, batch))
    if size == 0:
        assert change.max() < 1e-10
    else:
        assert change.min() > 1e-3


# Nothing leaks.


@pytest.mark.parametrize("model", [PLAIN, FULL])
def test_the_querys_label_and_the_teacher_never_reach_the_prediction(model, x64):
    _, model, params, batch = setting(model)
    gradient = jax.jit(jax.grad(lambda batch: model.predict(params, batch).sum()))(jax.tree.map(jnp.asarray, batch))
    for name in ("y_query", "w"):
        np.testing.assert_array_equal(getattr(gradient, name), 0)
    for name in ("x", "y", "x_query"):
        assert np.abs(getattr(gradient, name)).max() > 1e-3


@pytest.mark.parametrize("model", [PLAIN, FULL])
def test_tasks_of_a_batch_do_not_see_each_other(model, x64):
    _, model, params, batch = setting(model)
    predict = jax.jit(model.predict)
    whole = predict(params, batch)
    alone = [predict(params, Batch(*(part[task : task + 1] for part in batch))) for task in range(3)]
    np.testing.assert_allclose(np.concatenate(alone), whole, rtol=1e-10, atol=1e-10)


# Hooks cost nothing when off: the optimised program is that of sources without the hook call sites.


class WithoutHooks(ast.NodeTransformer):
    """Puts the value in the place of every `hook(.., .., value)`; takes the stripped attention where it is imported."""

    def __init__(self):
        self.dropped = 0

    def visit_Call(self, node):
        self.generic_visit(node)
        if getattr(node.func, "id", "") != "hook":
            return node
        self.dropped += 1
        return node.args[2]

    def visit_ImportFrom(self, node):
        node.module = "attn_without_hooks" if node.module == "icl_lab.src.attn" else node.module
        return node


def stripped(module, monkeypatch):
    """A module executed from its source less the hook call sites, and how many there were."""
    name = f"{module.__name__.removeprefix('icl_lab.src.')}_without_hooks"
    transformer = WithoutHooks()
    tree = ast.fix_missing_locations(transformer.visit(ast.parse(inspect.getsource(module))))
    copy = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader=None))
    monkeypatch.setitem(sys.modules, name, copy)
    exec(compile(tree, name, "exec"), copy.__dict__)
    return copy, transformer.dropped


def program(function, *arguments):
    """The optimised HLO without what only names source lines."""
    text = jax.jit(function).lower(*arguments).compile().as_text()
    text = re.sub(r"\b(metadata|origin)=\{[^}]*\}", "", text)
    lines = [
        line
        for line in text.splitlines()
        if line and not re.match(r"HloModule|FileNames|FunctionNames|FileLocations|StackFrames|\d+ ", line)
    ]
    return "\n".join(lines)


@pytest.mark.parametrize("model", [PLAIN, FULL])
def test_hooks_off_cost_nothing(model, monkeypatch):
    bare_attn, in_attn = stripped(attn, monkeypatch)
    bare, in_stack = stripped(transformer, monkeypatch)
    assert (in_attn, in_stack) == (3, 9)
    assert bare.Attention is bare_attn.Attention
    config = run(model)
    real, bare_model = make_model(config), bare.make_model(config.architecture)
    params, batch = real.init(prng.key(0)), sample_batch(prng.key(1), DATA, 8)

    def predict(params, batch):
        return real.predict(params, batch)

    def bare_predict(params, batch):
        return bare_model.predict(params, batch)

    def trace(params, batch):
        return real.trace(params, batch)

    off = program(predict, params, batch)
    assert "dot" in off or "fusion" in off
    assert off == program(bare_predict, params, batch)
    assert off != program(trace, params, batch)


@pytest.mark.parametrize("block", ["gpt2", "regression"])
def test_a_decoders_hooks_off_cost_nothing(block, monkeypatch):
    bare, in_decoder = stripped(decoder, monkeypatch)
    assert in_decoder == 17
    config = DecoderConfig(num_layers=2, num_heads=2, d_model=8, mlp_width=8, layer_norm=True, block=block)
    real, bare_model = (module.make_model(config, DATA.dim, DATA.num_pairs) for module in (decoder, bare))
    x, y = jnp.ones((4, DATA.num_pairs, DATA.dim)), jnp.ones((4, DATA.num_pairs))
    batch, params = Batch(x, y, x, y, x[:, 0]), real.init(prng.key(0))
    off, without = (program(lambda *of, model=model: model.predict(*of), params, batch) for model in (real, bare_model))
    assert off == without
    assert off != program(lambda *of: real.trace(*of), params, batch)


def test_configs_that_differ_in_no_model_share_one():
    """Its programs are kept by it; and sizes that are checked together are not refused apart."""
    base = RegressionConfig(
        data=DATA, training=TrainConfig(batch_size=7), eval_tasks=2, test_tasks=2, step_size_tasks=2
    )
    same = replace(base, data_seed=5, training=TrainConfig(lr=1.0, batch_size=7), data=replace(DATA, weight_scale=2.0))
    assert make_model(same) is make_model(base)
    for other in (replace(DATA, dim=DATA.dim + 1), replace(DATA, num_pairs=DATA.num_pairs + 1)):
        assert make_model(replace(base, data=other)) is not make_model(base)
    assert make_model(replace(base, model=ModelConfig(num_heads=2))) is not make_model(base)
    wide = DataConfig(dim=10_000, num_pairs=3000)  # with as many tasks as by default, too many numbers
    assert make_model(replace(base, data=wide)).init is not make_model(base).init
