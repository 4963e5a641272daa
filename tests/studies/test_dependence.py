"""What claims share: facts, runs, and test tasks, which fresh seeds do not share."""

import re
from itertools import combinations

import numpy as np
import pytest

from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.families.diversity.task import make_test_sequences
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import make_test_batch
from icl_lab.studies.claim import Claim, stating
from icl_lab.studies.dependence import facts, groups, outcome, outcomes, tasks_of
from icl_lab.studies.runs import MAIN_FROM, Runs
from icl_lab.studies.study import all_studies
from icl_lab.sweeps.plan import PlannedRun

CLAIMS = [claim for study in all_studies() for claim in study.claims]
RUNS = {name: runs for study in all_studies() for name, runs in study.runs.items()}
HOLDS, PREDICTED, AGAINST, OPEN = "reproduced", "as predicted", "contradicted", "undecided"


def named(name: str) -> Claim:
    return Claim(name, "1", "says", 1.0, 0.0, 2.0, "derived", float)


def line(fact: str, verdict: str, n: int = 8, cells: str = "") -> dict[str, object]:
    return {"fact": fact, "verdict": verdict, "n": n, "cells": cells}


def test_every_claim_states_a_fact_in_a_sentence_without_numbers() -> None:
    for claim in CLAIMS:
        assert re.fullmatch(r"[A-Z][^.\d]*\.", claim.fact), claim.name
    assert len({claim.fact for claim in CLAIMS}) < len(CLAIMS) / 2


def test_a_fact_names_its_claims_once_and_each_is_there() -> None:
    one, other = named("one"), named("other")
    assert [claim.fact for claim in stating((one, other), {"It is so.": ("one",)})] == ["It is so.", "other"]
    with pytest.raises(ValueError, match=r"no claims another, which have facts"):
        stating((one, other), {"It is so.": ("one", "another")})
    with pytest.raises(ValueError, match=r"one states two facts: It is so\. It is not\."):
        stating((one, other), {"It is so.": ("one",), "It is not.": ("one",)})


def test_facts_are_counted_by_what_all_their_claims_show() -> None:
    lines = [line("a", HOLDS), line("b", HOLDS), line("a", PREDICTED), line("b", OPEN), line("c", HOLDS)]
    lines += [line("c", AGAINST), line("d", OPEN), line("e", HOLDS, n=0)]
    by_fact = facts(lines)
    assert {fact: len(rows) for fact, rows in by_fact.items()} == {"a": 2, "b": 2, "c": 2, "d": 1}
    found = {fact: outcome([str(row["verdict"]) for row in rows]) for fact, rows in by_fact.items()}
    assert found == {"a": "holding", "b": "in part", "c": "contradicted", "d": "open"}
    assert outcomes(by_fact) == {"contradicted": 1, "holding": 1, "in part": 1, "open": 1}


def test_claims_that_share_a_training_or_test_tasks_are_one_group() -> None:
    """The third joins the first two, the fourth is alone, the fifth is not measured; e and a have one set of tasks."""
    rows = [line("", "", cells=cells) for cells in ("a b", "c", "b c d", "e", "")]
    assert [groups(rows[:count]) for count in range(6)] == [0, 1, 2, 1, 2, 2]
    assert groups(rows, {"a": "tasks", "e": "tasks"}) == 1
    assert groups(rows, {"a": "tasks", "e": "others"}) == 2


def planned(model: str, seed: int, **settings: object) -> PlannedRun:
    return Runs(model, {"test_tasks": 8, **settings}, (seed,)).cells[0]


def test_runs_of_one_name_of_tasks_have_the_same_tasks_and_no_others() -> None:
    """Drawn as the families draw them: depth, order and training change none, data and seed do."""
    one, *same = (planned("lsa1", 3), planned("lsa1", 3, num_layers=2), planned("twolayer", 3, steps=70))
    other = (planned("lsa1", 4), planned("lsa1", 3, noise_std=0.5))

    def inputs(run: PlannedRun) -> np.ndarray:
        assert isinstance(run.config, RegressionConfig)
        batch = make_test_batch(run.config)
        return np.concatenate([np.asarray(batch.x).ravel(), np.asarray(batch.y).ravel()])

    for run in same:
        assert tasks_of(run) == tasks_of(one)
        np.testing.assert_array_equal(inputs(run), inputs(one))
    for run in other:
        assert tasks_of(run) != tasks_of(one)
        assert (inputs(run) != inputs(one)).any()


def test_pools_of_a_seed_share_their_test_tasks_out_of_distribution() -> None:
    few, many = planned("tiny", 3, num_tasks=4), planned("tiny", 3, num_tasks=16)
    assert tasks_of(few) == tasks_of(many)
    assert isinstance(few.config, DiversityConfig)
    assert isinstance(many.config, DiversityConfig)
    found = [np.asarray(make_test_sequences(config)[1].x) for config in (few.config, many.config)]
    np.testing.assert_array_equal(found[0], found[1])


def test_fresh_seeds_are_disjoint_between_settings_unless_a_claim_pairs_them() -> None:
    """So no two settings that are read on fresh seeds share test tasks."""
    fresh = {name: set(runs.seeds) for name, runs in RUNS.items() if min(runs.seeds) >= MAIN_FROM}
    fresh |= {f"sampled: {seeds[0]}": set(seeds) for seeds in {study.sampled_seeds for study in all_studies()}}
    assert len(fresh) > 20
    named_together = [{*claim.run_names, *claim.control_names} for claim in CLAIMS]
    shared = {pair for pair in combinations(fresh, 2) if fresh[pair[0]] & fresh[pair[1]]}
    assert [pair for pair in shared if not any(set(pair) <= names for names in named_together)] == []
    mixed = [name for name, runs in RUNS.items() if min(runs.seeds) < MAIN_FROM <= max(runs.seeds)]
    assert mixed == []
