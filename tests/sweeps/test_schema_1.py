"""A sweep that meets runs of schema 1 says so and keeps them; they are neither read nor trained again."""

import json
from pathlib import Path
from typing import Any

import pytest

from icl_lab.store import layout
from tests.doors import Ran, Refused
from tests.store.test_schema_1 import SENTENCE, earlier_run
from tests.sweeps.tiny_sweep import GRID, Paths, copied


def earlier_lsa1(run: Path, seed: int = 0, **config: Any) -> Path:
    return earlier_run(run, "lsa1", **{"data_seed": seed, "init_seed": seed, **config})


SWEEP = ["eval_noise", *GRID, "--seeds", "0,1"]


def said(at: Paths, name: str) -> str:
    return (
        f"error: {at.runs} has runs of an earlier version (schema 1), such as {name}, which this version leaves "
        "as they are and does not read; read them with the version that trained them "
        "(git_hash in their meta.json), or train their settings again in another --runs_dir\n"
    )


@pytest.mark.parametrize("words", [[], ["--dry_run"]])
def test_a_sweep_that_may_have_trained_it_says_so_and_keeps_it(
    words: list[str], tmp_path: Path, refused: Refused
) -> None:
    """A name of then ended with the id of then, and had other words."""
    at = Paths(tmp_path / "runs", tmp_path / "results.csv")
    run = earlier_lsa1(at.runs / "lsa1_random_clean_seed0-bff51026")
    assert refused(*SWEEP, *at.flags(), *words) == said(at, run.name)


def test_a_run_that_was_renamed_is_not_trained_again_and_its_row_keeps_its_numbers(
    swept: Paths, tmp_path: Path, refused: Refused, ran: Ran
) -> None:
    """Earlier versions gave cells of schema 1 the names of schema 2 and left their files alone."""
    at = copied(swept, tmp_path)
    run = min(path for path in at.runs.iterdir() if path.is_dir())
    config = json.loads((run / layout.CONFIG).read_text())
    del config["schema_version"]
    (run / layout.CONFIG).write_text(json.dumps(config))
    assert refused(*SWEEP, *at.flags()) == said(at, run.name)
    assert refused("sweeps.collect", *at.flags()) == said(at, run.name)
    shown = ran("sweeps.status", "--runs_dir", at.runs).out.splitlines()
    assert shown == [f"schema 1: {run}: {run} {SENTENCE}", "4 runs: 3 done, 1 schema 1"]


def test_a_sweep_goes_on_beside_runs_that_it_does_not_train(swept: Paths, tmp_path: Path, ran: Ran) -> None:
    """Those of other seeds or models, and any where all of its own are there."""
    at = copied(swept, tmp_path)
    earlier_lsa1(at.runs / "lsa1_random_clean_seed0-bff51026")
    table = at.table()
    done = ran(*SWEEP, *at.flags())
    assert (done.status, done.err, at.table()) == (0, "", table)
    new = Paths(tmp_path / "new", tmp_path / "new.csv")
    earlier_lsa1(new.runs / "lsa1_random_clean_seed7-00000000", 7)
    earlier_lsa1(new.runs / "twolayer_random_clean_seed0-00000000", name="twolayer")
    assert ran(*SWEEP, *new.flags(), "--dry_run").status == 0


def test_rows_of_an_earlier_version_are_kept_unless_asked(swept: Paths, tmp_path: Path, refused: Refused) -> None:
    """In a table whose cells had the names of then: a sentence says how to go on."""
    at = copied(swept, tmp_path)
    run = min(path.name for path in at.runs.iterdir() if path.is_dir())
    at.out.write_text(at.out.read_text().replace(run, f"{run.rpartition('-')[0]}-bff51026"))
    assert "that this sweep does not plan, such as" in refused(*SWEEP, *at.flags())
