"""Numbers on a command line: how they may be written, and what is refused, in a sentence with what is allowed."""

import argparse
import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from icl_lab.lab import cli, flag_types
from icl_lab.lab.configs.presets import parse, preset, resolve, set_values
from icl_lab.lab.configs.registry import from_dict
from icl_lab.lab.configs.run import to_dict
from icl_lab.lab.flag_types import (
    COUNT,
    INFINITY,
    NOT_NEGATIVE,
    POSITIVE,
    SEED,
    SEEDS,
    TASKS,
    Either,
    Number,
    Whole,
    whole,
)
from icl_lab.sweeps.grid import Grid


def spellings(number: int) -> list[str]:
    """The same whole number in the ways that it may be written."""
    digits = str(abs(number)).rstrip("0")
    zeros = len(str(abs(number))) - len(digits)
    sign = "-" if number < 0 else ""
    scientific = f"{sign}{digits}e{zeros}" if digits else "0e7"
    return [str(number), f"{number}.0", f"{number}.", scientific, scientific.upper(), f" {number} "]


@given(st.integers(-(10**30), 10**30))
@example(0)
@example(10**5)
def test_a_whole_number_is_read_from_each_of_its_spellings(number: int) -> None:
    """Exactly: a float would lose digits beyond 2^53."""
    assert {whole(text) for text in spellings(number)} == {number}


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3))
def test_what_has_a_fraction_is_no_whole_number(number: object) -> None:
    """By Python's fractions."""
    if Fraction(str(number)).denominator == 1:
        assert whole(str(number)) == Fraction(str(number))
    else:
        with pytest.raises(ValueError, match="is not a whole number"):
            whole(str(number))


@pytest.mark.parametrize(
    "text", ["", "x", "1,5", "nan", "inf", "-inf", "1e", "0x10", "1e999999999", "1e-1", "1e-999999999", "9" * 5000]
)
def test_other_text_is_no_whole_number(text: str) -> None:
    """At once: 1e999999999 would have a billion digits."""
    with pytest.raises(ValueError, match="is not a whole number"):
        whole(text)


@given(st.integers(-(2**80), 2**80))
@example(-1)
@example(2**32)
def test_bounds_are_kept_and_named(number: int) -> None:
    for kind in (SEED, COUNT, TASKS, Whole(-3, 3, "three are enough")):
        if kind.least <= number <= kind.most:
            assert kind(str(number)) == number
        else:
            with pytest.raises(argparse.ArgumentTypeError) as error:
                kind(str(number))
            assert str(error.value) == f"{flag_types.shown(str(number))} is not {kind}"


def test_sentences_say_what_is_allowed_and_why() -> None:
    assert str(SEED) == "a whole number from 0 to 2^32 - 1"
    assert str(Whole(2, 4096, "each is a copy")) == "a whole number from 2 to 4096 (each is a copy)"
    assert str(Whole(0, 2**22)) == "a whole number from 0 to 2^22"
    assert str(Number(0.0, 1.0, open_high=True)) == "a number from 0 to below 1"
    assert flag_types.shown("9" * 5000) == f"'{'9' * 40}...'"


@pytest.mark.parametrize("text", ["0", "-1", "1e-300", "nan", "inf", "1e39", "x", ""])
def test_a_positive_number_is_one_that_float32_has(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"is not a number above 0, from 1\.18e-38 to 3\.4e\+38"):
        POSITIVE(text)


def test_an_open_end_is_left_out_and_a_closed_one_is_not() -> None:
    assert (NOT_NEGATIVE("0"), Number(0.0, 1.0)("1")) == (0.0, 1.0)
    with pytest.raises(argparse.ArgumentTypeError):
        Number(0.0, 1.0, open_high=True)("1")


@pytest.mark.parametrize("text", ["inf", "Inf", "INF", "infinity", "Infinity", "+inf"])
def test_infinity_is_read_from_each_of_its_spellings(text: str) -> None:
    """In a flag, in a field of the config, and in the grid of a sweep."""
    assert Either(INFINITY, math.inf, COUNT)(text) == math.inf
    assert parse(text, math.inf, "num_tasks") == math.inf
    config = preset("tiny")
    set_values(config, {"num_tasks": text})
    assert resolve(config).data.num_tasks == math.inf


@pytest.mark.parametrize("value", ["2e1", "20.0", "20", 20.0, 20])
def test_a_whole_number_is_the_same_in_flags_fields_and_files(value: object) -> None:
    """To the type: the id of a run is a hash of what its config is written as."""
    config = preset("lsa1")
    set_values(config, {"steps": value, "dim": value})
    resolved = resolve(config)
    assert (repr(resolved.training.steps), repr(resolved.data.dim)) == ("20", "20")
    point = next(Grid(("lsa1",), settings={"steps": value, "dim": value}).points())
    assert (point.training.steps, point.data.dim) == (20, 20)
    if not isinstance(value, str):  # JSON
        written = to_dict(resolved)
        written["training"]["steps"] = value
        assert repr(from_dict(written)) == repr(resolved)


@pytest.mark.parametrize("text", ["-1e-3", "-1", "-.5", "-1.", "-2E5", "-inf", "-Infinity", "-nan"])
def test_a_negative_number_is_no_flag(text: str) -> None:
    built = cli.Parser("some.command", "")
    built.add_argument("--shift", type=flag_types.number)
    cli.add_list(built, "--shifts", float, [], "")
    assert repr(built.parse(["--shift", text]).shift) == repr(float(text))
    assert repr(built.parse(["--shifts", "1", text, "2"]).shifts) == repr([1.0, float(text), 2.0])


@pytest.mark.parametrize("text", ["-x", "-e3", "-1x", "-"])
def test_what_looks_like_a_flag_is_none_of_the_values(text: str) -> None:
    built = cli.Parser("some.command", "")
    built.add_argument("--shift", type=flag_types.number)
    with pytest.raises(cli.UsageError):
        built.parse(["--shift", text])


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        (["0-4"], [0, 1, 2, 3, 4]),
        (["0-1,7", "3-3"], [0, 1, 7, 3]),
        (["4294967294-4294967295"], [4294967294, 4294967295]),
    ],
)
def test_a_list_of_seeds_may_have_ranges(words: list[str], numbers: list[int]) -> None:
    built = cli.Parser("a", "b")
    cli.add_list(built, "--seeds", SEEDS, (0,), "seeds")
    assert built.parse(["--seeds", *words]).seeds == numbers


@pytest.mark.parametrize("text", ["4-0", "0-100000", "0-", "-1", "1-2-3", "0-4294967296", "a-b", "1e1-2e1"])
def test_what_is_no_range_of_seeds_is_refused(text: str) -> None:
    with pytest.raises(
        argparse.ArgumentTypeError, match=r" is (not a whole number from 0 to|not a range of 1 to 100000)"
    ):
        SEEDS(text)
