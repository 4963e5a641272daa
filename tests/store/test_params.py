"""Parameters go to disk and come back, bit for bit."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from icl_lab.store import StoreError, layout
from icl_lab.store.params import read_params, write_params

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
