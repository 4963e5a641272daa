"""What takes long is done rarely: at most a tenth of the time goes into it."""

import pytest

from icl_lab.lab.executors.throttle import Throttle

pytestmark = pytest.mark.robust

COSTS = (0.5, 1.0, 60.0, 0.0)


def test_a_pause_is_the_least_or_ten_times_what_it_took() -> None:
    now = [0.0]
    throttle, pauses = Throttle(10.0, clock=lambda: now[0]), []
    for cost in COSTS:
        began = now[0]
        while not throttle.due():
            now[0] += 0.5
        pauses.append(now[0] - began)
        with throttle.timed():
            now[0] += cost
    assert pauses == [10, 10, 10, 600]


def test_what_fails_takes_its_time_too() -> None:
    now = [0.0]
    throttle = Throttle(1.0, clock=lambda: now[0])
    try:
        with throttle.timed():
            now[0] += 5
            raise OSError
    except OSError:
        now[0] += 49
    assert not throttle.due()
    now[0] += 1
    assert throttle.due()
