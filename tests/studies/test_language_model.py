"""The study of languages whose exact answer is known: phases of records, turns of pools, runs that need a text."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from icl_lab.store import layout
from icl_lab.studies import ledger
from icl_lab.studies.language_model import measures
from icl_lab.studies.language_model.runs import CHAINS, RUNS
from icl_lab.studies.language_model.study import STUDY
from icl_lab.studies.runs import Runs

REPORT = Path(__file__).parents[2] / "report"

BOUND = 0.03


@pytest.fixture(autouse=True)
def bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "unigram_bound", lambda run: BOUND)


def recorded(folder: Path, name: str, nearness: Sequence[tuple[float, float, float]], every: int = 50) -> Path:
    """A run whose records have these KLs of uniform, unigrams and Bayes."""
    run = folder / name
    run.mkdir()
    lines = [
        {"step": every * index, "train_loss": 1.0, "eval_loss": 1.0}
        | {f"eval_kl_{name}": kl for name, kl in zip(measures.NEAREST, kls, strict=True)}
        for index, kls in enumerate(nearness)
    ]
    (run / layout.METRICS).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return run


UNIFORM, UNIGRAM, BAYES = (0.01, 0.1, 0.2), (0.1, 0.02, 0.1), (0.2, 0.1, 0.02)
BETWEEN = (0.05, 0.04, 0.06)  # the unigrams are the nearest, but no nearer than what lies between uniform and Bayes


@pytest.mark.parametrize(
    ("kls", "ordered", "step"),
    [
        ((UNIFORM, UNIGRAM, UNIGRAM, BAYES, BAYES), 1, 150),
        ((UNIFORM, UNIGRAM, BAYES, UNIGRAM, BAYES), 1, 200),
        ((UNIFORM, BETWEEN, BAYES), 0, 100),
        ((UNIFORM, UNIGRAM, UNIGRAM), 0, math.inf),
        ((UNIGRAM, UNIFORM, BAYES), 0, 100),
        ((BAYES, BAYES), 0, 0),
    ],
)
def test_phases_of_records(
    kls: Sequence[tuple[float, float, float]], ordered: float, step: float, tmp_path: Path
) -> None:
    run = recorded(tmp_path, "run", kls)
    assert measures.phases_in_order(run) == ordered
    assert measures.first_step(run, "bayes") == step
    if step:
        assert measures.log2_bigram_step(run) == math.log2(step)


def test_a_run_that_never_has_bigrams_is_infinitely_later(tmp_path: Path) -> None:
    late, early = recorded(tmp_path, "late", (UNIFORM, UNIGRAM)), recorded(tmp_path, "early", (UNIFORM, BAYES))
    assert measures.log2_later_bigrams(late, early) == math.inf


def pools(folder: Path, ratios: Sequence[float]) -> list[Path]:
    """A run for each size, with this log of KL from the pool's posterior over KL from Bayes."""
    runs = []
    for size, ratio in zip(CHAINS, ratios, strict=True):
        run = folder / f"M{size}"
        run.mkdir()
        line = {"step": 0, "train_loss": 1.0, "eval_loss": 1.0, "eval_kl_pool": math.exp(ratio), "eval_kl_bayes": 1.0}
        (run / layout.METRICS).write_text(f"{json.dumps(line)}\n")
        runs.append(run)
    return runs


@pytest.mark.parametrize(
    ("ratios", "turn"),
    [
        ((-5, -1, 1, 2, 2, 2), 3.0),  # halfway between 4 and 16
        ((-5, -4, -3, -1, 3, 4), 6.5),  # a quarter of the way from 64 to 256
        ((-5, -4, -3, -3, -2, -1), math.inf),
    ],
)
def test_the_turn_of_pools_is_where_both_are_as_near(ratios: Sequence[float], turn: float, tmp_path: Path) -> None:
    assert measures.log2_turn(pools(tmp_path, ratios)) == pytest.approx(turn)


