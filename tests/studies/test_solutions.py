"""Trainings on the population loss: where they start, what stays zero, and what is derived from their weights."""

import numpy as np
import pytest

from icl_lab.families.task import model_of
from icl_lab.src import one_layer, solutions
from icl_lab.src.prng import Purpose, key, purpose_key
from icl_lab.src.solutions import DESCENT, MIXED, MOVING
from icl_lab.studies.solutions import curves, measures, population
from icl_lab.studies.solutions.claims import ABOVE, BELOW, CLAIMS
from icl_lab.studies.solutions.measures import LEAST_PAIRS
from icl_lab.studies.solutions.population import ARMS, BLOCK, PRESET, Trained
from icl_lab.studies.solutions.runs import RUNS, SEEDS


def steps_of(arm: str, steps: int, dim: int = 2, pairs: int = 10) -> Trained:
    """The first block after so many steps."""
    return population.trained(dim, pairs, arm, 0, steps)


def test_a_seed_starts_where_a_run_of_it_does() -> None:
    config = population.config_of(2, 10)
    for seed in (0, 5):
        params = model_of(config).init(purpose_key(key(seed), Purpose.INIT))
        heads = one_layer.heads_of(params["layer_0/attention"], 2, config.architecture.prediction_channel)
        expected = float(one_layer.loss_of_heads(one_layer.setting_of(config.data), heads))
        assert steps_of(PRESET, 100).losses[0, seed] == pytest.approx(expected, rel=1e-6)


def test_what_does_not_swap_at_the_start_never_does() -> None:
    """p = b = 0 is invariant, to the bit; without it they are not."""
    fixed, free = steps_of("no_swap", 600), steps_of(PRESET, 600)
    assert not fixed.heads.p.any()
    assert not fixed.heads.label_scores.any()
    assert np.abs(free.heads.p).max() > 0.1
    assert (fixed.losses[-1] < 0.9 * fixed.losses[0]).all()  # it learns


def test_a_block_has_one_training_for_each_seed_and_records_from_the_start() -> None:
    trained = steps_of(PRESET, 100)
    assert trained.steps.tolist() == [0, 50, 100]
    assert trained.losses.shape == (3, BLOCK)
    assert trained.heads.scores.shape == (BLOCK, 1, 2, 2)
    assert len({float(loss) for loss in trained.losses[-1]}) == BLOCK
    assert len(SEEDS) % BLOCK == 0 == SEEDS[0] % BLOCK  # whole blocks


@pytest.mark.parametrize("arm", ARMS)
def test_every_arm_trains(arm: str) -> None:
    losses = steps_of(arm, 300).losses
    assert np.isfinite(losses).all()
    assert losses[-1].mean() < losses[0].mean()


def test_pairs_of_claims_lie_on_both_sides_of_the_threshold() -> None:
    """And the thresholds are those of the Hessian; N = 13 and 33 of runs on batches are below."""
    assert LEAST_PAIRS[3] == pytest.approx(solutions.least_pairs_of_mixed(3), rel=0.01)
    for dim, least in LEAST_PAIRS.items():
        fewer, more = round(BELOW * least), round(ABOVE * least)
        assert solutions.mixed_level(one_layer.Setting(dim, fewer)) is None
        assert solutions.mixed_level(one_layer.Setting(dim, more)) is not None
    by_name = {claim.name: claim for claim in CLAIMS}
    assert {name for name in RUNS if by_name[name].low == 0} == {"batches_3_13", "batches_4_33"}


def test_what_a_seed_finds_is_what_its_weights_are() -> None:
    """Pilots find gradient descent and the mixed minimum, each one of both."""
    found = {seed: population.found(2, 10, PRESET, seed).solution for seed in range(8)}
    assert {DESCENT, MIXED} <= set(found.values())
    for seed, solution in found.items():
        assert measures.finds(2, 10)(seed) == (solution == MIXED)
        assert measures.is_known(seed) == (solution != MOVING)


def test_the_flow_from_the_initial_weights_says_when_a_training_leaves_the_plateau() -> None:
    """On pilots: within a twentieth of the step. Another seed's weights do not, of at least one of them."""
    own = [measures.distance_from_derived()(seed) for seed in (5, 6, 9)]
    other = [measures.distance_from_derived(measures.another)(seed) for seed in (5, 6, 9)]
    assert max(own) < 0.05
    assert max(other) > 0.05
    assert [measures.another(seed) for seed in (4, 5)] == [5, 4]


def test_patterns_are_the_weights_of_stationary_points() -> None:
    """W_K^T W_Q and P W_V of gradient descent: the best step on the inputs, read from labels alone."""
    rows = [row for row in curves.patterns([]) if row["row"].startswith(DESCENT)]
    scores, read = (
        np.array([row["value"] for row in rows if row["matrix"] == which]).reshape(3, 3) for which in (0, 1)
    )
    assert scores[0, 0] * read[2, 2] == pytest.approx(one_layer.Setting(2, 10).step_size, rel=1e-12)
    assert np.count_nonzero(scores) == 2
    assert np.count_nonzero(read) == 1
    assert len({row["row"] for row in curves.patterns([])}) == 3
