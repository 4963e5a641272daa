"""What limits a claim that was not reproduced, by its name: a sentence or two, written after it was measured."""

from __future__ import annotations

REMARKS: dict[str, str] = {
    "batches_2_2": "Of 32 runs 26 find gradient descent, 5 wait on the plateau of rank one and 1 finds the mixed minimum. "
    "On the population loss two fifths find it; what in the sampling leads away from it was not measured.",
    "sgd_time": "The rival's ratios are the same ones in another order, so that their mean cannot differ; sgd_time_error "
    "compares seed by seed.",
}
