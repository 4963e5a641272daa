"""Weights in the published layout give the predictions of GPT-2: written here in NumPy, and of transformers in PyTorch.

What needs PyTorch and transformers runs where requirements-torch.txt is installed.
"""

import math
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from safetensors.numpy import save_file

from icl_lab.families.functions import published, task
from icl_lab.src.checks import ConfigError
from icl_lab.src.prng import Purpose
from icl_lab.store.readers import StoreError
from tests.test_docs import blocks

DIM, PAIRS, WIDTH, LAYERS, HEADS = 3, 6, 16, 2, 4


@pytest.fixture(scope="module")
def weights() -> dict[str, np.ndarray]:
    """A state dict of the published layout with random weights."""
    random = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return (0.3 * random.standard_normal(shape)).astype(np.float32)

    found = {
        "_read_in.weight": normal(WIDTH, DIM),
        "_read_in.bias": normal(WIDTH),
        "_read_out.weight": normal(1, WIDTH),
        "_read_out.bias": normal(1),
        "_backbone.wpe.weight": normal(2 * PAIRS, WIDTH),
        "_backbone.wte.weight": normal(1, WIDTH),
        "_backbone.ln_f.weight": 1 + normal(WIDTH),
        "_backbone.ln_f.bias": normal(WIDTH),
    }
    shapes = {"attn.c_attn": (WIDTH, 3 * WIDTH), "attn.c_proj": (WIDTH, WIDTH)}
    shapes |= {"mlp.c_fc": (WIDTH, 4 * WIDTH), "mlp.c_proj": (4 * WIDTH, WIDTH)}
    for layer in range(LAYERS):
        at = f"_backbone.h.{layer}"
        for name, shape in shapes.items():
            found |= {f"{at}.{name}.weight": normal(*shape), f"{at}.{name}.bias": normal(shape[1])}
        for name in ("ln_1", "ln_2"):
            found |= {f"{at}.{name}.weight": 1 + normal(WIDTH), f"{at}.{name}.bias": normal(WIDTH)}
        found[f"{at}.attn.bias"] = np.tril(np.ones((1, 1, 2 * PAIRS, 2 * PAIRS), np.float32))
    return found


