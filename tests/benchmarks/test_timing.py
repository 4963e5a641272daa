"""Turns, medians and ratios, with a clock that does as it is told."""

from collections.abc import Callable

import pytest

from icl_lab.benchmarks import timing


def machine(overhead: float, each: float, calls: list[int]) -> Callable[[int], float]:
    """Takes `overhead` and `each` a unit; notes what it is asked for."""

    def timed(units: int) -> float:
        calls.append(units)
        return overhead + each * units

    return timed


def test_the_median_and_the_range() -> None:
    assert timing.spread([3.0, 1.0, 2.0, 9.0]) == (2.5, 1.0, 9.0, (3.0, 1.0, 2.0, 9.0))


@pytest.mark.parametrize("each", [1e-6, 1e-3, 0.2, 5.0])
def test_units_fill_the_time_asked_for(each: float) -> None:
    units = timing.units_for(machine(0.0, each, []), 0.5)
    assert units == max(1, round(0.5 / each))


def test_the_first_unit_does_not_count_for_it_may_compile() -> None:
    calls: list[int] = []

    def timed(units: int) -> float:
        calls.append(units)
        return 60.0 if len(calls) == 1 else 0.01 * units

    assert timing.units_for(timed, 0.5) == 50
    assert calls[0] == 1


def test_turns_alternate() -> None:
    order: list[str] = []
    found = timing.in_turns({name: lambda name=name: order.append(name) or len(order) for name in "ab"}, 3)
    assert "".join(order) == "ababab"
    assert found == {"a": [1, 3, 5], "b": [2, 4, 6]}


def test_ratios_are_taken_turn_by_turn() -> None:
    """A machine that is slow in one turn, for both, does not widen the ratio."""
    found = timing.ratios({"ours": [1.0, 10.0, 2.0], "plain": [3.0, 30.0, 6.0]}, "plain")
    assert found == {"ours": (3.0, 3.0, 3.0, (3.0, 3.0, 3.0))}
    assert timing.ratios({"ours": [1.0]}, "plain") == {}


def test_compare_gives_seconds_a_unit_of_one_run() -> None:
    calls: list[int] = []
    timed = {"ours": machine(0.0, 0.008, calls), "plain": machine(0.0, 0.01, [])}
    found = timing.compare(timed, seconds=0.4, repeats=5, shares={"ours": 8})
    assert found["units"] == {"ours": 50, "plain": 40}
    assert calls[-5:] == [50] * 5
    assert found["seconds"]["ours"]["median"] == pytest.approx(0.001)
    assert found["seconds"]["plain"]["values"] == pytest.approx([0.01] * 5)
    assert found["times_faster"]["ours"]["median"] == pytest.approx(10)
