"""Activations by name: what a model has, reading them, replacing them at a site, and derivatives by them."""

from dataclasses import replace
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.src import decoder, layerwise, patching, transformer
from icl_lab.src.activations import OF_BLOCK, OF_MODEL, address, axes_of, no_hook
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError
from icl_lab.src.config import Architecture, EmbeddedModel, ModelConfig
from icl_lab.src.decoder_config import DecoderConfig
from icl_lab.src.patching import Site, ablated, capture, patch, shapes_of
from icl_lab.src.prng import key
from icl_lab.src.units import Units, in_units

SIZE, DIM, PAIRS, LAYERS, HEADS = 5, 3, 4, 2, 2
DECODER = DecoderConfig(num_layers=LAYERS, num_heads=HEADS, d_model=8, mlp_width=12, layer_norm=True)
STACK = ModelConfig(
    tokens="interleaved",
    attention=("softmax", "linear"),
    num_layers=LAYERS,
    num_heads=HEADS,
    damping=0.7,
    activation_clip=60.0,
    pos_enc_size=4,
    bias=True,
    layer_norm=True,
    mlp_width=5,
    init_scale=2.0,
)


def batch_of(seed, queries=()):
    draw = np.random.default_rng(seed)
    x, y = draw.normal(size=(SIZE, PAIRS, DIM)), draw.normal(size=(SIZE, PAIRS))
    x_query, y_query = draw.normal(size=(SIZE, *queries, DIM)), draw.normal(size=(SIZE, *queries))
    arrays = (x, y, x, y) if queries == "all" else (x, y, x_query, y_query)
    return Batch(*(jnp.asarray(array) for array in (*arrays, draw.normal(size=(SIZE, DIM)))))


def sequences(seed):
    batch = batch_of(seed)
    return batch._replace(x_query=batch.x, y_query=batch.y)


def rolled_out():
    model = EmbeddedModel(num_layers=LAYERS, num_heads=HEADS, d_model=6, layer_norm=True, recurrent=True)
    return layerwise.make_model(Architecture(model, DIM, PAIRS, 2))


MODELS = {
    "decoder": (decoder.make_model(DECODER, DIM, PAIRS), sequences),
    "regression decoder": (
        decoder.make_model(replace(DECODER, block="regression", attention_output=False), DIM, PAIRS),
        sequences,
    ),
    "stack": (transformer.make_model(Architecture(STACK, DIM, PAIRS)), batch_of),
    "plain stack": (transformer.make_model(Architecture(ModelConfig(), DIM, PAIRS)), batch_of),
    "several queries": (rolled_out(), partial(batch_of, queries=(2,))),
}


@lru_cache
def params_of(model, seed=7):
    """Initial parameters and normal noise, so that no bias is zero."""
    params, draw = jax.jit(model.init)(key(0)), np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: leaf + jnp.asarray(0.3 * draw.normal(size=leaf.shape), leaf.dtype), params)


@pytest.fixture(params=MODELS)
def subject(request):
    model, sample = MODELS[request.param]
    return model, params_of(model), sample


@partial(jax.jit, static_argnums=0)
def everything(model, params, batch):
    return capture(model, params, batch)


@partial(jax.jit, static_argnums=0)
def patched(model, params, batch, values, site=patching.EVERYWHERE):
    return patch(model, params, batch, values, site)


# Names


def names(layers, *of_block):
    return [address(name, layer) for layer in range(layers) for name in of_block]


def test_a_decoder_has_every_activation():
    model, sample = MODELS["decoder"]
    shapes = shapes_of(model, params_of(model), sample(0))
    assert [*shapes] == ["embed", "pos_embed", *names(LAYERS, *OF_BLOCK), "prediction"]
    sizes = {"context": SIZE, "position": 2 * PAIRS, "key": 2 * PAIRS, "head": HEADS, "query": PAIRS}
    for at, shape in shapes.items():
        channels = 4 if at[-6:] in ("attn.q", "attn.k", "attn.v", "attn.z") else 12 if ".mlp.p" in at else 8
        assert shape.shape == tuple({**sizes, "channel": channels}[axis] for axis in axes_of(at)), at


def test_a_stack_has_no_queries_keys_and_values_and_without_an_mlp_no_middle():
    model, sample = MODELS["stack"]
    absent = ("attn.q", "attn.k", "attn.v", "attn.z")
    left = [name for name in OF_BLOCK if name not in absent]
    assert patching.present(model, params_of(model), sample(0)) == ["embed", *names(LAYERS, *left), "prediction"]
    model, sample = MODELS["plain stack"]
    left = [name for name in left if name != "resid_mid" and not name.startswith("mlp")]
    assert patching.present(model, params_of(model), sample(0)) == ["embed", *names(1, *left), "prediction"]


