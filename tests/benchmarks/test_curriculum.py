"""The curriculum that is timed: the schedule that a run has, and the whole run's seconds from those of its parts."""

import numpy as np
import pytest

from icl_lab.benchmarks import curriculum
from icl_lab.benchmarks.cases import CURRICULUM, config_of
from icl_lab.families.functions.sequences import counted_points


def test_every_name_has_its_measurement() -> None:
    assert tuple(curriculum.MEASURED) == CURRICULUM


def test_each_length_has_the_steps_that_training_gives_it() -> None:
    config = config_of("functions_tiny", dim=10, num_pairs=21, start_points=5, points_every=2000, steps=20_000)
    counted = [int(counted_points(config.curriculum, 21, np.int32(step)).sum()) for step in range(500, 20_000, 1000)]
    lengths, halves = np.unique(counted, return_counts=True)
    assert dict(zip(lengths.tolist(), (1000 * halves).tolist(), strict=True)) == {
        points: curriculum.steps_at(points) for points in curriculum.POINTS
    }


def test_a_whole_run_is_its_steps_and_compilations() -> None:
    """Of steps that take as long as they have points, at 1 ms a point, and compilations of 2 s."""
    lengths = {points: points / 1000 for points in curriculum.POINTS}
    found = curriculum.whole(lengths, dict.fromkeys([curriculum.OWN, *lengths], 2.0))
    few = 2 * (3 * 9 + 2 * 13 + 2 * 17 + 3 * 21)
    each = 2 * (5 + 7 + 9 + 11 + 13 + 15 + 17 + 19 + 2 * 21)
    assert found == pytest.approx({curriculum.OURS: 2 + few, curriculum.MASK: 2 + 420, curriculum.BY_LENGTH: 18 + each})
