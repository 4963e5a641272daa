"""What is predicted of the order and noise study: on few tasks, against a published table, and as committed."""

import json
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from icl_lab.src.data_config import DataConfig
from icl_lab.src.one_step import one_step_loss, one_step_size
from icl_lab.store import outputs
from icl_lab.store.readers import StoreError
from icl_lab.studies.contrast import CLEAN, Condition, Context, Contrast
from icl_lab.studies.ledger import WRITER
from icl_lab.studies.order_noise import predictions as module
from icl_lab.studies.order_noise.measures import CONTRASTS, POSITIONS
from icl_lab.studies.order_noise.predictions import Predictions, jackknife_error, predicted_contrasts, rows, step_rows
from tests.doors import Ran, ran
from tests.runners.tiny import ROOT

__all__ = ["ran"]

FOLDER = ROOT / "report" / module.FOLDER
SIGMAS = 4.0
EASY = Context("easy2hard")
# Changes that theory gives of models with a step size for each position, from fits on some 10 000 tasks: to .01
# between orders, to .001 between placements of label noise, p = .25.
ORDERS = {
    "trained easy2hard, tested easy2hard": -0.09,
    "trained easy2hard, tested random": 0.115,
    "trained hard2easy, tested hard2easy": -0.09,
    "trained hard2easy, tested random": 0.12,
    "trained smallnorm2largenorm, tested smallnorm2largenorm": -0.026,
    "trained smallnorm2largenorm, tested random": 0.045,
}
PLACES = {
    "trained clean_first, tested clean_first": -0.0041,
    "trained clean_first, tested noisy_first": 0.0084,
    "trained noisy_first, tested clean_first": 0.0085,
    "trained noisy_first, tested noisy_first": -0.0045,
}


@lru_cache
def few() -> Predictions:
    return Predictions(tasks=8000, sets=20)


def of(question: str, name: str) -> Contrast:
    return next(contrast for contrast in CONTRASTS if (contrast.question, contrast.name) == (question, name))


