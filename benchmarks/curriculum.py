"""Measures the lengths that a curriculum on points trains by, against a mask on the loss and a program for each length.

The schedule is the published one scaled down: D = 10, of which 5 inputs at first, points from 5 to 21 by 2 every 2000
steps. Ours computes a step on the shortest of four lengths that has all points that count; the mask computes all 21;
a program for each length has prompts of the points that count alone. Seconds are the process's own, so that other
processes do not count; `NPROC=1` makes them those of one core.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from icl_lab.benchmarks.cases import Settings, config_of
from icl_lab.benchmarks.llc import against
from icl_lab.benchmarks.programs import Program, automatic, our_program
from icl_lab.benchmarks.timing import in_turns, spread, units_for
from icl_lab.families.functions.config import Curriculum

STEPS, EVERY = 20_000, 2000
POINTS = range(5, 22, 2)
LAST = POINTS[-1]
GROWING: dict[str, Any] = {"start_points": POINTS[0], "points_every": EVERY}
LENGTHS = Curriculum(start_points=POINTS[0], points_every=EVERY).lengths(LAST)
OURS, MASK, BY_LENGTH = "ours", "a mask on the loss", "a program for each length"
OWN = 0  # of the programs by length: that of the curriculum itself, which is only compiled

Entry = dict[str, Any]


def steps_at(points: int) -> int:
    """The steps of the run whose loss counts so many points."""
    return EVERY if points < LAST else STEPS - EVERY * (len(POINTS) - 1)


def program_of(num_pairs: int, **values: Any) -> Program:
    """A program of functions_tiny for prompts of K pairs, timed in seconds of the process."""
    sizes = {"num_pairs": num_pairs, "dim": 10, "start_dims": 5, "dims_every": EVERY, "steps": STEPS}
    config = config_of("functions_tiny", **sizes, **values)
    return our_program(config, kernel=automatic(config), clock=time.process_time)


def whole(steps: Mapping[int, float], compiling: Mapping[int, float]) -> dict[str, float]:
    """Seconds of the whole run in each way, from seconds of a step and of compiling by the number of points."""
    by_length = sum(steps_at(points) * steps[points] for points in POINTS)
    by_few = sum(steps_at(points) * steps[next(each for each in LENGTHS if each >= points)] for points in POINTS)
    return {
        OURS: compiling[OWN] + by_few,
        MASK: compiling[LAST] + STEPS * steps[LAST],
        BY_LENGTH: sum(compiling[points] for points in POINTS) + by_length,
    }


def points(settings: Settings) -> Entry:
    """CPU seconds of a run of 20 000 steps, extrapolated from some steps of each program, in turns."""
    programs = {points: program_of(points) for points in POINTS}
    compiling = {points: program.compile_seconds for points, program in programs.items()}
    compiling[OWN] = program_of(LAST, **GROWING).compile_seconds
    units = units_for(programs[LAST].train, settings.seconds)
    calls = {str(points): partial(_step, program, units) for points, program in programs.items()}
    for call in calls.values():
        call()
    turns = in_turns(calls, settings.repeats)
    totals = [
        whole({int(points): values[turn] for points, values in turns.items()}, compiling)
        for turn in range(settings.repeats)
    ]
    seconds = {who: spread([each[who] for each in totals])._asdict() for who in totals[0]}
    text = f"CPU seconds of {STEPS} steps, points from {POINTS[0]} to {LAST} at D = 10, by four lengths"
    return {"text": text, "compiling": compiling, "steps": turns, **against(seconds)}


def _step(program: Program, units: int) -> float:
    """Seconds of a step, of so many."""
    return program.train(units) / units


MEASURED: dict[str, Callable[[Settings], Entry]] = {"curriculum_points": points}
