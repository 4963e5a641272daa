"""Plans, packs and shards: nothing twice, nothing lost, and nothing that depends on the order it came in."""

import gc
import random
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.configs.run import to_dict
from icl_lab.lab.garbage import no_garbage_collection
from icl_lab.runners.static_shape import static_shape, training_part
from icl_lab.src.checks import ConfigError
from icl_lab.src.config import NOISE_MODES, ORDERINGS, PLACEMENTS
from icl_lab.store.atomic import write_json
from icl_lab.store.readers import StoreError, read_json
from icl_lab.studies.order_noise.runs import QUESTIONS, SEEDS, grids
from icl_lab.sweeps.grid import Grid, canonical
from icl_lab.sweeps.plan import PlannedRun, packs, plan, runs_of, seconds_of, shard
from icl_lab.sweeps.plan_file import check_plan, find_plan, plan_file, read_plan, read_plans, write_plan
from tests.sweeps.tiny_sweep import tiny_plan

OUT = Path("results.csv")


def some(values: tuple[object, ...]) -> st.SearchStrategy[list[object]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True)


AXES = st.fixed_dictionaries(
    {
        "ordering": some(tuple(ORDERINGS)),
        "noise_mode": some(tuple(NOISE_MODES)),
        "noise_p": some((0.0, 0.25, 0.5)),
        "noise_sigma": some((0.0, 0.5)),
        "noise_placement": some(PLACEMENTS).map(lambda found: found[:1]),
        "train_noise_mode": st.sampled_from([["auto"], ["clean"], ["auto", "clean"]]),
        "train_ordering": st.sampled_from([["auto"], ["random"]]),
    }
)
GRIDS = st.builds(Grid, st.sampled_from([("lsa1",), ("twolayer", "lsa1_pe")]), AXES, st.sampled_from([(0,), (7, 1)]))


def test_garbage_is_collected_again_after_planning_and_only_if_it_was_before() -> None:
    with no_garbage_collection():
        assert not gc.isenabled()
        plan([Grid()])
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ConfigError, match="rows, more than"):
        plan([Grid(seeds=range(100_001))])
    assert gc.isenabled()


@given(GRIDS)
def test_every_point_has_a_row_and_what_means_the_same_has_one_run(grid: Grid) -> None:
    rows = plan([grid])
    assert [row.asked for row in rows] == list(dict.fromkeys(grid.points()))
    assert all(row.run.config == canonical(row.asked) for row in rows)
    found = runs_of(rows)
    assert len({run.name for run in found}) == len({run.config for run in found}) == len(found)
    assert len({config_id(run.config) for run in found}) == len(found)
    for run in found:
        assert re.fullmatch(r"[\w.-]+", run.name)
        assert run.name.endswith(f"-{config_id(run.config)[:8]}")


@pytest.mark.slow
@given(GRIDS, st.integers(0, 99))
def test_a_run_does_not_depend_on_what_is_planned_beside_it(grid: Grid, seed: int) -> None:
    def shuffled(values: object) -> list[object]:
        return random.Random(seed).sample(list(values), len(values))

    axes = {name: shuffled(values) for name, values in grid.axes.items()}
    mixed = Grid(shuffled(grid.models), axes, shuffled(grid.seeds))
    assert set(plan([mixed])) == set(plan([grid]))
    assert plan([grid, mixed]) == plan([grid])


@given(GRIDS, st.integers(1, 9))
def test_packs_hold_every_run_once_respect_the_width_and_have_one_shape(grid: Grid, width: int) -> None:
    chosen = runs_of(plan([grid]))
    parts = packs(chosen, width)
    assert Counter(run for pack in parts for run in pack.runs) == Counter(chosen)
    for pack in parts:
        assert 1 <= pack.trainings <= width
        assert len({static_shape(run.config) for run in pack.runs}) == 1
    trained = [part for pack in parts for part in {training_part(run.config) for run in pack.runs}]
    assert len(trained) == len(set(trained))  # in one pack each, so done once
    shapes = Counter(static_shape(part) for part in trained)
    assert len(parts) == sum(-(-number // width) for number in shapes.values())  # and no more packs than needed


@given(GRIDS, st.integers(1, 5))
def test_shards_are_disjoint_and_together_complete(grid: Grid, count: int) -> None:
    chosen = runs_of(plan([grid]))
    parts = [shard(chosen, index, count) for index in range(1, count + 1)]
    assert Counter(run for part in parts for run in part) == Counter(chosen)
    trained = [training for part in parts for training in _trainings(part)]
    assert len(trained) == len(set(trained))


def _trainings(chosen: list[PlannedRun]) -> set[object]:
    return {training_part(run.config) for run in chosen}


def test_many_trainings_are_spread_over_shards() -> None:
    chosen = runs_of(plan([Grid(seeds=range(400))]))
    sizes = [len(shard(chosen, index, 4)) for index in range(1, 5)]
    assert all(abs(size - 100) < 5 * (400 * 3 / 16) ** 0.5 for size in sizes)  # five standard deviations


def test_a_plan_that_has_every_row_by_itself_is_read_too(tmp_path: Path) -> None:
    """Earlier versions wrote it so."""
    rows = plan([Grid(("lsa1",), {"noise_p": [0.0, 0.5]}, (3, 1, 0))])
    write_plan(tmp_path, OUT, rows)
    path = plan_file(tmp_path, OUT)
    assert [len(entry["seeds"]) for entry in read_json(path)["rows"]] == [3, 3]
    each = [{"asked": to_dict(row.asked), "cell": to_dict(row.run.config)} for row in rows]
    write_json(path, read_json(path) | {"rows": each})
    assert read_plan(path) == rows


@given(GRIDS)
def test_a_plan_is_read_as_it_was_written(grid: Grid) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "results.csv")
        write_plan(Path(folder), out, plan([grid]))
        assert read_plan(find_plan(Path(folder), out)) == plan([grid])


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda found: found | {"results_version": 1}, "is of another results version; run its sweep again"),
        (lambda found: {}, "is of another results version; run its sweep again"),
        (lambda found: found | {"rows": [{"asked": 3}]}, "is not the plan of a sweep"),
        (lambda found: found | {"rows": "all"}, "is not the plan of a sweep"),
        (lambda found: {"results_version": found["results_version"]}, "is not the plan of a sweep"),
        (
            lambda found: found | {"rows": [found["rows"][0] | {"run": found["rows"][0]["run"] | {"steps": 3}}]},
            "has a config that cannot be used: unknown config fields: steps",
        ),
        (
            lambda found: found | {"rows": [found["rows"][0] | {"run": {"schema_version": 99}}]},
            "has a config that cannot be used: unknown schema_version 99",
        ),
    ],
)
def test_a_damaged_plan_is_refused(damage: object, sentence: str, tmp_path: Path) -> None:
    write_plan(tmp_path, OUT, tiny_plan())
    path = plan_file(tmp_path, OUT)
    write_json(path, damage(read_json(path)))
    with pytest.raises(StoreError, match=sentence):
        read_plan(path)


