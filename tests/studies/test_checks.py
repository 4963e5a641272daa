"""Studies whose claims are wrong are refused in one sentence before anything is trained."""

from pathlib import Path
from typing import Any

import pytest

from icl_lab.src.checks import ConfigError
from icl_lab.studies import checks, history, ledger
from icl_lab.studies.claim import Claim, Measurement, Rival, Without
from icl_lab.studies.runs import Runs
from icl_lab.studies.study import Study, all_studies, load
from tests.doors import Ran
from tests.runners.tiny import ROOT

FILE = Path("mine.py")  # of a study that is nobody else's, which has no history
RUNS = {"trained": Runs("lsa1", seeds=tuple(range(8))), "few": Runs("lsa1"), "none": Runs("lsa1", seeds=())}
RIVAL = Rival("ridge", lambda run: 1.0)


def claim(name: str = "mine", **given: Any) -> Claim:
    values: dict[str, Any] = {
        "figure": "",
        "says": "a number",
        "expected": 1.0,
        "low": 0.9,
        "high": 1.1,
        "source": "theory",
    }
    return Claim(name, **{**values, "measure": lambda run: 1.0, "runs": "trained", **given})


def study(*claims: Claim) -> Study:
    return Study("mine", RUNS, claims, file=FILE)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "unknown runs": (
        {"runs": "traned"},
        "names the runs 'traned', which the study does not have, did you mean trained?",
    ),
    "unknown pairs": ({"paired": "other"}, "names the runs 'other', which the study does not have"),
    "a rival's runs": ({"control": Rival("slow", runs=("feww",))}, "names the runs 'feww'.*did you mean few"),
    "no n": ({"runs": "none"}, "has no n: its runs 'none' name no seeds"),
    "range": ({"low": 2.0}, "has the range 2 to 1.1, whose low end is above its high end"),
    "scale": ({"scale": "liner"}, "has the unknown scale 'liner', did you mean linear?"),
    "source": ({"source": "a hunch"}, "has the unknown source 'a hunch'; it must be one of plot reading, text"),
    "tier": ({"tier": "chief"}, "has the unknown tier 'chief'; it must be one of main, supporting"),
    "profile": ({"profile": "quik"}, "has the unknown profile 'quik', did you mean quick?"),
    "about": ({"about": "mine"}, "has the unknown about 'mine'; it must be one of paper, ours"),
    "no reason": ({"control": Without("")}, "has no control, and no reason why"),
    "nameless rival": ({"control": Rival(" ", lambda run: 1.0)}, "has a rival without a name"),
    "itself": ({"control": Rival("itself")}, "has the rival 'itself', which has neither a measure nor runs of its own"),
    "main without a rival": ({"tier": "main"}, "is a main result and names no rival"),
    "main of three": (
        {"tier": "main", "runs": "few", "control": RIVAL},
        "is a main result of 3 seeds; it needs at least 8",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_claim_is_one_sentence(name: str) -> None:
    given, said = WRONG[name]
    with pytest.raises(ConfigError, match=f"^claim mine {said.replace('?', '[?]')}") as raised:
        checks.check(study(claim("right"), claim(**given)))
    assert "\n" not in str(raised.value)


def test_a_right_claim_and_a_right_main_result_pass() -> None:
    checks.check(study(claim(), claim("main", tier="main", control=RIVAL), claim("sampled", runs="")))


def test_a_name_has_one_claim() -> None:
    with pytest.raises(ConfigError, match=r"^two claims are named mine"):
        checks.check(study(claim(), claim("other"), claim(low=0.8)))


def test_all_studies_of_the_house_pass() -> None:
    for one in all_studies():
        checks.check(one)
        checks.check_readings(one, one.claims, ledger.seeds_read(ROOT / "report"))


def test_a_claim_of_the_house_has_a_committed_range() -> None:
    with pytest.raises(ConfigError, match=r"claim mine has no range in studies/history\.csv"):
        checks.check(Study("mine", RUNS, [claim()]))


def test_a_planned_reading_has_the_seeds_of_its_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nine seeds are planned last for the second reading, and the runs have eight."""
    events = [
        history.Event("mine", "2026-11-01", "", "range", 0, 0, 0.9, 1.1, "", ""),
        history.Event("mine", "2026-11-02", "", "look", 1, 5, None, None, "undecided", ""),
        history.Event("mine", "2026-11-03", "", "planned", 2, 8, None, None, "", "fresh seeds"),
        history.Event("mine", "2026-11-03", "", "planned", 2, 9, None, None, "", "n raised before it was read"),
    ]
    monkeypatch.setattr(history, "events", lambda name, path=None: tuple(events))
    with pytest.raises(ConfigError, match=r"claim mine is planned with 9 seeds in studies/history\.csv, .* have 8"):
        checks.check(Study("mine", RUNS, [claim()]))
    events[-1] = events[-1]._replace(n=8)
    checks.check(Study("mine", RUNS, [claim()]))


READ = {"more": tuple(range(9)), "fewer": tuple(range(3)), "others": tuple(range(10, 18))}


@pytest.mark.parametrize("name", READ)
def test_another_n_or_other_seeds_are_a_new_reading(name: str) -> None:
    mine = study(claim())
    checks.check_readings(mine, mine.claims, {("mine", 1): tuple(range(8))})
    checks.check_readings(mine, mine.claims, {("another", 1): READ[name]})
    with pytest.raises(ConfigError, match=r"^mine was read on seeds .*, and its runs have seeds 0 to 7"):
        checks.check_readings(mine, mine.claims, {("mine", 1): READ[name]})


def test_a_further_reading_is_of_seeds_that_no_earlier_one_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "last_reading", lambda name: 2)
    mine = study(claim())
    checks.check_readings(mine, mine.claims, {("mine", 1): tuple(range(8, 16))})
    with pytest.raises(ConfigError, match=r"^reading 2 of mine has seeds that reading 1 used already: 5, 7$"):
        checks.check_readings(mine, mine.claims, {("mine", 1): (5, 7, 20)})


def test_the_command_refuses_a_further_look_before_training(ran: Ran, tmp_path: Path) -> None:
    """The ledger has a claim of eight seeds with three of them, as if its runs had been given five more since."""
    one = next(one for one in load("reproduction").claims if one.name == "size_5_ratio")
    ledger.write(tmp_path / "ledger", {one.name: Measurement((1.0,) * 3, (0, 1, 2), 1.0, "cpu", "2026-11-01", "abc")})
    written = (tmp_path / "ledger" / ledger.TABLE).read_bytes()
    done = ran("studies.run", "reproduction", "--claims", one.name, "--report", "ledger", "--runs_dir", "runs")
    assert (done.status, done.out) == (2, "")
    assert done.err == (
        "error: size_5_ratio was read on seeds 0 to 2, and its runs have seeds 0 to 7; "
        "to measure it again, use a new reading on fresh seeds: plan it in studies/history.csv\n"
    )
    assert (tmp_path / "ledger" / ledger.TABLE).read_bytes() == written
    assert not (tmp_path / "runs").exists()


# what imports what, on the way of a claim from its line to its row: CONTRIBUTING.md, Follow a claim
ARROWS = (
    ("studies/reproduction/claims.py", "studies/reproduction/measures/trained.py"),
    ("studies/reproduction/study.py", "studies/reproduction/claims.py"),
    ("studies/reproduction/study.py", "studies/reproduction/runs.py"),
    ("studies/run.py", "studies/study.py"),
    ("studies/run.py", "studies/measuring.py"),
    ("studies/run.py", "studies/ledger.py"),
    ("studies/ledger.py", "studies/verdict.py"),
    ("studies/verdict.py", "src/intervals.py"),
)


def test_the_files_that_a_claim_passes_are_those_of_the_documentation() -> None:
    """Each imports the next ones, by their modules' names; the table lists these files and no others."""
    text = (ROOT / "CONTRIBUTING.md").read_text().partition("## Follow a claim\n")[2].partition("\n## ")[0]
    listed = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    assert set(listed) == {file for arrow in ARROWS for file in arrow}
    for file, other in ARROWS:
        folder, _, name = other.removesuffix(".py").rpartition("/")
        package, source = folder.replace("/", "."), (ROOT / file).read_text()
        assert f"icl_lab.{package}.{name} import" in source or any(
            name in line.partition(" import ")[2].replace(",", "").split()
            for line in source.splitlines()
            if line.strip().startswith(f"from icl_lab.{package} import ")
        ), (file, other)