@pytest.mark.parametrize(
    ("model", "name", "sentence"),
    [
        ("stack", "blocks.0.attn.q", "multiplies the merged matrices"),
        ("plain stack", "blocks.*.mlp_out", "its blocks have no MLP"),
        ("stack", "pos_embed", "positions are not added"),
        ("decoder", "blocks.7.attn.q", "it has 2 blocks, from blocks.0, and an address is blocks.N.attn.q"),
        ("decoder", "attn.pattern", "an address is blocks.N.attn.pattern"),
        ("decoder", "blocks.1.atn.pattern", "did you mean blocks.1.attn.pattern"),
        ("plain stack", "xyz", "the activations are embed, blocks.0.resid_pre"),
    ],
)
def test_a_name_that_matches_nothing_says_why(model, name, sentence):
    model, sample = MODELS[model]
    for use in (
        lambda: capture(model, params_of(model), sample(0), name),
        lambda: patch(model, params_of(model), sample(0), {name: 0.0}),
    ):
        with pytest.raises(ConfigError, match="no activation of this model") as error:
            use()
        assert sentence in str(error.value)


def test_patterns_choose():
    model, sample = MODELS["decoder"]
    found = capture(model, params_of(model), sample(0), ["blocks.*.attn.pattern", "embed"])
    assert [*found] == ["embed", "blocks.0.attn.pattern", "blocks.1.attn.pattern"]


# What is read


def test_activations_add_up(subject):
    """The stream is what its parts sum to, heads' results to attention's output; block and model predict the same."""
    model, params, sample = subject
    seen = everything(model, params, sample(0))
    close = partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5)
    close(seen["prediction"], jax.jit(model.predict)(params, sample(0)))
    last = max(int(at.split(".")[1]) for at in seen if at.startswith("blocks."))
    close(seen[f"blocks.{last}.prediction"], seen["prediction"])
    for layer in range(last + 1):
        part = {name: seen.get(address(name, layer)) for name in OF_BLOCK}
        if part["resid_mid"] is None:
            part |= {"resid_mid": part["resid_pre"] + part["attn_out"], "mlp_out": 0.0}
        np.testing.assert_allclose(part["resid_mid"], part["resid_pre"] + part["attn_out"], rtol=1e-5, atol=1e-5)
        total = part["resid_mid"] + part["mlp_out"]
        close(part["resid_post"], np.clip(total, -60, 60) if model is MODELS["stack"][0] else total)
        below = seen[address("resid_post", layer - 1)] if layer else seen["embed"] + seen.get("pos_embed", 0.0)
        close(part["resid_pre"], below)


def test_a_decoders_heads_add_up(x64):
    """attn_out = sum_h z_h W_h + b, in NumPy."""
    model, sample = MODELS["decoder"]
    params = params_of(model)
    seen = everything(model, params, sample(0))
    w, b = (np.asarray(params["layer_1/attention/output"][name]) for name in ("w", "b"))
    z, results = (np.asarray(seen[f"blocks.1.attn.{name}"]) for name in ("z", "result"))
    expected = np.einsum("brhc,hcd->bhrd", z, w.reshape(HEADS, -1, w.shape[1]))
    np.testing.assert_allclose(results, expected, atol=1e-12)
    np.testing.assert_allclose(seen["blocks.1.attn_out"], expected.sum(axis=1) + b, atol=1e-12)
    pattern, value = (np.asarray(seen[f"blocks.1.attn.{name}"]) for name in ("pattern", "v"))
    np.testing.assert_allclose(z, np.einsum("bhrt,bthc->brhc", pattern, value), atol=1e-12)


def test_a_look_at_other_activations_splits_no_heads():
    """The program of a trace, which says what it sees, has no array of heads' results; one of everything has."""
    model = decoder.make_model(replace(DECODER, d_model=10), DIM, PAIRS)
    params, batch = params_of(model), sequences(0)
    results = f"f32[{SIZE},{HEADS},{2 * PAIRS},10]"

    def equations(function):
        return str(jax.make_jaxpr(function)(params, batch))

    assert results in equations(lambda *of: capture(model, *of))
    assert results not in equations(model.trace)


