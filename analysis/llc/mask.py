"""Which parameters a chain moves: a regular expression of names, a pytree of booleans, or of arrays of booleans.

A leaf's name is its path, with slashes: "linear/w", "blocks/0/attention/query". Arrays choose a part of a leaf, such as
one head of a stacked array.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from icl_lab.analysis.llc.loss import Split, is_moving
from icl_lab.analysis.llc.patterns import check_pattern, matches
from icl_lab.src.checks import ConfigError, require


def mask_vector(split: Split, params: Any, mask: Any) -> np.ndarray | None:
    """Which of the vector's parameters move [d], 0 or 1; None without a mask.

    mask: a regular expression, or a pytree like the parameters (or one of which it is a prefix) of booleans or arrays
    of booleans that broadcast to their leaf. `ConfigError` for one of another structure, and for one that moves
    nothing.
    """
    if mask is None or (isinstance(mask, str) and mask == ""):
        return None
    leaves = split.form.leaves
    chosen = _by_name(split, params, mask) if isinstance(mask, str) else _by_structure(params, mask, len(leaves))
    parts = [
        _part(value, leaf.shape, name)
        for value, leaf, name in zip(chosen, leaves, names_of(params), strict=True)
        if is_moving(leaf)
    ]
    moves = np.concatenate(parts)
    require(bool(moves.any()), "the mask selects no parameter")
    return moves.astype(np.float32)


def names_of(params: Any) -> list[str]:
    """The name of every leaf, in the order of the leaves."""
    paths = jax.tree_util.tree_flatten_with_path(params)[0]
    return ["/".join(str(_word(key)) for key in path) for path, _ in paths]


def _word(key: Any) -> Any:
    for attribute in ("key", "name", "idx"):
        if hasattr(key, attribute):
            return getattr(key, attribute)
    return key


def _by_name(split: Split, params: Any, pattern: str) -> list[bool]:
    check_pattern(pattern)
    names = names_of(params)
    moving = tuple(name for name, leaf in zip(names, split.form.leaves, strict=True) if is_moving(leaf))
    found = dict(zip(moving, matches(pattern, moving), strict=True))
    require(
        any(found.values()), f"mask {pattern!r} matches no floating-point parameter; choose from {', '.join(moving)}"
    )
    return [found.get(name, False) for name in names]


def _by_structure(params: Any, mask: Any, count: int) -> list[Any]:
    try:
        spread: list[Any] = []
        jax.tree.map(lambda value, part: spread.extend([value] * len(jax.tree.leaves(part))), mask, params)
        require(len(spread) == count, "")
    except (ValueError, TypeError, KeyError, ConfigError):
        raise ConfigError(
            f"the mask has the structure {jax.tree.structure(mask)}, but the parameters have "
            f"{jax.tree.structure(params)}; a mask is a tree like the parameters, with a boolean or an array of "
            "booleans "
            "for each leaf"
        ) from None
    return spread


def _part(value: Any, shape: tuple[int, ...], name: str) -> np.ndarray:
    array = np.asarray(value)
    require(array.dtype == bool, f"the mask of {name} is of type {array.dtype}; it must be boolean")
    try:
        return np.broadcast_to(array, shape).ravel()
    except ValueError:
        raise ConfigError(f"the mask of {name} has shape {array.shape}, the parameter {shape}") from None
