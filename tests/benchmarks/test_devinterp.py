"""The comparison with devinterp: the same models on both sides, how answers are read, the table, and what is refused.

What needs PyTorch and devinterp runs where DEVINTERP_PYTHON names an interpreter that has them.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from jax.flatten_util import ravel_pytree

from icl_lab.benchmarks import devinterp, devinterp_cases, devinterp_page, devinterp_sides
from icl_lab.benchmarks.cases import lsa1
from icl_lab.benchmarks.devinterp_cases import CASES, attention_in_pytorch, decoder_in_pytorch
from icl_lab.benchmarks.devinterp_sides import (
    ALL_DATA,
    BURN_IN,
    FIRST_BATCH,
    SIDES,
    Estimated,
    Measured,
    Process,
    reading,
    readings_of,
    start,
    versions_of,
)
from icl_lab.benchmarks.devinterp_worker import attention_losses, linear_losses
from icl_lab.families.task import model_of
from icl_lab.lab.configs.presets import preset, resolve
from icl_lab.src.checks import UsageError
from icl_lab.src.data import sample_batch
from icl_lab.src.prng import key
from icl_lab.src.sequences import sample_sequences
from icl_lab.store.atomic import write_npz
from icl_lab.store.params import flattened

needs_devinterp = pytest.mark.skipif(
    "DEVINTERP_PYTHON" not in os.environ, reason="DEVINTERP_PYTHON names no interpreter with PyTorch and devinterp"
)


# --- the same models ---


@pytest.fixture(scope="module")
def linear(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the linear net."""
    folder = tmp_path_factory.mktemp("linear")
    devinterp_cases.write("linear", folder / "linear.npz", folder)
    return folder / "linear.npz"


def test_the_linear_net_is_the_same_function_on_both_sides(linear: Path) -> None:
    """And at w* its loss is its labels' noise: 5 outputs of variance .01, halved; 4096 samples, 4 standard errors."""
    problem = devinterp_cases.read(linear)
    ours = np.asarray(problem.losses(problem.params, problem.data))
    with np.load(linear) as file:
        arrays = dict(file)
    params = {name: arrays[f"params:{name}"] for name in problem.params}
    theirs = linear_losses(params, arrays["torch:inputs"], arrays["torch:targets"], SimpleNamespace())
    np.testing.assert_allclose(theirs, ours, rtol=1e-4, atol=1e-6)
    assert ours.mean() == pytest.approx(0.025, abs=4 * 0.01 * np.sqrt(5 / 2 / 4096))
    assert sum(np.size(value) for value in params.values()) == 27


def test_the_linear_net_has_18_curved_directions(linear: Path) -> None:
    """Rank 3 of a 4 x 5 matrix: 3 (4 + 5 - 3) = 18, so lambda is 9."""
    problem = devinterp_cases.read(linear)
    h = np.linalg.eigvalsh(hessian(problem))
    assert (h > 1).sum() == 18
    assert np.abs(h[:9]).max() < 0.05  # what the noise leaves


def hessian(problem: devinterp_cases.Ours) -> np.ndarray:
    """The Hessian of the mean loss at w*."""
    vector, restore = ravel_pytree(problem.params)
    return np.asarray(jax.hessian(lambda w: problem.losses(restore(w), problem.data).mean())(vector))


def test_the_attention_is_the_same_function_on_both_sides() -> None:
    """Written out against the model, with weights that move predictions; float32."""
    config = lsa1(init_scale=0.5)
    model, batch = model_of(config), sample_batch(key(1), config.data, 30)
    params = model.init(key(0))
    fields, tokens = attention_in_pytorch(config, batch)
    flat = {name: np.asarray(value) for name, value in flattened(params).items()}
    theirs = attention_losses(flat, tokens, np.asarray(batch.y_query), SimpleNamespace(**fields["model"]))
    assert np.abs(model.predict(params, batch)).max() > 1e-3
    np.testing.assert_allclose(theirs, model.losses(params, batch), rtol=1e-4, atol=1e-6)


