import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_lab.src import config
from icl_lab.src.config import ContextConfig
from icl_lab.src.context import draw_context
from icl_lab.src.data_config import DataConfig
from icl_lab.src.placement import PLACEMENTS
from icl_lab.src.prng import key

DATA = DataConfig(dim=3, num_pairs=8)


def test_the_registry_is_the_list_of_names():
    assert tuple(PLACEMENTS) == config.PLACEMENTS


@given(st.lists(st.lists(st.booleans(), min_size=8, max_size=8), min_size=1, max_size=5))
def test_placements_are_stable_partitions(rows):
    hit = np.array(rows)
    for row, clean_first, noisy_first, mixed in zip(
        hit, *(np.asarray(PLACEMENTS[n](hit)) for n in ("clean_first", "noisy_first", "mixed")), strict=True
    ):
        clean, noisy = np.flatnonzero(~row).tolist(), np.flatnonzero(row).tolist()
        assert clean_first.tolist() == clean + noisy
        assert noisy_first.tolist() == noisy + clean
        assert mixed.tolist() == list(range(8))


@pytest.mark.parametrize("placement", ["clean_first", "noisy_first"])
@pytest.mark.parametrize("mode", ["label_noise", "random_pairs"])
def test_inside_each_group_the_ordering_stays(placement, mode):
    settings = ContextConfig("smallnorm2largenorm", "residual", mode, 0.4, 0.5, placement)
    context = draw_context(key(0), DATA, settings, 60)
    hit, norms = np.asarray(context.hit), np.linalg.norm(context.batch.x, axis=2)
    expected = np.sort(hit, axis=1) if placement == "clean_first" else -np.sort(-hit.astype(int), axis=1) > 0
    np.testing.assert_array_equal(hit, expected)
    for row, mask in zip(norms, hit, strict=True):
        assert (np.diff(row[mask]) >= -1e-6).all()
        assert (np.diff(row[~mask]) >= -1e-6).all()


def test_without_hits_placement_changes_nothing():
    settings = [ContextConfig("easy2hard", noise_placement=name) for name in config.PLACEMENTS]
    batches = [draw_context(key(0), DATA, each, 20).batch for each in settings]
    for batch in batches[1:]:
        np.testing.assert_array_equal(batch.x, batches[0].x)
