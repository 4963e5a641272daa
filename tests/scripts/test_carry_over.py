"""Carrying over: old names and configs in, today's out, and nothing else of any file."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from icl_lab.lab.configs.run import to_dict
from icl_lab.scripts.carry_over import updates
from icl_lab.store import outputs
from icl_lab.store.atomic import json_bytes
from icl_lab.studies.ledger import WRITER, known, read_measurements
from icl_lab.studies.study import load
from tests.doors import ROOT, Ran, Refused, snapshot

CARRY = "scripts.carry_over"
DEPTH_BUNDLE = "reproduction/depth.json"
# As the ledger and the study named them, by models of three families.
SIZE_5 = ["lsa1_random_seed0-7107e30f", "lsa1_random_seed1-eb73e2b8", "lsa1_random_seed2-15e12d18"]
DEPTH = ["lsa_random_seed0-f22bc825", "lsa_random_seed1-019a723e", "lsa_random_seed2-96267ebb"]
STUDY = ["lsa1_random_seed5-18121d3e", "lsa1_random_seed6-73bc5888"]
CLAIMS = {"gamma": [], "size_5_ratio": SIZE_5, "depth_after_1_learnt": DEPTH}
HEAD = "claim,says,mean,values,seeds,minutes,device,date,git_hash,trained_at,cells,remark"
LINE = '{0},"a, b",1.00,"[1.0, 1.50, 2.0]","[0, 1, 2]",3,cpu,2026-11-21,abc,abc,{1},'
LSA: dict[str, Any] = {  # the bundle of the depth curve's, less what was at its default
    "name": "lsa",
    "family": "layerwise",
    "headline_tasks": 5000,
    "data": {"dim": 20, "num_pairs": 20, "input_law": "gaussian", "noise_std": 0.05, "num_queries": 20},
    "model": {"init_scale": 0.0002, "attention": ["linear"], "embed_size": 0},
    "training": {"steps": 3000, "batch_size": 512, "cosine": True, "full_batch": False},
    "base": {"ordering": "random", "noise_mode": "clean"},
}


def ledger(names: dict[str, list[str]]) -> str:
    return "\n".join([HEAD, *(LINE.format(claim, " ".join(cells)) for claim, cells in names.items()), ""])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A report of an earlier version, with a page and a bundle of nothing trained."""
    found = tmp_path / "report"
    study = ["exp,model,test_loss", *(f"{name},lsa1,0.20651590" for name in STUDY), ""]
    bundle = {"labels": {"title": "±"}, "command": "python -m report.reproduce", "configs": [LSA]}
    files = {
        found / "claims.csv": ledger(CLAIMS).encode(),
        found / "claims.md": b"lsa1_random_seed0-7107e30f\n",
        found / "order_noise/cells.csv": "\n".join(study).encode(),
        found / "order_noise/provenance.json": json_bytes({"cells": 2}),
        found / DEPTH_BUNDLE: json_bytes(bundle),
        found / "reproduction/spectrum.json": json_bytes(bundle | {"configs": []}),
    }
    outputs.write(files, WRITER)
    return found


def today(name: str) -> list[str]:
    """Names of the cells of the first three seeds, which were all that there were."""
    return [cell.name for cell in load("reproduction").runs[name].cells[:3]]


def rows(path: Path, without: str) -> list[dict[str, str]]:
    """A table's rows, less a column."""
    return [
        {name: value for name, value in row.items() if name != without}
        for row in csv.DictReader(path.read_text().splitlines())
    ]


def test_claims_name_todays_cells_and_count_as_measured(ran: Ran, folder: Path) -> None:
    table = folder / "claims.csv"
    assert set(known(folder)) == {"gamma"}
    assert ran(CARRY, "--report", folder).status == 0
    names = {"gamma": [], "size_5_ratio": today("size_5"), "depth_after_1_learnt": today("depth_lsa")}
    assert table.read_text() == ledger(names)
    assert {name: found.values for name, found in known(folder).items()} == dict.fromkeys(CLAIMS, (1, 1.5, 2))


