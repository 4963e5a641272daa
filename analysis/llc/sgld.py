"""Stochastic gradient Langevin dynamics around a point: chains of draws from a local posterior, in one compiled loop.

The target is p(w) ~ exp(-nbeta L(w) - gamma/2 |w - w*|^2), L the mean loss over n tasks, and a step of size eps is

    w' = w - eps/2 G (nbeta grad L_B(w) + gamma (w - w*)) + sqrt(eps G) xi,    xi ~ N(0, 1)

with L_B the mean over the step's B tasks and G the preconditioner, 1 for plain SGLD (Welling and Teh 2011; Lau et al.
2023, Eq. 15). With friction f below 1 the step keeps a part of the last one (SGHMC; Chen et al. 2014, Eq. 15):

    v' = (1 - f) v - eps/2 (nbeta grad L_B(w) + gamma (w - w*)) + sqrt(f eps) xi,    w' = w + v'

which is SGLD at f = 1, and forgets in 2 f / (eps a) steps what SGLD forgets in 2 / (eps a). Parameters are one vector
[d]. Only a few numbers per draw are kept.

A draw's excess loss is paired: the mean over its own tasks of loss(w) - loss(w*). Its expectation is that of
L(w) - L(w*), and what the choice of tasks adds to both losses cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.flatten_util import ravel_pytree

from icl_lab.src.checks import require
from icl_lab.src.model import Batch, Model, Params
from icl_lab.src.prng import Purpose, purpose_key

Losses = Callable[[Array, Batch], Array]  # of a vector [d] and a batch of B tasks -> [B]


class Target(NamedTuple):
    """A local posterior: losses around a centre w* [d].

    mask [d] of 0 and 1: which parameters move, the others stay exactly at w*; None, all. differentiated(w, batch) ->
    losses [B] and the gradient [d] of their mean; None: those of `losses`, by JAX.
    """

    losses: Losses
    centre: Array
    nbeta: Array | float
    gamma: Array | float
    mask: Array | None = None
    differentiated: Callable[[Array, Batch], tuple[Array, Array]] | None = None


class Source(NamedTuple):
    """Where a step's tasks come from: draw(key) -> (batch of B tasks, their losses at w* [B]); whole: all, each
    time.
    """

    draw: Callable[[Array], tuple[Batch, Array]]
    whole: bool = False


class Preconditioner(NamedTuple):
    """What scales each parameter's step: start(w*) -> state, update(state, gradient) -> (state, G [d])."""

    start: Callable[[Array], Any]
    update: Callable[[Any, Array], tuple[Any, Array]]


class Sampler(NamedTuple):
    """How a step is made: what scales it, and the friction, 1 where nothing of the last step is kept."""

    scaling: Preconditioner
    friction: float = 1.0


class Steps(NamedTuple):
    """How long a chain is: draws to leave out, draws to keep, steps between draws, and draws between checks.

    A check evaluates the loss on the fixed set, the acceptance that a Metropolis step would have, and the draw on a
    second batch, which is independent of the first: a covariance over draws is then that of all data.
    """

    burn_in: int = 200
    draws: int = 400
    thin: int = 1
    check_every: int = 10


class Draws(NamedTuple):
    """Traces of chains, burn-in included: T draws, K checks; a leading axis of chains.

    excess [T], the paired mean of loss(w) - loss(w*); distance [T], |w - w*|; slope [T], (w - w*).grad L_B(w);
    fixed_loss [K], the mean loss on the fixed set; acceptance [K], of the step that follows as a Metropolis-adjusted
    one on the same tasks, nan with friction; second_excess and second_slope [K], on a batch of their own; measured [K],
    the mean of loss(w) - loss(w*) on another data set; losses [T, n] of every sample and observed [T, ...], where they
    are asked for: else without entries.
    """

    excess: Array
    distance: Array
    slope: Array
    fixed_loss: Array
    acceptance: Array
    second_excess: Array
    second_slope: Array
    measured: Any = ()
    losses: Any = ()
    observed: Any = ()