def test_without_a_matrix_a_heads_result_is_its_own_channels():
    model, sample = MODELS["regression decoder"]
    seen = everything(model, params_of(model), sample(0))
    results, channels = seen["blocks.0.attn.result"], 8 // HEADS
    for head in range(HEADS):
        own = np.arange(8) // channels == head
        np.testing.assert_array_equal(results[:, head][..., ~own], 0.0)
        np.testing.assert_array_equal(results[:, head][..., own], seen["blocks.0.attn.z"][:, :, head])


def test_in_the_datas_units():
    """What is captured of a prediction, of a block's too, is what the model predicts; patches are in these units."""
    bare, sample = MODELS["stack"]
    model = in_units(bare, Units((1.0, 2.0, 3.0), (2.0, 0.5, 1.0), -4.0, 10.0))
    params, batch = params_of(bare), sample(0)
    seen = everything(model, params, batch)
    for at in ("prediction", f"blocks.{LAYERS - 1}.prediction"):
        np.testing.assert_allclose(seen[at], model.predict(params, batch), rtol=1e-5)
    assert float(abs(seen["prediction"] + 4).max()) > 1
    np.testing.assert_allclose(patched(model, params, batch, {"prediction": 17.0}), 17.0, rtol=1e-6)
    np.testing.assert_array_equal(model.watch(params, batch, no_hook), model.predict(params, batch))


# What is replaced


def test_its_own_activations_change_nothing(subject):
    """Bitwise: each alone, operation by operation, and all in a program. Another context's change something."""
    model, params, sample = subject
    seen, other = (capture(model, params, sample(seed)) for seed in (0, 1))
    for at, value in seen.items():
        np.testing.assert_array_equal(patch(model, params, sample(0), {at: value}), seen["prediction"], at)
        if at != "pos_embed" and not at.endswith(".prediction"):
            assert np.any(patch(model, params, sample(0), {at: other[at]}) != seen["prediction"]), at
    seen = everything(model, params, sample(0))
    np.testing.assert_array_equal(patched(model, params, sample(0), seen), seen["prediction"])


@jax.jit
def with_its_own(params, batch, site):
    """In one program the predictions, and those with the run's own activations at a site."""
    model, _ = MODELS["decoder"]
    seen = capture(model, params, batch)
    of_heads = {at: value for at, value in seen.items() if at.endswith(("attn.pattern", "attn.result"))}
    return seen["prediction"], patch(model, params, batch, of_heads, site)


def test_its_own_activations_at_a_site_change_nothing():
    model, sample = MODELS["decoder"]
    for layer, head, position in ((0, 1, 3), (1, 0, -1)):
        plain, same = with_its_own(params_of(model), sample(0), Site(layer, head, position))
        np.testing.assert_array_equal(plain, same)


def test_a_whole_layer_from_elsewhere_is_a_run_from_there(subject):
    """After any block, the stream of other contexts gives the predictions of these."""
    model, params, sample = subject
    other = everything(model, params, sample(1))
    for at in [at for at in other if at.endswith("resid_post")]:
        np.testing.assert_array_equal(patched(model, params, sample(0), {at: other[at]}), other["prediction"])
    assert np.abs(other["prediction"] - everything(model, params, sample(0))["prediction"]).max() > 1e-3


def test_at_a_site_only(subject):
    """One head, one row, one block: the value there and nowhere else, by a pass in which that array is put together."""
    model, params, sample = subject
    mine, other = (everything(model, params, sample(seed)) for seed in (0, 1))
    name = "blocks.0.attn.result"
    heads, rows = mine[name].shape[1:3]
    for head, position in ((0, None), (heads - 1, 1), (None, -1)):
        mixed = np.array(mine[name])
        where = (slice(None), slice(None) if head is None else head, slice(None) if position is None else position)
        mixed[where] = other[name][where]
        site = Site(head=head, position=position)
        by_site = patched(model, params, sample(0), {"blocks.*.attn.result": other[name]}, site._replace(layer=0))
        np.testing.assert_array_equal(by_site, patched(model, params, sample(0), {name: mixed}))
    assert rows > 1


