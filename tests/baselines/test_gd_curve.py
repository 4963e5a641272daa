"""Losses of gradient descent after every step: against NumPy, closed forms, and numbers known independently."""

import json
from functools import cache, partial
from itertools import pairwise
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.analysis import gd_curve as command
from icl_lab.baselines import gd_curve as rules
from icl_lab.baselines import gd_step, gradient_descent
from icl_lab.baselines.gd_curve import gd_curve
from icl_lab.baselines.loss_curves import over_tasks, path_losses, summary, unstable_share
from icl_lab.src.data_config import QueriesData
from icl_lab.src.one_step import one_step_loss, one_step_size
from icl_lab.src.queries import CHUNK, task_chunks
from icl_lab.store import outputs
from icl_lab.store.readers import read_csv
from tests import reference
from tests.doors import Ran, Refused, ran, refused

__all__ = ["ran", "refused"]

SMALL = QueriesData(dim=3, num_pairs=5, num_queries=4, input_distribution="gaussian", noise_std=0.1)
DEPTH = QueriesData(dim=20, num_pairs=20, num_queries=20, input_distribution="gaussian", noise_std=0.05)

curve = cache(partial(gd_curve, seed=0, num_tasks=1000, steps=50))

# MSE after some steps at d = n = 20 and sigma = .05, from simulations in NumPy that share nothing with this code.
KNOWN = {
    "one_step": {1: 10.85, 2: 8.43, 4: 6.35, 8: 4.70, 12: 3.92},
    "spectral": {1: 11.87, 2: 9.37, 4: 7.11, 8: 5.26, 12: 4.39, 24: 3.21, 50: 2.30},
    "envelope": {1: 10.24, 2: 7.81, 4: 5.87, 8: 4.44, 12: 3.79, 24: 2.85, 50: 2.08},
    "conjugate_gradients": {1: 10.1, 2: 6.85, 4: 4.14, 8: 2.21, 12: 1.40},
    "newton_schulz": {1: 13.7, 2: 12.0, 4: 8.9, 8: 4.7, 12: 2.5},
}


@pytest.mark.parametrize("name", KNOWN)
def test_the_known_numbers(name: str) -> None:
    """Within 5 standard errors of a thousand tasks."""
    found = curve(DEPTH, step_size=name) if name in rules.RULES else curve(DEPTH)["references"][name]
    for step, expected in KNOWN[name].items():
        assert abs(found["mse"][step - 1] - expected) < 5 * found["sem"][step - 1], step


def test_ridge_has_the_known_loss() -> None:
    """.311, which is sigma^2 (1 + E tr (X'X + sigma^2)^-1), here of 20 000 contexts in NumPy.

    Each within three standard errors, and the digit.
    """
    x = np.random.default_rng(0).standard_normal((20_000, 20, 20))
    values = np.linalg.eigvalsh(np.einsum("bnd,bne->bde", x, x))
    variance = DEPTH.noise_std**2
    expected = variance * (1 + (1 / (values + variance)).sum(axis=1))
    error = expected.std() / np.sqrt(len(expected))
    assert abs(expected.mean() - 0.311) < 3 * error + 5e-4
    found = curve(DEPTH)["references"]["ridge"]
    assert abs(found["mse"][0] - expected.mean()) < 3 * np.hypot(found["sem"][0], error)


def test_the_commands_choices_are_the_rules() -> None:
    assert tuple(rules.RULES) == command.STEP_SIZES


def test_the_curve_is_gradient_descent_on_each_task() -> None:
    batch, _ = next(task_chunks(SMALL, 3, 2))
    c = 0.75 * one_step_size(SMALL)
    found = gd_curve(SMALL, seed=3, num_tasks=2, steps=3)
    for steps in (1, 2, 3):
        losses = []
        for task in range(2):
            x, y = (np.asarray(part[task], float) for part in (batch.x, batch.y))
            w = reference.gd_weights(x, y, c, steps, np.zeros(3))
            losses.append(np.mean((np.asarray(batch.x_query[task], float) @ w - batch.y_query[task]) ** 2))
        assert found["mse"][steps - 1] == pytest.approx(np.mean(losses), rel=1e-4)
        assert found["sem"][steps - 1] == pytest.approx(np.std(losses, ddof=1) / np.sqrt(2), rel=1e-3)


def test_one_undamped_step_has_the_closed_forms_loss() -> None:
    """MSE is twice `one_step_loss`, which is in closed form."""
    found = gd_curve(SMALL, seed=0, num_tasks=4000, steps=1, damping=1.0)
    expected = 2 * one_step_loss(SMALL, one_step_size(SMALL))
    assert abs(found["mse"][0] - expected) < 4 * found["sem"][0]
    assert found["step_sizes"] == one_step_size(SMALL)