def change_and_error(contrast: Contrast) -> tuple[float, float]:
    change = few().change(contrast)
    return float(change[0]), float(jackknife_error(change))


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    values = np.random.default_rng(0).normal(size=(12, 3))
    left_out = module._left_out(values)
    np.testing.assert_allclose(left_out[0], values.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(left_out[3], np.delete(values, 2, axis=0).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(jackknife_error(left_out), values.std(axis=0, ddof=1) / np.sqrt(12), rtol=1e-12)


def test_every_contrast_of_losses_without_a_baseline_that_knows_more_is_predicted() -> None:
    own = [(contrast.question, contrast.name) for contrast in predicted_contrasts()]
    assert len(set(own)) == len(own)
    left_out = [
        contrast for contrast in CONTRASTS if contrast.unit == "loss" and (contrast.question, contrast.name) not in own
    ]
    assert left_out
    for contrast in left_out:  # a step size for each position is the prediction itself
        assert contrast.name.endswith(("/ linear_mmse", "/ mask_bayes")) or contrast.question == POSITIONS
    lacking = pd.Series([question for question, name in own if (question, name) not in _names_of_the_study()])
    assert dict(lacking.value_counts()) == {
        "order trained x order tested": 12,
        "order trained x order tested, label_noise 0.25": 12,
        "placement trained x placement tested, label_noise 0.25": 6,
        "placement trained x placement tested, random_pairs 0.25": 6,
    }


def _names_of_the_study() -> set[tuple[str, str]]:
    return {(contrast.question, contrast.name) for contrast in CONTRASTS}


@pytest.mark.parametrize("name", ORDERS)
def test_orders_are_worth_what_theory_says(name: str) -> None:
    change, error = change_and_error(of("order in training", f"twolayer: {name}"))
    assert error < 0.005
    assert abs(change - ORDERS[name]) < SIGMAS * error + 0.01


@pytest.mark.parametrize("name", PLACES)
def test_placements_are_worth_what_theory_says(name: str) -> None:
    change, error = change_and_error(of("placement", f"twolayer: {name}"))
    assert error < 0.002
    assert abs(change - PLACES[name]) < SIGMAS * error + 0.001


@pytest.mark.parametrize("model", ["lsa1", "lsa1_pe"])
def test_one_step_size_for_all_positions_knows_no_order(model: str) -> None:
    """The same pairs in another order: the sums of gradient descent do not change, but for their last bits."""
    for name in ORDERS:
        change, _ = change_and_error(of("order in training", f"{model}: {name}"))
        assert abs(change) < 1e-9


def test_trained_in_random_order_no_order_matters_to_any_model() -> None:
    for contrast in CONTRASTS:
        if contrast.question == "order at evaluation":
            assert abs(change_and_error(contrast)[0]) < 1e-9


def test_gradient_descent_has_the_closed_forms_loss() -> None:
    data = DataConfig()
    loss = few().value(Condition("lsa1", CLEAN, CLEAN, "test_gd_loss"))
    assert loss[0] == pytest.approx(one_step_loss(data, one_step_size(data)), abs=SIGMAS * float(jackknife_error(loss)))
    np.testing.assert_allclose(loss, few().value(Condition("lsa1")), rtol=1e-12)


def test_a_step_tuned_on_noise_gains_on_it_what_its_closed_form_says() -> None:
    """Random pairs, p = .5: .3449 clean-tuned against .3368, so trained clean is 2.4 % above the tuned step."""
    noise = Context(noise_mode="random_pairs", p=0.5)
    contrast = of("noise at evaluation", "lsa1: random_pairs 0.5 / gd_tuned_step")
    change, error = change_and_error(contrast)
    assert change == pytest.approx(0.3449 / 0.3368 - 1, abs=SIGMAS * error + 0.0005)
    trained = Condition("lsa1", noise, noise)
    np.testing.assert_allclose(few().value(trained), few().value(trained._replace(column="test_gd_tuned_step_loss")))


def test_a_row_says_what_is_compared() -> None:
    by_gd_error = "twolayer: easy2hard by gd_error"
    (row,) = rows(few(), [of("order x noise", by_gd_error)])
    expected = {
        "question": "order x noise",
        "contrast": by_gd_error,
        "trained": "random",
        "tested": "easy2hard by gd_error label_noise 0.25",
        "noise": "label_noise",
        "p": 0.25,
    }
    assert {name: row[name] for name in expected} == expected
    (row,) = rows(few(), [of("placement", "twolayer: trained as tested / trained the other way")])
    placed = "random label_noise 0.25 clean_first; random label_noise 0.25 noisy_first"
    assert (row["trained"], row["tested"]) == (placed, placed)
    assert row["low"] < row["predicted_change"] < row["high"] < 0


def test_step_sizes_are_those_of_the_training_contexts_once_each() -> None:
    contrast = of("order in training", "twolayer: trained easy2hard, tested random")
    found = pd.DataFrame(step_rows(few(), [contrast, contrast]))
    assert list(found["condition"]) == ["easy2hard"] * 10 + ["random"] * 10
    assert list(found["position"]) == [*range(1, 11)] * 2
    assert found["c"][:10].is_monotonic_increasing
    assert found["c"][10:].nunique() == 1
    np.testing.assert_allclose(found["c"][:10], few().step_sizes("twolayer", EASY)[0], rtol=1e-5)


def test_the_command_writes_the_same_bytes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of one contrast; into files that are its own, and no others."""
    contrast = of("order in training", "twolayer: trained easy2hard, tested random")
    monkeypatch.setattr(module, "predicted_contrasts", lambda: [contrast])
    words = ["--report", str(tmp_path), "--tasks", "800"]
    files, contents = [tmp_path / module.FOLDER / name for name in (module.PREDICTIONS, module.STEPS)], []
    for _ in range(2):
        module.main(words)
        contents.append([path.read_bytes() for path in files])
    assert contents[0] == contents[1]
    assert capsys.readouterr().out == f"{files[0]}: 1 rows\n{files[1]}: 20 rows\n" * 2
    recorded = [json.loads(line) for line in files[0].with_name(outputs.RECORD).read_text().splitlines()]
    assert [(entry["file"], entry["writer"]) for entry in recorded] == [(path.name, WRITER) for path in files]
    files[0].write_text("mine")
    with pytest.raises(StoreError, match=f"was not written by {WRITER}, or has been changed since"):
        module.main(words)
    assert files[0].read_text() == "mine"


@pytest.mark.parametrize("tasks", [-40, 0, 400, 1001])
def test_a_number_of_tasks_that_does_not_divide_is_refused(ran: Ran, tasks: int, tmp_path: Path) -> None:
    done = ran("studies.order_noise.predictions", "--report", tmp_path / "report", "--tasks", tasks)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    said = (
        f"tasks is {tasks}; it must be a multiple of 40 above 400" if tasks > 1 else f"'{tasks}' is not a whole number"
    )
    assert said in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def committed() -> pd.DataFrame:
    """The committed predictions, by contrast."""
    return pd.read_csv(FOLDER / module.PREDICTIONS).set_index(["question", "contrast"])


def test_the_committed_predictions_are_of_todays_contrasts_and_precise(committed: pd.DataFrame) -> None:
    names = [(contrast.question, contrast.name) for contrast in predicted_contrasts()]
    assert list(committed.index) == names
    assert ((committed["high"] - committed["low"]) / 2 < 0.003).all()


def test_the_committed_predictions_are_those_of_other_tasks(committed: pd.DataFrame) -> None:
    """Fewer of them, drawn otherwise, as the number of tasks enters each draw: within 4 standard errors of both."""
    for question in ("order in training", "placement", "noise in training"):
        for contrast in CONTRASTS:
            if contrast.question == question and (contrast.question, contrast.name) in committed.index:
                change, error = change_and_error(contrast)
                row = committed.loc[(contrast.question, contrast.name)]
                assert abs(change - row["predicted_change"]) < SIGMAS * error + row["high"] - row["low"] + 1e-9, (
                    contrast
                )
