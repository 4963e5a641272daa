"""The mask of an LLC: expressions as Python's re finds them, trees of booleans, and that the rest stays where it is."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icl_lab.analysis.llc.loss import split
from icl_lab.analysis.llc.mask import mask_vector, names_of
from icl_lab.analysis.llc.patterns import matches
from icl_lab.src.checks import ConfigError

NAMES = ("layer_0/query/w", "layer_0/value/w", "layer_1/linear/b", "embedding\ud800/w")


@given(st.sampled_from([*"lqwb", "layer_1", "value|query", r"/w$", "^layer", r"_\d", "[^b]$", "\ud800", "(?i)LAYER"]))
@settings(max_examples=12)
def test_it_is_found_where_re_finds_it(pattern: str) -> None:
    assert matches(pattern, NAMES) == tuple(bool(re.search(pattern, name)) for name in NAMES)


@pytest.mark.parametrize("pattern", ["(((.+)+)+)+X", "(.*)*(.*)*(.*)*Y", r"(\w|\w\w|/)+$X"])
def test_what_takes_for_ever_is_refused(pattern: str) -> None:
    """In this process the first would outlive the machine."""
    with pytest.raises(ConfigError, match="takes more than 1 s to match") as error:
        matches(pattern, tuple(name * 3 for name in NAMES))
    assert str(error.value).startswith(f"mask is {pattern!r}, which")


# --- masks of parameters ---


PARAMS = {
    "attn": {"heads": np.arange(12, dtype=np.float32).reshape(3, 4), "scale": 2, "names": ("q", "k")},
    "mlp": [np.ones(3, np.float32), np.ones((), np.float32), np.arange(2)],
}
HEADS, FIRST, SECOND = slice(0, 12), slice(12, 15), slice(15, 16)  # of the vector; what is no float is in no part


def moving(mask: Any) -> list[int]:
    """The places of the vector that a mask moves."""
    found = mask_vector(split(lambda params, batch: batch, PARAMS), PARAMS, mask)
    assert found is not None
    assert found.shape == (16,)
    assert set(found) <= {0.0, 1.0}
    return [int(place) for place in np.flatnonzero(found)]


def places(*parts: slice) -> list[int]:
    return [place for part in parts for place in range(16)[part]]


def test_names_are_paths() -> None:
    assert names_of(PARAMS) == [
        *("attn/heads", "attn/names/0", "attn/names/1", "attn/scale", "mlp/0", "mlp/1", "mlp/2"),
    ]


ONE_HEAD = np.zeros((3, 1), bool)
ONE_HEAD[1] = True


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ("heads", places(HEADS)),
        ("^mlp/[01]$", places(FIRST, SECOND)),
        ("mlp", places(FIRST, SECOND)),  # its integers are of no vector
        ({"attn": True, "mlp": False}, places(HEADS)),  # a tree of which only the top is said
        ({"attn": {"heads": False, "scale": True, "names": True}, "mlp": [True, False, True]}, places(FIRST)),
        ({"attn": False, "mlp": [np.array([True, False, True]), True, True]}, [12, 14, 15]),
        (True, places(HEADS, FIRST, SECOND)),
        ({"attn": {"heads": ONE_HEAD, "scale": False, "names": False}, "mlp": False}, [4, 5, 6, 7]),
    ],
)
def test_what_a_mask_moves(mask: Any, expected: list[int]) -> None:
    assert moving(mask) == expected


def test_no_mask_is_none() -> None:
    taken = split(lambda params, batch: batch, PARAMS)
    assert mask_vector(taken, PARAMS, None) is mask_vector(taken, PARAMS, "") is None


@pytest.mark.parametrize(
    ("mask", "said"),
    [
        ("embedding", "mask 'embedding' matches no floating-point parameter; choose from attn/heads, mlp/0, mlp/1$"),
        ("scale", "mask 'scale' matches no floating-point parameter"),  # which is no float
        ("(", "mask is '\\(', which is not a regular expression"),
        ({"attn": True}, "the mask has the structure"),
        ({"attn": {"heads": True, "other": True}, "mlp": False}, "a mask is a tree like the parameters"),
        ([True, True], "the mask has the structure"),
        (False, "the mask selects no parameter"),
        ({"attn": False, "mlp": [np.zeros(3, bool), False, True]}, "the mask selects no parameter"),
        ({"attn": 1, "mlp": False}, "the mask of attn/heads is of type int64; it must be boolean"),
        (
            {"attn": False, "mlp": [np.ones(4, bool), True, True]},
            r"the mask of mlp/0 has shape \(4,\), the parameter \(3",
        ),
    ],
)
def test_masks_that_cannot_be(mask: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        moving(mask)