def test_the_envelope_lies_below_every_constant_step_of_its_grid() -> None:
    """.75 c* is one of them."""
    low, damped = (curve(DEPTH, step_size=name)["mse"] for name in ("envelope", "one_step"))
    assert (np.array(low) <= np.array(damped) * (1 + 1e-6)).all()


def test_the_spectral_step_of_the_set_is_the_smallest_of_the_tasks() -> None:
    found = gd_curve(SMALL, seed=0, num_tasks=20, steps=1, step_size="spectral_set")
    batch, count = next(task_chunks(SMALL, 0, 20))
    x = np.asarray(batch.x[:count], float)
    largest = np.linalg.norm(x, 2, axis=(1, 2)).max() ** 2
    assert found["step_sizes"] == pytest.approx(1 / largest, rel=1e-3)


def test_line_search_never_increases_the_mean_loss_and_beats_a_safe_step() -> None:
    found, safe = (np.array(curve(DEPTH, step_size=name)["mse"]) for name in ("line_search", "spectral"))
    assert (np.diff(found) < 0).all()
    assert (found <= safe).all()


def test_from_ridge_it_starts_where_ridge_is() -> None:
    found = gd_curve(SMALL, seed=0, num_tasks=50, steps=2, start="ridge", penalty=SMALL.noise_std**2)
    assert found["start"]["mse"] == pytest.approx(found["references"]["ridge"]["mse"], rel=1e-6)
    zero = gd_curve(SMALL, seed=0, num_tasks=50, steps=2)
    assert zero["start"]["mse"] == zero["references"]["zero"]["mse"]
    assert found["mse"][0] < zero["mse"][0]


def test_tasks_beyond_the_last_do_not_count() -> None:
    """All chunks are drawn in full; the mean is of the first tasks alone."""
    batches = [batch for batch, _ in task_chunks(SMALL, 0, CHUNK + 1)]
    squares = np.concatenate([np.mean(np.asarray(batch.y_query, float) ** 2, axis=1) for batch in batches])
    found = gd_curve(SMALL, seed=0, num_tasks=CHUNK + 1, steps=1)["references"]["zero"]
    assert found["mse"][0] == pytest.approx(squares[: CHUNK + 1].mean(), rel=1e-5)


# Statistics


def test_the_summary_is_numpys() -> None:
    values = np.random.default_rng(0).exponential(size=(2, 3000))
    found = summary(values)
    assert found["mse"] == pytest.approx(values.mean(axis=1))
    assert found["sem"] == pytest.approx(values.std(axis=1, ddof=1) / np.sqrt(3000))
    assert found["median"] == pytest.approx(np.median(values, axis=1))
    assert found["trimmed_mean"] == pytest.approx([np.sort(row)[:-3].mean() for row in values])


def test_one_task_that_diverges_moves_neither_median_nor_trimmed_mean() -> None:
    values = np.random.default_rng(0).exponential(size=(1, 2000))
    for wild in (1e30, np.inf, np.nan):
        hit = values.copy()
        hit[0, 7] = wild
        found = summary(hit)
        assert found["median"][0] == pytest.approx(np.median(values), rel=1e-2)
        assert found["trimmed_mean"][0] == pytest.approx(values.mean(), rel=1e-2)
        assert not found["mse"][0] < 1e20


def test_unstable_are_the_tasks_worse_than_zero() -> None:
    losses = np.array([[1.0, 3.0, np.nan, np.inf], [0.0, 0.0, 0.0, 0.0]])
    assert unstable_share(losses, np.full((1, 4), 2.0)) == [0.75, 0.0]


def test_over_tasks_joins_the_chunks_in_order() -> None:
    found = over_tasks(lambda batch: {"w": path_losses(batch.w[None], batch)}, SMALL, 1, CHUNK + 3)["w"]
    parts = [path_losses(batch.w[None], batch)[:, :count] for batch, count in task_chunks(SMALL, 1, CHUNK + 3)]
    np.testing.assert_allclose(found, jnp.concatenate(parts, axis=1), rtol=1e-6)


# The command


def test_the_command_writes_what_it_says(ran: Ran) -> None:
    words = "--dim 3 --num-pairs 6 --num_queries 2 --noise_std 0.05 --steps 4 --num_tasks 40 --seed 1 --out gd.json"
    done = ran("analysis.gd_curve", *words.split(), "--step_size", "spectral")
    assert (done.status, done.err) == (0, "")
    with open("gd.json") as file:
        found = json.load(file)
    assert "mse over 40 tasks: mean without the largest .1 % ± s.e." in done.out
    assert f"step   4  {found['trimmed_mean'][3]:.4g} ± {found['trimmed_sem'][3]:.2g}, median" in done.out
    assert (found["steps"], len(found["mse"]), len(found["sem"]), found["num_tasks"]) == (4, 4, 4, 40)
    assert "mean squared error" in found["loss_convention"]
    assert found["data"] == {"dim": 3, "num_pairs": 6, "num_queries": 2, "noise_std": 0.05}
    assert all(after < before for before, after in pairwise(found["mse"]))


