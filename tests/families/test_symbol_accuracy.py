"""An autoencoder of strings is judged by the symbols that it decodes, not by the pads behind them."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.analysis.trained import with_verdict
from icl_lab.families.autoencoder import task
from icl_lab.families.autoencoder.config import AutoencoderConfig
from icl_lab.families.autoencoder.outputs import summary_lines
from icl_lab.families.summary import shown
from icl_lab.src.batch import StringBatch
from icl_lab.src.model import Model

A, B, PAD = 0, 1, 2
STRINGS = np.full((3, 20), PAD, np.uint8)
STRINGS[0, :2], STRINGS[1, :3], STRINGS[2, :1] = [A, B], [A, A, A], [B]  # 6 symbols of 60 places, 4 of them a


def measured(monkeypatch: pytest.MonkeyPatch, said: list[int], strings: np.ndarray = STRINGS) -> dict[str, Any]:
    """The test set's numbers of a decoder that says these symbols of every string."""
    monkeypatch.setattr(task, "strings_of", lambda *_: StringBatch(jnp.asarray(strings)))
    row = jnp.eye(3)[jnp.asarray(said)]
    model = Model(
        lambda key: {},
        lambda params, batch: jnp.broadcast_to(row, (len(batch.symbols), *row.shape)),
        lambda params, batch: jnp.zeros(len(batch.symbols)),
    )
    return task.test_metrics(
        AutoencoderConfig(test_tasks=len(strings)), model, {}, task.EvalSet(StringBatch(jnp.asarray(strings)), PAD)
    )


@pytest.mark.parametrize(
    ("said", "symbols", "tokens"),
    [([PAD] * 20, 0, 54 / 60), ([A] * 20, 4 / 6, 4 / 60), ([A] + [PAD] * 19, 2 / 6, 56 / 60)],
)
def test_pads_count_as_tokens_and_not_as_symbols(
    said: list[int], symbols: float, tokens: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = measured(monkeypatch, said)
    assert numbers["symbol_accuracy"] == pytest.approx(symbols)
    assert numbers["token_accuracy"] == pytest.approx(tokens)


def test_a_decoder_of_pads_alone_has_not_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    summary = {"headline": measured(monkeypatch, [PAD] * 20)}
    verdict = with_verdict(AutoencoderConfig(), summary)["trained"]
    assert (verdict["met"], verdict["conditions"][0]["value"]) == (False, 0.0)
    printed = summary_lines(shown(summary), Path(), AutoencoderConfig())
    assert [line.split()[-2] for line in printed if "accuracy" in line] == ["0.0000", "0.9000"]


def test_without_symbols_or_in_an_earlier_version_there_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = measured(monkeypatch, [PAD] * 20, np.full((3, 20), PAD, np.uint8))
    assert (empty["symbol_accuracy"], empty["token_accuracy"]) == (None, 1.0)
    for headline, reason in (
        (empty, "all strings of the test set are empty"),
        ({"token_accuracy": 0.99}, "an earlier version wrote the summary, whose token_accuracy counts pads"),
    ):
        verdict = with_verdict(AutoencoderConfig(), {"headline": headline})["trained"]
        assert verdict["met"] is None
        assert verdict["reason"].startswith(reason)