def gpt2(weights: dict[str, np.ndarray], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Predictions [B, K] in float64: layer norms of epsilon 1e-5, GELU by tanh, matrices stored [in, out]."""
    w = {name: value.astype(float) for name, value in weights.items()}
    tokens = np.zeros((len(x), 2 * PAIRS, DIM))
    tokens[:, ::2], tokens[:, 1::2, 0] = x, y
    stream = tokens @ w["_read_in.weight"].T + w["_read_in.bias"] + w["_backbone.wpe.weight"]

    def norm(rows: np.ndarray, name: str) -> np.ndarray:
        centred = rows - rows.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
        return scaled * w[f"_backbone.{name}.weight"] + w[f"_backbone.{name}.bias"]

    def linear(rows: np.ndarray, name: str) -> np.ndarray:
        return rows @ w[f"_backbone.{name}.weight"] + w[f"_backbone.{name}.bias"]

    for layer in range(LAYERS):
        at, pooled = f"h.{layer}", np.zeros_like(stream)
        parts = np.split(linear(norm(stream, f"{at}.ln_1"), f"{at}.attn.c_attn"), 3, axis=-1)
        for head in range(HEADS):
            query, key, value = (part[..., head * 4 : head * 4 + 4] for part in parts)
            scores = query @ np.swapaxes(key, 1, 2) / math.sqrt(WIDTH / HEADS)
            scores = np.where(np.tril(np.ones((2 * PAIRS, 2 * PAIRS))) > 0, scores, -np.inf)
            likely = np.exp(scores - scores.max(axis=-1, keepdims=True))
            pooled[..., head * 4 : head * 4 + 4] = likely / likely.sum(axis=-1, keepdims=True) @ value
        stream = stream + linear(pooled, f"{at}.attn.c_proj")
        hidden = linear(norm(stream, f"{at}.ln_2"), f"{at}.mlp.c_fc")
        hidden = 0.5 * hidden * (1 + np.tanh(math.sqrt(2 / math.pi) * (hidden + 0.044715 * hidden**3)))
        stream = stream + linear(hidden, f"{at}.mlp.c_proj")
    return (norm(stream, "ln_f")[:, ::2] @ w["_read_out.weight"].T + w["_read_out.bias"])[..., 0]


@pytest.mark.parametrize("kind", ["npz", "safetensors"])
def test_predictions_are_those_of_gpt2(kind: str, weights: dict[str, np.ndarray], tmp_path: Path) -> None:
    path = tmp_path / f"weights.{kind}"
    if kind == "npz":
        np.savez(path, **weights)
    else:
        save_file({f"model.{name}": value for name, value in weights.items()}, path)
    found = published.read(path, num_heads=HEADS, eval_tasks=8)
    config = found.config
    assert (config.data.dim, config.data.num_pairs, config.model.num_layers) == (DIM, PAIRS, LAYERS)
    model = task.make_model(config)
    params: Any = found.params
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    assert jax.tree.map(np.shape, params) == jax.tree.map(lambda leaf: leaf.shape, shapes)
    batch = task.prompts(config, Purpose.EVAL, 8)
    expected = gpt2(weights, np.asarray(batch.x, float), np.asarray(batch.y, float))
    np.testing.assert_allclose(task.predictions_of(model, params, batch), expected, atol=1e-4)


def published_model() -> Any:
    """GPT-2 between two linear maps, as Garg et al. train it: 2 heads of 32 channels, random weights."""
    torch = pytest.importorskip("torch", reason="PyTorch is an extra")
    transformers = pytest.importorskip("transformers", reason="transformers is an extra")

    class Published(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            sizes = {"n_positions": 2 * PAIRS, "n_embd": 64, "n_layer": LAYERS, "n_head": 2}
            self._read_in = torch.nn.Linear(DIM, 64)
            self._backbone = transformers.GPT2Model(transformers.GPT2Config(**sizes))
            self._read_out = torch.nn.Linear(64, 1)

        def forward(self, tokens: Any) -> Any:
            stream = self._backbone(inputs_embeds=self._read_in(tokens)).last_hidden_state
            return self._read_out(stream)[:, ::2, 0]

    torch.manual_seed(0)
    model = Published().eval()
    for parameter in model.parameters():  # a new one has biases of 0, and weights so small that attention is even
        parameter.data += 0.3 * torch.randn(parameter.shape)
    return model


@pytest.mark.slow  # to import them
@pytest.mark.parametrize("kind", ["npz", "safetensors"])
def test_predictions_are_those_of_pytorch(
    kind: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state dict saved by `torch.save`, exported by the lines of the page as they stand there."""
    model = published_model()
    import torch
    from safetensors.torch import save_file as save_tensors

    torch.save({"model_state_dict": model.state_dict(), "train_step": 7}, tmp_path / "state.pt")
    if kind == "npz":
        monkeypatch.chdir(tmp_path)
        exec(next(text for _, _, text in blocks(root / "docs/coming_from_garg.md") if "torch.load" in text), {})
    else:
        save_tensors(model.state_dict(), tmp_path / "published.safetensors")
    found = published.read(tmp_path / f"published.{kind}", eval_tasks=64)
    batch = task.prompts(found.config, Purpose.EVAL, 64)
    tokens = np.zeros((64, 2 * PAIRS, DIM), np.float32)
    tokens[:, ::2], tokens[:, 1::2, 0] = batch.x, batch.y
    with torch.no_grad():
        expected = model(torch.from_numpy(tokens)).numpy()
    predictions = task.predictions_of(task.make_model(found.config), found.params, batch)
    assert expected.std() > 0.5
    np.testing.assert_allclose(predictions, expected, atol=1e-4)


def test_fewer_pairs_leave_positions_out(weights: dict[str, np.ndarray], tmp_path: Path) -> None:
    np.savez(tmp_path / "weights.npz", **weights)
    found = published.read(tmp_path / "weights.npz", num_pairs=4, function="quadratic")
    assert found.params["embed"]["positions"].shape == (8, WIDTH)
    assert found.config.function.kind == "quadratic"
    with pytest.raises(ConfigError, match=r"num_pairs is 7; .* has positions of 6 pairs"):
        published.read(tmp_path / "weights.npz", num_pairs=7)


def test_other_files_are_refused(weights: dict[str, np.ndarray], tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", **{name: value for name, value in weights.items() if "ln_2" not in name})
    with pytest.raises(StoreError, match=r"other\.npz"):
        published.read(tmp_path / "other.npz")
    np.savez(tmp_path / "pickled.npz", weights=np.array([{}], dtype=object))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "other.npz").read_bytes()[:300])
    (tmp_path / "empty.npz").touch()
    for name in ("pickled", "cut", "empty"):
        with pytest.raises(StoreError, match="no npz archive of arrays"):
            published.read(tmp_path / f"{name}.npz")
