"""The kernel's losses and gradients: in float64 against NumPy and differences, in float32 against float64."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from icl_lab.src import layerwise, transformer
from icl_lab.src.batch import Batch
from icl_lab.src.config import Architecture, EmbeddedModel, ModelConfig
from icl_lab.src.native.support import VECTOR, block_bytes
from tests.src.native.plain import Contexts, Plain, compiled, contexts, in_numpy, matrices

pytestmark = pytest.mark.usefixtures("compiler")

TIE = 1e-5  # an activation that is nearer to a clip may count on either side of it
DIFFERENCE = 1e-6  # step of the differences, whose error is then 1e-9 of derivatives of order 1
STATED = 2e-6  # error of float32, relative to the largest entry, or twice XLA's own if that is more


@pytest.fixture(scope="module")
def double(tmp_path_factory: pytest.TempPathFactory) -> Plain:
    return Plain(compiled(tmp_path_factory.mktemp("double") / "plain.so", "-O2", "-shared", "-fPIC", "-DICL_DOUBLE"))


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Plain:
    flags = ("-O2", "-march=native", "-shared", "-fPIC")
    return Plain(compiled(tmp_path_factory.mktemp("single") / "plain.so", *flags))


@st.composite
def stacks(draw: st.DrawFn, most: int = 6) -> Architecture[Any]:
    """Stacks of any field that the kernel has."""
    layers, heads = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    recurrent = draw(st.booleans())
    kinds = draw(st.lists(st.sampled_from(("linear", "softmax")), min_size=1, max_size=1 if recurrent else layers))
    common = {
        "attention": tuple(kinds),
        "num_layers": layers,
        "num_heads": heads,
        "recurrent": recurrent,
        "damping": draw(st.sampled_from((1.0, 0.3))),
        "activation_clip": draw(st.sampled_from((0.0, 0.9, 2.0))),
        "key_size": draw(st.sampled_from((0, 4 * heads))),
    }
    dim, pairs = draw(st.integers(1, most)), draw(st.integers(1, most))
    if draw(st.booleans()):
        return Architecture(EmbeddedModel(**common), dim, pairs, draw(st.integers(1, 3)))
    tokens = draw(st.sampled_from(("concatenated", "interleaved", "interleaved_shared")))
    read = draw(st.sampled_from(("label", "last")))
    encoding = draw(st.sampled_from((0, 2, 4)))
    return Architecture(
        ModelConfig(**common, tokens=tokens, pos_enc_size=encoding, prediction_channel=read), dim, pairs
    )


def apart(found: Any, wanted: Any) -> float:
    """The largest difference, relative to the largest entry."""
    largest = np.abs(wanted).max()
    return float(np.abs(np.asarray(found, np.float64) - wanted).max() / (largest or 1.0))


@settings(max_examples=60, deadline=None)
@given(stacks(most=4), st.integers(1, 20), st.integers(0, 2**16))
def test_in_float64_losses_are_numpys_and_gradients_their_differences(
    double: Plain, architecture: Architecture[Any], tasks: int, seed: int
) -> None:
    batch, weights = contexts(architecture, tasks, seed), matrices(architecture, seed + 1)
    losses, near = in_numpy(architecture, weights, batch)
    assume(near > TIE)
    found, gradients = double(architecture, weights, batch)
    np.testing.assert_allclose(found, losses, rtol=1e-11, atol=1e-14)
    ways = np.random.default_rng(seed + 2).normal(size=(4, *weights.shape))
    for way in ways:
        ahead, behind = (in_numpy(architecture, weights + sign * DIFFERENCE * way, batch)[0] for sign in (1, -1))
        slope = (ahead - behind).mean() / (2 * DIFFERENCE)
        assert np.sum(gradients * way) == pytest.approx(slope, rel=1e-6, abs=1e-8)


@settings(max_examples=100, deadline=None)
@given(stacks(most=11), st.integers(1, 140), st.integers(0, 2**16))
def test_in_float32_the_error_is_small(
    single: Plain, double: Plain, architecture: Architecture[Any], tasks: int, seed: int
) -> None:
    """Of float32's numbers, which both builds are given; XLA's own error is taken where it is needed."""
    drawn, weights = contexts(architecture, tasks, seed), matrices(architecture, seed + 1).astype(np.float32)
    batch = Contexts(*(part.astype(np.float32) for part in drawn))
    assume(in_numpy(architecture, weights.astype(np.float64), batch)[1] > TIE)
    wanted = double(architecture, weights, batch)
    errors = [apart(*pair) for pair in zip(single(architecture, weights, batch), wanted, strict=True)]
    if max(errors) > STATED:
        errors_of_xla = [apart(*pair) for pair in zip(by_xla(architecture, weights, batch), wanted, strict=True)]
        assert all(ours <= max(STATED, 2 * theirs) for ours, theirs in zip(errors, errors_of_xla, strict=True))


def by_xla(architecture: Architecture[Any], weights: np.ndarray, batch: Contexts) -> tuple[Any, Any]:
    """Losses and gradients of merged matrices by the model itself, whose batch has one query or several."""
    model = replace(architecture.model, merged=True, key_size=0)
    same, key_size = replace(architecture, model=model), architecture.model.key_size // model.num_heads
    soft = np.array([model.kind(layer) == "softmax" for layer in range(weights.shape[1])])
    scale = np.where(soft, np.sqrt(architecture.width / (key_size or architecture.width)), 1.0)  # of key_size 0
    made: Any = layerwise if isinstance(model, EmbeddedModel) else transformer
    one = made is transformer
    given = Batch(
        *(jnp.asarray(part) for part in (batch.x, batch.y)),
        *(jnp.asarray(part[:, 0] if one else part) for part in (batch.x_query, batch.y_query)),
        jnp.zeros((len(batch.y), architecture.dim)),
    )
    of = made.make_model(same)
    names = [f"{name}/attention" for name in model.layer_names]

    def params(matrices: Any) -> Any:
        scores, values = (part.swapaxes(-1, -2) for part in matrices)
        scores = scores * jnp.asarray(scale, jnp.float32)[:, None, None, None]
        return {
            name: {"key_query": scores[layer], "projection_value": values[layer]} for layer, name in enumerate(names)
        }

    whole = jnp.asarray(weights)
    return of.losses(params(whole), given), jax.grad(lambda w: of.loss(params(w), given))(whole)


@pytest.mark.parametrize("scale", [0.0, 1e-20, 1e4], ids=["zeros", "denormal products", "extreme scores"])
def test_extreme_inputs(single: Plain, double: Plain, scale: float) -> None:
    """Softmax of scores that are far apart is 0 or 1; of inputs that are zero every gradient is exactly zero."""
    architecture = Architecture(ModelConfig(attention=("softmax",), num_layers=2), 3, 5)
    batch, weights = contexts(architecture, 33, 0, scale), matrices(architecture, 1)
    losses, gradients = single(architecture, weights, batch)
    assert np.isfinite(losses).all()
    assert np.isfinite(gradients).all()
    if scale < 1:
        assert not gradients.any()
    else:
        wanted, slopes = double(architecture, weights.astype(np.float32), Contexts(*map(np.float32, batch)))
        assert apart(losses, wanted) < STATED
        assert apart(gradients, slopes) < 1e-4  # of products of 1e16, of which differences are taken


def test_nan_and_infinity_pass_through_clips_and_reach_all_that_they_touch(single: Plain) -> None:
    model = ModelConfig(num_layers=2, activation_clip=0.5)
    architecture = Architecture(model, 3, 5)
    batch, weights = contexts(architecture, 40, 0), matrices(architecture, 1)
    batch.x[11, 2, 1] = np.nan
    losses, gradients = single(architecture, weights, batch)
    assert np.flatnonzero(np.isnan(losses)).tolist() == [11]
    assert np.isnan(gradients).all()
    broken = matrices(architecture, 1)
    broken[0, 1, 0, 2, 2] = np.nan  # of the last layer's scores
    losses, gradients = single(architecture, broken, contexts(architecture, 40, 0))
    assert np.isnan(losses).all()
    assert np.isnan(gradients).any()


def test_bits_do_not_depend_on_helpers_and_a_gradient_is_the_mean_of_its_groups(single: Plain) -> None:
    architecture = Architecture(ModelConfig(num_layers=3, attention=("softmax", "linear")), 7, 6)
    batch, weights = contexts(architecture, 4 * 128 + 3, 0), matrices(architecture, 1)
    alone = single(architecture, weights, batch)
    for helpers in (1, 3):
        for _ in range(5):
            helped = single(architecture, weights, batch, helpers)
            assert all(np.array_equal(ours, theirs) for ours, theirs in zip(alone, helped, strict=True))
    half = Contexts(*(part[:256] for part in batch)), Contexts(*(part[256:512] for part in batch))
    both = single(architecture, weights, Contexts(*(part[:512] for part in batch)))[1]
    parts = [single(architecture, weights, part)[1] for part in half]
    np.testing.assert_allclose(both, np.mean(parts, axis=0), rtol=1e-4, atol=1e-7)  # rounding of sums of 512


@settings(max_examples=50, deadline=None)
@given(stacks(most=11))
def test_what_a_block_takes_is_what_auto_asks(single: Plain, architecture: Architecture[Any]) -> None:
    assert block_bytes(architecture) == VECTOR * single.block_vectors(architecture)


@pytest.mark.slow
def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    program = compiled(tmp_path / "program", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "162 shapes\n"), done.stderr
