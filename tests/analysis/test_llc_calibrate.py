"""`python -m analysis.llc_calibrate`: which cell it recommends of rows that are made here, and what it leaves."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from icl_lab.analysis.llc.settings import Settings
from icl_lab.analysis.llc.spectrum import Nodes, Spectrum
from icl_lab.analysis.llc_calibrate import FRACTIONS, NBETAS, PULLS, SHORT, Cell, Point, advise, feasible, grid, nearest
from icl_lab.store import layout
from icl_lab.store.llc_rows import said, usable
from tests.analysis.llc_runs import trained, words
from tests.doors import Refused, ran, refused
from tests.runners.tiny import Workshop, copied

__all__ = ["ran", "refused"]

UNMIXED = "not mixed: R-hat is 1.400, above 1.2"
SATURATED = "saturated: draws are 0.91 of the way to the null predictor"
MOVING = "not mixed: +3.1 standard errors from the first to the last quarter of the draws"


def rows(cell: tuple[float, float, float], *llcs: float, half: float = 1.0, reasons: str = "") -> list[Any]:
    """The rows of a cell (eps, nbeta, gamma) of SGLD at steps 100, 200, ..., with intervals of this half width."""
    setting = dict(zip(("eps", "nbeta", "gamma"), cell, strict=True)) | {"burn_in": 100, "thin": 2, "sampler": "sgld"}
    setting["relaxation"] = 2 / (setting["eps"] * setting["gamma"])
    return [
        setting
        | {"step": 100 * (place + 1), "llc": llc, "llc_low": llc - half, "llc_high": llc + half}
        | said([reasons] if reasons else [])
        for place, llc in enumerate(llcs)
    ]


def test_of_usable_cells_the_weakest_pull_and_then_the_narrowest_intervals() -> None:
    advice = advise(
        [
            *rows((1e-4, 10.0, 1000.0), 5.0, 6.0, half=0.1),  # pulled harder
            *rows((1e-4, 10.0, 100.0), 5.0, 6.0, half=2.0),
            *rows((3e-4, 10.0, 100.0), 5.0, 6.0, half=1.0),
            *rows((3e-4, 10.0, 10.0), 5.0, 6.0, half=0.1, reasons=SATURATED),  # pulled least
        ]
    )
    assert advice.cell == (3e-4, 10.0, 100.0, "sgld")
    assert "3 of 4 cells are usable at every checkpoint, and this one has the weakest pull" in advice.reason
    assert advice.reason.endswith("it measures: undecided at step 100, undecided at step 200")
    assert "(±18 % of the LLC)" in advice.reason  # 1 / 5.5
    assert advice.order == "the order of the checkpoints is the same in all 4 cells with an estimate: 200 > 100 in 4"


def of_eigenvalues(*h: float) -> Point:
    """A checkpoint with these eigenvalues."""
    ones, zeros = np.ones(len(h)), np.zeros(len(h))
    spectrum = Spectrum((Nodes(np.array(h), ones, zeros, zeros),), len(h), min(h), max(h), 0.0)
    return Point(100, {}, spectrum, 1.0)


def test_chains_that_are_too_short_are_of_sghmc_or_left_out() -> None:
    """A flat direction of h = .01 at nbeta 10 and gamma .1 takes 2 / (eps a) = 2 / (1e-2 * .2) = 1000 steps of SGLD."""
    settings, point = Settings(**SHORT), of_eigenvalues(1.0, 0.01)
    steep = Cell(1e-2, 10.0, 100.0)
    assert feasible([steep], settings, [point]) == ([steep], [])
    weak = Cell(1e-2, 10.0, 0.1)
    kept, told = feasible([weak], settings, [of_eigenvalues(0.01)])
    assert (kept, told) == ([weak._replace(sampler="sghmc")], []), (kept, told)
    kept, told = feasible([weak._replace(eps=1e-5)], settings, [point, of_eigenvalues(0.01)])
    assert kept == []
    assert told == [
        "eps 1e-05, nbeta 10, gamma 0.1 is left out: a flat direction forgets w* in 200000 steps of SGHMC, and chains "
        "have 150 before their draws"
    ]


def test_a_saddle_is_no_reason_to_try_no_chain() -> None:
    """It has no quadratic value to show; that it is one is said of its rows."""
    short = Cell(1e-9, 10.0, 0.1)
    assert feasible([short], Settings(**SHORT), [of_eigenvalues(1.0, -1.0)])[0] == [short]


def test_a_sampler_that_is_asked_for_is_taken() -> None:
    short = Cell(1e-9, 10.0, 0.1)
    assert feasible([short], Settings(**SHORT, sampler="rmsprop"), [of_eigenvalues(1.0)]) == (
        [short._replace(sampler="rmsprop")],
        [],
    )


def test_a_cell_has_to_be_usable_at_every_checkpoint_and_where_none_is_it_says_why() -> None:
    first, second = rows((1e-4, 10.0, 100.0), -5.0, 6.0)
    advice = advise(
        [first, second | said([SATURATED, MOVING, UNMIXED]), *rows((1e-4, 10.0, 10.0), -7.0, 8.0, reasons=MOVING)]
    )
    assert advice.cell is None
    assert advice.reason == (
        "no cell of 2 is usable at every checkpoint; of 4 estimates: not mixed (3), saturated (1); at step 100 "
        "chains go below L(w*): w* is no local minimum there, as before the learning rate has decayed"
    )


def test_an_order_that_depends_on_the_setting_is_said_with_whether_it_does_among_usable_cells() -> None:
    weak, strong = rows((1e-4, 10.0, 100.0), 5.0, 6.0), rows((1e-4, 10.0, 1000.0), 6.0, 5.0)
    order = advise([*weak, *strong]).order
    assert order.startswith("the order of the checkpoints depends on the setting: steps ")
    assert "200 > 100 in 1" in order
    assert "100 > 200 in 1" in order
    assert order.endswith("of 2 cells; and differs between usable ones")
    sick = [row | said([SATURATED]) for row in strong]
    assert advise([*weak, *sick]).order.endswith("; the same in all usable ones")
    assert advise([row | said([MOVING]) for row in (*weak, *sick)]).order.endswith("; none is usable")
    assert advise(rows((1e-4, 10.0, 100.0), 5.0)).order == "one checkpoint has no order"


def test_cells_without_eps_or_gamma_are_fractions_of_the_bound_and_multiples_of_nbeta() -> None:
    assert grid([1e-4], [10.0, 20.0], [5.0], 3.0) == [Cell(1e-4, 10.0, 5.0), Cell(1e-4, 20.0, 5.0)]
    cells = grid([], [10.0], [], 3.0)
    assert sorted({cell.gamma for cell in cells}) == pytest.approx([0.1, 1.0, 10.0, 100.0, 1000.0])
    assert min(PULLS) <= 0.01  # where plateaus are
    assert len(grid([], [], [], 3.0)) == len(NBETAS) * len(PULLS) * len(FRACTIONS)
    for cell in cells:
        assert min(abs(cell.eps * (10.0 * 3.0 + cell.gamma) - fraction) for fraction in FRACTIONS) < 1e-12
    assert [nearest([0, 30, 60, 100], to) for to in (10, 50, 45, 100)] == [0, 60, 30, 100]


def test_it_leaves_a_grid_with_advice_and_a_figure(workshop: Workshop, tmp_path: Path) -> None:
    run = copied(trained(workshop, "lsa1"), tmp_path / "run")
    line = ["--run", run, "--steps", "early,100", "--eps", "1e-5,1e-4", "--nbeta", 10, "--gamma", "100,1000", *words()]
    done = workshop.run("analysis.llc_calibrate", *line)
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(run / layout.LLC_CALIBRATION)
    expected = {(eps, 10.0, gamma, step) for eps in (1e-5, 1e-4) for gamma in (100.0, 1000.0) for step in (0, 100)}
    found = {*zip(table["eps"], table["nbeta"], table["gamma"], table["step"], strict=True)}
    assert found < expected  # chains of ten draws are too short at the smaller eps and gamma
    assert len(table) == len(found) == 3
    stored = json.loads((run / layout.LLC_ADVICE).read_text())
    assert "step 0 is left out: its loss" in stored["left_out"][0]  # above the null predictor's
    assert stored["left_out"][1].startswith("eps 1e-05, nbeta 10, gamma 100 is left out")
    assert all(sentence in done.stdout for sentence in stored["left_out"])
    assert [*stored] == ["cell", "reason", "order", "left_out", "top_eigenvalues"]
    assert {*stored["top_eigenvalues"]} <= {"0", "100"}
    assert stored["reason"] in done.stdout
    assert stored["order"] in done.stdout
    table["good"] = usable(table)
    assert (stored["cell"] is None) == (not table.groupby(["eps", "gamma"])["good"].all().any())
    assert (run / layout.LLC_CALIBRATION_FIGURE).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--eps", "1e-4,0"], "argument --eps: '0' is not a number above 0, from 1.18e-38 to 3.4e+38"),
        (["--nbeta", "inf"], "argument --nbeta: 'inf' is not a number above 0, from 1.18e-38 to 3.4e+38"),
        (["--gamma", 0], "argument --gamma: '0' is not a number above 0, from 1.18e-38 to 3.4e+38"),
        (["--steps", "late"], "argument --steps: 'late' is not a step or one of early, middle, last"),
        (["--steps", 31], "has no snapshot of step 31; it has 0, 30, 60, 90, 100"),
        (["--mask", "no_such"], "mask 'no_such' matches no floating-point parameter; choose from "),
        (["--batch_size", 129], "batch_size is 129, more than the 128 tasks it is drawn from; raise tasks"),
    ],
)
def test_bad_input_is_one_sentence(
    flags: list[object], sentence: str, workshop: Workshop, tmp_path: Path, refused: Refused
) -> None:
    run = copied(trained(workshop, "lsa1"), tmp_path / "run")
    assert sentence in refused("analysis.llc_calibrate", "--run", run, *words(), *flags)


def test_a_run_without_snapshots_is_refused(lsa1_run: Path, tmp_path: Path, refused: Refused) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    (run / layout.LOCK).touch()
    said = refused("analysis.llc_calibrate", "--run", run)
    assert said == f"error: {run} has no snapshots of its training; --config.snapshots=true keeps them\n"
