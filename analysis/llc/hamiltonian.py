"""Hamiltonian Monte Carlo on a local posterior: the reference that SGLD is compared with where no value is known.

Its step size is tuned over the burn-in, by the mean acceptance of all chains. It corrects every step with the loss of
all tasks, so that it has no bias in eps; it is for targets of a few hundred parameters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from icl_lab.analysis.llc.sgld import Target
from icl_lab.lab.environment import extra
from icl_lab.src.model import Batch

ACCEPTED = 0.8  # share of proposals that the step size is tuned to


class HmcDraws(NamedTuple):
    """Chains after burn-in: excess [C, T], L(w) - L(w*) of every draw; acceptance [C, T]; the step size tuned to."""

    excess: Array
    acceptance: Array
    step_size: Array


class _State(NamedTuple):
    chains: Any  # blackjax's states of C chains
    tuning: Any  # blackjax's state of the step size


def hamiltonian(
    key: Array, target: Target, tasks: Batch, chains: int, burn_in: int, draws: int, length: Array, step_size: Array
) -> HmcDraws:
    """HMC from w*: trajectories of a mean `length` in time, in as many leapfrog steps as the step size needs.

    A trajectory's number of steps is uniform up to twice the mean, so that no direction's period is met each time
    (Neal 2011, 5.4.3.2). Time is in units of weights: a flat direction of width 1 / sqrt(gamma) wants a length of it.
    """
    hmc, adaptation = _blackjax()
    begin, update, tuned = adaptation.dual_averaging_adaptation(ACCEPTED)
    kernel = hmc.build_kernel()
    units = jnp.ones_like(target.centre)

    def loss(w: Array) -> Array:
        return jnp.mean(target.losses(w, tasks))

    def log_density(w: Array) -> Array:
        return -target.nbeta * loss(w) - 0.5 * target.gamma * jnp.sum((w - target.centre) ** 2)

    def moved(step_key: Array, states: Any, size: Array) -> tuple[Any, Array]:
        share = jax.random.uniform(step_key, (), size.dtype, 0.0, 2.0)
        leapfrogs = jnp.ceil(share * length / size).astype(jnp.int32)
        keys = jax.random.split(step_key, chains)
        states, info = jax.vmap(lambda key, state: kernel(key, state, log_density, size, units, leapfrogs))(
            keys, states
        )
        return states, jnp.nan_to_num(info.acceptance_rate)

    def burn(state: _State, step_key: Array) -> tuple[_State, None]:
        states, accepted = moved(step_key, state.chains, jnp.exp(state.tuning.log_step_size))
        return _State(states, update(state.tuning, jnp.mean(accepted))), None

    def draw(states: Any, step_key: Array) -> tuple[Any, tuple[Array, Array]]:
        states, accepted = moved(step_key, states, size)
        return states, (jax.vmap(loss)(states.position), accepted)

    before, after = jax.random.split(key)
    start = jax.vmap(lambda w: hmc.init(w, log_density))(jnp.tile(target.centre, (chains, 1)))
    state, _ = lax.scan(burn, _State(start, begin(step_size)), jax.random.split(before, burn_in))
    size = tuned(state.tuning)
    _, (losses, accepted) = lax.scan(draw, state.chains, jax.random.split(after, draws))
    return HmcDraws((losses - loss(target.centre)).T, accepted.T, size)


def _blackjax() -> tuple[Any, Any]:
    return extra("blackjax.mcmc.hmc"), extra("blackjax.adaptation.step_size")
