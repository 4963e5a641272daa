"""Losses of a prompt and continuations against the model's own logits, in windows and out of them."""

from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from scipy.special import log_softmax

from icl_lab.analysis import generate, vocabulary
from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.families.tokens.config import TokensConfig
from icl_lab.families.tokens.data import TokenData
from icl_lab.families.tokens.task import make_model
from icl_lab.src.batch import TokenBatch
from icl_lab.src.prng import key
from icl_lab.store import layout
from icl_lab.store.readers import StoreError

SYMBOLS, LENGTH = 7, 9
PROMPT = np.random.default_rng(0).integers(SYMBOLS, size=23).tolist()


@pytest.fixture(params=[False, True], ids=["plain", "start symbol"])
def loaded(request: pytest.FixtureRequest) -> LoadedRun:
    """A model with learned positions and large random weights, so that every symbol it reads counts."""
    config = TokensConfig(data=TokenData(num_symbols=SYMBOLS, num_tokens=LENGTH, start_token=request.param))
    config = replace(
        config, model=replace(config.model, d_model=16, num_heads=2, embedding_std=1.0, positions="learned")
    )
    model = make_model(config)
    return LoadedRun(Path("none"), config, model, model.init(key(0)), None)


def logits(loaded: LoadedRun, before: list[int]) -> np.ndarray:
    """Of what follows the last symbols that fit, as the model says them: on a full batch, padded with others."""
    start = [SYMBOLS] if loaded.config.data.start_token else []
    read = before[-(LENGTH - 1) :]
    padded = np.array([[*start, *read, *[3] * (LENGTH - 1 - len(read))]], np.int32)
    said = loaded.model.predict(loaded.params, TokenBatch(jax.numpy.asarray(padded), padded[:, -(LENGTH - 1) :]))
    return np.asarray(said, np.float64)[0, len(read) - 1]


@pytest.mark.parametrize("length", [1, 2, LENGTH - 1, LENGTH, LENGTH + 1, len(PROMPT)])
def test_losses_are_of_the_symbols_before_that_fit(length: int, loaded: LoadedRun) -> None:
    found = generate.prompt_losses(loaded, PROMPT[:length])
    wanted = [-log_softmax(logits(loaded, PROMPT[:at]))[PROMPT[at]] for at in range(1, length)]
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert len(set(np.round(found, 4))) >= 0.8 * len(found)


def test_at_temperature_0_each_symbol_is_the_most_likely_one(loaded: LoadedRun) -> None:
    wanted = list(PROMPT[:5])
    for _ in range(12):  # beyond what fits
        wanted.append(int(logits(loaded, wanted).argmax()))
    assert generate.continuation(loaded, PROMPT[:5], 12, temperature=0) == wanted[5:]
    assert generate.continuation(loaded, PROMPT[:5], 12, seed=3, temperature=1e-6) == wanted[5:]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_symbols_come_as_often_as_they_are_likely(temperature: float, monkeypatch: pytest.MonkeyPatch) -> None:
    likely = np.array([0.5, 0.3, 0.15, 0.05])
    monkeypatch.setattr(generate, "next_log_probabilities", lambda loaded, symbols: np.log(likely))
    found = generate.continuation(None, [0], 20_000, seed=1, temperature=temperature)  # type: ignore[arg-type]
    wanted = likely ** (1 / temperature) / np.sum(likely ** (1 / temperature))
    np.testing.assert_allclose(np.bincount(found, minlength=4) / 20_000, wanted, atol=4 * 0.5 / np.sqrt(20_000))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"letters": ["a", "b"], "merges": ["0 1"]}', ""),
        ('{"letters": ["a", "b"], "merges": ["0 2"]}', "is not a vocabulary"),
        ('{"letters": ["a", "a"], "merges": ["0 1"]}', "is not a vocabulary"),
        ('{"letters": ["a", "bc"], "merges": ["0 1"]}', "is not a vocabulary"),
        ('{"letters": ["a", 1], "merges": ["0 1"]}', "is not a vocabulary"),
        ('{"letters": ["a", "b"]}', "is not a vocabulary"),
        ('{"letters": ["a", "b"], "merges": []}', "has 2 symbols, but the run has 3"),
    ],
)
def test_a_vocabulary_that_is_none_is_named(content: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is missing; it says what the numbers of the run's symbols mean"):
        vocabulary.read(tmp_path, 3)
    (tmp_path / layout.VOCABULARY).parent.mkdir()
    (tmp_path / layout.VOCABULARY).write_text(content)
    if words:
        with pytest.raises(StoreError, match=words):
            vocabulary.read(tmp_path, 3)
    else:
        known = vocabulary.read(tmp_path, 3)
        assert known.symbols == ("a", "b", "ab")
        assert known.encode("bab").tolist() == [1, 2]
