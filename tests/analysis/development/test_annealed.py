"""A branch whose rate falls to 0: nearer to a minimum than where it begins, the same each time, of no steps itself."""

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.analysis.development.annealed import annealed
from icl_lab.analysis.loaded_run import LoadedRun, load_run
from icl_lab.families.task import fresh_tasks


@pytest.fixture(scope="module")
def loaded(lsa1_run: Path) -> LoadedRun:
    return load_run(lsa1_run)


def flat(params: object) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(params)])


def test_it_is_a_training_at_smaller_and_smaller_rates(loaded: LoadedRun) -> None:
    batch = fresh_tasks(loaded.config, 2048, 5)
    ended = annealed(loaded.config, {}, loaded.params, 200, 0.5)
    assert float(jnp.mean(loaded.model.losses(ended, batch))) < float(
        jnp.mean(loaded.model.losses(loaded.params, batch))
    )


def test_it_is_the_same_again_and_another_from_another_step(loaded: LoadedRun) -> None:
    first, again = (flat(annealed(loaded.config, {}, loaded.params, 40, 0.5)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert (first != flat(annealed(loaded.config, {}, loaded.params, 41, 0.5))).any()
    assert (first != flat(loaded.params)).any()


@pytest.mark.parametrize(("step", "share"), [(0, 0.5), (1, 0.25)])
def test_without_steps_nothing_moves(loaded: LoadedRun, step: int, share: float) -> None:
    np.testing.assert_array_equal(flat(annealed(loaded.config, {}, loaded.params, step, share)), flat(loaded.params))


def test_without_a_rate_nothing_moves(loaded: LoadedRun) -> None:
    ended = replace(loaded.config, training=replace(loaded.config.training, schedule="cosine"))
    end = ended.training.steps
    np.testing.assert_array_equal(flat(annealed(ended, {}, loaded.params, end, 0.5)), flat(loaded.params))
