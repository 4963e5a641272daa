"""Stochastic gradient Langevin dynamics around a point: chains of draws from a local posterior, in one compiled loop.

The target is p(w) ~ exp(-nbeta L(w) - gamma/2 |w - w*|^2), L the mean loss over n tasks, and a step of size eps is

    w' = w - eps/2 G (nbeta grad L_B(w) + gamma (w - w*)) + sqrt(eps G) xi,    xi ~ N(0, 1)

with L_B the mean over the step's B tasks and G the preconditioner, 1 for plain SGLD (Welling and Teh 2011; Lau et al.
2023, Eq. 15). Parameters are one vector [d]. Only a few numbers per draw are kept.

A draw's excess loss is paired: the mean over its own tasks of loss(w) - loss(w*). Its expectation is that of
L(w) - L(w*), and what the choice of tasks adds to both losses cancels.
"""

from __future__ import annotations

from collections.abc import Callable
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

    mask [d] of 0 and 1: which parameters move, the others stay exactly at w*; None, all.
    """

    losses: Losses
    centre: Array
    nbeta: Array | float
    gamma: Array | float
    mask: Array | None = None


class Source(NamedTuple):
    """Where a step's tasks come from: draw(key) -> (batch of B tasks, their losses at w* [B])."""

    draw: Callable[[Array], tuple[Batch, Array]]


class Preconditioner(NamedTuple):
    """What scales each parameter's step: start(w*) -> state, update(state, gradient) -> (state, G [d])."""

    start: Callable[[Array], Any]
    update: Callable[[Any, Array], tuple[Any, Array]]


class Steps(NamedTuple):
    """How long a chain is: draws to leave out, draws to keep, steps between draws, and draws between checks.

    A check evaluates the loss on the fixed set, and the acceptance that a Metropolis step would have.
    """

    burn_in: int = 200
    draws: int = 400
    thin: int = 1
    check_every: int = 10


class Draws(NamedTuple):
    """Traces of chains, burn-in included: T draws, K checks; a leading axis of chains.

    excess [T], the paired mean of loss(w) - loss(w*); distance [T], |w - w*|; fixed_loss [K], the mean loss on the
    fixed set; acceptance [K], of the step that follows as a Metropolis-adjusted one on the same tasks.
    """

    excess: Array
    distance: Array
    fixed_loss: Array
    acceptance: Array


# --- parameters as a vector ---


def flat(model: Model, params: Params) -> tuple[Losses, Array]:
    """A model's losses as a function of a vector, and the vector of these parameters."""
    centre, restore = ravel_pytree(params)
    return lambda vector, batch: model.losses(restore(vector), batch), centre


# --- tasks of a step ---


def all_tasks(losses: Losses, centre: Array, tasks: Batch) -> Source:
    """Every task at every step: the full-batch chain."""
    baseline = losses(centre, tasks)
    return Source(lambda key: (tasks, baseline))


def minibatches(losses: Losses, centre: Array, tasks: Batch, size: int) -> Source:
    """At each step `size` tasks of a fixed set, drawn with replacement."""
    return drawn_from(tasks, losses(centre, tasks), size)


def drawn_from(tasks: Batch, baseline: Array, size: int) -> Source:
    """The same of a fixed set whose losses at w* [n] are known."""

    def draw(key: Array) -> tuple[Batch, Array]:
        chosen = jax.random.randint(key, (size,), 0, len(baseline))
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


class _State(NamedTuple):
    """Where a chain is: w [d], the preconditioner's state, and the number of the step."""

    w: Array
    scaling: Any
    step: Array


class _Made(NamedTuple):
    """What a step was made of: mean loss, losses [B] and their baseline on its tasks, grad L_B and G [d], the tasks."""

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
    preconditioner: Preconditioner
    normals: Normals

    def gradient(self, w: Array, batch: Batch) -> tuple[tuple[Array, Array], Array]:
        """(mean loss, losses [B]) and the gradient [d] of the mean at w."""

        def loss_of(w: Array) -> tuple[Array, Array]:
            losses = self.target.losses(w, batch)
            return jnp.mean(losses), losses

        return jax.value_and_grad(loss_of, has_aux=True)(w)

    def move(self, state: _State) -> tuple[_State, _Made]:
        """A step."""
        step_key = jax.random.fold_in(self.key, state.step)
        batch, baseline = self.source.draw(purpose_key(step_key, Purpose.TASK))
        (loss, losses), gradient = self.gradient(state.w, batch)
        scaling, scale = self.preconditioner.update(state.scaling, gradient)
        noise = self.normals(purpose_key(step_key, Purpose.NOISE_VALUE), state.w.shape, state.w.dtype)
        w = sgld_step(self.target, state.w, gradient, scale, noise, self.eps)
        return _State(w, scaling, state.step + 1), _Made(loss, losses, baseline, gradient, scale, batch)

    def drawn(self, state: _State, made: _Made) -> tuple[Array, Array]:
        """The excess loss and the distance of a draw, which is where a step begins."""
        return jnp.mean(made.losses - made.baseline), jnp.linalg.norm(state.w - self.target.centre)

    def checked(self, state: _State, made: _Made, moved: _State, fixed: Batch) -> tuple[Array, Array]:
        """The loss of a draw on the fixed set, and the acceptance of the step that follows."""
        (loss, _), gradient = self.gradient(moved.w, made.batch)
        points = (state.w, made.loss, made.gradient), (moved.w, loss, gradient)
        accepted = jnp.exp(log_acceptance(self.target, made.scale, self.eps, *points))
        return jnp.mean(self.target.losses(state.w, fixed)), accepted


def chain(
    key: Array,
    target: Target,
    source: Source,
    fixed: Batch,
    eps: Array | float,
    steps: Steps,
    preconditioner: Preconditioner = PLAIN,
    normals: Normals = exact_normals,
) -> Draws:
    """One chain from w*: numbers of `steps.burn_in + steps.draws` draws. `fixed` is the batch of the checks."""
    walk = _Walk(key, target, source, eps, preconditioner, normals)

    def rest(moved: _State) -> _State:
        """The steps between a draw and the next; where there are none no loop, which would be compiled all the same."""
        if steps.thin == 1:
            return moved
        last: _State = lax.fori_loop(1, steps.thin, lambda _, now: walk.move(now)[0], moved)
        return last

    def draw(state: _State, _: None) -> tuple[_State, tuple[Array, Array]]:
        moved, made = walk.move(state)
        return rest(moved), walk.drawn(state, made)

    def block(state: _State, _: None) -> tuple[_State, tuple[tuple[Array, Array], tuple[Array, Array]]]:
        """A draw that is checked, and those until the next check."""
        moved, made = walk.move(state)
        first, checks = walk.drawn(state, made), walk.checked(state, made, moved, fixed)
        state, others = lax.scan(draw, rest(moved), None, steps.check_every - 1)
        draws = jax.tree.map(lambda one, more: jnp.concatenate([one[None], more]), first, others)
        return state, (draws, checks)

    count = steps.burn_in + steps.draws
    state = _State(target.centre, preconditioner.start(target.centre), jnp.zeros((), jnp.int32))
    _, ((excess, distance), (fixed_loss, acceptance)) = lax.scan(block, state, None, -(-count // steps.check_every))
    return Draws(excess.ravel()[:count], distance.ravel()[:count], fixed_loss, acceptance)