# --- parameters as a vector ---


def flat(model: Model, params: Params) -> tuple[Losses, Array]:
    """A model's losses as a function of a vector, and the vector of these parameters."""
    centre, restore = ravel_pytree(params)
    return lambda vector, batch: model.losses(restore(vector), batch), centre


# --- tasks of a step ---


def all_tasks(losses: Losses, centre: Array, tasks: Batch) -> Source:
    """Every task at every step: the full-batch chain."""
    baseline = losses(centre, tasks)
    return Source(lambda key: (tasks, baseline), True)


def minibatches(losses: Losses, centre: Array, tasks: Batch, size: int) -> Source:
    """At each step `size` tasks of a fixed set, drawn with replacement."""
    return drawn_from(tasks, losses(centre, tasks), size)


def drawn_from(tasks: Batch, baseline: Array, size: int) -> Source:
    """The same of a fixed set whose losses at w* [n] are known."""

    def draw(key: Array) -> tuple[Batch, Array]:
        chosen = jax.random.bits(key, (size,), jnp.uint32) % len(baseline)  # off uniform by n / 2^32
        return jax.tree.map(lambda values: values[chosen], tasks), baseline[chosen]

    return Source(draw)


def fresh_tasks(losses: Losses, centre: Array, batch_of: Callable[[Array], Batch]) -> Source:
    """At each step tasks that no step has seen: w* has to be evaluated on them too."""

    def draw(key: Array) -> tuple[Batch, Array]:
        batch = batch_of(key)
        return batch, losses(centre, batch)

    return Source(draw)


# --- noise ---


