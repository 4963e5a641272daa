"""Sweeps on contexts from files: each run has the config that its runner gives it, and wrong files are sentences."""

from pathlib import Path
from typing import Any

import pytest

from icl_lab.lab.configs.run import RunConfig
from icl_lab.runners import flags
from icl_lab.store import layout
from icl_lab.sweeps.plan_file import read_plan
from icl_lab.sweeps.sweep import sweep
from tests.doors import Ran, Refused
from tests.families.test_own_runs import DIM, PAIRS, contexts, saved
from tests.runners.tiny import Workshop, results
from tests.sweeps.tiny_sweep import sweep_paths

RUN = "sweeps.run"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An NPZ of contexts, of which the last pair is the query."""
    return saved(tmp_path / "own.npz", **contexts())


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another, of one dimension and one pair less."""
    own = contexts(1)
    return saved(tmp_path / "other.npz", x=own["x"][:, 1:, 1:], y=own["y"][:, 1:])


def alone(*words: object, model: str = "lsa1") -> RunConfig:
    """The config of the runner's command."""
    return flags.read(model, "runners.run", "", [*map(str, words)]).config


def asked(plan: Path) -> list[RunConfig]:
    """The configs of a plan's points."""
    return [point.asked for point in read_plan(plan)]


def test_every_run_is_that_of_the_runner_on_the_file(file: Path, ending: dict[str, Any], ran: Ran) -> None:
    words = ["--data", file, "--standardize", "--lr", "0.01", "--steps", "20"]
    assert ran(RUN, "lsa1", *words, "--seeds", "0-1").status == 1  # which trained nothing
    expected = [alone(*words, "--seed", seed) for seed in (0, 1)]
    assert asked(Path("runs/sweep_lsa1/plan_results_lsa1.json")) == expected
    out = sweep(
        "lsa1", seeds=[0, 1], settings={"data": file, "standardize": True, "lr": 0.01, "steps": 20}, out="o.csv"
    )
    assert asked(Path("runs/sweep_lsa1", f"plan_{out.stem}.json")) == expected


@pytest.mark.parametrize("command", ["eval_order", "eval_noise", "eval_diversity"])
def test_every_driver_has_the_flag(command: str, file: Path, ending: dict[str, Any], ran: Ran) -> None:
    """Of pools of tasks there is no axis then: a file says nothing of them."""
    words = {"eval_order": ["--ordering", "random"], "eval_noise": ["--noise_mode", "label_noise"]}.get(command, [])
    ran(command, *words, "--data", file, "--seeds", "0")
    (plan,) = Path("runs", command).glob("plan_*.json")
    configs = asked(plan)
    assert {(config.data_file, config.batch_shapes()["x"][2]) for config in configs} == {(str(file), DIM)}
    assert len(configs) == {"eval_order": 2, "eval_noise": 8, "eval_diversity": 1}[command]


def test_files_are_an_axis_and_each_run_has_the_sizes_of_its_own(
    file: Path, other: Path, ending: dict[str, Any], ran: Ran
) -> None:
    done = ran(RUN, "lsa1", "--sweep", f"data={file},{other}", "--seeds", "0-1", "--standardize")
    configs: list[Any] = asked(Path("runs/sweep_lsa1/plan_results_lsa1.json"))
    sizes = [(config.data.dim, config.data.num_pairs) for config in configs]
    assert sizes == [(DIM, PAIRS - 1)] * 2 + [(DIM - 1, PAIRS - 2)] * 2
    assert f"lsa1: data.dim follows data: 3 at {file}; 2 at {other}" in done.out
    assert "y_scale" not in done.out
    header = Path("results_lsa1.csv").read_text().partition("\n")[0].split(",")
    assert {"data.file", "data.dim", "data.num_pairs"} <= {*header}
    assert not {"data.y_scale", "data.x_mean"} & {*header}


def test_what_is_left_out_is_said_once(tmp_path: Path, ending: dict[str, Any], ran: Ran) -> None:
    own, lines = contexts(), ["context,a,b,c,y"]
    for number, (xs, ys) in enumerate(zip(own["x"], own["y"], strict=True)):
        pairs = zip(xs[number % 5 :], ys[number % 5 :], strict=True)
        lines += [",".join(map(str, [number, *x, y])) for x, y in pairs]
    (tmp_path / "own.csv").write_text("\n".join(lines))
    done = ran(RUN, "lsa1", "--data", "own.csv", "--num_pairs", "4", "--sweep", "lr=1e-3,1e-2", "--seeds", "0-1")
    assert done.out.count(f"{tmp_path / 'own.csv'}: 24 contexts have fewer than 5 pairs and are left out") == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--data no.npz", "no.npz does not exist"),
        ("--sweep data=own.npz,no.npz", "no.npz does not exist"),
        ("--data own.npz --num_pairs 10", "num_pairs is 10, but with the data of"),
        ("--data own.npz --config.dim=10", "dim is 10, but with the data of"),
        ("--data own.npz --sweep dim=3,10", "lsa1 with dim 10: dim is 10, but with the data of"),
        (
            "--sweep data=own.npz,other.npz --num_pairs 6",
            "lsa1 with data other.npz: num_pairs is 6, but with the data of",
        ),
        ("--sweep data=own.npz,copy.npz", "own.npz and "),
        ("--data own.npz --sweep data=other.npz", "data is swept, and set for all runs alike"),
        ("--data own.npz --sweep ordering=random,easy2hard", "lsa1 with ordering easy2hard: easy2hard needs"),
        ("--standardize", "standardize is only for contexts from a file; give --data FILE"),
    ],
)
def test_a_wrong_file_is_a_sentence_before_anything_is_written(
    words: str, sentence: str, file: Path, other: Path, refused: Refused
) -> None:
    saved(file.with_name("copy.npz"), **contexts())
    assert sentence in refused(RUN, "lsa1", *words.split())


def test_a_file_that_moved_is_the_same_run(file: Path, tmp_path: Path, ending: dict[str, Any], ran: Ran) -> None:
    words = [RUN, "lsa1", "--steps", "5", "--append", "--quiet"]
    ran(*words, "--data", file, "--seeds", "0")
    moved = file.rename(tmp_path / "moved.npz")
    ran(*words, "--data", moved, "--seeds", "0-1")
    configs = asked(Path("runs/sweep_lsa1/plan_results_lsa1.json"))
    assert [(config.data_file, config.data_seed) for config in configs] == [(str(moved), 0), (str(moved), 1)]
    assert len(Path("results_lsa1.csv").read_text().splitlines()) == 3


@pytest.mark.slow
def test_a_trained_run_is_that_of_the_runner(file: Path, workshop: Workshop, tmp_path: Path) -> None:
    """To the byte, with one thread."""
    at, words = sweep_paths(tmp_path), ["--data", file, "--standardize", "--steps", "20", "--batch_size", "16"]
    done = workshop.run(RUN, "lsa1", *words, *at.flags(), "--executor", "serial", NPROC="1")
    assert done.returncode == 0, done.stderr
    (row,) = at.rows()
    done = workshop.run("runners.run", "lsa1", *words, "--keep_state=false", "--out", tmp_path / "alone", NPROC="1")
    assert done.returncode == 0, done.stderr
    ours, theirs = results(at.runs / row["exp"]), results(tmp_path / "alone")
    for name in (layout.CONFIG, layout.METRICS, layout.PARAMS, layout.PREDICTIONS):
        assert ours[name] == theirs[name], name
