"""Reads and writes parameters: nested dictionaries as flat arrays named `module/name`."""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from store import layout
from store.atomic import write_bytes, write_safetensors
from store.readers import LARGEST_TEXT, StoreError, expecting, read_safetensors, reading

Params = dict[str, dict[str, np.ndarray]]

MAX_OPERATIONS, MAX_TUPLES = 1_000_000, 20_000  # of a pickle; an array has about 30 and 4


def write_params(run: Path, params: Mapping[str, Mapping[str, Any]], metadata: Mapping[str, Any]) -> None:
    """Writes a run's parameters as safetensors, and as a pickle of NumPy arrays."""
    arrays = {module: {name: np.asarray(value) for name, value in leaf.items()} for module, leaf in params.items()}
    write_safetensors(run / layout.PARAMS, flattened(arrays), metadata)
    write_bytes(run / layout.PARAMS_PICKLE, pickle.dumps(arrays, protocol=4))


def read_params(run: Path, allow_pickle: bool = False) -> Params:
    """A run's parameters from safetensors, or from the pickle if that is missing and `allow_pickle` is set."""
    if not (run / layout.PARAMS).exists() and (run / layout.PARAMS_PICKLE).exists():
        if not allow_pickle:
            only = f"{run / layout.PARAMS} does not exist, only {layout.PARAMS_PICKLE}"
            raise StoreError(f"{only}; --allow_pickle reads that without running any code in it")
        return _read_pickle(run / layout.PARAMS_PICKLE)
    flat, _ = read_safetensors(run / layout.PARAMS)
    return nested(flat)


def flattened(params: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The leaves by `module/name`."""
    return {f"{module}/{name}": value for module, leaf in params.items() for name, value in leaf.items()}


def nested(flat: Mapping[str, np.ndarray]) -> Params:
    """The inverse of `flattened`."""
    params: Params = {}
    for key, value in flat.items():
        module, _, name = key.rpartition("/")
        params.setdefault(module, {})[name] = value
    return params


# Pickles. A pickle can misuse even NumPy's own functions, by giving them a state that no array has. So none is called:
# the names in a pickle are replaced by the stand-ins below, and arrays are made from the bytes that it holds.


class _Dtype:
    """A pickled numeric dtype."""

    def __init__(self, name: str, *_: Any) -> None:
        if not re.fullmatch("[biuf][1248]", name):
            raise ValueError(f"it holds values of type {name!r}, not numbers")
        self.dtype = np.dtype(name)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype = self.dtype.newbyteorder(state[1])


class _Array:
    """A pickled array, empty until its state is set."""

    def __init__(self, *_: Any) -> None:
        self.array = np.empty(0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, by_columns, content = state
        self.array = _values(content, kind).reshape(shape, order="F" if by_columns else "C")


def _values(content: bytes, kind: _Dtype) -> np.ndarray:
    return np.frombuffer(content, kind.dtype).astype(kind.dtype.newbyteorder("="))


def _from_buffer(content: bytes, kind: _Dtype, shape: tuple[int, ...], order: str) -> _Array:
    result = _Array()
    result.array = _values(content, kind).reshape(shape, order="F" if order == "F" else "C")
    return result


def _scalar(kind: _Dtype, content: bytes) -> _Array:
    return _from_buffer(content, kind, (), "C")


ALLOWED: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): dict,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    **{
        (f"numpy.{core}.{module}", name): make
        for core in ("core", "_core")
        for module, name, make in (
            ("multiarray", "_reconstruct", _Array),
            ("multiarray", "scalar", _scalar),
            ("numeric", "_frombuffer", _from_buffer),
        )
    },
}


class _Unpickler(pickle.Unpickler):
    """Unpickles arrays and plain containers, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """A new stand-in for each mention, so that attributes set by the pickle have no lasting effect."""
        if (module, name) not in ALLOWED:
            raise ValueError(f"it asks for {module}.{name}, which arrays do not need")
        make = ALLOWED[module, name]
        return lambda *given: make(*given)


def _check_length(content: bytes) -> None:
    """`ValueError` for a pickle with too many parts: hashing deeply nested tuples crashes the process.

    High memo numbers are refused too: the memo is allocated up to the highest.
    """
    hashed = 0
    for count, (operation, argument, _) in enumerate(pickletools.genops(content)):
        hashed += operation.name.startswith(("TUPLE", "FROZENSET"))
        far = operation.name in ("PUT", "BINPUT", "LONG_BINPUT") and (argument or 0) > MAX_OPERATIONS
        if count > MAX_OPERATIONS or hashed > MAX_TUPLES or far:
            raise ValueError("it holds more parts than parameters have")


def _read_pickle(path: Path) -> Params:
    """Nested arrays from a pickle that holds nothing else."""
    with reading(path):
        if path.stat().st_size > LARGEST_TEXT:
            raise ValueError(f"it is larger than {LARGEST_TEXT >> 20} MiB")
        content = path.read_bytes()
        _check_length(content)
        params = _Unpickler(io.BytesIO(content)).load()
    with expecting(path, "a pickle of parameters"):
        if not all(isinstance(name, str) for module, leaf in params.items() for name in (module, *leaf)):
            raise ValueError
        return {module: {name: value.array for name, value in leaf.items()} for module, leaf in params.items()}
