"""What is measured of the LLC: the loop in PyTorch is the same chain on the same model, and the arithmetic."""

import jax
import numpy as np
import pytest

from icl_lab.benchmarks import llc_any_model, table
from icl_lab.benchmarks.cases import LLC, OF_ANY_MODEL, decoder
from icl_lab.benchmarks.llc import MEASURED, against, draw_variance
from icl_lab.benchmarks.torch_sgld import Chain, Tasks, losses
from icl_lab.families.task import model_of
from icl_lab.src.prng import key
from icl_lab.src.sequences import sample_sequences, tokenise
from icl_lab.store.params import flattened


def test_every_name_has_its_measurement() -> None:
    assert tuple(MEASURED) == LLC
    assert tuple(llc_any_model.MEASURED) == OF_ANY_MODEL


def test_the_variance_of_a_mean_by_batch_means() -> None:
    """Of independent values it is their variance, of x_t = .9 x_(t-1) + e the variance of e over (1 - .9)^2."""
    noise = np.random.default_rng(0).standard_normal((8, 40_000))
    assert draw_variance(noise) == pytest.approx(1, rel=0.3)
    correlated = np.zeros_like(noise)
    for step in range(1, noise.shape[1]):
        correlated[:, step] = 0.9 * correlated[:, step - 1] + noise[:, step]
    assert draw_variance(correlated) == pytest.approx(100, rel=0.3)


def test_the_table_compares_ours_with_each() -> None:
    def values(*own: float) -> dict[str, object]:
        return {"median": own[1], "low": own[0], "high": own[2], "values": own}

    seconds = {"ours": values(1.0, 2.0, 3.0), "training step": values(2.0, 4.0, 4.0)}
    entry = {"text": "a step", **against(seconds)}
    assert entry["cost"]["training step"]["values"] == (0.5, 0.5, 0.75)
    bias = {"text": "LLC by batch size", "by_batch": {"16": (20.0, 0.5), "64": (18.0, 0.4)}}
    text = table.text({"llc_step_64": entry, "llc_bias_default": bias})
    assert "training step" in text
    assert "0.500 (0.500 to 0.750)" in text
    assert "LLC by batch size, with its standard error: 16: 20 ± 0.5, 64: 18 ± 0.4." in text


def test_the_loop_in_pytorch_takes_sgld_steps_on_the_same_model() -> None:
    """Losses and gradients are JAX's in float32; the noise is drawn again from the loop's seed."""
    torch = pytest.importorskip("torch", reason="PyTorch is an extra of the bench")
    config = decoder("hoogland", d_model=16, mlp_width=16)
    model = model_of(config)
    params = model.init(key(0))
    batch = sample_sequences(key(1), key(2), config.data, 12, np.int32(16))[0]
    tasks = Tasks(np.asarray(tokenise(batch)), np.asarray(batch.y_query))
    arrays = {name: np.asarray(value) for name, value in flattened(params).items()}
    tensors = {name: torch.from_numpy(np.array(value)) for name, value in arrays.items()}
    found = losses(tensors, *(torch.from_numpy(np.array(values)) for values in tasks), config.model)
    np.testing.assert_allclose(found.numpy(), model.losses(params, batch), rtol=1e-4)

    eps, nbeta = 0.1, 200.0
    chain = Chain(arrays, tasks, config.model, 12, True, (eps, nbeta, 3.0))
    assert chain(1)[0] == pytest.approx(0, abs=1e-6)
    drawn = torch.Generator().manual_seed(0)
    chosen = torch.randint(12, (12,), generator=drawn).numpy()
    own = jax.tree.map(lambda values: values[chosen], batch)
    gradients = flattened(jax.grad(lambda params: model.losses(params, own).mean())(params))
    for name, value in arrays.items():
        noise = torch.randn(value.shape, generator=drawn).numpy()
        expected = value - 0.5 * eps * nbeta * np.asarray(gradients[name]) + eps**0.5 * noise
        np.testing.assert_allclose(chain.w[name].detach().numpy(), expected, atol=2e-4)
