"""SGLD as one writes it in PyTorch: a loop over steps on the decoder's parameters, with a paired baseline or without.

PyTorch is an extra of the bench alone: `pip install torch`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from icl_lab.lab.environment import num_threads
from icl_lab.src.decoder_config import DecoderConfig

MISSING = "PyTorch is not installed, so its loops are not measured: pip install torch"


class Tasks(NamedTuple):
    """A fixed set: tokens [n, 2K, D + 1] and labels [n, K]."""

    tokens: np.ndarray
    targets: np.ndarray


def is_installed() -> bool:
    """Whether PyTorch can be imported."""
    return find_spec("torch") is not None


def losses(params: Mapping[str, Any], tokens: Any, targets: Any, model: DecoderConfig) -> Any:
    """Half the mean squared error of each sequence [B], of a decoder of regression blocks.

    params: module/name -> tensor.
    """
    import torch
    from torch.nn import functional

    def norm(x: Any, name: str) -> Any:
        return functional.layer_norm(x, x.shape[-1:], params[f"{name}/scale"], params[f"{name}/offset"])

    def linear(x: Any, name: str) -> Any:
        mapped = x @ params[f"{name}/w"]
        return mapped + params[f"{name}/b"] if f"{name}/b" in params else mapped

    stream = linear(tokens, "embed/linear") + params["embed/positions"]
    for layer in range(model.num_layers):
        block = f"layer_{layer}"
        stacked = linear(norm(stream, f"{block}/attention_norm"), f"{block}/attention/query_key_value")
        heads = (*stream.shape[:2], model.num_heads, -1)
        query, key, value = (part.reshape(heads).transpose(1, 2) for part in stacked.chunk(3, dim=-1))
        pooled = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        pooled = pooled.transpose(1, 2).reshape(stream.shape)
        added = stream + (linear(pooled, f"{block}/attention/output") if model.attention_output else pooled)
        hidden = torch.relu(linear(norm(added, f"{block}/mlp_norm"), f"{block}/mlp_in"))
        added = added + linear(hidden, f"{block}/mlp_out")
        stream = stream + added if model.doubled_residual else added
    predictions = linear(norm(stream[:, ::2], "read_out/norm"), "read_out/linear")[:, :, 0]
    return 0.5 * ((predictions - targets) ** 2).mean(dim=1)


class Chain:
    """An SGLD chain from w*: call it with a number of steps, and it gives the excess losses of these draws."""

    def __init__(
        self,
        params: Mapping[str, np.ndarray],
        tasks: Tasks,
        model: DecoderConfig,
        batch_size: int,
        paired: bool,
        sizes: tuple[float, float, float],
        seed: int = 0,
    ):
        import torch

        torch.set_num_threads(num_threads())
        self.torch, self.model, self.paired, self.batch_size = torch, model, paired, batch_size
        self.eps, self.nbeta, self.gamma = sizes
        self.generator = torch.Generator().manual_seed(seed)
        self.tokens, self.targets = (torch.from_numpy(np.array(values)) for values in tasks)
        self.centre = {name: torch.from_numpy(np.array(value)) for name, value in params.items()}
        self.w = {name: value.clone().requires_grad_() for name, value in self.centre.items()}
        with torch.no_grad():
            self.baseline = losses(self.centre, self.tokens, self.targets, model)

    def __call__(self, steps: int) -> np.ndarray:
        """Excess losses of so many further draws: paired with the same tasks at w*, or less the mean loss at w*."""
        return np.array([self.step() for _ in range(steps)])

    def step(self) -> float:
        """One step; the excess loss before it."""
        torch = self.torch
        chosen = torch.randint(len(self.tokens), (self.batch_size,), generator=self.generator)
        loss = losses(self.w, self.tokens[chosen], self.targets[chosen], self.model).mean()
        gradients = torch.autograd.grad(loss, list(self.w.values()))
        with torch.no_grad():
            for (name, w), gradient in zip(self.w.items(), gradients, strict=True):
                drift = self.nbeta * gradient + self.gamma * (w - self.centre[name])
                noise = torch.randn(w.shape, generator=self.generator)
                w.add_(drift, alpha=-0.5 * self.eps).add_(noise, alpha=self.eps**0.5)
        at_centre = self.baseline[chosen] if self.paired else self.baseline
        return float(loss.detach() - at_centre.mean())
