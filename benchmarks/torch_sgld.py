"""SGLD as one writes it in PyTorch: a loop over steps on the decoder's parameters, with a paired baseline or without.

PyTorch is an extra of the bench alone: `pip install torch`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from icl_lab.benchmarks.devinterp_worker import decoder_losses
from icl_lab.lab.environment import num_threads
from icl_lab.src.decoder_config import DecoderConfig, choices_of

MISSING = "PyTorch is not installed, so its loops are not measured: pip install torch"


class Tasks(NamedTuple):
    """A fixed set: tokens [n, 2K, D + 1] and labels [n, K]."""

    tokens: np.ndarray
    targets: np.ndarray


def is_installed() -> bool:
    """Whether PyTorch can be imported."""
    return find_spec("torch") is not None


def losses(params: Mapping[str, Any], tokens: Any, targets: Any, model: DecoderConfig) -> Any:
    """Half the mean squared error of each sequence [B]. params: module/name -> tensor."""
    return decoder_losses(params, tokens, targets, SimpleNamespace(**fields_of(model)))


def fields_of(model: DecoderConfig) -> dict[str, Any]:
    """What the decoder in PyTorch has to know of a config."""
    names = ("num_layers", "num_heads", "attention_output", "doubled_residual")
    return {**{name: getattr(model, name) for name in names}, "activation": choices_of(model).activation}


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
