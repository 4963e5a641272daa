"""The laboratory as a guest in a user's process, such as a notebook: what it needs changed is changed back."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from icl_lab.lab.environment import UnusableEnvironment, num_threads
from icl_lab.src.checks import UserError

JAX_SETTINGS = {"jax_enable_x64": False, "jax_default_matmul_precision": "highest"}


@contextmanager
def as_guest() -> Iterator[None]:
    """Computes as a command does, in float32 and with its number of threads, whatever the user has set in JAX.

    Afterwards JAX's settings and the environment variables are as before. `UserError` for an environment in which
    nothing can run, where a command would end.
    """
    import jax

    config: Any = jax.config  # whose values have no types
    before, settings = dict(os.environ), {name: config.values[name] for name in JAX_SETTINGS}
    try:
        # as if the user had chosen it: a run that goes on would else choose, for all that follows in this process
        os.environ["NPROC"] = str(num_threads())
        _set(config, JAX_SETTINGS)  # of all threads; a user's `with` holds in this one
        with jax.enable_x64(False), jax.default_matmul_precision("highest"):
            yield
    except UnusableEnvironment as error:
        raise UserError(str(error)) from None
    finally:
        _set(config, settings)
        _restore(before)


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