def test_measures_of_an_implied_prior(tmp_path: Path) -> None:
    (tmp_path / layout.ANALYSIS).mkdir()
    facts = {
        "alpha": 1.4,
        "priors": {"0.3": {"over_own_prior": -0.02, "over_their_prior": 0.05}},
        "longer": {"trained": 0.01, "beyond": 0.02},
    }
    (tmp_path / layout.IMPLIED_PRIOR).write_text(json.dumps(facts))
    assert measures.implied_alpha(tmp_path) == 1.4
    assert measures.own_over_theirs("0.3")(tmp_path) == pytest.approx(0.4)
    assert measures.beyond_over_trained(tmp_path) == pytest.approx(2)


def test_controls_train_as_long_as_what_they_control() -> None:
    def steps(name: str) -> set[int]:
        return {cell.config.training.steps for cell in RUNS[name].cells}

    assert steps("markov_one_layer") == steps("no_start") == steps("markov")
    assert steps("triggers_one_layer") == steps("triggers")
    assert steps("small_tables") == steps("large_tables")


def test_runs_whose_text_is_missing_have_no_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert RUNS["text"].cells == []
    assert RUNS["text"].ended(tmp_path) == {}
    assert RUNS["text"].finished(tmp_path) == []
    own = tmp_path / "own"
    own.mkdir()
    for number in range(3):
        (own / f"{number}.txt").write_text("in the beginning was a text of its own, and it was long enough. " * 200)
    settings = {"file": "own", "num_symbols": 256, "num_tokens": 16}
    with pytest.raises(Exception, match="distinct pieces"):
        _ = Runs("text", settings, (0,), needs="own").cells


def rows_of_llc(run: Path, values: list[float], verdict: str) -> None:
    """A table of LLCs over steps 2^20, 2^21, ..., where log(step + 1) is log step."""
    (run / "analysis").mkdir(parents=True)
    lines = ["step,llc,llc_low,llc_high,chains,verdict,reasons"]
    for index, llc in enumerate(values):
        lines.append(f"{2 ** (20 + index)},{llc},{llc - 0.01},{llc + 0.01},4,{verdict},")
    (run / layout.LLC).write_text("\n".join(lines) + "\n")


def test_changes_of_the_llc_are_compared_with_chance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kink exactly where both phases begin: as much nearer as the mean distance of the inner checkpoints is."""
    values = [0.0] * 6 + [1.0, 2.0, 3.0, 4.0]  # flat up to step 2^25
    monkeypatch.setattr(measures, "first_step", lambda run, name: 2.0**25)
    monkeypatch.setattr(measures, "entered", lambda run, name: 2.0**25)
    rows_of_llc(tmp_path / "plateau", values, "LLC")
    assert measures.plateau_share(tmp_path / "plateau") == 1
    chance = np.mean([abs(index - 5) for index in range(1, 9)])
    assert measures.change_beyond_chance(tmp_path / "plateau") == pytest.approx(-chance)
    rows_of_llc(tmp_path / "localised", values, "curvature")
    assert measures.plateau_share(tmp_path / "localised") == 0
    assert math.isnan(measures.change_beyond_chance(tmp_path / "localised"))
    rows_of_llc(tmp_path / "flat", [1.0] * 10, "LLC")
    assert math.isnan(measures.change_beyond_chance(tmp_path / "flat"))


def test_what_was_measured_on_a_text_stays_where_the_text_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody without the text can name its runs; their committed values are no less measured."""
    (claim,) = (one for one in STUDY.claims if one.name == "text_bigrams")
    measured = ledger.read_measurements(REPORT / ledger.TABLE)["text_bigrams"]
    assert len(measured.values) == 8
    monkeypatch.chdir(tmp_path)
    assert not STUDY.runs_of("text").is_possible
    assert ledger.readings(REPORT, STUDY, claim)[1] == measured
    other = STUDY.runs_of("markov")
    assert other.is_possible
    (elsewhere,) = (one for one in STUDY.claims if one.name == "markov_excess")
    of_other_runs = ledger.read_measurements(REPORT / ledger.TABLE)["markov_excess"]._replace(cells=("another",))
    assert ledger._of_today(REPORT, STUDY, elsewhere, of_other_runs) is None
