"""report/index.json: what is committed is what is there, and everything in it opens and parses."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from icl_lab.lab import cli
from icl_lab.store import outputs
from icl_lab.store.atomic import json_bytes
from icl_lab.studies import remake, run
from icl_lab.studies.claim import UNBOUNDED
from icl_lab.studies.drawing import DRAWN
from icl_lab.studies.history import EVENTS, GONE, events, last_reading, read
from icl_lab.studies.index import OWN_SEEDS, index
from icl_lab.studies.ledger import INDEX, TABLE
from icl_lab.studies.study import all_studies
from tests.doors import Ran
from tests.runners.tiny import ROOT

REPORT = ROOT / "report"
PATHS = ("path", "image", "table", "bundle")


@pytest.fixture(scope="module")
def committed() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((REPORT / INDEX).read_text())
    return found


def entries(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [entry for kind in found.values() if isinstance(kind, list) for entry in kind]


def leaves(values: Any, at: str = "") -> dict[str, Any]:
    """The values of nested lists and mappings, each under its place."""
    if not isinstance(values, (dict, list)):
        return {at: values}
    parts = values.items() if isinstance(values, dict) else enumerate(values)
    found: dict[str, Any] = {}
    for name, part in parts:
        found |= leaves(part, f"{at}/{name}")
    return found


def is_float(value: Any) -> bool:
    """Whether a value is a number with digits to round."""
    return isinstance(value, float)


def test_it_is_made_from_what_lies_beside_it() -> None:
    """Numbers to 1e-9: NumPy's logarithm differs in its last digit between processors."""
    made, there = (leaves(json.loads(text)) for text in (json_bytes(index(REPORT)), (REPORT / INDEX).read_bytes()))
    assert [*made] == [*there]
    for place, value in made.items():
        assert value == (pytest.approx(there[place], rel=1e-9, abs=1e-12) if is_float(value) else there[place]), place


def test_ids_are_unique_and_every_path_opens(committed: dict[str, Any]) -> None:
    for kind in ("pages", "claims", "withdrawn", "runs", "contrasts", "figures", "tables"):
        ids = [entry["id"] for entry in committed[kind]]
        assert ids
        assert len(set(ids)) == len(ids), kind
    paths = {entry[name] for entry in entries(committed) for name in PATHS if entry.get(name) is not None}
    for path in paths:
        assert not Path(path).is_absolute()
        assert (REPORT / path).read_bytes(), path
    left_out = {
        found.relative_to(REPORT).as_posix()
        for suffix in ("png", "md", "csv")
        for found in REPORT.rglob(f"*.{suffix}")
        if found.parent.name != DRAWN
    } - paths
    assert left_out == set()


def test_every_command_parses(committed: dict[str, Any]) -> None:
    commands = {entry["command"] for entry in entries(committed) if "command" in entry}
    known = {claim.name for study in all_studies() for claim in study.claims}
    assert len(commands) > 100
    for command in commands:
        python, module, name, *words = shlex.split(command)
        assert (python, module, name) in {("python", "-m", "studies.run"), ("python", "-m", "studies.remake")}
        if name == "studies.remake":
            remake.parser().parse(words)
            continue
        flags = run.parser().parse(words)
        assert set(flags.claims) <= known
    with pytest.raises(cli.UsageError):
        run.parser().parse(["reproduction", "--profile", "large"])


def test_claims_have_the_numbers_of_the_ledger(committed: dict[str, Any]) -> None:
    import numpy as np
    import pandas as pd

    table = pd.read_csv(REPORT / TABLE)
    last = table[table["reading"] == table["claim"].map(last_reading)]
    assert [entry["id"] for entry in committed["claims"]] == list(last["claim"])
    table = table.set_index(["claim", "reading"])
    for entry in committed["claims"]:
        line = table.loc[(entry["id"], entry["reading"])]
        assert entry["planned"] in (None, last_reading(entry["id"]))
        assert entry["values"] == [v if abs(v) < float("inf") else None for v in json.loads(line["values"])]
        assert entry["seeds"] == json.loads(line["seeds"])
        assert (entry["verdict"], entry["reading_says"]) == (line["verdict"], line["reading_says"])
        for end in ("low", "high"):
            assert entry[end] == (None if abs(line[end]) >= UNBOUNDED else line[end])
        null = [line["no_effect_low"], line["no_effect_high"]]
        assert entry["no_effect"] == (None if np.isnan(null[0]) else null)