# --- how answers are read ---


SETTINGS = {"nbeta": 100.0, "burn_in": 2, "chains": 2}


def test_losses_of_draws_are_read_with_three_baselines() -> None:
    """L(w*) is .5 and the first batch's loss .4; devinterp's value is of all draws."""
    trace = np.array([[0.5, 0.55, 0.6, 0.62], [0.5, 0.57, 0.64, 0.66]])
    answer = {"trace": trace.tolist(), "value": 100 * (trace.mean() - 0.4), "error": 1.0}
    found = readings_of(answer, SETTINGS, 0.5)
    assert found[ALL_DATA].value == pytest.approx(13)  # 100 (.63 - .5)
    np.testing.assert_allclose(found[ALL_DATA].means, [11, 15])
    assert found[ALL_DATA].error == pytest.approx(2)  # 4 / sqrt(2) / sqrt(2)
    assert found[FIRST_BATCH].value == pytest.approx(23)
    assert found[FIRST_BATCH].error == pytest.approx(2)  # its error does not show the baseline's
    assert found[BURN_IN].value == pytest.approx(100 * (trace.mean() - 0.5))


def test_a_turn_asks_each_side_by_turns_with_other_seeds(linear: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cold estimate of each in a fresh process, then warm ones; the next turn begins with the other library."""
    asked: list[tuple[int, int]] = []

    class Fake:
        def __init__(self, number: int) -> None:
            self.number, self.began, self.cpu = number, 0.0, 0.0

        def __enter__(self) -> "Fake":
            return self

        def __exit__(self, *_: object) -> None:
            closed.append(self.number)

        def ask(self, name: str, seed: int, **_: Any) -> Mapping[str, Any]:
            asked.append((self.number, seed))
            self.cpu += 2.0
            return {"value": 1.0, "error": 0.1, "means": [0.9, 1.1]}

    closed: list[int] = []
    began: list[bool] = []

    def fresh(ours: bool, *_: Any) -> Fake:
        began.append(ours)
        return Fake(len(began))

    monkeypatch.setattr(devinterp_sides, "start", fresh)
    turns = [list(devinterp_sides.one_turn("linear", "python", linear, 1, turn, 2, 0.5)) for turn in (0, 1)]
    assert [each.cold for each in turns[0]] == [True] * 4 + [False] * 7
    without = [side for side in SIDES if side != "ours, predicted"]  # which makes one warm estimate
    assert [each.side for each in turns[0]] == list(SIDES) * 2 + without
    assert [each.side for each in turns[1]] == list(SIDES)[::-1] * 2 + without[::-1]
    assert {each.cpu for turn in turns for each in turn} == {2.0}
    assert began == [True, True, False, False, False, False, True, True]
    assert sorted(closed) == list(range(1, 9))
    assert [number for number, _ in asked[:8]] == [1, 2, 3, 4, 1, 2, 3, 4]
    assert sorted({seed for _, seed in asked}) == list(range(6))


# --- the table ---


def estimated(side: str, turn: int, cold: bool, value: float, seconds: float) -> Estimated:
    """An estimate whose chains are `value` - 1 and + 1, and those of its three readings."""
    shifts = {ALL_DATA: 0.0} if side.startswith("ours") else {ALL_DATA: 0.0, FIRST_BATCH: 10.0, BURN_IN: -1.0}
    readings = {name: reading(np.array([value - 1, value + 1]) + shift) for name, shift in shifts.items()}
    return Estimated(side, turn, cold, seconds, 2 * seconds, readings)


@pytest.fixture
def measured() -> Measured:
    """devinterp takes 40 times as long warm and half as long cold; both have the same variance."""
    warm = dict(zip(SIDES, (1.0, 2.0, 40.0, 80.0), strict=True))
    cold = dict(zip(SIDES, (10.0, 12.0, 5.0, 10.0), strict=True))
    estimates = [
        estimated(side, turn, number == 0, 5.0 + 0.5 * (-1) ** number, cold[side] if number == 0 else warm[side])
        for turn in range(2)
        for number in range(3)
        for side in SIDES
    ]
    return Measured(estimates, (5.0, 0.1), 1, 1e-6)


def test_ratios_are_of_times_at_equal_errors(measured: Measured) -> None:
    rows = {row["estimator"]: row for row in devinterp_page.rows_of("linear", measured)}
    theirs = rows[devinterp_page.TARGETED]
    assert theirs["warm_seconds_faster"] == theirs["warm_cpu_faster"] == pytest.approx(40)
    assert theirs["cold_seconds_faster"] == pytest.approx(0.5)
    assert (theirs["warm_met"], theirs["cold_met"]) == (True, False)
    assert rows["ours, with the quadratic prediction"]["warm_seconds_faster"] == pytest.approx(2)
    assert "warm_seconds_faster" not in rows["ours"]
    assert "warm_seconds" not in rows["devinterp, its default baseline"]


def test_a_larger_variance_costs_time(measured: Measured) -> None:
    """Chains twice as far apart have four times the variance, and need four times as many."""
    wide = [
        each._replace(readings={name: reading(2 * found.means) for name, found in each.readings.items()})
        if each.side == "devinterp"
        else each
        for each in measured.estimates
    ]
    rows = devinterp_page.rows_of("linear", measured._replace(estimates=wide))
    theirs = next(row for row in rows if row["estimator"] == devinterp_page.TARGETED)
    assert theirs["warm_seconds_faster"] == pytest.approx(160)


def test_errors_are_against_the_reference(measured: Measured) -> None:
    """Six estimates of 4.5 or 5.5 with own errors of 1, around 5; the default baseline is off by 10."""
    rows = {row["estimator"]: row for row in devinterp_page.rows_of("linear", measured)}
    ours, default = rows["ours"], rows["devinterp, its default baseline"]
    assert (ours["estimates"], ours["beyond_3"]) == (6, 0)
    assert ours["rmse"] == pytest.approx(0.5)
    assert ours["own_error"] == pytest.approx(1)
    assert (default["estimates"], default["beyond_3"]) == (6, 6)
    assert default["off"] == pytest.approx(10, abs=0.2)


def test_page_and_table_are_written(
    measured: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missed target is there as it is."""
    theirs = {"Python": "3.11.7", "devinterp": "1.3.2", "torch": "2.0", "numpy": "2.0"}
    monkeypatch.setattr(devinterp_sides, "versions_of", lambda python: theirs)
    monkeypatch.setattr(devinterp_sides, "measure", lambda *_: measured)
    devinterp.main(["--python", "python", "--models", "linear", "--out", str(tmp_path), "--quiet"])
    page = (tmp_path / "devinterp.md").read_text()
    assert page.count("40 (40 to 40)") == 2
    assert "30: met" in page
    assert "1: **missed**" in page
    assert "takes 40 times our CPU seconds in a warm process, and 0.5 times in a cold one" in page
    assert "6 of 6 estimates miss the reference" in page
    assert "PyTorch 2.0" in page
    assert "linear net, 27 parameters" in page
    assert "40 (40 to 40)" in capsys.readouterr().out
    table = pd.read_csv(tmp_path / "devinterp.csv").set_index("estimator")
    assert list(table.index) == list(devinterp_page.ESTIMATORS.values())
    assert table.warm_seconds_faster[devinterp_page.TARGETED] == pytest.approx(40)


# --- what is refused ---


def says(folder: Path, text: str, status: int = 0) -> str:
    """An interpreter that prints a text, whatever it is asked."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\necho '{text}'\nexit {status}\n")
    path.chmod(0o755)
    return str(path)


def test_a_missing_environment_is_one_sentence_with_the_command(tmp_path: Path) -> None:
    command = "-m pip install torch devinterp==1.3.2"
    with pytest.raises(UsageError, match=f"none cannot be run; .* {command}"):
        versions_of(str(tmp_path / "none"))
    with pytest.raises(UsageError, match=f"lacks devinterp 1.3.2 and PyTorch; .* {command}"):
        versions_of(says(tmp_path, "", 1))
    other = json.dumps({"devinterp": "2.0.0"})
    with pytest.raises(UsageError, match=f"has devinterp 2.0.0, but 1.3.2 is compared; .* {command}"):
        versions_of(says(tmp_path, other))


def test_an_unknown_model_is_named_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="unknown model lsa, did you mean lsa1"):
        devinterp.main(["--python", "python", "--models", "lsa"])


def test_a_process_that_ends_says_why() -> None:
    with Process(["sh", "-c", "echo no memory >&2; exit 3"]) as process, pytest.raises(RuntimeError, match="no memory"):
        process.ask("losses")


# --- with devinterp ---


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the linear net with 3 chains of 40 + 60 draws."""
    short = {"batch_size": 64, "chains": 3, "burn_in": 40, "draws": 60}
    monkeypatch.setattr(devinterp_cases, "CHAINS", short)
    devinterp_cases.write("linear", tmp_path / "small.npz", tmp_path)
    return tmp_path / "small.npz"


@needs_devinterp
def test_devinterp_is_read_as_it_reads_itself(small: Path) -> None:
    """Its own burn-in is what is cut off here, and its value tells its baseline; float32, so 1e-3."""
    with start(False, os.environ["DEVINTERP_PYTHON"], small, 1) as process:
        at_centre = float(np.mean(process.ask("losses")["losses"]))
        over_all = process.ask("estimate", seed=3, replacement=False, burn_in=40, init_loss=at_centre)
        default = process.ask("estimate", seed=3, replacement=False, burn_in=40)
        whole = process.ask("estimate", seed=3, replacement=False)
    found = readings_of(whole, CASES["linear"].settings, at_centre)
    assert np.shape(whole["trace"]) == (3, 100)
    for name, own in ((ALL_DATA, over_all), (FIRST_BATCH, default)):
        assert found[name].value == pytest.approx(own["value"], abs=1e-3)
        assert found[name].error == pytest.approx(own["error"], rel=1e-3)
    assert abs(default["value"] - over_all["value"]) > 0.01


@needs_devinterp
def test_the_reference_is_the_quadratic_value(small: Path) -> None:
    """Half the sum of nbeta h / (nbeta h + gamma), which steps and batches change by 1 %; 5 standard errors."""
    problem = devinterp_cases.read(small)
    h = np.linalg.eigvalsh(hessian(problem))
    expected = 0.5 * float(np.sum(100 * h / (100 * h + 10)))
    with start(False, os.environ["DEVINTERP_PYTHON"], small, 1) as process:
        found = process.ask("reference", chains=32, burn_in=200, draws=400)
    assert found["error"] < 0.25
    assert found["value"] == pytest.approx(expected, abs=5 * found["error"] + 0.01 * expected)


@needs_devinterp
def test_the_decoder_is_the_same_function_on_both_sides(tmp_path: Path) -> None:
    """Losses in PyTorch against ours, of weights that are no longer those of the initialisation; float32."""
    config = resolve(preset("tiny"))
    model = model_of(config)
    rng = np.random.default_rng(0)
    params = jax.tree.map(lambda leaf: leaf + 0.1 * rng.standard_normal(leaf.shape), model.init(key(0)))
    batch = sample_sequences(key(1), key(2), config.data, 20, 16)[0]
    fields, tokens = decoder_in_pytorch(config, batch)
    arrays = {f"params:{name}": np.asarray(value, np.float32) for name, value in flattened(params).items()}
    arrays |= {"torch:inputs": tokens, "torch:targets": np.asarray(batch.y_query)}
    write_npz(tmp_path / "tiny.npz", {"settings": np.array(json.dumps(fields)), **arrays})
    with start(False, os.environ["DEVINTERP_PYTHON"], tmp_path / "tiny.npz", 1) as process:
        theirs = process.ask("losses")["losses"]
    np.testing.assert_allclose(theirs, model.losses(params, batch), rtol=1e-4)
