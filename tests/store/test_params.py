"""Parameters go to disk and come back, bit for bit."""

import contextlib
import os
import pickle
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from store import StoreError, layout
from store.params import read_params, write_params

LEAF = hnp.arrays(np.float32, hnp.array_shapes(max_dims=3, max_side=3), elements=st.floats(width=32))
MODULES = st.lists(st.text("ab_0", min_size=1, max_size=4), min_size=1, max_size=3).map("/".join)
PARAMS = st.dictionaries(
    MODULES, st.dictionaries(st.text("wb_", min_size=1, max_size=3), LEAF, min_size=1, max_size=2), min_size=1
)


@given(PARAMS)
def test_params_come_back_from_both_files(
    tmp_path_factory: pytest.TempPathFactory, params: dict[str, dict[str, np.ndarray]]
) -> None:
    run = tmp_path_factory.mktemp("run")
    write_params(run, params, {"step": 3})
    with open(run / layout.PARAMS_PICKLE, "rb") as file:
        pickled = pickle.load(file)
    for found in (read_params(run), pickled):
        assert {module: set(leaf) for module, leaf in found.items()} == {m: set(leaf) for m, leaf in params.items()}
        for module, leaf in params.items():
            for name, value in leaf.items():
                assert found[module][name].dtype == np.float32
                assert found[module][name].tobytes() == value.tobytes()


def test_reading_never_opens_the_pickle(tmp_path: Path) -> None:
    write_params(tmp_path, {"layer_0/attention": {"query": np.ones((2, 1, 2))}}, {})
    (tmp_path / layout.PARAMS).unlink()
    with pytest.raises(StoreError, match=layout.PARAMS):
        read_params(tmp_path)
    write_params(tmp_path, {"layer_0/attention": {"query": np.ones((2, 1, 2))}}, {})
    (tmp_path / layout.PARAMS_PICKLE).write_bytes(b"broken")
    assert read_params(tmp_path)["layer_0/attention"]["query"].shape == (2, 1, 2)


# The pickle, where it is all there is


def only_pickle(run: Path, content: bytes) -> Path:
    """A folder that has params.pkl and no params.safetensors."""
    run.mkdir(exist_ok=True)
    (run / layout.PARAMS_PICKLE).write_bytes(content)
    return run


@given(PARAMS)
def test_the_pickle_gives_the_same_bits(
    tmp_path_factory: pytest.TempPathFactory, params: dict[str, dict[str, np.ndarray]]
) -> None:
    run = tmp_path_factory.mktemp("run")
    write_params(run, params, {})
    (run / layout.PARAMS).unlink()
    found = read_params(run, allow_pickle=True)
    assert {module: set(leaf) for module, leaf in found.items()} == {m: set(leaf) for m, leaf in params.items()}
    for module, leaf in params.items():
        for name, value in leaf.items():
            array = found[module][name]
            assert (array.dtype, array.shape, array.tobytes()) == (value.dtype, value.shape, value.tobytes())
            assert array.flags.writeable


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickles_of_other_writers_are_read(tmp_path: Path, protocol: int) -> None:
    """By columns, in the other byte order, of other types, in an OrderedDict."""
    matrix = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    leaf = {"a": np.asfortranarray(matrix), "b": matrix.astype(">f4"), "c": matrix[0] > 1, "d": np.float64(0.1)}
    content = pickle.dumps(OrderedDict({"layer": leaf}), protocol=protocol)
    if protocol == 2:  # writes bytes by calling a codec
        with pytest.raises(StoreError, match=r"_codecs\.encode"):
            read_params(only_pickle(tmp_path, content), allow_pickle=True)
        return
    found = read_params(only_pickle(tmp_path, content), allow_pickle=True)["layer"]
    for name, value in leaf.items():
        np.testing.assert_array_equal(found[name], value, strict=name != "b")


def test_the_pickle_is_opened_only_when_asked_for(tmp_path: Path) -> None:
    only_pickle(tmp_path, b"broken")
    with pytest.raises(StoreError, match=r"only params\.pkl; --allow_pickle reads that"):
        read_params(tmp_path)
    with pytest.raises(StoreError, match=r"params\.pkl cannot be read"):
        read_params(tmp_path, allow_pickle=True)
    write_params(tmp_path, {"layer_0/attention": {"query": np.ones((2, 1, 2))}}, {})
    (tmp_path / layout.PARAMS_PICKLE).write_bytes(b"broken")
    assert read_params(tmp_path, allow_pickle=True)["layer_0/attention"]["query"].shape == (2, 1, 2)


class Call:
    """Pickles as a call."""

    def __init__(self, function: Callable[..., Any], *arguments: Any):
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.function, self.arguments


