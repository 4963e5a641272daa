"""Finds the prior that a decoder's predictions on Markov chains imply.

python -m analysis.implied_prior --run DIR, of a run on Markov chains of order 1 or more

The prior that predictions imply is the alpha with which the exact rule (c_j + alpha) / (c + k alpha) is nearest to
them: the least KL(model || rule), a mean over sequences and positions. On chains from other priors a model that infers
by the prior it was trained on loses as that rule does, and one that adapts as theirs does. On contexts of twice the
length, relative positions that were never trained have the number of the farthest one that was.

Writes analysis/implied_prior.json.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.optimize import minimize_scalar

from icl_lab.analysis.command import Command
from icl_lab.analysis.loaded_run import LoadedRun, load_run
from icl_lab.families.tokens import markov
from icl_lab.families.tokens.config import TokensConfig
from icl_lab.families.tokens.sources import SOURCES, chosen
from icl_lab.families.tokens.task import as_batch, make_model, of_all
from icl_lab.src.checks import require
from icl_lab.src.prng import Purpose
from icl_lab.src.statistics import means_and_errors
from icl_lab.store import layout
from icl_lab.store.atomic import write_json

SEQUENCES = 2048
PRIORS = (0.3, 1.0, 3.0)  # whose chains are shown
ALPHAS = (1e-2, 1e2)  # between which the implied one is sought
LONGER = 2  # times the trained length


def implied_prior(loaded: LoadedRun) -> dict[str, Any]:
    """alpha and its KL, that of the run's own prior, and by prior the losses on its chains; with `longer` the contexts.

    `ConfigError` for a run on anything but Markov chains.
    """
    config = _of_chains(loaded)
    counts, said = _counts_and_said(loaded, config)
    own = float(config.data.concentration)
    alpha, distance = nearest_prior(counts, said)
    found = {
        "alpha": alpha,
        "kl": distance,
        "trained_alpha": own,
        "kl_trained": kl_to_rule(counts, said, own),
        "sequences": len(counts),
        "priors": {f"{prior:g}": on_chains_of(loaded, config, prior) for prior in sorted({*PRIORS, own})},
    }
    longer = on_longer(loaded, config)
    return found | ({"longer": longer} if longer else {"longer_reason": "its positions are a table of one length"})


def nearest_prior(counts: np.ndarray, said: np.ndarray) -> tuple[float, float]:
    """The alpha whose rule is nearest to log-probabilities said [B, T - 1, k] at counts [B, T - 1, k], and its KL."""
    ends = tuple(math.log(end) for end in ALPHAS)
    options = {"xatol": 1e-4}
    best = minimize_scalar(
        lambda logarithm: kl_to_rule(counts, said, math.exp(logarithm)), bounds=ends, method="bounded", options=options
    )
    return math.exp(best.x), float(best.fun)


def kl_to_rule(counts: np.ndarray, said: np.ndarray, alpha: float) -> float:
    """KL(said || (c_j + alpha) / (c + k alpha)), the mean over sequences and positions, in nats."""
    rule = np.log(counts + alpha) - np.log(counts.sum(axis=-1, keepdims=True) + counts.shape[-1] * alpha)
    return float(np.mean(np.sum(np.exp(said) * (said - rule), axis=-1)))


def on_chains_of(loaded: LoadedRun, config: TokensConfig, prior: float) -> dict[str, float]:
    """On chains of this prior, losses with standard errors: the model's, of its own prior's rule, of theirs."""
    data = replace(config.data, concentration=prior, num_chains=math.inf)
    x = _drawn(config, data)
    rule = partial(markov.bayes, jnp.asarray(x), data.num_symbols, data.chain_order)
    said = {
        "loss": of_all(loaded.model, loaded.params, as_batch(x, data)),
        "own_prior": np.asarray(rule(config.data.concentration), np.float64),
        "their_prior": np.asarray(rule(prior), np.float64),
    }
    losses = {name: -chosen(values, x).mean(axis=1) for name, values in said.items()}
    paired = {f"over_{name}": losses["loss"] - losses[name] for name in ("own_prior", "their_prior")}
    return means_and_errors(losses | paired)


def on_longer(loaded: LoadedRun, config: TokensConfig) -> dict[str, float]:
    """On sequences of twice the length: the excess over Bayes of trained positions' last half, and of those behind.

    Empty for a model whose positions cannot be continued.
    """
    data = config.data
    longer = replace(data, num_tokens=LONGER * data.num_tokens, num_chains=math.inf)
    params = with_rows(loaded.params, config, longer.rows)
    if params is None:
        return {}
    x = _drawn(config, longer)
    model = make_model(replace(config, data=longer))
    said = of_all(model, params, as_batch(x, longer))
    best = np.asarray(markov.bayes(jnp.asarray(x), data.num_symbols, data.chain_order, data.concentration), np.float64)
    excess, ends = chosen(best, x) - chosen(said, x), data.num_tokens - 1
    parts = {"trained": excess[:, ends // 2 : ends], "beyond": excess[:, ends:]}
    return means_and_errors({name: part.mean(axis=1) for name, part in parts.items()})


def with_rows(params: Any, config: TokensConfig, rows: int) -> dict[str, dict[str, Array]] | None:
    """The parameters of the same model on more rows, of which far ones have the farthest trained number; else None."""
    if config.model.positions == "none":
        return {module: dict(values) for module, values in params.items()}
    if config.model.positions != "relative":
        return None

    def continued(name: str, value: Array) -> Array:
        if name != "distances":
            return value
        array = np.asarray(value)
        return jnp.asarray(np.pad(array, ((0, 0), (0, rows - array.shape[1])), mode="edge"))

    return {
        module: {name: continued(name, value) for name, value in values.items()} for module, values in params.items()
    }


def _of_chains(loaded: LoadedRun) -> TokensConfig:
    config = loaded.of_family(TokensConfig.family).config
    require(
        config.data.source == "markov",
        f"{loaded.run} is a run on {config.data.source}; this analysis is only for Markov chains",
    )
    checked: TokensConfig = config
    return checked


def _drawn(config: TokensConfig, data: Any) -> np.ndarray:
    """Sequences that no training has seen."""
    return SOURCES["markov"].drawn(replace(config, data=data), Purpose.SAMPLE, SEQUENCES).x


def _counts_and_said(loaded: LoadedRun, config: TokensConfig) -> tuple[np.ndarray, np.ndarray]:
    """Of the run's own chains: how often symbols followed, and what the model says, from where n symbols were seen."""
    data = config.data
    x = _drawn(config, data)
    counts = np.asarray(_counts(jnp.asarray(x), data.num_symbols, data.chain_order), np.float64)
    said = of_all(loaded.model, loaded.params, as_batch(x, data))
    return counts[:, data.chain_order - 1 :], said[:, data.chain_order - 1 :]


_counts = jax.jit(markov.counts_after, static_argnums=(1, 2))


def write(loaded: LoadedRun) -> dict[str, Any]:
    """Writes implied_prior.json."""
    values = implied_prior(loaded)
    write_json(loaded.run / layout.IMPLIED_PRIOR, values)
    return values


def measure(run: Path, flags: argparse.Namespace) -> Mapping[str, Any]:
    """The numbers that are printed."""
    values = write(load_run(run))
    shown = {name: values[name] for name in ("alpha", "kl", "trained_alpha", "kl_trained")}
    of_priors = {
        f"chains of alpha {prior}": f"over its own prior's rule {numbers['over_own_prior']:.4f} ± "
        f"{numbers['over_own_prior_se']:.4f}, over theirs {numbers['over_their_prior']:.4f} ± "
        f"{numbers['over_their_prior_se']:.4f}"
        for prior, numbers in values["priors"].items()
    }
    return shown | of_priors


COMMAND = Command("implied_prior", "Finds the prior that a decoder's predictions on Markov chains imply.", measure)

if __name__ == "__main__":
    COMMAND.launch()
