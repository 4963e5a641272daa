"""Draws from a local posterior of any model: one compiled program for each model and number of draws.

eps, nbeta, gamma, parameters and data are its arguments, so that settings and checkpoints which differ in these alone
share it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.analysis.llc import hamiltonian, sgld
from icl_lab.analysis.llc.loss import Form, Losses, Split, first, in_chunks, losses_of, whole
from icl_lab.analysis.llc.settings import Settings
from icl_lab.src.native.stack import LossesAndGradient
from icl_lab.src.prng import key as key_of

CHECK_SAMPLES = 256  # of the data, for the losses that R-hat and the share below L(w*) are taken from

SourceOf = Callable[[Losses, Array, Any, Any], sgld.Source]  # of losses, w*, data and arguments


class Asked(NamedTuple):
    """What is measured of draws besides, observe(params) -> an array and the losses of every sample; a source of steps;
    and what computes a step's losses and gradient, if not JAX.
    """

    observe: Callable[[Any], Any] | None = None
    losses: bool = False
    source_of: SourceOf | None = None  # where a step's samples come from, if not as the settings say
    loss_and_gradient: LossesAndGradient | None = None


class Target(NamedTuple):
    """What chains are drawn for: a model at w*, its data, which parameters move [d], and a second data set."""

    split: Split
    data: Any
    mask: np.ndarray | None = None
    measured_on: Any = None
    arguments: Any = ()  # of the source of steps


def sampler_of(settings: Settings) -> sgld.Sampler:
    """How SGLD, with a preconditioner or friction, makes a step."""
    scaling = sgld.rmsprop() if settings.sampler == "rmsprop" else sgld.PLAIN
    return sgld.Sampler(scaling, settings.friction if settings.sampler == "sghmc" else 1.0)


def words_for(root: Array, settings: Settings, step: int = 0) -> tuple[Any, ...]:
    """What the chains' keys are made of. Settings are folded in, so that two of them have independent randomness."""
    told = sorted((name, str(value)) for name, value in asdict(settings).items() if name != "seed")
    return root, np.uint32(settings.seed), np.uint32(step), np.uint32(zlib.crc32(repr(told).encode()))


def _keys(words: tuple[Any, ...], chains: int) -> Array:
    """A key for each chain."""
    root, *others = words
    for word in others:
        root = jax.random.fold_in(root, word)
    return jax.random.split(root, chains)


def draws(
    target: Target, settings: Settings, root: Array | None = None, step: int = 0, asked: Asked | None = None
) -> dict[str, Any]:
    """The traces of the chains in NumPy, `sgld.Draws` without what was not asked for; settings.eps is a number."""
    words = words_for(key_of(0) if root is None else root, settings, step)
    numbers = tuple(map(np.float32, (settings.eps, settings.nbeta, settings.gamma)))
    given = (
        target.split.fixed,
        target.split.vector,
        target.mask,
        target.data,
        target.measured_on,
        target.arguments,
    )
    drawn: sgld.Draws = _chains(target.split.form, settings.program, asked or Asked(), words, *given, *numbers)
    kept = {name: values for name, values in drawn._asdict().items() if not isinstance(values, tuple)}
    return {name: np.asarray(values, np.float64) for name, values in kept.items()}


@partial(jax.jit, static_argnums=(0, 1, 2))
def _chains(
    form: Form,
    settings: Settings,
    asked: Asked,
    words: tuple[Any, ...],
    fixed: tuple[Any, ...],
    centre: Array,
    mask: Array | None,
    data: Any,
    measured_on: Any,
    arguments: Any,
    eps: Array,
    nbeta: Array,
    gamma: Array,
) -> sgld.Draws:
    data = jax.tree.map(jnp.asarray, data)
    losses = losses_of(form, fixed)
    target = sgld.Target(losses, centre, nbeta, gamma, mask, differentiated_by(form, fixed, asked))
    steps = sgld.Steps(settings.burn_in, settings.draws, settings.thin, settings.check_every)
    extras = _extras(form, fixed, centre, data, measured_on, asked)
    keys, some = _keys(words, settings.chains), first(data, CHECK_SAMPLES)
    if settings.sampler == "hmc":  # whose first leapfrog step is sqrt(eps), and is then tuned
        length, step = 1 / jnp.sqrt(jnp.maximum(gamma, 1e-3 / eps)), jnp.sqrt(eps)
        return hamiltonian.chains(keys[0], target, data, len(keys), steps, length, step, some, extras)
    source, sampler = _source(losses, centre, data, settings, asked, arguments), sampler_of(settings)

    def chain(key: Array) -> sgld.Draws:
        return sgld.chain(key, target, source, some, eps, steps, sampler, extras=extras)

    drawn: sgld.Draws = jax.vmap(chain)(keys)
    return drawn


def differentiated_by(
    form: Form, fixed: tuple[Any, ...], asked: Asked
) -> Callable[[Array, Any], tuple[Array, Array]] | None:
    """(w [d], batch) -> losses [B] and the gradient [d] of their mean, by what was asked for; None for JAX."""
    computed = asked.loss_and_gradient
    if computed is None:
        return None

    def differentiated(w: Array, batch: Any) -> tuple[Array, Array]:
        params, back = jax.vjp(lambda vector: whole(form, fixed, vector), w)
        found = computed(params, batch)
        (slope,) = back(found.gradient)
        return found.losses, slope

    return differentiated


def _source(losses: Losses, centre: Array, data: Any, settings: Settings, asked: Asked, arguments: Any) -> sgld.Source:
    if asked.source_of is not None:
        return asked.source_of(losses, centre, data, arguments)
    baseline = in_chunks(lambda batch: losses(centre, batch), data)
    if settings.data == "full":
        return sgld.Source(lambda key: (data, baseline), True)
    return sgld.drawn_from(data, baseline, settings.batch_size)


def _extras(
    form: Form, fixed: tuple[Any, ...], centre: Array, data: Any, measured_on: Any, asked: Asked
) -> sgld.Extras:
    losses, observe = losses_of(form, fixed), asked.observe

    def mean_excess(w: Array) -> Array:
        return jnp.mean(in_chunks(lambda batch: losses(w, batch) - losses(centre, batch), measured_on))

    def every(w: Array) -> Array:
        found: Array = in_chunks(lambda batch: losses(w, batch), data)
        return found

    def observed(w: Array) -> Array:
        assert observe is not None
        return jnp.asarray(observe(whole(form, fixed, w)))

    return sgld.Extras(
        None if measured_on is None else mean_excess,
        every if asked.losses else None,
        None if observe is None else observed,
    )
