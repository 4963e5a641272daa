"""The laboratory as a guest in a user's process, such as a notebook: what it needs changed is changed back."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from icl_lab.lab.environment import UnusableEnvironment, num_threads
from icl_lab.src.checks import UserError

JAX_SETTINGS = {"jax_enable_x64": False, "jax_default_matmul_precision": "highest"}
OF_PROGRAMS = (  # what `compile_cache` sets
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
)


@contextmanager
def as_guest() -> Iterator[None]:
    """Computes as a command does, in float32 and with its number of threads, whatever the user has set in JAX.

    Afterwards JAX's settings and the environment variables are as before. `UserError` for an environment in which
    nothing can run, where a command would end.
    """
    import jax

    config: Any = jax.config  # whose values have no types
    settings = {name: config.values[name] for name in JAX_SETTINGS}
    with variables_as_before(), _programs_as_before():
        # as if the user had chosen it: a run that goes on would else choose, for all that follows in this process
        os.environ["NPROC"] = str(num_threads())
        try:
            _set(config, JAX_SETTINGS)  # of all threads; a user's `with` holds in this one
            with jax.enable_x64(False), jax.default_matmul_precision("highest"):
                yield
        finally:
            _set(config, settings)


@contextmanager
def variables_as_before() -> Iterator[None]:
    """Puts environment variables back afterwards: for work in other processes, where this one needs no JAX."""
    before = dict(os.environ)
    try:
        yield
    except UnusableEnvironment as error:
        raise UserError(str(error)) from None
    finally:
        _restore(before)


@contextmanager
def _programs_as_before() -> Iterator[None]:
    """Compiled programs are kept where the user keeps them again, and warnings about them are shown."""
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    from icl_lab.lab import compile_cache

    config: Any = jax.config
    before = {name: config.values[name] for name in OF_PROGRAMS}
    try:
        with warnings.catch_warnings():
            yield
    finally:
        if {name: config.values[name] for name in OF_PROGRAMS} != before:
            _set(config, before)
            compilation_cache.reset_cache()
            compile_cache.enable.cache_clear()


def _set(config: Any, settings: Mapping[str, Any]) -> None:
    for name, value in settings.items():
        if config.values[name] != value:
            config.update(name, value)


def _restore(variables: dict[str, str]) -> None:
    for name in os.environ.keys() - variables.keys():
        del os.environ[name]
    for name, value in variables.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
