"""The functions of the baselines in `src.registries.BASELINES`, loaded when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from icl_lab.src.checks import require
from icl_lab.src.config import ContextConfig
from icl_lab.src.data_config import DataConfig
from icl_lab.src.registries import BASELINES


class Contexts(Protocol):
    """What a baseline is told of a run of regression: its data, and the contexts of its training and evaluation."""

    @property
    def data(self) -> DataConfig:
        """The distribution of contexts."""

    @property
    def train(self) -> ContextConfig:
        """What is done to those of the training."""

    @property
    def eval(self) -> ContextConfig:
        """What is done to those of the evaluation."""


def check_clean(config: Contexts) -> None:
    """`ConfigError` if pairs of the training or of the test are corrupted, of which some baselines know nothing."""
    clean = config.train.hit_rate == 0 and config.eval.hit_rate == 0 and config.data.num_distractors == 0
    require(clean, "it is defined only for contexts without corrupted pairs or distractor labels")


def function(name: str, module: str = "") -> Callable[..., Any]:
    """The function of a baseline: a plugin's, or that of its name in a module, the only one if none is named."""
    baseline = BASELINES[name]
    return baseline.predict or _loaded(f"{module or baseline.where[0]}:{name}")


def score_of_pairs(name: str) -> Callable[..., Any]:
    """(batch, config) -> how clean the pairs are [B, N], of a baseline that tells."""
    return _loaded(BASELINES[name].pairs)


def _loaded(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    found: Callable[..., Any] = getattr(import_module(f"icl_lab.{module}"), name)
    return found
