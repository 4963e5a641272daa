"""`python -m analysis.essential_dynamics`: its tables, figure and sentences, on a short run."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from icl_lab.analysis.development.forms import WIDEST, smooth_growing
from icl_lab.analysis.development.trajectory_pca import fit
from icl_lab.analysis.essential_dynamics import NAMES, outputs
from icl_lab.analysis.loaded_run import load_run
from icl_lab.store import layout
from tests.analysis.llc_runs import trained
from tests.doors import Refused, ran, refused
from tests.runners.tiny import LSA1, SIZES, Workshop, copied

__all__ = ["ran", "refused"]
WALKS = ("--walks", 12)


@pytest.fixture
def run(workshop: Workshop, tmp_path: Path) -> Path:
    return copied(trained(workshop, "lsa1"), tmp_path / "run")


def test_it_leaves_scores_forms_and_their_null(workshop: Workshop, run: Path) -> None:
    done = workshop.run("analysis.essential_dynamics", "--run", run, *WALKS)
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(run / layout.ESSENTIAL_DYNAMICS)
    facts = json.loads((run / layout.ESSENTIAL_DYNAMICS_FACTS).read_text())
    steps, rows = outputs(load_run(run))
    own = table[table["series"] == "trajectory"]
    assert list(own["step"]) == steps == [0, 30, 60, 90, 100]
    expected = fit(rows, 3)
    np.testing.assert_allclose(own[list(NAMES)], expected.scores, rtol=1e-5, atol=1e-6)
    smoothed = own[[f"{name}_smooth" for name in NAMES]]
    np.testing.assert_allclose(smoothed, smooth_growing(expected.scores, WIDEST * 5), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(facts["explained"], expected.explained, rtol=1e-5)
    np.testing.assert_allclose(facts["cosines"], 6 / (np.pi * np.arange(1, 4)) ** 2)
    assert len(table) == 2 * len(steps)
    assert facts["null"]["walks"] == 12
    assert (facts["forms"], facts["p_forms"]) == ([], None)
    assert "not sought below 50 checkpoints" in done.stdout
    assert (run / layout.ESSENTIAL_DYNAMICS_FIGURE).read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes(workshop: Workshop, run: Path) -> None:
    names, kept = (layout.ESSENTIAL_DYNAMICS, layout.ESSENTIAL_DYNAMICS_FACTS), []
    for seed in (0, 0, 1):
        done = workshop.run("analysis.essential_dynamics", "--run", run, *WALKS, "--seed", seed)
        assert done.returncode == 0, done.stderr
        kept.append([(run / name).read_bytes() for name in names])
    assert kept[0] == kept[1]
    assert kept[0][1] != kept[2][1]


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--walks", 0], "argument --walks: '0' is not a whole number from 1 to 10000"),
        (["--smoothing", 1], "argument --smoothing: '1' is not a number from 0 to below 1"),
        (["--smoothing", -0.1], "argument --smoothing: '-0.1' is not a number from 0 to below 1"),
    ],
)
def test_bad_input_is_one_sentence(flags: list[object], sentence: str, refused: Refused, run: Path) -> None:
    assert sentence in refused("analysis.essential_dynamics", "--run", run, *flags)


@pytest.mark.slow
def test_a_run_with_few_snapshots_is_refused(workshop: Workshop, tmp_path: Path) -> None:
    few = workshop.run(LSA1, *SIZES, "--eval_every", 50, "--config.snapshots=true", "--out", tmp_path / "few")
    assert few.returncode == 0, few.stderr
    done = workshop.run("analysis.essential_dynamics", "--run", tmp_path / "few")
    assert done.returncode == 2
    assert (
        "has 3 snapshots; a trajectory needs 5, and finding its turning points (forms) needs 50: "
        "train it with more records" in done.stderr
    )
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "few" / layout.ESSENTIAL_DYNAMICS).exists()
