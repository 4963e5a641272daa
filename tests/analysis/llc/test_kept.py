"""Estimates in files: what is read is what was written, and a digest is of everything that an estimate is of."""

from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_lab.analysis.llc import kept
from icl_lab.analysis.llc.derivatives import Slopes
from icl_lab.analysis.llc.estimate import Estimate, of_traces
from icl_lab.analysis.llc.prediction import Prediction
from icl_lab.analysis.llc.settings import Settings
from icl_lab.store.readers import StoreError

numbers = st.floats(width=64)  # nan and infinities among them
FLOATS = [field.name for field in fields(Estimate) if field.type == "float"]


@st.composite
def estimates(draw: Any) -> Estimate:
    """Any estimate."""
    return Estimate(
        **{name: draw(numbers) for name in FLOATS},
        verdict=draw(st.sampled_from(["LLC", "none"])),
        pull="plateau",
        order="undecided",
        reasons=tuple(draw(st.lists(st.sampled_from(["saddle: a", "not mixed: b; c", "β"]), max_size=2))),
        slopes=Slopes(*[draw(numbers) for _ in Slopes._fields]),
        prediction=draw(st.one_of(st.none(), st.builds(Prediction, curvature=numbers, h_min=numbers))),
        settings=Settings(eps=draw(st.sampled_from([None, 1e-4])), mask="w", seed=3),
        descent=(draw(numbers), 1.0),
        measured=draw(st.one_of(st.none(), st.tuples(numbers, numbers, numbers))),
        traces={"excess": np.arange(6.0).reshape(2, 3), "losses": np.full((2, 3, 1), np.nan)},
    )


@given(estimates(), st.integers(0, 10**9))
def test_what_is_read_is_what_was_written(tmp_path_factory: pytest.TempPathFactory, one: Estimate, step: int) -> None:
    folder = tmp_path_factory.mktemp("kept") / "new"
    assert kept.read(folder, step, "of") is None
    kept.write(folder, step, "of", one)
    back = kept.read(folder, step, "of")
    assert back is not None
    assert repr(back) == repr(one)
    assert {*back.traces} == {*one.traces}
    for name, values in one.traces.items():
        np.testing.assert_array_equal(back.traces[name], values)
    assert kept.read(folder, step + 1, "of") is None
    with pytest.raises(StoreError, match="is an estimate of other parameters, data or settings"):
        kept.read(folder, step, "of another")


def loss_of_mine(params: Any) -> Any:
    return params


W = {"a": np.arange(4, dtype=np.float32), "f": loss_of_mine, "n": 2}
DATA = {"x": np.ones((3, 2), np.float32)}
SETTINGS = {"nbeta": 1.0, "mask": {"a": np.array([True, False, True, True]), "f": True, "n": False}}


@pytest.mark.parametrize(
    "other",
    [
        (W | {"a": np.arange(4, dtype=np.float32)[::-1]}, DATA, SETTINGS),
        (W | {"a": np.arange(4, dtype=np.float64)}, DATA, SETTINGS),
        (W | {"a": np.arange(4, dtype=np.float32).reshape(2, 2)}, DATA, SETTINGS),
        (W | {"n": 3}, DATA, SETTINGS),
        (W | {"f": kept.digest}, DATA, SETTINGS),
        ({"b": W["a"], "f": W["f"], "n": 2}, DATA, SETTINGS),
        (W, {"x": 2 * DATA["x"]}, SETTINGS),
        (W, {"y": DATA["x"]}, SETTINGS),
        (W, DATA, SETTINGS | {"nbeta": 1.5}),
        (W, DATA, SETTINGS | {"seed": 1}),
        (W, DATA, SETTINGS | {"mask": {"a": np.array([True, True, True, True]), "f": True, "n": False}}),
        (W, DATA, SETTINGS | {"mask": None}),
    ],
)
def test_a_digest_differs_with_everything_that_an_estimate_is_of(other: tuple[Any, Any, Any]) -> None:
    assert kept.digest(*other) != kept.digest(W, DATA, SETTINGS)


def test_a_digest_is_of_values_wherever_they_are() -> None:
    arrays = {"a": jnp.arange(4, dtype=jnp.float32), "f": loss_of_mine, "n": 2}
    assert kept.digest(arrays, {"x": jnp.ones((3, 2))}, SETTINGS) == kept.digest(W, DATA, SETTINGS)


def test_a_torn_file_is_refused(tmp_path: Path) -> None:
    """At whatever byte it ends, and with a byte changed in the middle."""
    kept.write(tmp_path, 3, "of", of_traces({"excess": np.random.default_rng(0).random((2, 9))}, Settings(burn_in=0)))
    whole = kept.path_of(tmp_path, 3).read_bytes()
    middle = len(whole) // 2
    torn = [whole[: size * len(whole) // 12] for size in range(12)]
    for content in (*torn, whole[:-1], whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]):
        kept.path_of(tmp_path, 3).write_bytes(content)
        with pytest.raises(StoreError, match="is not a stored estimate; move it away"):
            kept.read(tmp_path, 3, "of")


@pytest.mark.parametrize("content", [b"", b"half", b"PK\x03\x04 and no more"])
def test_a_broken_file_is_refused(content: bytes, tmp_path: Path) -> None:
    kept.path_of(tmp_path, 3).write_bytes(content)
    with pytest.raises(StoreError, match=r"llc_step_00000003\.npz is not a stored estimate; move it away"):
        kept.read(tmp_path, 3, "of")


def test_arrays_of_somebody_else_are_no_estimate(tmp_path: Path) -> None:
    np.savez(kept.path_of(tmp_path, 3), allow_pickle=False, excess=np.ones(3))
    with pytest.raises(StoreError, match="is not a stored estimate"):
        kept.read(tmp_path, 3, "of")


def test_a_digest_is_the_same_in_every_process_whatever_function_a_setting_is() -> None:
    """Without its place in memory, which another process has otherwise."""
    params, data = {"w": np.ones(2, np.float32)}, np.ones((3, 1), np.float32)
    one, same = (kept.digest(params, data, {"observe": partial(np.add, number)}) for number in (1, 1))
    assert one == same
    assert one != kept.digest(params, data, {"observe": np.add})
    assert one != kept.digest({"w": np.zeros(2, np.float32)}, data, {"observe": partial(np.add, 1)})