def hostile(touched: Path) -> dict[str, bytes]:
    """Pickles that would touch a file, break NumPy's memory, or change something that stays."""
    code = f"open({str(touched)!r}, 'w').close()"
    dump = pickle.dumps
    return {
        "system": dump({"layer": {"w": Call(os.system, f"touch {touched}")}}),
        "eval": dump(Call(eval, code)),
        "exec": dump(Call(exec, code)),
        "open": dump(Call(open, str(touched), "w")),
        "getattr": b"cbuiltins\ngetattr\n(cos\nsystem\nS'x'\ntR.",
        "numpy.load": dump(Call(np.load, str(touched))),
        "numpy.save": dump(Call(np.save, str(touched), 3)),
        "numpy.fromfile": b"cnumpy\nfromfile\n(V/etc/passwd\ntR.",
        "numpy.testing runstring": f"cnumpy.testing._private.utils\nrunstring\n(V{code}\n}}tR.".encode(),
        "numpy.ndarray method": b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93.",
        "numpy.f2py": b"cnumpy.f2py\ncompile\n(Vx\ntR.",
        "dotted": b"\x80\x04\x8c\x0bcollections\x8c\x17OrderedDict.__init__.x\x93.",
        "objects": dump({"layer": {"w": np.array([Call(os.system, f"touch {touched}")], dtype=object)}}),
        "objects without": dump({"layer": {"w": np.array([None, 3], dtype=object)}}),
        "records": dump({"layer": {"w": np.zeros(2, "f4,O")}}),
        "text": dump({"layer": {"w": np.array(["a", "b"])}}),
        "persistent": b"Vsome id\nQ.",
        "extension": b"\x82\x01.",
        "no arrays": dump({"layer": {"w": [1.0]}}),
        "a list": dump([np.zeros(2)]),
        "flat": dump({"w": np.zeros(2)}),
        "no end": dump({"layer": {"w": np.zeros(2)}})[:-5],
        "deep": b"(" * 100_000 + b"t" * 100_000 + b".",
        "deep in a key": b"}" + b")" + b"\x85" * 2_000_000 + b"Ns.",
        "deep enough in a key": b"}" + b")" + b"\x85" * 19_000 + b"Ns.",
        "a far memo": b"}r\xff\xff\xff\x7f.",
        "a far memo in text": b"}p2147483647\n.",
        "many parts": b"N0" * 600_000 + b"N.",
        "attribute of a function": b"cnumpy._core.numeric\n_frombuffer\n(N}V__defaults__\nNstb.",
        # a type of objects that claims to hold plain bytes, so that the bytes would be taken for pointers
        "pointers": (
            b"cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR(I1\n(I1\nt"
            b"cnumpy\ndtype\n(S'O8'\nI0\nI1\ntR(I3\nS'|'\nNNNI-1\nI-1\nI0\ntbI00\nS'AAAAAAAA'\ntb."
        ),
        "a long array": (b"cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(L1000000000000L\ntS'b'\ntR."),
    }


@pytest.mark.parametrize("name", hostile(Path()))
def test_hostile_pickles_do_nothing(name: str, tmp_path: Path) -> None:
    before = (np.ndarray.__dict__.copy(), OrderedDict.__dict__.copy())
    run = only_pickle(tmp_path / "run", hostile(tmp_path / "touched")[name])
    with pytest.raises(StoreError, match=r"params\.pkl") as caught:
        read_params(run, allow_pickle=True)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "touched").exists()
    assert (np.ndarray.__dict__.copy(), OrderedDict.__dict__.copy()) == before


@pytest.mark.parametrize("put", [b"r\x81\x84\x1e\x00", b"p2000001\n"])
def test_a_memo_is_not_as_large_as_a_pickle_says(put: bytes, tmp_path: Path) -> None:
    """A number beyond the limit is refused before room is made for all below it; a small one is read."""
    with pytest.raises(StoreError, match="more parts than parameters have"):
        read_params(only_pickle(tmp_path, b"}" + put + b"."), allow_pickle=True)
    assert read_params(only_pickle(tmp_path, b"}r\x01\x00\x00\x00."), allow_pickle=True) == {}


def test_the_hostile_pickles_are_hostile(tmp_path: Path) -> None:
    """Where pickles are run, the file is touched: the test above would see it."""
    touched = tmp_path / "touched"
    for name in ("system", "eval", "objects"):
        pickle.loads(hostile(touched)[name])
        assert touched.exists()
        touched.unlink()


@given(st.binary(max_size=100), st.floats(0, 1, exclude_max=True), st.integers(0, 255))
def test_no_bytes_make_the_pickle_reader_raise_anything_else(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, place: float, byte: int
) -> None:
    good = bytearray(pickle.dumps({"layer": {"w": np.arange(3, dtype=np.float32)}}, protocol=4))
    good[int(place * len(good))] = byte
    run = tmp_path_factory.mktemp("run")
    for wrong in (content, bytes(good)):
        with contextlib.suppress(StoreError):
            read_params(only_pickle(run, wrong), allow_pickle=True)