def test_every_event_of_the_history_is_told_once(committed: dict[str, Any]) -> None:
    """Of a claim or of a name that left the table; what concerns all claims stands in history.csv alone."""
    told = {entry["id"]: entry["history"] for entry in (*committed["claims"], *committed["withdrawn"])}
    assert sum(map(len, told.values())) == sum(event.claim != "*" for event in read())
    for name, history in told.items():
        for said, event in zip(history, events(name), strict=True):
            assert set(said) <= set(event._fields)
            assert said["event"] in EVENTS
            assert (said["date"], said.get("n", 0), said.get("says", "")) == (event.date, event.n, event.says)
            assert said.get("low") == (None if abs(event.low or 0) >= UNBOUNDED else event.low)
    assert all(entry["history"][-1]["event"] in GONE for entry in committed["withdrawn"])


def test_a_claims_runs_and_figures_are_there_and_its_replication_parses(committed: dict[str, Any]) -> None:
    """Runs with the settings that the study trains; seeds of a reader's that no study has used."""
    runs = {entry["id"]: entry for entry in committed["runs"]}
    shown = {entry["id"] for entry in committed["figures"] if entry["image"]}
    for study in all_studies():
        used = {seed for group in study.runs.values() for seed in group.seeds} | {*study.sampled_seeds}
        assert not used & {*OWN_SEEDS}
        for name, group in study.runs.items():
            assert runs[f"{study.name}/{name}"]["seeds"] == [*group.seeds]
            assert runs[f"{study.name}/{name}"]["settings"].keys() == group.settings.keys()
    for entry in committed["claims"]:
        assert all(f"{entry['study']}/{name}" in runs for name in (entry["runs"], entry["paired"]) if name)
        assert {*entry["shown_in"]} <= shown
        flags = run.parser().parse(shlex.split(entry["replicate"])[3:])
        assert (flags.claims, tuple(flags.seeds)) == ([entry["id"]], OWN_SEEDS)


def test_a_claims_words_are_those_of_its_page(committed: dict[str, Any]) -> None:
    for entry in committed["claims"]:
        page = (REPORT / f"{entry['study']}.md").read_text(encoding="utf-8")
        (line,) = (line for line in page.splitlines() if line.startswith(f"| `{entry['id']}` | "))
        assert {word.replace("|", "\\|") for word in entry["in_words"].values()} <= {*line.split(" | "), ""}, line


def test_a_contrasts_values_have_its_mean(committed: dict[str, Any]) -> None:
    """An AUROC's change is the mean difference; a loss's is the ratio of means, near the mean of ratios."""
    table = {entry["id"]: entry for entry in committed["contrasts"]}
    for entry in table.values():
        assert len(entry["values"]) == len(entry["seeds"]) == entry["n"]
        low, high = min(entry["values"]), max(entry["values"])
        if entry["unit"] == "loss":
            assert low - 1e-9 <= entry["change"] <= high + 1e-9
        if entry["unit"] == "auroc":
            assert entry["change"] == pytest.approx(sum(entry["values"]) / entry["n"], abs=1e-12)
            assert entry["change_low"] <= entry["change"] <= entry["change_high"]


def test_an_index_is_made_where_the_ledger_alone_lies(tmp_path: Path, ran: Ran) -> None:
    for name in (TABLE, outputs.RECORD):
        (tmp_path / name).write_bytes((REPORT / name).read_bytes())
    assert ran("studies.remake", "--report", tmp_path).status == 0
    made = json.loads((tmp_path / INDEX).read_text())
    assert {page["path"] for page in made["pages"]} == {
        "claims.md",
        "functions.md",
        "notes/llc_over_training.md",
        "language_model.md",
        "languages.md",
        "reproduction.md",
        "solutions.md",
        "stages.md",
        "task_diversity.md",
        "theory.md",
    }
    assert (made["contrasts"], made["figures"]) == ([], [])
    assert all((tmp_path / entry["path"]).exists() for entry in (*made["pages"], *made["tables"]))
