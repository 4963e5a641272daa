"""Configs with other seeds are what `dataclasses.replace` makes of them, and so are their ids."""

import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_lab.lab.configs.identity import config_id, ids_by_seeds
from icl_lab.lab.configs.presets import preset, resolve
from icl_lab.lab.configs.registry import models
from icl_lab.lab.configs.run import Seeds, seeds_of, with_seeds
from icl_lab.src.checks import ConfigError

SEEDS = st.builds(
    Seeds, *(st.sampled_from((0, 1, 7, 10, 2**32 - 1)) | st.integers(0, 2**32 - 1) for _ in Seeds._fields)
)


@pytest.mark.parametrize("model", models())
@given(SEEDS, SEEDS)
def test_they_are_those_of_the_config_with_these_seeds(model: str, seeds: Seeds, before: Seeds) -> None:
    config = resolve(preset(model))
    expected = replace(config, data_seed=seeds.data, init_seed=seeds.init)
    found = with_seeds(with_seeds(config, before), seeds)
    assert found == expected
    assert hash(found) == hash(expected)
    assert pickle.loads(pickle.dumps(found)) == expected
    assert seeds_of(found) == seeds
    id_of = ids_by_seeds(with_seeds(config, before))
    assert [id_of(before), id_of(seeds)] == [config_id(with_seeds(config, before)), config_id(expected)]


@pytest.mark.parametrize("seeds", [Seeds(-1), Seeds(0, 2**32), Seeds(0.5)])
def test_a_seed_is_a_whole_number_of_32_bits(seeds: Seeds) -> None:
    with pytest.raises(ConfigError, match=r"_seed is .*; it must be a whole number from 0 to 2\^32 - 1"):
        with_seeds(resolve(preset("lsa1")), seeds)
