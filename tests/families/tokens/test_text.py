"""Text in symbols: kept as it was made, windows of passages alone, and held-out windows that nothing else has."""

import os
from collections import Counter
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.families.tokens import text
from icl_lab.families.tokens.corpus import corpus_of, stamp
from icl_lab.src.checks import ConfigError
from icl_lab.src.prng import key

SYMBOLS, LENGTH = 300, 32


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    text._text.cache_clear()
    text._corpus.cache_clear()
    return tmp_path / "cache" / "icl-lab-tokens"


def own(folder: Path, words: str = "the cat sat on the mat and saw a rat; ", count: int = 900) -> Path:
    path = folder / "own.txt"
    rng = np.random.default_rng(0)
    path.write_text("".join(words + "".join(rng.permutation(list("abcdefghij"))) + "\n" for _ in range(count)))
    return path


def test_the_sample_decodes_to_its_text() -> None:
    corpus, found = text.corpus_in(""), text.text_of("", SYMBOLS)
    assert len(found.vocabulary.symbols) == SYMBOLS
    for pieces, symbols in zip(corpus[:3], found[1:], strict=True):
        assert [found.vocabulary.decode(each.tolist()) for each in symbols] == [*pieces]


def test_what_is_kept_is_what_was_made(tmp_path: Path, cache: Path) -> None:
    path = str(own(tmp_path))
    made = text.text_of(path, SYMBOLS)
    assert len([*cache.iterdir()]) == 1
    text._text.cache_clear()
    again = text.text_of(path, SYMBOLS)
    assert again.vocabulary == made.vocabulary
    for one, other in zip(made[1:], again[1:], strict=True):
        assert [piece.tolist() for piece in one] == [piece.tolist() for piece in other]


def test_windows_are_of_one_passage_and_every_place_is_as_likely() -> None:
    passages = (np.arange(10, 20, dtype=np.int32), np.arange(50, 53, dtype=np.int32), np.arange(70, 75, dtype=np.int32))
    vocabulary = text.text_of("", SYMBOLS).vocabulary
    shared = text.stored(text.Text(vocabulary, passages, (), ()), 4)
    arrays = {name: jnp.asarray(array) for name, array in shared.items()}
    found = np.asarray(text.windows(key(0), arrays, 4096, 4))
    np.testing.assert_array_equal(np.diff(found, axis=1), 1)
    first = Counter(found[:, 0].tolist())
    assert sorted(first) == [*range(10, 17), 70, 71]
    # 4096 draws of 9 places: a count of 455 has a standard deviation of 20
    assert all(abs(count - 4096 / 9) < 100 for count in first.values())


def test_a_share_of_windows_is_random_symbols_twice() -> None:
    x = jnp.full((2000, 9), 299, jnp.int32)
    found = np.asarray(text.with_repeated(key(0), x, 0.25, 200))
    changed = (found != 299).any(axis=1)
    assert 0.2 < changed.mean() < 0.3
    np.testing.assert_array_equal(found[changed][:, :4], found[changed][:, 5:])
    assert len(np.unique(found[changed])) == 200


def test_repeats_come_again_after_as_many_symbols_as_each_window_has() -> None:
    """Every distance from the shortest to half a window, so that no head can copy by distance alone."""
    x = jnp.full((4000, 21), 999, jnp.int32)
    found = np.asarray(text.with_repeated(key(0), x, 0.5, 900, shortest=4))
    changed = found[(found != 999).any(axis=1)]
    periods = [next(p for p in range(1, 21) if (row[p:] == row[:-p]).all()) for row in changed]
    counts = Counter(periods)
    assert sorted(counts) == [*range(4, 12)]
    # 2000 draws of 8 periods: a count of 250 has a standard deviation of 15
    assert all(abs(count - len(changed) / 8) < 75 for count in counts.values())


def test_held_out_windows_are_in_no_training_text() -> None:
    found = text.text_of("", SYMBOLS)
    evaluation, test = text.held_out(found, LENGTH)
    assert abs(len(evaluation) - len(test)) <= 1
    together = {row.tobytes() for row in (*evaluation, *test)}
    assert len(together) == len(evaluation) + len(test)
    trained = np.concatenate(found.train).astype(np.int32)
    rows = np.lib.stride_tricks.sliding_window_view(trained, LENGTH)
    assert not together & {row.tobytes() for row in rows}


def test_windows_are_taken_from_all_over_the_text() -> None:
    found = np.arange(100)[:, None]
    assert text.spread(found, 3)[:, 0].tolist() == [0, 50, 99]
    assert text.spread(found, 200) is found


def test_a_text_that_is_too_short_is_said() -> None:
    found = text.text_of("", SYMBOLS)
    with pytest.raises(ConfigError, match="held-out text has fewer than 4 windows of 6000 symbols"):
        text.held_out(found, 6000)
    with pytest.raises(ConfigError, match="no passage of the training text has 1000000 symbols"):
        text.stored(found, 10**6)


def test_a_changed_text_is_read_again(tmp_path: Path, cache: Path) -> None:
    path = own(tmp_path)
    before, was = text.corpus_in(str(path)), stamp(path)
    path.write_text(path.read_text().replace("cat", "dog"))
    os.utime(path, ns=(was[0][1] + 10**9, was[0][1] + 10**9))
    after = text.corpus_in(str(path))
    assert after.digest != before.digest
    assert after == corpus_of(path)


def test_the_most_frequent_characters_are_numbered_by_their_frequency(tmp_path: Path) -> None:
    corpus = text.corpus_in("")
    counts = Counter("".join(corpus.train))
    symbols = text.most_frequent(corpus, 12)
    wanted = sorted(counts.values(), reverse=True)[:12]
    assert np.bincount(symbols).tolist() == wanted
    with pytest.raises(ConfigError, match="distinct characters"):
        text.most_frequent(corpus, 500)


def test_kneser_ney_of_each_order_is_a_model_of_its_own() -> None:
    evaluation, _ = text.held_out(text.text_of("", SYMBOLS), LENGTH)
    losses = [-text.kneser_ney_of("", SYMBOLS, order).log_probabilities(evaluation).mean() for order in (1, 2, 3)]
    assert losses == sorted(losses, reverse=True)
    trained = np.concatenate(text.text_of("", SYMBOLS).train)
    shares = np.bincount(trained, minlength=SYMBOLS) / len(trained)
    at_first = np.exp(text.kneser_ney_of("", SYMBOLS, 1).distributions(evaluation[:1]))[0, 0]
    np.testing.assert_allclose(at_first, shares, atol=2e-5)  # less one discount, spread evenly
