"""Where all draws have one loss the LLC is a line in the loss, of slope -nbeta; elsewhere it is not."""

import re
from typing import Any

import numpy as np
import pytest

from icl_lab.analysis import llc_saturation
from icl_lab.analysis.llc_saturation import line, settings_of
from icl_lab.lab import cli
from icl_lab.src.checks import ConfigError

LOSSES = (2.0, 1.5, 1.2, 0.9)


def rows(llcs: list[float], nbeta: float = 66.7, verdict: str = "undecided") -> list[dict[str, Any]]:
    """Rows of llc.csv with these estimates at the checkpoints of LOSSES."""
    shared = {"eps": 1e-4, "nbeta": nbeta, "gamma": 5.0, "saturation": 0.5, "verdict": verdict}
    return [
        {"loss": loss, "llc": value, "llc_low": value - 1, "llc_high": value + 1, **shared}
        for loss, value in zip(LOSSES, llcs, strict=True)
    ]


def test_draws_of_one_loss_make_a_line_of_slope_minus_nbeta() -> None:
    found = line("published", rows([66.7 * (2.2 - loss) for loss in LOSSES], verdict="none"))
    assert found.slope == pytest.approx(-66.7)
    assert found.slope_over_minus_nbeta == pytest.approx(1)
    assert found.correlation == pytest.approx(-1)
    assert (found.usable, found.checkpoints) == (0, 4)


def test_an_llc_of_its_own_is_no_line() -> None:
    """NumPy's covariance gives slope and correlation."""
    values = [3.0, 9.0, 2.0, 8.0]
    covariance = np.cov(LOSSES, values)
    found = line("default", rows(values))
    assert found.slope == pytest.approx(covariance[0, 1] / covariance[0, 0])
    assert found.correlation == pytest.approx(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))
    assert abs(found.slope_over_minus_nbeta) < 0.1
    assert (found.usable, found.checkpoints) == (4, 4)


def test_checkpoints_without_an_estimate_are_in_no_line_and_are_counted() -> None:
    values = [66.7 * (2.2 - loss) for loss in LOSSES]
    found = line("published", rows([np.nan, *values[1:]]))
    assert found.slope_over_minus_nbeta == pytest.approx(1)
    assert found.checkpoints == 4


@pytest.mark.parametrize(
    ("own", "sentence"),
    [
        (rows([1.0, 2.0, np.nan, np.nan]), "a line needs 3 checkpoints with an estimate, but x has 2"),
        ([row | {"loss": 1.0} for row in rows([1.0, 2.0, 3.0, 4.0])], "all checkpoints have the same loss"),
    ],
)
def test_what_is_no_line_is_refused(own: list[dict[str, Any]], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        line("x", own)


def test_the_settings_differ_in_eps_and_gamma_alone() -> None:
    found = settings_of({"chains": 3, "draws": 50})
    published, default = vars(found["published"]), vars(found["default"])
    assert {name for name in published if published[name] != default[name]} == {"eps", "gamma"}
    assert np.sqrt(51_717 / published["gamma"]) == pytest.approx(88, abs=0.5)  # the published radius
    assert published["nbeta"] == default["nbeta"] == pytest.approx(2 * 66.67, rel=1e-3)  # of half the squared error
    assert (published["chains"], published["draws"]) == (3, 50)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "--checkpoints sometimes",
            "'sometimes' is not one of all, last, every:K, log:N[:FROM] or steps such as 100,500",
        ),
        ("--chains 1", "argument --chains: '1' is not a whole number from 2 to 4096"),
    ],
)
def test_the_command_refuses(words: str, sentence: str) -> None:
    with pytest.raises(cli.UsageError, match=re.escape(sentence)):
        llc_saturation.COMMAND.read(["--run", "anywhere", *words.split()])
