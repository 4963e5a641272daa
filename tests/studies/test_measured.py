"""What an LLC over training measures, on developments made by hand: each explanation where it is true and where not."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from icl_lab.analysis.development import nulls
from icl_lab.analysis.development.nulls import Estimates
from icl_lab.analysis.llc.settings import SETTINGS, Settings
from icl_lab.lab.configs.presets import preset, resolve
from icl_lab.lab.configs.run import Seeds, with_seeds
from icl_lab.store import layout, rundir
from icl_lab.studies.stages import measured, measured_claims
from icl_lab.studies.stages.runs import MEASURED, RECIPES, RUNS

STEPS = np.array([10.0, 20, 50, 100, 200, 500, 1000, 2000])
LOSSES = np.geomspace(1.0, 0.1, len(STEPS))
RISE = 3 - 2 * LOSSES
SPREAD = 0.02 * np.tile(np.linspace(-1, 1, 8), 2)
ALONE: tuple[Path, ...] = ()


def made(folder: Path, llc: np.ndarray, predicted: np.ndarray | None = None, **other: Any) -> Path:
    """A finished run whose checkpoints have these LLCs, and the largest change with a branch that keeps it."""
    seed = len(list(folder.iterdir()))
    run = folder / f"run{seed}"
    rundir.begin(run, with_seeds(resolve(preset("lsa1")), Seeds(seed, seed)))
    said = llc if predicted is None else predicted
    sampled = np.full(len(STEPS), other.get("sampled", True))
    own = Estimates(STEPS, other.get("losses", LOSSES), llc[:, None] + SPREAD, said, 0 * said, sampled)
    verdicts = other.get("verdicts", ["curvature"] * len(STEPS))
    ends = {"start": STEPS[int(llc.argmin())], "end": STEPS[int(llc.argmax())]}
    largest = {"delta_llc": float(np.ptp(llc)), "delta_annealed": float(np.ptp(llc)), "p_annealed": 1e-9}
    facts: Mapping[str, Any] = {
        "settings": {"default": asdict(Settings(**SETTINGS["default"]))},
        "estimates": {"default": {name: values.tolist() for name, values in own._asdict().items()}},
        "stages": [],
        "largest_changes": {"default": ends | largest | other.get("largest", {})} if other.get("sampled", True) else {},
    }
    table = pd.DataFrame({"step": STEPS, "loss": LOSSES, "verdict_default": verdicts, "reasons_default": ""})
    for name, off in (("llc", 0.0), ("llc_low", -0.1), ("llc_high", 0.1), ("loss", 0.0)):
        table[f"{name}_default"] = llc + off
    (run / layout.DEVELOP).parent.mkdir(parents=True)
    table.to_csv(run / layout.DEVELOP_TABLE, index=False)
    (run / layout.DEVELOP).write_text(json.dumps(facts))
    return run


def test_a_curve_that_the_hessian_makes_is_explained_by_it(tmp_path: Path) -> None:
    assert measured.by_curvature(made(tmp_path, RISE)) == pytest.approx(1.0)
    nbeta = SETTINGS["default"]["nbeta"]
    saturated = made(tmp_path, nbeta * (1 - LOSSES), 0 * RISE)
    assert measured.by_rescaled_loss(saturated) == pytest.approx(1.0)
    assert measured.by_rescaled_loss(made(tmp_path, RISE)) < 0
    assert measured.by_curvature(made(tmp_path, RISE, 0 * RISE)) < 0


def test_a_function_of_the_loss_is_found_in_other_seeds(tmp_path: Path) -> None:
    """The others come to the same losses at other steps, so that their step says less than their loss."""
    slow = np.geomspace(1.0, 0.3, len(STEPS))
    run = made(tmp_path, RISE)
    others = tuple(made(tmp_path, 3 - 2 * losses, losses=losses) for losses in (slow, LOSSES**0.8))
    assert measured.by_loss(run, *others) > 0.98
    assert measured.by_step(run, *others) < 0.9
    falling = tuple(made(tmp_path, -RISE) for _ in range(2))
    assert measured.by_loss(run, *falling) < 0
    assert math.isnan(measured.by_loss(run, *ALONE))


def test_a_change_is_beyond_its_nulls_only_if_it_is_beyond_each(tmp_path: Path) -> None:
    others = tuple(made(tmp_path, 3 - 0 * LOSSES) for _ in range(2))
    assert measured.beyond(made(tmp_path, RISE, 0 * RISE), *others) == 1.0
    assert measured.beyond(made(tmp_path, RISE, RISE), *others) == 0.0  # the Hessian
    same = tuple(made(tmp_path, RISE) for _ in range(2))
    assert measured.beyond(made(tmp_path, RISE, 0 * RISE), *same) == 0.0  # the loss
    assert measured.beyond(made(tmp_path, RISE, 0 * RISE, largest={"p_annealed": 1.0}), *others) == 0.0  # the rate


@pytest.mark.parametrize("name", [name for name in measured_claims.QUESTIONS if name not in ("curvatures", "plateaus")])
def test_of_a_run_without_a_checkpoint_whose_chains_sampled_nothing_is_known(name: str, tmp_path: Path) -> None:
    """Beside seeds that have some, and by the rival too; the two that are left out are of usable checkpoints."""
    others = tuple(made(tmp_path, RISE) for _ in range(2))
    question, run = measured_claims.QUESTIONS[name], made(tmp_path, RISE, sampled=False)
    assert math.isnan(question.measure(run, *others))
    rival = getattr(question.control, "measure", None)
    assert rival is None or math.isnan(rival(run, *others))


def test_where_a_null_that_would_decide_is_not_computed_nobody_knows(tmp_path: Path) -> None:
    """Not 0, by which a claim that there are none would pass; a null that is not left decides by itself."""
    others = tuple(made(tmp_path, 3 - 0 * LOSSES) for _ in range(2))
    no_branch = {"delta_annealed": None, "p_annealed": 1.0}
    assert math.isnan(measured.beyond(made(tmp_path, RISE, 0 * RISE, largest=no_branch), *others))
    assert math.isnan(measured.beyond(made(tmp_path, RISE, 0 * RISE), *ALONE))  # nobody to compare the loss with
    assert math.isnan(measured.beyond(made(tmp_path, RISE, np.nan * RISE), *others))  # a saddle
    assert measured.beyond(made(tmp_path, RISE, RISE, largest=no_branch), *others) == 0.0


def test_shares_of_verdicts_are_of_usable_checkpoints(tmp_path: Path) -> None:
    verdicts = ["none", "none", "curvature", "curvature", "curvature", "undecided", "LLC", "LLC at this nbeta"]
    run = made(tmp_path, RISE, verdicts=verdicts)
    assert measured.curvatures(run) == pytest.approx(3 / 6)
    assert measured.plateaus(run) == pytest.approx(2 / 6)
    assert math.isnan(measured.plateaus(made(tmp_path, RISE, verdicts=["none"] * len(STEPS))))


def test_the_annealed_change_is_over_the_change_itself(tmp_path: Path) -> None:
    half = made(tmp_path, RISE, largest={"delta_annealed": 0.5 * float(np.ptp(RISE))})
    assert measured.annealed_over(half) == pytest.approx(0.5)
    assert math.isnan(measured.annealed_over(made(tmp_path, RISE, largest={"delta_annealed": None})))


@pytest.mark.slow
def test_a_null_that_is_true_is_rarely_claimed_in_simulated_curves(tmp_path: Path) -> None:
    run, others = made(tmp_path, RISE), tuple(made(tmp_path, RISE) for _ in range(2))
    assert measured.false_by_curvature(run, *others) <= 0.08
    assert measured.false_by_loss(run, *others) <= 0.08


def test_every_model_has_a_recipe_of_sixteen_chains_and_branches_and_is_measured_beside_the_others() -> None:
    assert [*MEASURED] == [*measured_claims.MODELS]
    for name in MEASURED:
        recipe = RECIPES[f"measured_{name}"]
        (setting,) = recipe["settings"].values()
        assert (setting.chains, recipe["anneal"]) == (16, 0.5)
        assert len(RUNS[f"measured_{name}"].seeds) == (4 if name in ("few_tasks", "regression") else 8)
        assert RUNS[f"measured_{name}"].with_others
    seeds = [seed for name in MEASURED for seed in MEASURED[name].seeds]
    assert len({*seeds}) == len(seeds)


def test_the_level_is_that_of_eight_chains_against_eight() -> None:
    """At 3.6 standard errors, with 14 degrees of freedom."""
    from scipy.stats import t

    assert 2 * t.sf(3.64, 14) == pytest.approx(nulls.LEVEL, rel=0.02)


def test_a_run_without_two_sampled_checkpoints_has_an_unknown_number_of_changes(tmp_path: Path) -> None:
    run = made(tmp_path, RISE)
    told = json.loads((run / layout.DEVELOP).read_text()) | {"largest_changes": {}}
    (run / layout.DEVELOP).write_text(json.dumps(told))
    assert math.isnan(measured.beyond(run))
