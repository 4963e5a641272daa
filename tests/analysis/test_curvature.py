"""`python -m analysis.curvature`: the prediction of a run's Hessian, its table, and what it refuses."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from icl_lab.analysis.llc.estimator import Estimator
from icl_lab.analysis.llc.prediction import EXACT, How, predict
from icl_lab.analysis.llc.settings import Settings
from icl_lab.store import layout, rundir
from icl_lab.store.params import read_params
from tests.doors import Refused, ran, refused
from tests.runners.tiny import Workshop, copied

__all__ = ["ran", "refused"]

TASKS = ["--tasks", "128", "--batch_size", "64"]


def test_it_predicts_at_every_nbeta_and_gamma(workshop: Workshop, lsa1_run: Path, tmp_path: Path) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    (run / layout.LOCK).touch()
    line = ["--run", run, "--nbetas", "10,1000", "--gammas", "100,1e4", "--eps", "1e-5", *TASKS]
    done = workshop.run("analysis.curvature", *line)
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(run / layout.CURVATURE)
    assert [*zip(table["nbeta"], table["gamma"], strict=True)] == [
        (10.0, 100.0),
        (10.0, 1e4),
        (1000.0, 100.0),
        (1000.0, 1e4),
    ]
    settings = Settings(tasks=128, batch_size=64)
    spectrum = Estimator(rundir.read_config(run), settings).spectrum(read_params(run))
    assert (table["h_min"] <= table["h_1"]).all()
    for row in table.to_dict("records"):
        expected = predict(spectrum, row["nbeta"], row["gamma"], How(1e-5, 64))
        parts = [row[name] for name in ("curvature", "step_part", "noise_part", "slope_part", "predicted")]
        np.testing.assert_allclose(parts, [*expected[:4], expected.total], rtol=1e-4)  # two processes' float32
        assert (row["note"] == "saddle") == bool(np.isnan(expected.curvature))
        assert 0 <= row["held_by_gamma"] <= 1
    assert f"trace {table['trace'].iloc[0]:.4g}" in done.stdout
    plain = predict(spectrum, 10.0, 100.0, EXACT)
    assert (plain.step, plain.noise) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--nbetas", "0"], "argument --nbetas: '0' is not a number above 0"),
        (["--gammas", "-1"], "argument --gammas: '-1' is not a number above 0"),
        (["--mask", "("], "mask is '(', which is not a regular expression"),
        (["--checkpoints", "all"], "has no snapshots of its training; --config.snapshots=true keeps them"),
    ],
)
def test_bad_input_is_one_sentence(
    flags: list[str], sentence: str, lsa1_run: Path, tmp_path: Path, refused: Refused
) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    (run / layout.LOCK).touch()
    assert sentence in refused("analysis.curvature", "--run", run, *TASKS, *flags)
