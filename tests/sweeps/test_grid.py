"""What a grid means: points, synonyms, and the ids that tell runs apart."""

import math
import re
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_lab.families.regression.config import RegressionConfig, canonical_context
from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.configs.presets import preset, resolve
from icl_lab.src.checks import ConfigError, UsageError
from icl_lab.src.config import DIFFICULTIES, PLACEMENTS, ContextConfig
from icl_lab.src.registries import NOISE_MODES, ORDERINGS
from icl_lab.sweeps.grid import Grid, canonical, check_number
from icl_lab.sweeps.plan import plan, planned_run

CONTEXTS = st.builds(
    ContextConfig,
    st.sampled_from(tuple(ORDERINGS)),
    st.sampled_from(["residual", "gd_error"]),
    st.sampled_from(tuple(NOISE_MODES)),
    st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    st.sampled_from([0.0, 0.5]),
    st.sampled_from(PLACEMENTS),
)


def same(one: ContextConfig, **changes: object) -> bool:
    return canonical_context(one) == canonical_context(replace(one, **changes))


def test_canonical_is_canonical_already() -> None:
    settings = product(ORDERINGS, DIFFICULTIES, NOISE_MODES, (0.0, 0.25, 1.0), (0.0, 0.5), PLACEMENTS)
    found = {canonical_context(ContextConfig(*values)) for values in settings}
    assert {context for context in found if canonical_context(context) != context} == set()


@given(CONTEXTS, CONTEXTS)
def test_no_noise_is_no_noise_however_it_is_said(one: ContextConfig, other: ContextConfig) -> None:
    silent = [replace(one, noise_p=0.0), replace(other, ordering=one.ordering, noise_mode="clean")]
    assert {canonical_context(context) for context in silent} == {ContextConfig(one.ordering)}


@given(CONTEXTS)
def test_what_counts_and_what_does_not(context: ContextConfig) -> None:
    pairs = replace(context, noise_mode="random_pairs", noise_p=0.5)
    labels = replace(context, noise_mode="label_noise", noise_p=0.5, noise_sigma=0.5)
    assert same(pairs, noise_sigma=2.0)
    assert not same(labels, noise_sigma=2.0)
    for noisy in (pairs, labels):
        assert not same(noisy, noise_p=0.25)
        assert not same(noisy, noise_placement="mixed" if noisy.noise_placement != "mixed" else "clean_first")
        assert same(replace(noisy, noise_p=1.0), noise_placement="mixed")  # there is no clean pair to tell it by
        by_difficulty = context.ordering in ("easy2hard", "hard2easy")
        assert same(noisy, difficulty="residual") == (not by_difficulty or noisy.difficulty == "residual")


def test_noise_of_strength_zero_is_clean_unless_it_undoes_an_order() -> None:
    """Pairs in the order drawn are exchangeable, so moving some of them changes nothing; sorted ones are not."""
    hit = ContextConfig("random", noise_mode="label_noise", noise_p=0.5, noise_placement="clean_first")
    assert canonical_context(hit) == ContextConfig()
    ordered = replace(hit, ordering="smallnorm2largenorm")
    assert canonical_context(ordered) == ordered
    assert canonical_context(replace(ordered, noise_placement="mixed")) == ContextConfig("smallnorm2largenorm")


@given(CONTEXTS, CONTEXTS, CONTEXTS)
def test_ids_are_equal_for_synonyms_and_for_nothing_else(
    train: ContextConfig, evaluation: ContextConfig, base: ContextConfig
) -> None:
    config = RegressionConfig(train=train, eval=evaluation, base=base)
    run = planned_run(canonical(config))
    assert run == planned_run(canonical(replace(config, base=ContextConfig(), preset="paper")))
    alike = canonical_context(train) == canonical_context(evaluation)
    swapped = planned_run(canonical(replace(config, train=evaluation, eval=train)))
    assert (swapped.name == run.name) == alike
    for changed in (replace(config, data_seed=1), replace(config, init_seed=1), replace(config, eval_tasks=7)):
        assert planned_run(canonical(changed)).name != run.name


def test_a_runs_name_is_a_plain_file_name_that_ends_with_its_id() -> None:
    config = canonical(
        RegressionConfig(eval=ContextConfig("easy2hard", "residual", "label_noise", 0.25, 0.5, "noisy_first"))
    )
    run = planned_run(config)
    words = "lsa1_easy2hard_label_noise_p0.25_s0.5_noisy_first_trained_random_seed0"
    assert run.name == f"{words}-{config_id(config)[:8]}"


