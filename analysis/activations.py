"""Lists the activations of a run; they can be read, replaced and ablated from Python.

python -m analysis.activations --run RUN

The functions are `src.patching`'s, compiled: one program for one set of names, whatever the values and the site.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from icl_lab.analysis.command import Command
from icl_lab.analysis.loaded_run import load_run
from icl_lab.analysis.run import Run
from icl_lab.lab.guest import as_guest
from icl_lab.src import patching
from icl_lab.src.activations import ABSENT, OF_BLOCK, OF_MODEL, axes_of, matching
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError, require
from icl_lab.src.model import Model
from icl_lab.src.patching import Names, Site, Value


def shapes_of(model: Model, params: Any, batch: Any) -> Mapping[str, jax.ShapeDtypeStruct]:
    """The shapes of a model's activations, by address; `ConfigError` for a model that shows none."""
    try:
        return patching.shapes_of(model, params, batch)
    except NotImplementedError as reason:
        raise ConfigError(str(reason)) from None


# --- reading, replacing, ablating ---


def capture(run: Run, batch: Batch, names: Names = "*") -> dict[str, np.ndarray]:
    """Activations by address; `ConfigError` for a name that matches none."""
    with as_guest():
        model, params, fitted, shapes = _parts(run, batch)
        found = _capture(model, params, fitted, tuple(matching(names, [*shapes])))
        return {at: np.asarray(value) for at, value in found.items()}


def patch(run: Run, batch: Batch, values: Mapping[str, Value], site: Site) -> np.ndarray:
    """The predictions when activations are replaced at a site by arrays, or by what functions make of them."""
    with as_guest():
        model, params, fitted, shapes = _parts(run, batch)
        given = {at: value for name, value in values.items() for at in matching(name, [*shapes])}
        _check_site([*given], shapes, site)
        for at, value in given.items():
            patching.check(at, shapes[at].shape, value, site)
        functions = tuple((at, value) for at, value in given.items() if callable(value))
        arrays = {at: np.asarray(value) for at, value in given.items() if not callable(value)}
        return np.asarray(_patch(model, params, fitted, arrays, site, functions))


def ablate(run: Run, batch: Batch, names: Names, how: str, site: Site, shift: int = 1) -> np.ndarray:
    """The predictions when activations are 0, their mean over contexts, or those of the context `shift` further on."""
    require(how in patching.ABLATIONS, f"ablation is {how!r}; it must be one of {', '.join(patching.ABLATIONS)}")
    with as_guest():
        model, params, fitted, shapes = _parts(run, batch)
        found = tuple(matching(names, [*shapes]))
        _check_site([*found], shapes, site)
        for at in found:
            patching.check(at, shapes[at].shape, 0.0, site)
        return np.asarray(_ablate(model, params, fitted, site, shift, found, how))


@partial(jax.jit, static_argnums=(0, 3))
def _capture(model: Model, params: Any, batch: Any, names: tuple[str, ...]) -> dict[str, jax.Array]:
    return patching.capture(model, params, batch, names)


@partial(jax.jit, static_argnums=(0, 5))
def _patch(model: Model, params: Any, batch: Any, arrays: Any, site: Site, functions: tuple[Any, ...]) -> jax.Array:
    return patching.patch(model, params, batch, {**arrays, **dict(functions)}, site)


@partial(jax.jit, static_argnums=(0, 5, 6))
def _ablate(
    model: Model, params: Any, batch: Any, site: Site, shift: Any, names: tuple[str, ...], how: str
) -> jax.Array:
    return patching.patch(model, params, batch, patching.ablated(model, params, batch, names, how, shift), site)


def _check_site(names: list[str], shapes: Mapping[str, Any], site: Site) -> None:
    """`ConfigError` for a layer that none of the addresses is of; heads and positions are `patching.check`'s."""
    if site.layer is None:
        return
    layers = sorted({int(at.split(".")[1]) for at in names if at.startswith("blocks.")})
    named = ", ".join(map(str, layers)) or "none"
    require(site.layer in layers, f"layer is {site.layer}, but the layers of {', '.join(names)} are: {named}")
    alone = [at for at in names if not at.startswith("blocks.")]
    require(not alone, f"{', '.join(alone)} belongs to no layer; leave layer out")


def _parts(run: Run, batch: Batch) -> tuple[Model, Any, Any, Mapping[str, jax.ShapeDtypeStruct]]:
    fitted = fitting(run, batch)
    return run.model, run.params, fitted, shapes_of(run.model, run.params, fitted)


def is_decoder(run: Run) -> bool:
    """Whether every pair of a sequence is a query."""
    return bool(getattr(run.config, "sequences", False))


def fitting(run: Run, batch: Any) -> Any:
    """A batch as the run's model takes it; of a decoder, a query is the last pair of its sequence.

    `ConfigError` for arrays of other shapes than the run's.
    """
    shapes = run.config.batch_shapes()
    if isinstance(batch, Batch) and is_decoder(run) and np.ndim(batch.x_query) == 2:
        x = np.concatenate([batch.x, np.asarray(batch.x_query)[:, None]], axis=1)
        y = np.concatenate([batch.y, np.nan_to_num(batch.y_query)[:, None]], axis=1)
        batch = batch._replace(x=x, y=y, x_query=x, y_query=y)  # type: ignore[arg-type]  # NumPy's, for JAX's
    for name, expected in shapes.items():
        if name == "w":  # no model sees it
            continue
        found: tuple[int, ...] = np.shape(getattr(batch, name, 0.0))
        text = f"{name} has the shape {found}, and {run.path} takes (contexts, {', '.join(map(str, expected[1:]))})"
        require(found[1:] == expected[1:] and len(found) == len(expected), text.replace(", )", ",)"))
    return batch


# --- the command ---


def measure(directory: Path, flags: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each activation, in the order of the pass, then for names that the model has not a row with why."""
    loaded = load_run(directory)
    shapes = shapes_of(loaded.model, loaded.params, loaded.batch)
    for at, each in shapes.items():
        sizes = ", ".join(("B", *map(str, each.shape[1:])))
        yield {f"{at:22}": f"[{sizes}]  {', '.join(axes_of(at)[: len(each.shape)])}"}
    present = {at.split(".", 2)[2] if at.startswith("blocks.") else at for at in shapes}
    reasons: dict[str, list[str]] = {}
    for name in (*OF_MODEL, *OF_BLOCK):
        if name not in present:
            reasons.setdefault(ABSENT.get(name, "this model computes no such thing"), []).append(name)
    for reason, names in reasons.items():
        yield {f"none of {', '.join(names)}": f"because {reason}"}


COMMAND = Command("activations", "Prints the activations of a run, with their axes and shapes.", measure, locks=True)

if __name__ == "__main__":
    COMMAND.launch()