def test_a_bundle_holds_the_config_and_the_command_of_today_and_all_else_as_it_was(ran: Ran, folder: Path) -> None:
    path = folder / DEPTH_BUNDLE
    before = path.read_text()
    assert ran(CARRY, "--report", folder).status == 0
    after, planned = path.read_text(), to_dict(load("reproduction").runs["depth_lsa"].cells[0].config)
    assert json.loads(after)["configs"] == [planned]
    assert planned["training"]["schedule"] == "cosine"
    command = "python -m studies.run reproduction"
    assert after.encode() == json_bytes(json.loads(before) | {"command": command, "configs": [planned]})


def test_the_study_s_numbers_stay_as_they_are_written(ran: Ran, folder: Path) -> None:
    path = folder / "order_noise/cells.csv"
    before = rows(path, "exp")
    said = ran(CARRY, "--report", folder).out
    assert rows(path, "exp") == before
    names = [row["exp"] for row in rows(path, "test_loss")]
    assert not set(names) & set(STUDY)
    assert [name[:17] for name in names] == [name[:17] for name in STUDY]
    assert "order_noise/cells.csv: 2 cell names" in said


def test_nothing_else_is_written_and_a_second_time_nothing(ran: Ran, folder: Path) -> None:
    before = snapshot(folder)
    assert ran(CARRY, "--report", folder).out.splitlines()[-1] == "4 files updated"
    after = snapshot(folder)
    changed = {name for name in after if after[name] != before.get(name)}
    tables = {"claims.csv", "order_noise/cells.csv", DEPTH_BUNDLE, "reproduction/spectrum.json"}
    records = {".written.jsonl", "order_noise/.written.jsonl", "reproduction/.written.jsonl"}
    assert changed - {"order_noise", "reproduction"} == tables | records
    assert ran(CARRY, "--report", folder).out == "everything is up to date\n"
    assert snapshot(folder) == after
    outputs.check([folder / name for name in tables], WRITER)  # a study's command may replace them


def test_a_check_says_what_would_change_and_changes_nothing(ran: Ran, folder: Path) -> None:
    before = snapshot(folder)
    found = ran(CARRY, "--report", folder, "--check")
    assert found.status == 1
    assert "claims.csv: 6 cell names\n" in found.out
    assert "depth.json: 2 configs and commands\n" in found.out
    assert snapshot(folder) == before
    assert ran(CARRY, "--report", folder).status == 0
    assert ran(CARRY, "--report", folder, "--check").status == 0


@pytest.mark.parametrize(
    ("file", "old", "new", "sentence"),
    [
        ("claims.csv", DEPTH[1], "lsa_random_seed1-00000000", " names the cell lsa_random_seed1-00000000, which is"),
        ("order_noise/cells.csv", "exp,", "cell,", " is not a table with a column exp"),
        (DEPTH_BUNDLE, '"noise_std": 0.05', '"rate": 0.05', " has a config that cannot be used: unknown config fields"),
        (
            DEPTH_BUNDLE,
            '"noise_mode": "clean"',
            '"noise_mode": "label_noise"',
            " has a config that cannot be used: noise",
        ),
        (
            DEPTH_BUNDLE,
            '"configs": [',
            '"configs": [5, ',
            " has a config that cannot be used: a config must be an object",
        ),
        (DEPTH_BUNDLE, '"command"', '"commands"', " is not a figure's bundle"),
        (DEPTH_BUNDLE, '"labels"', '"label"', " was not written by report, or has been changed since"),
    ],
)
def test_what_is_not_known_or_was_changed_is_one_sentence_and_nothing_is_written(
    file: str, old: str, new: str, sentence: str, refused: Refused, folder: Path
) -> None:
    path = folder / file
    path.write_text(path.read_text().replace(old, new))
    assert f"{path}{sentence}" in refused(CARRY, "--report", folder)


def test_a_folder_without_results_is_one_sentence(refused: Refused, tmp_path: Path) -> None:
    assert "holds neither a table of results nor a bundle" in refused(CARRY, "--report", tmp_path)


def test_the_committed_results_are_of_todays_form_and_nothing_is_measured_again() -> None:
    assert updates(ROOT / "report") == {}
    assert known(ROOT / "report") == read_measurements(ROOT / "report/claims.csv")
