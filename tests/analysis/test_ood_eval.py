"""Other input scales: exact gradient descent against its closed form."""

from pathlib import Path

import numpy as np
import pytest

from icl_lab.analysis.loaded_run import ComparedRun, load_compared
from icl_lab.analysis.ood_eval import ood_curve, write
from icl_lab.baselines.construction import gd_params
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import GradientDescent, evaluation_context, make_model
from icl_lab.src.config import ContextConfig
from icl_lab.store import layout
from tests.doors import snapshot
from tests.runners.tiny import Workshop, copied

STEP = 1 / 1.65  # E tr S / E tr S^2 = 8.3333 / 13.75 at D = N = 10 and x ~ U(-1/2, 1/2)
ALPHAS = [0.5, 1.0, 1.5, 2.0, 3.0]


def subject(config: RegressionConfig, scale: float = 1.0) -> ComparedRun:
    """One constructed layer that takes a step `scale` times as long as the gradient descent it is compared with."""
    batch = evaluation_context(config).batch
    gd = GradientDescent(1, STEP, "given")
    return ComparedRun(Path(), config, make_model(config), gd_params(config.architecture, scale * STEP), batch, gd)


def mse_in_closed_form(r: float) -> float:
    """One step at the step size of range 1, inputs U(-r/2, r/2), labels of the same teacher.

    Half the squared error is v/2 (D - 2 c E tr S + c^2 E tr S^2) with v = r^2/12, E tr S = 8.3333 r^2 and
    E tr S^2 = 13.75 r^4, which is r^2/24 (10 - 10.101 r^2 + 5.0505 r^4).
    """
    return 2 * r**2 / 24 * (5.0505 * r**4 - 10.101 * r**2 + 10)


def test_exact_gradient_descent_on_scaled_inputs() -> None:
    rows = ood_curve(subject(RegressionConfig()), ALPHAS)
    assert [row["alpha"] for row in rows] == ALPHAS
    assert {row["labels"] for row in rows} == {"scaled"}
    for row in rows:
        assert abs(row["gd_test_mse"] - mse_in_closed_form(row["alpha"])) < 4 * row["gd_test_mse_se"]
        np.testing.assert_allclose(row["test_mse"], row["gd_test_mse"], rtol=1e-4)
        assert 0 < row["gd_test_mse_se"] < 0.1 * row["gd_test_mse"]


def test_labels_that_do_not_follow() -> None:
    """The prediction p grows as alpha^2 while y stays: E(alpha^2 p - y)^2 = (alpha^4 - 2 alpha^2) E p^2 + E y^2.

    At the best step E p y = E p^2 = .8333 - 2 x .20623 = .4209 and E y^2 = .8333: 27.3 at alpha = 3.
    """
    (row,) = ood_curve(subject(RegressionConfig()), [3.0], keep_labels=True)
    assert row["labels"] == "kept"
    assert abs(row["gd_test_mse"] - 27.3) < 4 * row["gd_test_mse_se"]
    assert row["gd_test_mse_se"] < 1


def test_the_columns_are_the_transformers_and_gradient_descents() -> None:
    """A layer that steps twice as far has p -> 2p: E(2p - y)^2 = E y^2 = .8333 at the best step."""
    (row,) = ood_curve(subject(RegressionConfig(), scale=2.0), [1.0])
    assert abs(row["test_mse"] - 10 / 12) < 4 * row["test_mse_se"]
    assert abs(row["gd_test_mse"] - 2 * 0.20623) < 4 * row["gd_test_mse_se"]


def test_noise_in_the_labels_stays_as_it_was() -> None:
    """With p = 1 and sigma = 1 every label gains N(0, 1): the error grows by alpha^2/12 c^2 sigma^2 E tr S(alpha)."""
    config = RegressionConfig(eval=ContextConfig(noise_mode="label_noise", noise_p=1.0, noise_sigma=1.0))
    for row in ood_curve(subject(config), [1.0, 2.0]):
        r = row["alpha"]
        added = r**2 / 12 * STEP**2 * 10 * 10 * r**2 / 12
        assert abs(row["gd_test_mse"] - mse_in_closed_form(r) - added) < 4 * row["gd_test_mse_se"]
        assert added > 5 * row["gd_test_mse_se"]


@pytest.mark.parametrize("words", [["--alphas", "1", "2.5"], ["--alphas", "1,2.5", "--keep-labels"]])
def test_the_command_writes_and_prints_the_curve(
    lsa1_run: Path, workshop: Workshop, tmp_path: Path, words: list[str]
) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    done = workshop.run("analysis.ood_eval", "--run", run, *words)
    assert done.returncode == 0, done.stderr
    rows = np.genfromtxt(run / layout.OOD, delimiter=",", names=True)
    before = np.genfromtxt(lsa1_run / layout.OOD, delimiter=",", names=True)
    assert rows.dtype.names == before.dtype.names
    np.testing.assert_array_equal(rows["alpha"], [1, 2.5])
    np.testing.assert_allclose(rows["test_mse"][0], before["test_mse"][0], rtol=1e-6)
    assert f"alpha 2.5  test_mse {rows['test_mse'][1]:.4g}" in done.stdout


@pytest.mark.parametrize("alphas", [["1e30"], ["1", "1e12"], ["1e-30", "1e19"], ["1e39"]])
def test_a_scale_that_overflows_is_refused_and_the_curve_stays(
    lsa1_run: Path, workshop: Workshop, tmp_path: Path, alphas: list[str]
) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    before = snapshot(run)
    done = workshop.run("analysis.ood_eval", "--run", run, "--alphas", *alphas)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    bad = next(alpha for alpha in alphas if not 1e-30 <= float(alpha) <= 1)
    assert f"alphas is {float(bad):g}," in done.stderr or f"--alphas: '{bad}' is not a number" in done.stderr
    assert snapshot(run) == before


def test_a_curve_at_the_end_of_a_training_may_overflow(lsa1_run: Path, tmp_path: Path) -> None:
    """That never fails the run: what is not finite is empty there."""
    run = copied(lsa1_run, tmp_path / "run")
    with np.errstate(over="ignore", invalid="ignore"):
        rows = write(load_compared(run), [1.0, 1e12])
    assert np.isfinite(rows[0]["test_mse"])
    assert not np.isfinite(rows[1]["test_mse"])
    assert (run / layout.OOD).read_text().count("\n") == 3
