"""How near orders come to their closed form: slopes and excesses of losses, by hand and on a constructed layer."""

from pathlib import Path

import numpy as np
import pytest

from icl_lab.studies.order_noise import closing
from icl_lab.studies.order_noise.claims import ARMS
from icl_lab.studies.order_noise.closing import Losses
from icl_lab.studies.order_noise.runs import RUNS
from icl_lab.studies.study import load

RANDOM, EASY, HARD = Path("random"), Path("easy2hard"), Path("hard2easy")
# order -> losses in its own and in random order; the best step sizes gain .1 in their order and lose .2 in random order
EXACT = {
    RANDOM: {"own": Losses(2.0, 2.0, 2.0), "random": Losses(2.0, 2.0, 2.0)},
    EASY: {"own": Losses(1.8, 1.8, 1.8), "random": Losses(2.4, 2.4, 2.4)},
    HARD: {"own": Losses(1.8, 1.8, 1.8), "random": Losses(2.4, 2.4, 2.4)},
}


@pytest.fixture
def losses(monkeypatch: pytest.MonkeyPatch):
    """Sets the losses of runs."""

    def put(found: dict[Path, dict[str, Losses]]) -> tuple[Path, ...]:
        monkeypatch.setattr(closing, "losses_of", lambda run: found[run])
        monkeypatch.setattr(closing, "_ordering", str)
        return tuple(found)

    return put


def test_the_best_step_sizes_have_all_of_the_prediction_and_no_excess(losses) -> None:
    runs = losses(EXACT)
    measured, predicted = closing.changes(runs)
    np.testing.assert_allclose(measured, [-0.1, 0.2, -0.1, 0.2])
    np.testing.assert_allclose(predicted, measured)
    assert closing.share_of_the_prediction(runs) == pytest.approx(1)
    assert closing.excess(runs) == pytest.approx(0)


def test_half_of_each_change_is_half_of_the_prediction(losses) -> None:
    """Steps read from the models are half of the way too: all of the excess is theirs."""
    half = {
        run: {name: Losses((2 + one.best) / 2, one.best, (2 + one.best) / 2) for name, one in both.items()}
        for run, both in EXACT.items()
    }
    runs = losses(half)
    assert closing.share_of_the_prediction(runs) == pytest.approx(0.5)
    assert closing.excess(runs) == pytest.approx(1.9 / 1.8 - 1)
    assert closing.share_of_the_steps(runs) == pytest.approx(1)


def test_noise_that_no_step_size_has_is_excess_and_no_share_of_the_steps(losses) -> None:
    noisy = {
        run: {name: one._replace(model=one.model * 1.01) for name, one in both.items()} for run, both in EXACT.items()
    }
    runs = losses(noisy)
    assert closing.share_of_the_prediction(runs) == pytest.approx(1)
    assert closing.excess(runs) == pytest.approx(0.01)
    assert closing.share_of_the_steps(runs) == pytest.approx(0)


def test_each_arm_has_a_run_for_each_order_of_its_seeds() -> None:
    claims = {claim.name for claim in load("order_noise").claims}
    for arm in ARMS:
        cells = RUNS[f"closing_{arm}"].cells
        orders = {cell.config.train.ordering for cell in cells}
        assert len(orders) == 4
        assert len(cells) == 4 * 8
        assert {cell.config.init_seed for cell in cells} == set(RUNS[f"closing_{arm}"].seeds)
        assert {f"closing_{what}_{arm}" for what in ("share", "excess", "steps", "trained")} <= claims
    annealed = RUNS["closing_annealed"].cells[0].config.training
    assert (annealed.schedule, annealed.steps) == ("cosine", 15_000)