def test_every_table_has_a_plan_of_its_own(tmp_path: Path) -> None:
    """Also two of one name; sweeps of one table replace its plan or, where they append to it, extend it."""
    tables = [tmp_path / name for name in ("a.csv", "b.csv", "other/a.csv")]
    seeds = [(0,), (1,), (2,)]
    for out, own in zip(tables, seeds, strict=True):
        write_plan(tmp_path / "runs", out, tiny_plan(own))
    for out, own in zip(tables, seeds, strict=True):
        assert read_plan(find_plan(tmp_path / "runs", out)) == tiny_plan(own)
    assert set(read_plans(tmp_path / "runs")) == set(tiny_plan((0, 1, 2)))
    together = check_plan(tmp_path / "runs", tables[0], tiny_plan((3,)), append=True)
    write_plan(tmp_path / "runs", tables[0], together)
    assert set(read_plan(find_plan(tmp_path / "runs", tables[0]))) == set(tiny_plan((0, 3)))
    write_plan(tmp_path / "runs", tables[0], tiny_plan((3,)))
    assert read_plan(find_plan(tmp_path / "runs", tables[0])) == tiny_plan((3,))
    with pytest.raises(StoreError, match=r"none for c\.csv; choose one with --plan"):
        find_plan(tmp_path / "runs", tmp_path / "c.csv")


def test_a_file_that_is_no_plan_is_not_replaced_and_one_that_is_needs_no_record(tmp_path: Path) -> None:
    path = tmp_path / "plan_results.json"
    for content in ('{"steps": ["write", "defend"]}', '{"rows": []}', "", '{"rows": [1], "results_version": 4}'):
        path.write_text(content)
        with pytest.raises(StoreError, match=r"plan_results\.json is not the plan of a sweep; move it away"):
            check_plan(tmp_path, OUT, tiny_plan(), append=False)
    path.unlink()
    path.symlink_to("elsewhere.json")
    with pytest.raises(StoreError, match="is not the plan of a sweep"):
        check_plan(tmp_path, OUT, tiny_plan(), append=False)
    path.unlink()
    write_plan(tmp_path, OUT, tiny_plan())  # as copied from another machine
    assert [entry.name for entry in tmp_path.iterdir()] == ["plan_results.json"]
    assert check_plan(tmp_path, OUT, tiny_plan((2,)), append=False) == tiny_plan((2,))
    assert set(check_plan(tmp_path, OUT, tiny_plan((2,)), append=True)) == set(tiny_plan((0, 1, 2)))


def test_the_tiny_sweep_is_eight_points_four_runs_two_trainings() -> None:
    rows = tiny_plan()
    chosen = runs_of(rows)
    assert (len(rows), len(chosen), len(_trainings(chosen))) == (8, 4, 2)
    assert [len(packs(chosen, width)) for width in (1, 2, 8)] == [2, 1, 1]


def test_the_study_plans_each_question_and_shares_what_they_share() -> None:
    rows = plan(grids((0,), ("lsa1",)))
    found = runs_of(rows)
    asked = [point for grid in grids((0,), ("lsa1",)) for point in grid.points()]
    assert len(found) <= len(rows) < len(asked)
    for question, asked_by in QUESTIONS.items():
        own = plan(Grid(("lsa1",), axes, (0,), settings) for axes, settings in asked_by)
        assert {row.run for row in own} <= set(found), question
    trainings = {training_part(run.config) for run in found}
    assert len(trainings) < len(found)
    assert 5 * len(found) == len(runs_of(plan(grids(SEEDS["full"], ("lsa1",)))))


def test_time_grows_with_the_work_and_shrinks_with_the_cores() -> None:
    few, many = ([*packs(runs_of(plan([Grid(seeds=range(number))])), 1)] for number in (2, 20))
    assert seconds_of([], 1, 4) == 0
    assert seconds_of(many, 8, 1) > 4 * seconds_of(many, 1, 1)  # eight places for each training
    assert 0 < seconds_of(few, 1, 1) < seconds_of(many, 1, 1)
    assert seconds_of(many, 1, 4) < seconds_of(many, 1, 1) < 4.001 * seconds_of(many, 1, 4)
