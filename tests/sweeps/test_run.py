"""`python -m sweeps.run MODEL` sweeps over any model, on the axes of its family."""

import csv
from pathlib import Path

import pytest

from icl_lab.store import layout, rundir
from tests.doors import Refused
from tests.runners.tiny import Workshop, results
from tests.sweeps.tiny_sweep import Paths, sweep_paths

RUN = "sweeps.run"
SINES = "--steps 20 --config.batch_size=16 --config.eval_tasks=32 --config.test_tasks=50 --config.d_model=4".split()
SINES += ["--config.mlp_width=0", "--config.key_size=4", "--config.num_pairs=4"]
POOLS = "--steps 20 --batch_size 8 --num_layers 1 --num_heads 2 --d_model 8 --mlp_width 8 --dim 2".split()
POOLS += "--config.eval_tasks=16 --config.test_tasks=16 --config.eval_every=20 --config.log_records=0".split()
QUICK = {"XLA_FLAGS": "--xla_backend_optimization_level=0", "NPROC": "1"}


def swept(workshop: Workshop, at: Paths, model: str, *words: object) -> list[dict[str, str]]:
    """The table of a sweep of this model."""
    done = workshop.run(RUN, model, *words, *at.flags(), "--executor", "serial", **QUICK)
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(at.out.read_text().splitlines()))


@pytest.mark.slow
def test_a_run_of_sines_is_the_run_of_its_runner(workshop: Workshop, tmp_path: Path) -> None:
    """One point without axes; to the byte what runners.run leaves, less its figures and the state at its end."""
    at = sweep_paths(tmp_path)
    (row,) = swept(workshop, at, "sine", *SINES)
    alone = [word.replace("--config.batch_size=", "--batch_size=") for word in SINES]
    done = workshop.run("runners.run", "sine", *alone, "--keep_state=false", "--out", tmp_path / "alone", **QUICK)
    assert done.returncode == 0, done.stderr
    assert results(at.runs / row["exp"]) == results(tmp_path / "alone")
    assert (row["model"], row["seed"], row["status"], row["steps"]) == ("sine", "0", "done", "20")
    headline = rundir.read_json(tmp_path / "alone" / layout.SUMMARY)["headline"]
    assert float(row["test_loss"]) == headline["loss"]
    assert not {"ordering", "num_tasks", "align_cos"} & {*row}


@pytest.mark.slow
def test_the_axes_are_those_of_the_family(workshop: Workshop, tmp_path: Path) -> None:
    at = sweep_paths(tmp_path)
    rows = swept(workshop, at, "tiny", *POOLS, "--num_tasks", "4,inf")
    assert [(row["num_tasks"], row["num_layers"], row["status"]) for row in rows] == [
        ("4.0", "1", "done"),
        ("inf", "1", "done"),
    ]
    assert {row["exp"].rpartition("-")[0] for row in rows} == {
        f"tiny_1layer_D2_M{m}_triangle_steps20_seed0" for m in ("4", "inf")
    }


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "which model? python -m sweeps.run MODEL, one of lsa1, "),
        ("lsa9 --seeds 0", "unknown model 'lsa9'; known are lsa1, "),
        ("sine --ordering random", "unknown argument --ordering"),
        ("lsa1 --num_tasks 4", "unknown argument --num_tasks"),
        (
            "tiny --models tiny,sine --num_tasks 4",
            "unknown config key 'num_tasks' of the family sine",
        ),
        ("sine --config.tokens=interleaved", "unknown config key 'tokens' of the family sine"),
    ],
)
def test_what_cannot_be_swept_is_refused(words: str, sentence: str, refused: Refused) -> None:
    assert sentence in refused(RUN, *words.split())
