"""What a run says of the conditions it was trained under: those that its state comes from, and no others."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab.families.regression.config import RegressionConfig
from icl_lab.lab import environment_variables
from icl_lab.store import StoreError, checkpoint, layout, provenance, rundir
from icl_lab.store.provenance import provenance_of

A = {
    "python": "3.11",
    "jax": "0.10",
    "XLA_FLAGS": "",
    "pack_width": 1,
    "threads": 1,
    "device": "cpu, 1 threads, jax 0.10",
    "kernel": "xla",
}
B = A | {"threads": 2, "device": "cpu, 2 threads, jax 0.10"}
THREADS = {"what": "threads", "was": 1, "is": 2}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that was begun under A and saved at step 10."""
    rundir.begin(tmp_path, RegressionConfig())
    versions = {name: A[name] for name in ("python", "jax")}
    rundir.update_meta(
        tmp_path,
        status="running",
        versions=versions,
        variables={"XLA_FLAGS": ""},
        **{n: A[n] for n in provenance.PROCESS_CONDITIONS},
    )
    checkpoint.save(tmp_path, 10, {"a": np.zeros(1)}, {})
    return tmp_path


def goes_on(run: Path, step: int, now: dict[str, Any]) -> list[provenance.Change]:
    """What a process does that goes on from a step."""
    found = provenance.history(run, step, now)
    rundir.update_meta(run, bitwise=provenance.verdict(found), resumed_elsewhere=found)
    return found


def test_under_the_same_conditions_nothing_has_changed(run: Path) -> None:
    assert goes_on(run, 10, A) == []
    provenance.check_conditions(run, A)
    assert provenance.is_bitwise(rundir.read_meta(run))


def test_a_change_stays_with_the_run_and_is_noted_once(run: Path) -> None:
    """Threads are one change, although the device's text has their number too; going back is another."""
    first = {"step": 10, **THREADS}
    assert goes_on(run, 10, B) == [first]
    assert goes_on(run, 20, B) == [first]
    assert goes_on(run, 30, A) == [first, {"step": 30, "what": "threads", "was": 2, "is": 1}]
    assert not provenance.is_bitwise(rundir.read_meta(run))


def test_conditions_under_which_nothing_was_saved_count_for_nothing(run: Path) -> None:
    """Gone on with under B from step 10 and killed before a save, it goes on from step 10 again."""
    goes_on(run, 10, B)
    assert provenance.conditions_at(run, 10)["threads"] == 1
    assert goes_on(run, 10, A) == []
    assert provenance.is_bitwise(rundir.read_meta(run))


def test_a_variable_that_is_set_on_the_way_is_named(run: Path) -> None:
    (change,) = goes_on(run, 10, A | {"XLA_FLAGS": "--a=1"})
    assert change == {"step": 10, "what": "XLA_FLAGS", "was": "", "is": "--a=1"}
    assert provenance.describe([change]) == "XLA_FLAGS --a=1 instead of unset from step 10"
    assert goes_on(run, 20, A)[1:] == [{"step": 20, "what": "XLA_FLAGS", "was": "--a=1", "is": ""}]