def exact_normals(key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    """Standard normal numbers.

    The barrier computes the key once; XLA would otherwise recompute it for each number, at ten times the cost.
    """
    words = lax.optimization_barrier(jax.random.key_data(key))
    once = jax.random.wrap_key_data(words, impl=jax.random.key_impl(key))
    values: Array = jax.random.normal(once, shape, dtype)
    return values


def no_noise(key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    """Zeros: the chain is then gradient descent."""
    return jnp.zeros(shape, dtype)


Normals = Callable[[Array, tuple[int, ...], Any], Array]


# --- preconditioners ---


def _no_state(centre: Array) -> tuple[()]:
    return ()


PLAIN = Preconditioner(_no_state, lambda state, gradient: (state, jnp.ones_like(gradient)))
SGLD = Sampler(PLAIN)


def rmsprop(decay: float = 0.99, damping: float = 0.1) -> Preconditioner:
    """G = 1 / (sqrt(V) + damping), V the running mean of the squared gradients of L_B, corrected for its start at 0.

    Li et al. 2016, Eq. 4 and 5, without the term for how G changes with w.
    """
    require(0 <= decay < 1, f"decay is {decay}; it must be from 0 to below 1")
    require(damping > 0, f"damping is {damping}; it must be above 0")

    def start(centre: Array) -> tuple[Array, Array]:
        return jnp.zeros_like(centre), jnp.ones((), centre.dtype)

    def update(state: tuple[Array, Array], gradient: Array) -> tuple[tuple[Array, Array], Array]:
        mean, left = decay * state[0] + (1 - decay) * gradient**2, decay * state[1]
        return (mean, left), 1 / (jnp.sqrt(mean / (1 - left)) + damping)

    return Preconditioner(start, update)


# --- chains ---


def sgld_step(target: Target, w: Array, gradient: Array, scale: Array, noise: Array, eps: Array | float) -> Array:
    """One step from w [d] with grad L_B(w), G and xi, all [d]."""
    drift = target.nbeta * gradient + target.gamma * (w - target.centre)
    step = -0.5 * eps * scale * drift + jnp.sqrt(eps * scale) * noise
    return w + (step if target.mask is None else target.mask * step)


def log_acceptance(
    target: Target,
    scale: Array,
    eps: Array | float,
    before: tuple[Array, Array, Array],
    after: tuple[Array, Array, Array],
) -> Array:
    """log of min(1, p(w') q(w | w') / (p(w) q(w' | w))) for a step from w to w', each (w, L_B(w), grad L_B(w)).

    U = nbeta L_B + gamma/2 |w - w*|^2 and q(b | a) = N(b; a - eps/2 G grad U(a), eps G), G held (Roberts and Tweedie
    1996).
    """

    def energy(point: tuple[Array, Array, Array]) -> Array:
        w, loss, _ = point
        return target.nbeta * loss + 0.5 * target.gamma * jnp.sum((w - target.centre) ** 2)

    def log_density(to: tuple[Array, Array, Array], start: tuple[Array, Array, Array]) -> Array:
        w, _, gradient = start
        drift = target.nbeta * gradient + target.gamma * (w - target.centre)
        off = to[0] - w + 0.5 * eps * scale * drift
        moved = off**2 / scale if target.mask is None else target.mask * off**2 / scale
        return -jnp.sum(moved) / (2 * eps)

    change = energy(before) - energy(after) + log_density(before, after) - log_density(after, before)
    return jnp.minimum(change, 0.0)


class Extras(NamedTuple):
    """What is measured of draws besides, each a function of w [d], or None.

    measured -> the mean of loss(w) - loss(w*) on another data set, at checks; losses -> [n] and observed -> an array,
    at every draw.
    """

    measured: Callable[[Array], Array] | None = None
    losses: Callable[[Array], Array] | None = None
    observed: Callable[[Array], Array] | None = None


class _State(NamedTuple):
    """Where a chain is: w [d], the last step v [d] where friction keeps a part of it, the scaling's state, the step."""

    w: Array
    v: Any
    scaling: Any
    step: Array


class _Made(NamedTuple):
    """What a step was made of: its key, mean loss, losses [B] and their baseline, grad L_B and G [d], and the tasks."""

    key: Array

    loss: Array
    losses: Array
    baseline: Array
    gradient: Array
    scale: Array
    batch: Batch


class _Walk(NamedTuple):
    """What the steps of a chain have in common."""

    key: Array
    target: Target
    source: Source
    eps: Array | float
    sampler: Sampler
    normals: Normals
    extras: Extras

    def gradient(self, w: Array, batch: Batch) -> tuple[tuple[Array, Array], Array]:
        """(mean loss, losses [B]) and the gradient [d] of the mean at w."""
        if self.target.differentiated is not None:
            losses, gradient = self.target.differentiated(w, batch)
            return (jnp.mean(losses), losses), gradient

        def loss_of(w: Array) -> tuple[Array, Array]:
            losses = self.target.losses(w, batch)
            return jnp.mean(losses), losses

        return jax.value_and_grad(loss_of, has_aux=True)(w)

    def move(self, state: _State) -> tuple[_State, _Made]:
        """A step."""
        step_key = jax.random.fold_in(self.key, state.step)
        batch, baseline = self.source.draw(purpose_key(step_key, Purpose.TASK))
        (loss, losses), gradient = self.gradient(state.w, batch)
        scaling, scale = self.sampler.scaling.update(state.scaling, gradient)
        noise = self.normals(purpose_key(step_key, Purpose.NOISE_VALUE), state.w.shape, state.w.dtype)
        if (friction := self.sampler.friction) < 1:
            moved = sgld_step(self.target, state.w, gradient, scale, math.sqrt(friction) * noise, self.eps)
            v = (1 - friction) * state.v + (moved - state.w)
            w = state.w + v
        else:
            w, v = sgld_step(self.target, state.w, gradient, scale, noise, self.eps), ()
        return _State(w, v, scaling, state.step + 1), _Made(step_key, loss, losses, baseline, gradient, scale, batch)

    def drawn(self, state: _State, made: _Made) -> dict[str, Any]:
        """What is kept of a draw, which is where a step begins."""
        away, extras = state.w - self.target.centre, self.extras
        return {
            "excess": jnp.mean(made.losses - made.baseline),
            "distance": jnp.linalg.norm(away),
            "slope": jnp.sum(away * made.gradient),
            "losses": () if extras.losses is None else extras.losses(state.w),
            "observed": () if extras.observed is None else extras.observed(state.w),
        }

    def checked(self, state: _State, made: _Made, moved: _State, fixed: Batch) -> dict[str, Any]:
        """What is kept of a draw that is checked."""
        away = state.w - self.target.centre
        accepted, excess, slope = jnp.asarray(jnp.nan, away.dtype), *self._first_batch(away, made)
        points, batches, baseline = [moved.w], [made.batch], made.baseline
        if not self.source.whole:
            batch, baseline = self.source.draw(purpose_key(made.key, Purpose.QUERY))
            points, batches = [moved.w, state.w], [made.batch, batch]
        stacked = jax.tree.map(lambda *values: jnp.stack(values), *batches)
        (losses_there, losses), gradients = jax.vmap(self.gradient)(jnp.stack(points), stacked)
        if self.sampler.friction == 1:
            pair = (state.w, made.loss, made.gradient), (moved.w, losses_there[0], gradients[0])
            accepted = jnp.exp(log_acceptance(self.target, made.scale, self.eps, *pair))
        if not self.source.whole:
            excess, slope = jnp.mean(losses[1] - baseline), jnp.sum(away * gradients[1])
        return {
            "fixed_loss": jnp.mean(self.target.losses(state.w, fixed)),
            "acceptance": accepted,
            "second_excess": excess,
            "second_slope": slope,
            "measured": () if self.extras.measured is None else self.extras.measured(state.w),
        }

    def _first_batch(self, away: Array, made: _Made) -> tuple[Array, Array]:
        return jnp.mean(made.losses - made.baseline), jnp.sum(away * made.gradient)


def chain(
    key: Array,
    target: Target,
    source: Source,
    fixed: Batch,
    eps: Array | float,
    steps: Steps,
    sampler: Sampler = SGLD,
    normals: Normals = exact_normals,
    extras: Extras | None = None,
) -> Draws:
    """One chain from w*: numbers of `steps.burn_in + steps.draws` draws. `fixed` is the batch of the checks."""
    walk = _Walk(key, target, source, eps, sampler, normals, extras or Extras())

    def rest(moved: _State) -> _State:
        """The steps between a draw and the next; where there are none no loop, which would be compiled all the same."""
        if steps.thin == 1:
            return moved
        last: _State = lax.fori_loop(1, steps.thin, lambda _, now: walk.move(now)[0], moved)
        return last

    def draw(state: _State, number: Array) -> tuple[_State, tuple[dict[str, Any], dict[str, Any]]]:
        """A draw, with its checks if it is the first of a block: a branch, so that the step is compiled once."""
        moved, made = walk.move(state)
        measure = partial(walk.checked, state, made, moved, fixed)
        none = jax.tree.map(lambda like: jnp.zeros(like.shape, like.dtype), jax.eval_shape(measure))
        return rest(moved), (walk.drawn(state, made), lax.cond(number == 0, measure, lambda: none))

    def block(state: _State, _: None) -> tuple[_State, tuple[dict[str, Any], dict[str, Any]]]:
        """The draws from a check to the next."""
        state, (drawn, checks) = lax.scan(draw, state, jnp.arange(steps.check_every))
        return state, (drawn, jax.tree.map(lambda values: values[0], checks))

    count = steps.burn_in + steps.draws
    begin = () if sampler.friction == 1 else jnp.zeros_like(target.centre)
    state = _State(target.centre, begin, sampler.scaling.start(target.centre), jnp.zeros((), jnp.int32))
    _, (drawn, checks) = lax.scan(block, state, None, -(-count // steps.check_every))
    every = jax.tree.map(lambda values: values.reshape(-1, *values.shape[2:])[:count], drawn)
    return Draws(**every, **checks)
