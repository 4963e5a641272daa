"""Hamiltonian Monte Carlo on a local posterior: the reference that SGLD is compared with where no value is known.

Its step size is tuned over the burn-in, by the mean acceptance of all chains. It corrects every step with the loss of
all tasks, so that it has no bias in eps; it is for targets of a few hundred parameters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from icl_lab.analysis.llc.sgld import Draws, Extras, Steps, Target
from icl_lab.lab.environment import extra

ACCEPTED = 0.8  # share of proposals that the step size is tuned to


class _State(NamedTuple):
    chains: Any  # blackjax's states of C chains
    tuning: Any  # blackjax's state of the step size


def chains(
    key: Array,
    target: Target,
    data: Any,
    count: int,
    steps: Steps,
    length: Array,
    step_size: Array,
    fixed: Any,
    extras: Extras,
) -> Draws:
    """HMC from w* with the traces of SGLD's chains, burn-in included, all of whose draws are on all data.

    Trajectories have a mean `length` in time, in as many leapfrog steps as the step size needs: uniform up to twice the
    mean, so that no direction's period is met each time (Neal 2011, 5.4.3.2). Time is in units of weights: a flat
    direction of width 1 / sqrt(gamma) wants a length of it. The step size is tuned over the burn-in and then kept;
    `acceptance` is that of the proposals.
    """
    hmc, adaptation = _blackjax()
    begin, update, tuned = adaptation.dual_averaging_adaptation(ACCEPTED)
    kernel, units = hmc.build_kernel(), jnp.ones_like(target.centre)
    moves = units if target.mask is None else target.mask
    baseline = target.losses(target.centre, data)

    def loss(w: Array) -> Array:
        return jnp.mean(target.losses(w, data) - baseline)

    def placed(u: Array) -> Array:
        return target.centre + moves * u

    def log_density(u: Array) -> Array:
        return -target.nbeta * loss(placed(u)) - 0.5 * target.gamma * jnp.sum((moves * u) ** 2)

    def moved(step_key: Array, states: Any, size: Array) -> tuple[Any, Array]:
        share = jax.random.uniform(step_key, (), size.dtype, 0.0, 2.0)
        leapfrogs = jnp.ceil(share * length / size).astype(jnp.int32)
        keys = jax.random.split(step_key, count)
        states, info = jax.vmap(lambda key, state: kernel(key, state, log_density, size, units, leapfrogs))(
            keys, states
        )
        return states, jnp.nan_to_num(info.acceptance_rate)

    def measured(states: Any, accepted: Array) -> Draws:
        def one(u: Array, accept: Array) -> Draws:
            w = placed(u)
            excess, slope = jax.value_and_grad(loss)(w)
            at = jnp.sum(moves * u * slope)
            return Draws(
                excess=excess,
                distance=jnp.linalg.norm(moves * u),
                slope=at,
                fixed_loss=jnp.mean(target.losses(w, fixed)),
                acceptance=accept,
                second_excess=excess,
                second_slope=at,
                measured=() if extras.measured is None else extras.measured(w),
                losses=() if extras.losses is None else extras.losses(w),
                observed=() if extras.observed is None else extras.observed(w),
            )

        return jax.vmap(one)(states.position, accepted)

    def burn(state: _State, step_key: Array) -> tuple[_State, Draws]:
        states, accepted = moved(step_key, state.chains, jnp.exp(state.tuning.log_step_size))
        return _State(states, update(state.tuning, jnp.mean(accepted))), measured(states, accepted)

    def draw(states: Any, step_key: Array) -> tuple[Any, Draws]:
        def again(_: Any, now: Any) -> Any:
            return moved(jax.random.fold_in(step_key, _), now[0], size)

        accepted = jnp.ones(count)
        states, accepted = jax.lax.fori_loop(0, steps.thin, again, (states, accepted))
        return states, measured(states, accepted)

    before, after = jax.random.split(key)
    start = jax.vmap(lambda u: hmc.init(u, log_density))(jnp.zeros((count, len(target.centre)), target.centre.dtype))
    state, early = lax.scan(burn, _State(start, begin(step_size)), jax.random.split(before, steps.burn_in))
    size = tuned(state.tuning)
    _, late = lax.scan(draw, state.chains, jax.random.split(after, steps.draws))
    both = jax.tree.map(lambda some, more: jnp.moveaxis(jnp.concatenate([some, more]), 0, 1), early, late)
    names = ("fixed_loss", "acceptance", "second_excess", "second_slope", "measured")
    checks = {name: jax.tree.map(lambda values: values[:, :: steps.check_every], getattr(both, name)) for name in names}
    found: Draws = both._replace(**checks)
    return found


def _blackjax() -> tuple[Any, Any]:
    return extra("blackjax.mcmc.hmc"), extra("blackjax.adaptation.step_size")