def test_the_commands_old_name_does_the_same(ran: Ran, refused: Refused) -> None:
    """A file that it wrote, as earlier versions did, is replaced under the new name."""
    words = "--dim 3 --num_pairs 6 --num_queries 2 --steps 4 --num_tasks 40 --out gd.json".split()
    files = []
    for name in ("baselines.gd_step", "analysis.gd_curve"):
        assert ran(name, *words).status == 0
        with open("gd.json", "rb") as file:
            files.append(file.read())
    assert files[0] == files[1]
    assert "did you mean --steps?" in refused("baselines.gd_step", "--step", 3)


def test_the_functions_are_found_where_they_were() -> None:
    assert (gd_step.gd, gd_step.one_step_size) == (gradient_descent.gd, one_step_size)
    with pytest.raises(AttributeError, match="gdd"):
        _ = gd_step.gdd


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--steps 0", "argument --steps: '0' is not a whole number from 1"),
        ("--num_tasks 1", "argument --num_tasks: '1' is not a whole number from 2 to 2^22"),
        ("--dim 0", "argument --dim: '0' is not a whole number from 1 to 16384"),
        ("--noise_std -1", "argument --noise_std: '-1' is not a number from 0"),
        ("--seed -1", "argument --seed: '-1' is not a whole number from 0 to 2^32 - 1"),
        ("--step_size best", "best"),
        ("--step_size line_search --damping 0.5", "damping has no meaning for the step size line_search"),
        ("--damping 0", "argument --damping: '0' is not a number above 0, from 1.18e-38 to 3.4e+38"),
        ("--ridge 0.1", "ridge is the penalty of --start ridge, which is not given"),
        ("--start ridge --ridge -1", "argument --ridge: '-1' is not a number from 0"),
        ("--steps 100000 --num_tasks 100000", "more than 2^28"),
        ("--step 3", "did you mean --steps?"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(refused: Refused, words: str, sentence: str) -> None:
    assert sentence in refused("analysis.gd_curve", *words.split())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--damping 1e30", "damping is 1e+30, at which the results are not finite"),
        ("--step_size spectral --damping 1e12", "damping is 1e+12,"),
        ("--damping 1e39", "argument --damping: '1e39' is not a number above 0, from 1.18e-38 to 3.4e+38"),
        ("--noise_std 1e30", "noise_std is 1e+30,"),
        ("--noise_std 1e39", "argument --noise_std: '1e39' is not a number from 0 to 3.4e+38"),
    ],
)
def test_what_overflows_is_refused_and_the_file_stays(
    refused: Refused, tmp_path: Path, words: str, sentence: str
) -> None:
    outputs.write({tmp_path / "gd_metrics.json": b"{}"}, command.WRITER)
    small = "--dim 3 --num_pairs 6 --num_queries 2 --steps 4 --num_tasks 40".split()
    assert sentence in refused("analysis.gd_curve", *small, *words.split())


def test_a_descent_that_diverges_on_a_few_tasks_is_a_finding(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean is null from where it overflows; the median is finite, and the file is written."""
    words = "--dim 20 --num_pairs 20 --num_queries 1 --steps 600 --num_tasks 500 --damping 1 --out gd.json"
    assert ran("analysis.gd_curve", *words.split()).status == 0
    with open("gd.json") as file:
        found = json.load(file)
    assert found["mse"][-1] is None
    assert all(loss < 20 for loss in found["median"])


def test_what_is_printed_is_what_is_drawn(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a few tasks diverge, the mean of all is far from it."""
    losses = np.concatenate([np.linspace(1, 3, 1999), [1.4e8]])[None]
    monkeypatch.setattr("icl_lab.baselines.gd_curve.gd_curve", lambda *_: curve)
    curve = {"steps": 1, "layers": 1, **summary(losses), "references": {"ridge": summary(losses / 2)}, "start": None}
    done = ran("analysis.gd_curve", *"--steps 1 --num_tasks 2000 --out gd.json".split())
    assert done.status == 0, done.err
    words = "--gd gd.json --layerwise gd.json --references ridge --out figs"
    assert ran("plots.compare_depth", *words.split()).status == 0
    drawn = read_csv(Path("figs/compare_gd_vs_transformer.csv"), ("loss",), ("statistic",)).set_index("series")
    printed = {line.split()[0]: float(line.split("±")[0].split()[-1]) for line in done.out.splitlines()[1:]}
    assert printed == {"step": pytest.approx(2, abs=0.01), "ridge": pytest.approx(1, abs=0.01)}
    assert drawn["loss"]["Gradient descent"] == pytest.approx(printed["step"], rel=1e-3)
    assert drawn["loss"]["Ridge (Bayes)"] == pytest.approx(printed["ridge"], rel=1e-3)
    assert all(statistic in done.out for statistic in drawn["statistic"])
    assert "mean 7e+04" in done.out
