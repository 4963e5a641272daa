"""`python -m analysis.stages`: its tables, figure and sentences, of runs whose llc.csv holds a curve that is known."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from icl_lab.analysis.development.milestones import fit, milestones
from icl_lab.analysis.llc.settings import Settings
from icl_lab.store import layout
from tests.analysis.development.curves import noise, spaced, stairs
from tests.analysis.llc_runs import table, trained
from tests.doors import Refused, ran, refused
from tests.runners.tiny import Workshop, copied

__all__ = ["ran", "refused"]
STEPS = spaced(30)
LOSS = 2 - stairs(STEPS, {3.0: 0.5, 9.0: 0.5})  # it has a plateau at about log step 6
LLC = stairs(STEPS, {3.0: 40.0, 9.0: 60.0}) + noise(len(STEPS), 0)
CHAINS = 8
DRAWS = ("--draws", 100)
Made = Callable[..., Path]


@pytest.fixture
def made(workshop: Workshop, tmp_path: Path) -> Made:
    """Makes a run of a seed whose llc.csv has these columns, in place of its own, and other fields in its config."""

    def make(name: str = "run", seed: int = 0, llc: np.ndarray = LLC, config: Any = None, **columns: Any) -> Path:
        run = copied(trained(workshop, "lsa1"), tmp_path / name)
        half = stats.t.ppf(0.975, CHAINS - 1)  # standard errors of 1
        steps = columns.pop("steps", STEPS)
        given = {"step": steps, "llc": llc, "llc_low": llc - half, "llc_high": llc + half, "loss": LOSS[: len(steps)]}
        fixed = {"null_loss": 2.0, "verdict": "undecided", "reasons": "", "settings": "0123abcd"}
        rows = pd.DataFrame(asdict(Settings(chains=CHAINS)), index=range(len(steps)))
        rows.assign(**given | fixed | columns).to_csv(run / layout.LLC, index=False)
        written = json.loads((run / layout.CONFIG).read_text()) | {"data_seed": seed, "init_seed": seed}
        for field, value in (config or {}).items():
            section, _, key = field.rpartition(".")
            (written[section] if section else written)[key] = value
        (run / layout.CONFIG).write_text(json.dumps(written))
        return run

    return make


def facts_of(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / layout.STAGES_FACTS).read_text())
    return found


def stages_of(run: Path) -> pd.DataFrame:
    return pd.read_csv(run / layout.STAGES)


def test_it_leaves_milestones_stages_and_their_null(workshop: Workshop, made: Made) -> None:
    run = made(verdict=["none", *["undecided"] * (len(STEPS) - 1)])
    done = workshop.run("analysis.stages", "--run", run, *DRAWS)
    assert done.returncode == 0, done.stderr
    facts, rows = facts_of(run), stages_of(run)
    expected = milestones(fit(STEPS, LLC, np.ones(len(STEPS))), count=100)
    np.testing.assert_allclose([one["step"] for one in facts["milestones"]], [one.step for one in expected], rtol=1e-6)
    between = [one for one in facts["milestones"] if one["sides"] == "both"]
    assert len(between) == 1
    assert 100 < between[0]["step"] < 1500
    assert between[0]["loss_has_one"]
    assert between[0]["usable"]
    assert facts["checkpoints"]["usable"] == [False, *[True] * (len(STEPS) - 1)]
    np.testing.assert_allclose(facts["checkpoints"]["errors"], 1.0)
    nbeta = facts["settings"]["nbeta"]
    np.testing.assert_allclose(facts["checkpoints"]["loss_alone"], nbeta * (2 - LOSS))
    own = rows[rows["series"] == "LLC"]
    assert len(own) == len(facts["milestones"]) + 1
    assert own["delta_llc"].sum() == pytest.approx(facts["curve"]["llc"][-1] - facts["curve"]["llc"][0])
    assert own["delta_loss"].sum() == pytest.approx(LOSS[-1] - LOSS[0])
    of_loss = rows[rows["series"] == "loss alone"]
    assert of_loss["delta_llc"].sum() == pytest.approx(nbeta * (LOSS[0] - LOSS[-1]), rel=0.05)
    assert facts["change_points"]["points"]
    assert "sides both  loss_has_one yes  usable yes" in done.stdout
    assert (run / layout.STAGES_FIGURE).read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_same_command_gives_the_same_bytes(workshop: Workshop, made: Made) -> None:
    run, kept = made(), []
    for seed in (0, 0, 1):
        assert workshop.run("analysis.stages", "--run", run, *DRAWS, "--seed", seed).returncode == 0
        kept.append([(run / name).read_bytes() for name in (layout.STAGES, layout.STAGES_FACTS)])
    assert kept[0] == kept[1]
    assert kept[0][1] != kept[2][1]


def test_other_seeds_have_the_milestone_or_not(workshop: Workshop, made: Made) -> None:
    run = made()
    twin = made("twin", 1, stairs(STEPS, {3.0: 40.0, 9.5: 60.0}) + noise(len(STEPS), 1))
    without = made("without", 2, 8 * np.log1p(STEPS) + noise(len(STEPS), 2))
    table_of_twin = table(twin).assign(seed=7, settings="89abcdef")  # chains of another seed are the same setting
    table_of_twin.to_csv(twin / layout.LLC, index=False)
    done = workshop.run("analysis.stages", "--run", run, "--also", f"{twin},{without}", *DRAWS)
    assert done.returncode == 0, done.stderr
    facts = facts_of(run)
    (between,) = [one for one in facts["milestones"] if one["sides"] == "both"]
    over = between["seeds"]
    assert (over["seeds"], over["having"]) == (3, 2)
    assert over["low"] < between["step"] < over["high"]
    assert [one["init_seed"] for one in facts["seeds"]] == [1, 2]
    assert facts["seeds"][1]["milestones"] == []
    assert {*stages_of(run)["data_seed"]} == {0, 1, 2}
    assert "seeds 2 of 3" in done.stdout


@pytest.mark.slow
def test_usable_checkpoints_alone_and_those_without_an_estimate(workshop: Workshop, made: Made) -> None:
    llc, verdict = LLC.copy(), np.array(["undecided"] * len(STEPS), object)
    llc[3], verdict[3] = np.nan, "none"
    llc[5], verdict[5] = 500.0, "none"
    run = made(llc=llc, verdict=verdict)
    assert workshop.run("analysis.stages", "--run", run, *DRAWS).returncode == 0
    every = facts_of(run)
    assert (len(every["checkpoints"]["steps"]), every["diverged"]) == (len(STEPS) - 1, 1)
    assert workshop.run("analysis.stages", "--run", run, *DRAWS, "--usable").returncode == 0
    usable = facts_of(run)
    assert len(usable["checkpoints"]["steps"]) == len(STEPS) - 2
    assert max(usable["checkpoints"]["llc"]) < 200 < max(every["checkpoints"]["llc"])


def test_a_table_and_a_flag_of_an_earlier_version_are_read(workshop: Workshop, made: Made) -> None:
    health = ["moving: +9.0 standard errors", *["healthy"] * (len(STEPS) - 1)]
    run = made(health=health)
    table(run).drop(columns=["verdict", "reasons"]).to_csv(run / layout.LLC, index=False)
    assert workshop.run("analysis.stages", "--run", run, *DRAWS, "--healthy").returncode == 0
    facts = facts_of(run)
    assert facts["usable_only"]
    assert facts["checkpoints"]["steps"] == [*map(float, STEPS[1:])]
    assert all(facts["checkpoints"]["usable"])


def test_standard_errors_of_the_table_come_first(workshop: Workshop, made: Made) -> None:
    run = made(llc_se=np.full(len(STEPS), 2.5))
    assert workshop.run("analysis.stages", "--run", run, *DRAWS).returncode == 0
    assert {*facts_of(run)["checkpoints"]["errors"]} == {2.5}


def test_a_setting_is_chosen_by_the_beginning_of_its_name(workshop: Workshop, made: Made) -> None:
    run = made()
    both = pd.concat([table(run), table(run).assign(settings="456789ab", gamma=5.0)])
    both.to_csv(run / layout.LLC, index=False)
    assert workshop.run("analysis.stages", "--run", run, *DRAWS, "--setting", "45").returncode == 0
    assert facts_of(run)["setting"] == "456789ab"


# --- what is refused ---


def test_several_settings_are_listed(made: Made, refused: Refused) -> None:
    run = made()
    both = pd.concat([table(run), table(run).assign(settings="456789ab", gamma=5.0)])
    both.to_csv(run / layout.LLC, index=False)
    said = refused("analysis.stages", "--run", run)
    assert "has several settings; choose one by --setting: 0123abcd (eps " in said
    assert "456789ab" in said
    assert "gamma 5)" in said
    assert "has no settings 'zz'; choose one" in refused("analysis.stages", "--run", run, "--setting", "zz")


def test_few_checkpoints_are_refused_with_the_least_number(workshop: Workshop, made: Made, refused: Refused) -> None:
    few = made(llc=LLC[:5], steps=STEPS[:5])
    assert "has 5 checkpoints with an LLC of the setting 0123abcd, but stages need 6" in refused(
        "analysis.stages", "--run", few
    )
    unusable = made("unusable", verdict="none")
    assert "has 0 usable checkpoints with" in refused("analysis.stages", "--run", unusable, "--usable")


def test_a_run_without_llcs_is_told_how_to_get_them(made: Made, refused: Refused) -> None:
    run = made()
    (run / layout.LLC).unlink()  # as of a run whose LLCs were estimated nowhere
    assert f"has no {layout.LLC}; estimate it first: python -m analysis.llc --run {run} --checkpoints all" in refused(
        "analysis.stages", "--run", run
    )


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"eval_tasks": 128}, "has eval_tasks 128 and "),
        ({"data.input_range": 2.0}, "has data.input_range 2.0 and "),
        ({"training.steps": 200}, "has training.steps 200 and "),
        ({"model.num_heads": 2}, "has model.num_heads 2 and "),
    ],
)
def test_another_training_is_refused_by_its_field(
    config: dict[str, Any], sentence: str, made: Made, refused: Refused
) -> None:
    said = refused("analysis.stages", "--run", made(), "--also", made("other", 1, config=config))
    assert sentence in said
    assert "--also takes runs that differ in seeds alone" in said


def test_other_settings_and_the_same_seeds_are_refused(made: Made, refused: Refused) -> None:
    run = made()
    other = made("other", 1, gamma=5.0, nbeta=7.0)
    said = refused("analysis.stages", "--run", run, "--also", other)
    assert "but none at the setting 0123abcd of" in said
    assert "has LLCs with nbeta 7.0, not " in said
    assert "gamma 5.0, not " in said
    assert "have the same seeds (data 0, initialisation 0)" in refused(
        "analysis.stages", "--run", run, "--also", made("copy")
    )


@pytest.mark.parametrize(
    "wrong", [{"step": np.r_[0, 0, STEPS[2:]]}, {"loss": np.nan}, {"llc_low": LLC + 5.0, "llc_high": LLC}]
)
def test_a_table_of_something_else_is_refused(wrong: dict[str, Any], made: Made, refused: Refused) -> None:
    assert "is not a table of LLCs" in refused("analysis.stages", "--run", made(**wrong))


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--bound", 0], "argument --bound: '0' is not a number above 0, from 1.18e-38 to 3.4e+38"),
        (["--z", "nan"], "argument --z: 'nan' is not a number above 0, from 1.18e-38 to 3.4e+38"),
        (["--length", -1], "argument --length: '-1' is not a number from 0.001 to 1e+03"),
        (["--draws", 0], "argument --draws: '0' is not a whole number from 1 to 100000"),
        (["--seed", -1], "argument --seed: '-1' is not a whole number from 0"),
    ],
)
def test_bad_flags_are_one_sentence(flags: list[object], sentence: str, refused: Refused, tmp_path: Path) -> None:
    assert sentence in refused("analysis.stages", "--run", tmp_path, *flags)
