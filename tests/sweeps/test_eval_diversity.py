"""A sweep over pools of tasks: what each row says, where its numbers come from, and what trains together."""

import math
from collections.abc import Sequence

import pytest

from icl_lab.families.diversity.config import FAMILY
from icl_lab.families.diversity.outputs import HEADLINE
from icl_lab.store import layout, rundir
from icl_lab.sweeps.collect import row_values
from icl_lab.sweeps.grid import Grid
from icl_lab.sweeps.plan import PlannedRun, packs, plan, runs_of
from tests.doors import Ran, Refused
from tests.runners.tiny import Workshop
from tests.sweeps.tiny_sweep import Paths, sweep_paths

DRIVER, INFINITY = "eval_diversity", math.inf
# As in tests/runners/test_run_task_diversity.py, whose compiled programs then serve here.
SETTINGS = {
    "num_layers": 1,
    "d_model": 8,
    "mlp_width": 16,
    "eval_tasks": 64,
    "test_tasks": 64,
    "eval_every": 15,
    "log_records": 5,
}
GRID = [
    *"--num_tasks 4,inf --seeds 0,1 --steps 40 --batch_size 16 --num_heads 2".split(),
    *(f"--config.{name}={value}" for name, value in SETTINGS.items()),
]
QUICK = {"XLA_FLAGS": "--xla_backend_optimization_level=0"}