def test_the_fields_that_only_name_a_config_are_not_in_its_id() -> None:
    assert config_id(RegressionConfig(preset="paper")) == config_id(RegressionConfig())


def test_points_are_the_product_the_seed_running_fastest() -> None:
    grid = Grid(("lsa1", "twolayer"), {"ordering": ["random", "easy2hard"]}, (3, 1))
    found = [(point.name, point.eval.ordering, point.data_seed, point.init_seed) for point in grid.points()]
    assert found == [
        (model, ordering, seed, seed)
        for model in ("lsa1", "twolayer")
        for ordering in ("random", "easy2hard")
        for seed in (3, 1)
    ]


def test_auto_leaves_a_context_to_the_base() -> None:
    axes = {"noise_mode": ["label_noise"], "noise_p": [0.5], "train_noise_mode": ["auto"], "eval_noise_p": ["auto"]}
    (point,) = Grid(axes=axes).points()
    assert (point.train, point.eval) == (point.base, point.base)
    assert (point.base.noise_mode, point.base.noise_p, point.base.difficulty) == ("label_noise", 0.5, "residual")


def test_what_contexts_are_sorted_by_is_an_axis() -> None:
    axes = {"ordering": ["easy2hard"], "noise_mode": ["label_noise"], "noise_p": [0.5], "noise_sigma": [0.5]}
    points = list(Grid(axes=axes | {"difficulty": ["auto", *DIFFICULTIES]}).points())
    assert [(point.train.difficulty, point.eval.difficulty) for point in points] == [
        (by, by) for by in ("residual", *DIFFICULTIES)
    ]


@pytest.mark.parametrize(("model", "depth"), [("lsa1", 4), ("lsa1", 1), ("twolayer", 5)])
def test_the_preset_is_the_one_of_the_depth_asked_for(model: str, depth: int) -> None:
    (point,) = Grid((model,), settings={"num_layers": str(depth)}).points()
    expected = resolve(preset(model, num_layers=depth))
    assert (point.training, point.model) == (expected.training, expected.model)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"preset": "paper"}, "preset cannot be set in a sweep; use --preset"),
        ({"data_seed": "3"}, "data_seed cannot be set in a sweep; use --seeds"),
        ({"name": "mine"}, "name cannot be set in a sweep; use --models"),
    ],
)
def test_settings_that_would_reach_nothing_are_refused(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        Grid(settings=settings)


def test_a_misspelt_setting_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean num_layers"):
        list(Grid(settings={"num_layer": "2"}).points())


def test_an_offset_moves_the_data_and_not_the_initialisation() -> None:
    grid = Grid(("tiny",), {"num_tasks": [4, math.inf]}, (0, 1), {"steps": 10}, data_offset=100)
    found = [(c.data.num_tasks, c.data_seed, c.init_seed) for c in grid.points()]
    assert found == [(4, 100, 0), (4, 101, 1), (math.inf, 100, 0), (math.inf, 101, 1)]


def test_a_grid_knows_its_size_without_its_points() -> None:
    grid = Grid(("lsa1", "twolayer"), {"noise_p": [0.0, 0.5, 1.0], "ordering": ["random"]}, range(4))
    assert grid.size == len(list(grid.points())) == 24
    assert Grid(axes={f"noise_{name}": range(10**6) for name in ("p", "sigma")}, seeds=range(10**9)).size == 10**21


def test_too_many_rows_are_refused_before_one_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Grid, "points", lambda _: pytest.fail("it is planned"))
    few, many = Grid(seeds=range(60_000)), Grid(("lsa1", "twolayer"), seeds=range(20_001))
    assert check_number([few]) == 60_000
    with pytest.raises(ConfigError, match=r"^the grid has 100002 rows, more than 100000;"):
        plan([few, many])


def test_seeds_differ_in_nothing_else_and_may_share_an_initialisation() -> None:
    points = list(Grid(("tiny",), {"dim": [4, 8]}, (3, 1), {"init_seed": "7"}, data_offset=10).points())
    assert [(point.data.dim, point.data_seed, point.init_seed) for point in points] == [
        *[(4, 13, 7), (4, 11, 7)],
        *[(8, 13, 7), (8, 11, 7)],
    ]
    assert replace(points[0], data_seed=11) == points[1]


def test_a_wrong_seed_is_named_wherever_it_stands() -> None:
    with pytest.raises(ConfigError, match="lsa1 with ordering easy2hard: data_seed is -1"):
        list(Grid(axes={"ordering": ["easy2hard"]}, seeds=(0, -1)).points())
