"""Rules that end a training: what they read, and at which record they end it, against a search over the whole curve."""

import math

import numpy as np
import pytest

from icl_lab.families.regression.config import RegressionConfig
from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.configs.stopping import Stopping, condition_of, reason_of
from icl_lab.src.checks import ConfigError


def records(losses: list[float | None]) -> list[dict[str, float | None]]:
    return [{"step": 10 * index, "train_loss": 1.0, "eval_loss": loss} for index, loss in enumerate(losses)]


def ends_at(losses: list[float | None], stop_when: str = "", patience: int = 0) -> int | None:
    """The index of the record at which a rule ends a training."""
    rule = Stopping(stop_when, patience)
    return next((index for index, record in enumerate(records(losses)) if rule.reason(record)), None)


@pytest.mark.parametrize("patience", [1, 2, 4])
def test_patience_ends_a_training_so_many_records_after_its_best(patience: int) -> None:
    rng = np.random.default_rng(patience)
    for _ in range(200):
        losses = [*map(float, rng.integers(0, 6, size=12))]
        so_far = [int(np.argmin(losses[: index + 1])) for index in range(12)]
        expected = next((index for index in range(12) if index - so_far[index] >= patience), None)
        assert ends_at(losses, patience=patience) == expected, losses


@pytest.mark.parametrize(
    ("text", "losses", "expected"),
    [
        ("eval_loss < 2", [1.0, 2.0, 3.0, 1.9], 3),  # that of step 0 ends nothing
        ("eval_loss <= 2", [9.0, 2.0], 1),
        ("eval_loss > 2.5e0", [9.0, 2.5, 3.0], 2),
        ("eval_loss>=3", [9.0, 2.5, 3.0], 2),
        ("eval_loss < 2", [9.0, math.nan, None, 3.0], None),
    ],
)
def test_a_condition_ends_a_training_at_the_first_record_at_which_it_holds(
    text: str, losses: list[float | None], expected: int | None
) -> None:
    assert ends_at(losses, text) == expected


def test_a_value_that_is_missing_is_no_better_one() -> None:
    assert ends_at([3.0, None, math.nan, 1.0], patience=2) == 2


@pytest.mark.parametrize("column", ["test_loss", "headline_loss", "step", "llc"])
def test_the_test_set_is_not_looked_at(column: str) -> None:
    with pytest.raises(ConfigError, match=f"stop_when reads '{column}'; .* never its test set"):
        RegressionConfig(stop_when=f"{column} < 1")


@pytest.mark.parametrize("text", ["eval_loss", "eval_loss < x", "eval_loss < nan", "< 1", "eval_loss == 1", "a b < 1"])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"it must be a condition such as 'eval_loss < 0\.1'"):
        condition_of(text)


def test_a_column_that_the_records_lack_is_named_with_those_they_have() -> None:
    with pytest.raises(ConfigError, match="reads 'eval_los'; the records of this run have train_loss, eval_loss"):
        ends_at([1.0], "eval_los < 1")


def test_the_reason_is_in_words() -> None:
    assert reason_of("eval_loss < 2", 0, records([9.0, 1.5])) == "eval_loss is 1.5, < 2"
    assert reason_of("", 2, records([9.0, 1.5, 2.0, 3.0])) == (
        "no better eval_loss in the last 2 records than 1.5 at step 10"
    )
    assert reason_of("", 0, records([9.0, 9.5])) == ""


def test_a_rule_is_in_the_id() -> None:
    ids = {config_id(RegressionConfig(**rule)) for rule in ({}, {"stop_when": "eval_loss < 1"}, {"patience": 3})}
    assert len(ids) == 3


def test_a_rule_is_one_rule_however_it_is_spaced() -> None:
    configs = [RegressionConfig(stop_when=text) for text in ("eval_loss < 0.1", "eval_loss<0.10", " eval_loss <1e-1 ")]
    assert {config.stop_when for config in configs} == {"eval_loss < 0.1"}
    assert len({config_id(config) for config in configs}) == 1
