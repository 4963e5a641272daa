"""Measures claims on finished runs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runners.training import device_text
from store import rundir
from store.provenance import git_commit, now
from studies import ledger
from studies.claim import Claim, Measurement, verdict
from studies.figure import SEEDS
from studies.runs import each
from studies.study import Study


def measure_all(study: Study, claims: Sequence[Claim], runs_dir: Path, out: Path) -> list[Claim]:
    """Measures the claims whose runs have ended, writing each into the ledger, and gives the others."""
    left, device = [], device_text()
    for number, claim in enumerate(claims, 1):
        measurement = measure(study, claim, runs_dir, device)
        if measurement is None:
            left.append(claim)
            continue
        print(f"{number} of {len(claims)}, {claim.name}: {verdict(claim, measurement)}", flush=True)
        ledger.write(out, {claim.name: measurement})
    return left


def measure(study: Study, claim: Claim, runs_dir: Path, device: str) -> Measurement | None:
    """A claim's values; None unless all of its runs have ended. A run that diverged has an infinite one."""
    began, commit, date = time.perf_counter(), git_commit() or "unknown", str(now())[:10]
    if not claim.runs:
        values = tuple(float(claim.measure(seed)) for seed in SEEDS)
        return Measurement(values, SEEDS, _minutes_since(began), device, date, commit)
    ended = [study.runs[name].ended(runs_dir) for name in claim.run_names]
    seeds = study.runs[claim.runs].seeds
    if any(set(runs) != set(seeds) for runs in ended):
        return None
    values = tuple(_value(claim, [runs[seed] for runs in ended]) for seed in seeds)
    runs = [run for of_name in ended for of_seed in of_name.values() for run in each(of_seed)]
    metas = [rundir.read_meta(run) for run in runs]
    minutes = sum(map(_minutes, metas)) + _minutes_since(began)
    devices, trained_at = (" and ".join(sorted({str(meta[key]) for meta in metas})) for key in ("device", "git_hash"))
    return Measurement(values, seeds, minutes, devices, date, commit, trained_at, tuple(run.name for run in runs))


def _value(claim: Claim, runs: Sequence[Path | tuple[Path, ...]]) -> float:
    done = all(rundir.read_status(run) == "done" for of_seed in runs for run in each(of_seed))
    return float(claim.measure(*runs)) if done else float("inf")


def _minutes(meta: Mapping[str, Any]) -> float:
    """What a run took to compile and train; those of a pack share its time."""
    return (float(meta["run_seconds"]) / int(meta["pack_width"]) + float(meta["compile_seconds"])) / 60


def _minutes_since(began: float) -> float:
    return (time.perf_counter() - began) / 60