@pytest.mark.parametrize("name", environment_variables.RECORDED)
def test_every_recorded_variable_is_a_condition_of_a_process(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = provenance.current_conditions(1)
    monkeypatch.setenv(name, " --some=7  --more ")
    assert provenance.current_conditions(1) == before | {name: "--some=7 --more"}
    assert provenance_of(RegressionConfig(), "")["variables"][name] == "--some=7 --more"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"jax": "0.11"}, "was begun with jax 0.10, not 0.11; --overwrite retrains it"),
        ({"XLA_FLAGS": "--a=1"}, "was begun with XLA_FLAGS unset, not --a=1; --overwrite retrains it"),
        ({"pack_width": 8}, "was begun with pack_width 1, not 8; --overwrite retrains it"),
        ({"threads": 2}, "was begun with 1 threads; set NPROC=1 to resume"),
        (
            {"device": "H200, jax 0.10"},
            "was begun on cpu, 1 threads, jax 0.10, not H200, jax 0.10; --overwrite retrains",
        ),
        ({"jax": "0.11", "threads": 2}, "was begun with jax 0.10, not 0.11 and with threads 1, not 2; --overwrite"),
    ],
)
def test_what_differs_is_named_where_it_is_refused(run: Path, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(StoreError) as caught:
        provenance.check_conditions(run, A | changed)
    assert str(caught.value).startswith(f"{run} {said}")


def test_the_last_conditions_count_where_others_are_refused(run: Path) -> None:
    goes_on(run, 10, B)
    checkpoint.save(run, 20, {"a": np.zeros(1)}, {})
    provenance.check_conditions(run, B)
    with pytest.raises(StoreError, match="set NPROC=2"):
        provenance.check_conditions(run, A)


def test_a_run_without_a_state_goes_on_with_nothing_so_nothing_is_refused(run: Path) -> None:
    layout.checkpoint(run, 10).unlink()
    provenance.check_conditions(run, B)


def test_finished_runs_that_were_resumed_elsewhere_are_counted() -> None:
    same, other = {"bitwise": True}, {"bitwise": False}
    assert provenance.resumed_notice([same, same]) == ""
    assert provenance.resumed_notice([same, other, same]).startswith(
        "1 of 3 finished runs were resumed under other conditions"
    )
    assert provenance.resumed_notice([other]).startswith("this run was resumed under other conditions")


@pytest.mark.parametrize("said", [{}, {"bitwise": None}, {"bitwise": "false"}, {"bitwise": "true"}, {"bitwise": 1}])
def test_a_run_that_does_not_say_that_it_is_bitwise_is_not_taken_for_it(said: dict[str, Any]) -> None:
    assert provenance.is_bitwise(said) is None
    assert provenance.resumed_notice([{"bitwise": True}, said]) == (
        "1 of 2 finished runs were not known to be bitwise reproducible: meta.json does not record it"
    )


@pytest.mark.parametrize("name", [name for name in A if name not in ("device", "kernel")])
def test_a_condition_that_one_side_does_not_record_is_not_equal(run: Path, name: str) -> None:
    others = {other: value for other, value in A.items() if other != name}
    assert goes_on(run, 10, others) == [{"step": 10, "what": name, "was": A[name], "is": None}]
    assert goes_on(run, 10, A | {name: None}) == [{"step": 10, "what": name, "was": A[name], "is": None}]
    assert not provenance.is_bitwise(rundir.read_meta(run))


@pytest.mark.parametrize(
    "name", [*(name for name in provenance.PROCESS_CONDITIONS if name != "kernel"), "XLA_FLAGS", "jax"]
)
def test_a_condition_that_a_run_has_not_recorded_is_not_equal(run: Path, name: str) -> None:
    meta = rundir.read_meta(run)
    for place in (meta, meta["versions"], meta["variables"]):
        place.pop(name, None)
    (run / layout.META).write_text(json.dumps(meta))
    (change,) = goes_on(run, 10, A)
    assert change == {"step": 10, "what": name, "was": None, "is": A[name]}
    assert "instead of not recorded from step 10" in provenance.describe([change])
    assert provenance.is_bitwise(rundir.read_meta(run)) is None  # neither equal nor known to differ
    goes_on(run, 20, A | {"python": "3.12"})
    assert provenance.is_bitwise(rundir.read_meta(run)) is False


@pytest.mark.parametrize("name", ["device", "kernel"])
def test_what_is_not_known_yet_is_left_out(run: Path, name: str) -> None:
    """Before JAX is imported; it is compared afterwards."""
    assert goes_on(run, 10, {each: value for each, value in A.items() if each != name}) == []


def test_runs_of_versions_without_a_choice_of_kernels_had_xla(run: Path) -> None:
    meta = rundir.read_meta(run)
    del meta["kernel"]
    (run / layout.META).write_text(json.dumps(meta))
    assert goes_on(run, 10, A) == []
    native = "native 12, g++ 12.2.0, 16 lanes"
    assert goes_on(run, 10, A | {"kernel": native}) == [{"step": 10, "what": "kernel", "was": "xla", "is": native}]
    with pytest.raises(StoreError, match="was begun with kernel xla, not native 12"):
        provenance.check_conditions(run, A | {"kernel": native})
