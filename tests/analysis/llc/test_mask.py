"""The mask of an LLC: the matches of Python's re, in limited time whatever the expression."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icl_lab.analysis.llc.estimator import matches
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
