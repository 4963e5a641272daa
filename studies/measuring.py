"""Measures claims, and their controls, on finished runs."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from icl_lab.store import rundir
from icl_lab.store.provenance import git_commit
from icl_lab.store.rundir import now
from icl_lab.studies.claim import Claim, Measurement, Rival
from icl_lab.studies.runs import Runs, each
from icl_lab.studies.study import Study

OfSeed = Path | tuple[Path, ...]


def can_measure(study: Study, claim: Claim, runs_dir: Path, controls: bool = False) -> bool:
    """Whether all runs of a claim and of its control, or of its control alone, have ended."""
    return None not in _runs(study, claim, runs_dir, controls)


def measure(study: Study, claim: Claim, runs_dir: Path, device: str, controls: bool = False) -> Measurement | None:
    """A claim's values and its control's, or its control's alone; None unless all of their runs have ended."""
    began, commit, date = time.perf_counter(), git_commit() or "unknown", str(now())[:10]
    control = of_control(claim)
    if not claim.runs:
        of_seeds = [tuple(float(one.measure(seed)) for seed in study.sampled_seeds) for one in (claim, control)]
        beside = of_seeds[1] if control is not claim else ()
        return Measurement(
            of_seeds[0], study.sampled_seeds, _minutes_since(began), device, date, commit, control_values=beside
        )
    ended = _runs(study, claim, runs_dir, controls)
    if None in ended:
        return None
    values = tuple(_value(claim, runs) for runs in ended[0] or ())
    control_values = tuple(_value(control, runs) for runs in ended[1] or ())
    runs = [run for of_seeds in ended for of_seed in of_seeds or () for place in of_seed for run in each(place)]
    metas = [rundir.read_meta(run) for run in dict.fromkeys(runs)]
    minutes = sum(map(_minutes, metas)) + _minutes_since(began)
    devices, trained_at = (
        " and ".join(sorted({said(meta) for meta in metas})) for said in (_device, lambda meta: str(meta["git_hash"]))
    )
    cells = tuple(dict.fromkeys(run.name for run in runs))
    seeds = () if controls else study.runs_of(claim.run_names[0]).seeds
    return Measurement(values, seeds, minutes, devices, date, commit, trained_at, cells, control_values=control_values)


def of_control(claim: Claim) -> Claim:
    """What is measured on the control's runs: the claim's measure, or its rival's, of all runs."""
    own = isinstance(claim.control, Rival) and claim.control.measure
    return claim._replace(measure=own or claim.measure, among=None) if claim.has_control else claim


def with_control(measurement: Measurement, control: Measurement) -> Measurement:
    """A measurement with a control that was measured later."""
    devices, trained_at = (
        " and ".join(sorted({*earlier.split(" and "), *later.split(" and ")} - {""}))
        for earlier, later in ((measurement.device, control.device), (measurement.trained_at, control.trained_at))
    )
    return measurement._replace(
        control_values=control.control_values,
        minutes=measurement.minutes + control.minutes,
        cells=tuple(dict.fromkeys((*measurement.cells, *control.cells))),
        device=devices,
        trained_at=trained_at,
    )


def _runs(study: Study, claim: Claim, runs_dir: Path, controls: bool) -> list[list[tuple[OfSeed, ...]] | None]:
    """Those of the claim, unless its control alone is asked for, and of its control, by seed; None unless all ended."""
    names = (() if controls else claim.run_names, claim.control_names)
    return [_ended([study.runs_of(name) for name in of_one], runs_dir) for of_one in names]


def _ended(runs: Sequence[Runs], runs_dir: Path) -> list[tuple[OfSeed, ...]] | None:
    """The runs of each seed, in the order of the measure's arguments; None unless all of them have ended.

    Seeds are paired by index, whether or not they are equal; the longer list of seeds is cut.
    """
    if not runs:
        return []
    ended = [of_name.ended(runs_dir) for of_name in runs]
    pairs = list(zip(*(of_name.seeds for of_name in runs), strict=False))
    if any(seed not in of_name for seeds in pairs for of_name, seed in zip(ended, seeds, strict=True)):
        return None
    return [tuple(of_name[seed] for of_name, seed in zip(ended, seeds, strict=True)) for seeds in pairs]


def _value(claim: Claim, runs: Sequence[OfSeed]) -> float | None:
    """The measure; infinite where a run diverged, nan of a run that the claim leaves out.

    None where it cannot be computed for a run that a claim on those that learnt does not leave out.
    """
    if not all(rundir.read_status(run) == "done" for of_seed in runs for run in each(of_seed)):
        return float("inf")
    if claim.among is not None and claim.among(runs[0]) != 1:
        return float("nan")
    value = float(claim.measure(*runs))
    return None if math.isnan(value) and claim.among is not None else value


def _device(meta: Mapping[str, Any]) -> str:
    """What a run was trained on, and in how wide a pack, for the same cell in another one differs by rounding."""
    width = int(meta["pack_width"])
    return str(meta["device"]) if width == 1 else f"{meta['device']}, in packs of {width}"


def _minutes(meta: Mapping[str, Any]) -> float:
    """What a run took to compile and train; those of a pack share its time."""
    return (float(meta["run_seconds"]) / int(meta["pack_width"]) + float(meta["compile_seconds"])) / 60


def _minutes_since(began: float) -> float:
    return (time.perf_counter() - began) / 60