@pytest.fixture(scope="module")
def pools(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Paths:
    """The finished sweep of M = 4 and infinity, two seeds of each. Not to be changed."""
    at = sweep_paths(tmp_path_factory.mktemp("pools"))
    done = workshop.run(DRIVER, *GRID, *at.flags(), "--executor", "serial", **QUICK)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("results.csv: 4 of 4 planned rows are done\n")
    return at


def planned(*models: str, seeds: Sequence[int] = (0,), **axes: Sequence[object]) -> list[PlannedRun]:
    return runs_of(plan([Grid(models or ("tiny",), axes, tuple(seeds), SETTINGS)]))


def test_every_planned_point_has_its_row(pools: Paths) -> None:
    rows = pools.rows()
    assert list(rows[0])[:3] == ["exp", "model", "num_tasks"]
    assert [(float(row["num_tasks"]), row["seed"]) for row in rows] == [
        (4, "0"),
        (4, "1"),
        (math.inf, "0"),
        (math.inf, "1"),
    ]
    assert {(row["model"], row["status"], row["task_law"], row["schedule"]) for row in rows} == {
        ("tiny", "done", "gaussian", "linear_up_down")
    }
    assert {(row["steps"], row["batch_size"], row["num_layers"]) for row in rows} == {("40", "16", "1")}
    assert sorted(path.name for path in pools.runs.iterdir() if path.is_dir()) == sorted(row["exp"] for row in rows)
    for row in rows:
        assert f"_M{row['num_tasks'].removesuffix('.0')}_" in row["exp"]


def test_a_rows_numbers_are_its_runs(pools: Paths) -> None:
    for row in pools.rows():
        headline = rundir.read_json(pools.runs / row["exp"] / layout.SUMMARY)["headline"]
        assert row["verdict"] == headline["verdict"]
        filled = {name for name in HEADLINE if row[f"test_{name}"]}
        assert filled == set(headline) & set(HEADLINE)
        assert {name: float(row[f"test_{name}"]) for name in filled} == {name: headline[name] for name in filled}
        assert ("id_delta_dmmse" in filled) == (row["num_tasks"] != "inf")  # there is no pool to be a mixture of
        assert {"id_tf_loss", "ood_tf_loss_se", "ood_delta_ridge"} <= filled
    losses = [row["test_ood_tf_loss"] for row in pools.rows()]
    assert len(set(losses)) == len(losses)


def test_runs_of_one_seed_are_looked_at_with_the_same_latent_sequences(pools: Paths) -> None:
    """Whatever M is: so their losses out of distribution, and ridge's, are paired."""
    for seed in "01":
        rows = [row for row in pools.rows() if row["seed"] == seed]
        assert len({(pools.runs / row["exp"] / layout.LATENT_BATCH).read_bytes() for row in rows}) == 1
        assert len({row["test_ood_ridge_loss"] for row in rows}) == 1
    assert len({row["test_ood_ridge_loss"] for row in pools.rows()}) == 2


def test_a_second_call_trains_nothing(pools: Paths, ran: Ran) -> None:
    before, table = pools.written(), pools.table()
    done = ran(DRIVER, *GRID, *pools.flags())
    assert (done.status, done.err) == (0, "")
    assert "results.csv: 4 of 4 planned rows are done\n4 of 4 runs finished earlier (" in done.out
    assert (pools.written(), pools.table()) == (before, table)
    assert len(before) == 2 * 4


def test_noise_and_length_follow_the_dimension(pools: Paths) -> None:
    """Variance D/32, one signal-to-noise ratio for all, and 2 D pairs (Raventos et al. 2023, Fig. 6), unless set."""
    rows = plan([Grid(("tiny",), {"dim": [4, 8, 16]}), Grid(("tiny",), {"dim": [8], "noise_std": [0.25]})])
    found = [row_values(row, pools.runs) for row in rows]
    assert [(row["dim"], row["num_pairs"]) for row in found] == [(4, 8), (8, 16), (16, 32), (8, 16)]
    assert [round(row["noise_std"], 4) for row in found] == [0.3536, 0.5, 0.7071, 0.25]
    assert {row["status"] for row in found} == {"planned"}
    assert {row[name] for row in found for name in (*(f"test_{name}" for name in HEADLINE), "verdict")} == {None}


def test_whatever_may_differ_between_rows_has_a_column(pools: Paths) -> None:
    """Columns have the names that flags had first."""
    assert {(*flag.former, flag.name)[0] for flag in FAMILY.axes} - set(pools.rows()[0]) == set()


def test_pools_seeds_and_step_sizes_train_together() -> None:
    """They are values of one program; what changes the program, or the law, starts another pack."""
    pools = planned(num_tasks=[1, 4, 256, INFINITY])
    (pack,) = packs(pools, 4)
    assert (pack.runs, pack.trainings) == (tuple(pools), 4)
    mixed = packs(planned(num_tasks=[4, INFINITY], lr=[1e-3, 1e-2], seeds=(0, 1)), 4)
    assert [pack.trainings for pack in mixed] == [4, 4]
    for axis, values in {
        "dim": [4, 8],
        "noise_std": [0.5, 0.25],
        "task_distribution": ["gaussian", "laplace"],
        "schedule": ["linear_up_down", "constant", "cosine"],
        "weight_decay": [0.0, 0.1],
        "num_heads": [1, 2],
        "num_pairs": [8, 16],
    }.items():
        found = packs(planned(**{"num_tasks": [1, 4], axis: values}), 4)
        assert [pack.trainings for pack in found] == [2] * len(values), axis


def test_an_earlier_word_for_a_schedule_plans_the_same(ran: Ran) -> None:
    earlier, today = (
        ran("eval_diversity", "--schedule", f"{word},constant", "--seeds", 0, "--dry_run")
        for word in ("triangle", "linear_up_down")
    )
    assert earlier == today
    assert (today.status, today.err) == (0, "")
    assert "_triangle_steps" in today.out


def test_runs_have_names_that_tell_them_apart() -> None:
    names = [
        run.name
        for run in planned(num_tasks=[4, INFINITY], schedule=["linear_up_down", "constant"], dim=[4, 8], seeds=(0, 1))
    ]
    assert len(set(names)) == 16
    words = {name.rpartition("-")[0] for name in names}
    assert len(words) == 16
    assert "tiny_1layer_D8_Minf_constant_steps20000_seed1" in words


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--num_tasks 4,0", "argument --num_tasks: '0' is not a whole number from 1 to 2^31 - 1, nor inf, nor auto"),
        ("--schedule foo", "schedule is 'foo'; it must be one of constant, cosine, linear_up_down"),
        ("--models huge", "unknown model 'huge'"),
        ("--models lsa1", "unknown config key 'num_tasks' of the family regression"),
        ("--num_heads 3", "d_model is 32; it does not divide among 3 heads"),
        ("--ordering random", "unknown argument --ordering"),
    ],
)
def test_what_cannot_be_run_is_refused(words: str, sentence: str, refused: Refused) -> None:
    assert sentence in refused(DRIVER, *words.split())
