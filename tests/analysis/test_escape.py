"""The step at which a run leaves the plateau, on curves of known times."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from icl_lab.analysis.plateau import NEVER, Escape, escape, escape_in, escape_of, halfway

ZERO, LEARNT = 0.4, 0.2
RATE = 0.02
SPACING = 10


def logistic(scale: float, steps: np.ndarray) -> np.ndarray:
    """The loss while u' = RATE u (1 - u), u(0) = scale, the share of the way that is made."""
    share = 1 / (1 + (1 / scale - 1) * np.exp(-RATE * steps))
    return np.asarray(ZERO + share * (LEARNT - ZERO))


def records(steps: np.ndarray, losses: np.ndarray) -> list[dict[str, float | None]]:
    return [
        {"step": int(step), "eval_loss": float(loss) if math.isfinite(loss) else None, "eval_gd_loss": LEARNT}
        for step, loss in zip(steps, losses, strict=True)
    ]


@pytest.mark.parametrize("scale", [1e-1, 1e-3, 1e-5])
def test_logistic_growth_escapes_after_the_logarithm_of_one_over_the_scale(scale: float) -> None:
    """u = 1/2 at log(1 / scale - 1) / rate, within half the spacing of the records."""
    steps = np.arange(0, 2000, SPACING)
    found = escape_in(records(steps, logistic(scale, steps)), ZERO)
    assert found.half_width == SPACING / 2
    assert abs(found.step - math.log(1 / scale - 1) / RATE) <= found.half_width


def test_another_share_of_the_way_is_later_by_its_odds() -> None:
    """u = share is reached log(share / (1 - share)) / rate after a half."""
    steps = np.arange(2000)
    early, late = (escape_in(records(steps, logistic(1e-3, steps)), ZERO, share) for share in (0.5, 0.9))
    assert late.step - early.step == pytest.approx(math.log(9) / RATE, abs=1)


def test_halfway_is_of_the_two_losses() -> None:
    assert halfway(ZERO, LEARNT) == pytest.approx(0.3)
    assert halfway(ZERO, LEARNT, 0.25) == pytest.approx(0.35)


STEPS = [0, 10, 30, 60]


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([0.4, 0.4, 0.2, 0.2], Escape(20.0, 10.0)),
        ([0.4, 0.2, 0.4, 0.2], Escape(45.0, 15.0)),  # for good
        ([0.4, 0.2, math.nan, 0.2], Escape(45.0, 15.0)),
        ([0.2, 0.2, 0.2, 0.2], Escape(0.0, 0.0)),
        ([0.4, 0.4, 0.4, 0.3], NEVER),  # at the bound is not below it
        ([0.4, 0.2, 0.2, 0.4], NEVER),
        ([0.4, 0.2, 0.2, math.nan], NEVER),
    ],
)
def test_it_is_between_two_records(losses: list[float], expected: Escape) -> None:
    assert escape(STEPS, losses, 0.3) == expected


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([0.4, 0.2, 0.4, 0.2], Escape(5.0, 5.0)),
        ([0.4, 0.4, 0.2, 0.4], Escape(20.0, 10.0)),
        ([0.2, 0.4, 0.4, 0.4], Escape(0.0, 0.0)),
        ([0.4, 0.3, math.nan, 0.4], NEVER),
    ],
)
def test_the_first_time_may_be_meant(losses: list[float], expected: Escape) -> None:
    assert escape(STEPS, losses, 0.3, for_good=False) == expected


def test_it_is_read_from_a_runs_metrics(tmp_path: Path) -> None:
    """Where what is not finite is null."""
    rows = records(np.array(STEPS), np.array([0.4, math.inf, 0.35, 0.25]))
    lines = [json.dumps(row | {"train_loss": row["eval_loss"], "lr": 1e-3}) for row in rows]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    assert escape_of(tmp_path, ZERO) == Escape(45.0, 15.0)