def test_all_sites_are_one_program():
    """A table over layers, heads and positions traces once: sites are values."""
    model, sample = MODELS["decoder"]
    params, batch, traces = params_of(model), sample(0), []
    clean = {at: value for at, value in everything(model, params, sample(1)).items() if at.endswith("attn.result")}

    @jax.jit
    def table(params, batch, clean, sites):
        traces.append(1)
        return jax.lax.map(lambda site: patch(model, params, batch, clean, site), sites)

    grid = np.stack(np.meshgrid(range(LAYERS), range(HEADS), range(2 * PAIRS), indexing="ij"), -1).reshape(-1, 3)
    found = table(params, batch, clean, Site(*grid.T))
    found = table(params, batch, clean, Site(*grid[::-1].T))[::-1]
    assert len(traces) == 1
    assert found.shape == (LAYERS * HEADS * 2 * PAIRS, SIZE, PAIRS)
    layer, head, position = (int(index) for index in grid[21])
    alone = patch(model, params, batch, {f"blocks.{layer}.attn.result": clean[f"blocks.{layer}.attn.result"]},
                  Site(head=head, position=position))  # fmt: skip
    np.testing.assert_allclose(found[21], alone, rtol=1e-5, atol=1e-6)


def test_a_function_is_applied_at_the_site():
    model, sample = MODELS["decoder"]
    params, batch = params_of(model), sample(0)
    at = "blocks.0.attn.pattern"
    seen = everything(model, params, batch)
    by_function = patch(model, params, batch, {at: lambda pattern: 2 * pattern}, Site(head=1))
    doubled = np.array(seen[at])
    doubled[:, 1] *= 2
    np.testing.assert_allclose(by_function, patch(model, params, batch, {at: doubled}), rtol=1e-6)


def test_the_derivative_by_an_activation(x64):
    """By central differences, whose error is of the square of the step: 1e-10, and rounding 1e-11."""
    model, sample = MODELS["decoder"]
    params, batch, at = params_of(model), sample(0), "blocks.0.resid_post"
    value = capture(model, params, batch, at)[at]

    @jax.jit
    def predicted(value):
        return jnp.sum(patch(model, params, batch, {at: value}))

    direction = np.random.default_rng(3).normal(size=value.shape)
    slope = float(jnp.sum(jax.grad(predicted)(value) * direction))
    step = 1e-5
    difference = float(predicted(value + step * direction) - predicted(value - step * direction)) / (2 * step)
    assert slope == pytest.approx(difference, rel=1e-7)


# Ablation


@pytest.mark.parametrize("how", patching.ABLATIONS)
def test_a_head_whose_matrix_is_zero_may_go(how):
    model, sample = MODELS["decoder"]
    params = jax.tree.map(np.array, params_of(model))
    params["layer_0/attention/output"]["w"].reshape(HEADS, -1, 8)[1] = 0
    batch = sample(0)
    values = ablated(model, params, batch, "blocks.0.attn.result", how)
    whole = everything(model, params, batch)["prediction"]
    np.testing.assert_array_equal(patched(model, params, batch, values, Site(head=1)), whole)
    assert np.abs(patched(model, params, batch, values, Site(head=0)) - whole).max() > 1e-4


def test_what_ablation_puts_in_a_place():
    model, sample = MODELS["decoder"]
    params, batch, at = params_of(model), sample(0), "blocks.0.mlp_out"
    value = np.asarray(capture(model, params, batch, at)[at])
    found = {how: ablated(model, params, batch, at, how, 2)[at] for how in patching.ABLATIONS}
    np.testing.assert_array_equal(found["zero"], np.zeros_like(value))
    np.testing.assert_allclose(found["mean"], value.mean(axis=0, keepdims=True), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found["resample"], value[[2, 3, 4, 0, 1]])
    with pytest.raises(ConfigError, match="ablation is 'knock'; it must be one of zero, mean, resample"):
        ablated(model, params, batch, at, "knock")


@pytest.mark.parametrize(
    ("at", "value", "site", "sentence"),
    [
        ("embed", np.zeros((3, 8)), {}, r"the value for embed has the shape \(3, 8\); it must be \(5, 8, 8\)"),
        ("embed", 0.0, {"head": 0}, "embed has no axis of heads; its axes are context, position, channel"),
        ("blocks.0.attn.result", 0.0, {"head": 2}, "blocks.0.attn.result has 2 heads, so there is no head 2"),
        ("blocks.0.attn.result", 0.0, {"position": -9}, "has 8 positions, so there is no position -9"),
        ("prediction", 0.0, {"position": 0}, "prediction has no axis of positions"),
    ],
)
def test_what_does_not_fit_is_refused(at, value, site, sentence):
    model, sample = MODELS["decoder"]
    with pytest.raises(ConfigError, match=sentence):
        patch(model, params_of(model), sample(0), {at: value}, Site(**site))


def test_every_name_has_axes():
    assert {axes_of(at) for at in OF_MODEL} <= {*OF_MODEL.values()}
    assert axes_of("blocks.12.attn.z") == OF_BLOCK["attn.z"]
