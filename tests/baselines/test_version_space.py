import numpy as np
import pytest

from icl_lab.baselines.version_space import CHUNK, any_language, version_space


def by_hand(members: list[list[bool]], strings: list[int], labels: list[float]) -> float:
    """The mean of the query's labels over the languages with the fewest errors."""
    *context, query = strings
    errors = [
        sum((1 if language[string] else -1) != label for string, label in zip(context, labels, strict=True))
        for language in members
    ]
    best = [language for language, wrong in zip(members, errors, strict=True) if wrong == min(errors)]
    return sum(1 if language[query] else -1 for language in best) / len(best)


@pytest.mark.parametrize(("languages", "pairs"), [(1, 3), (3, 1), (5, 4), (40, 6)])
def test_it_is_the_mean_over_the_languages_that_fit_best(languages: int, pairs: int) -> None:
    rng = np.random.default_rng(languages)
    members = rng.random((languages, 30)) < 0.4
    strings = rng.integers(30, size=(300, pairs + 1))
    true = members[rng.integers(languages, size=300)[:, None], strings[:, :-1]]
    flipped = rng.random(true.shape) < np.linspace(0, 1, 300)[:, None]  # from none to all: of no language
    y = np.where(true ^ flipped, 1.0, -1.0)
    expected = [by_hand(members.tolist(), row, own) for row, own in zip(strings.tolist(), y.tolist(), strict=True)]
    np.testing.assert_allclose(version_space(members, strings, y), expected, rtol=1e-12)  # a mean of whole numbers


def test_three_languages() -> None:
    """Strings 0 to 3; the first two languages differ in string 2 alone, the third has none of theirs."""
    members = np.array([[1, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]], bool)
    strings = np.array([[0, 1, 2], [0, 2, 2], [3, 3, 2], [3, 3, 3], [0, 3, 0]])
    y = np.array([[1, 1], [1, -1], [1, 1], [-1, 1], [1, 1]])
    # undecided; the second; the third; one error each, of which the third has the query; the same, two have it
    np.testing.assert_allclose(version_space(members, strings, y), [0, -1, -1, -1 / 3, 1 / 3])


def test_tasks_beyond_a_chunk_are_as_those_in_it() -> None:
    rng = np.random.default_rng(0)
    members, strings = rng.random((6, 20)) < 0.5, rng.integers(20, size=(CHUNK + 100, 5))
    y = np.where(rng.random((CHUNK + 100, 4)) < 0.5, 1.0, -1.0)
    found = version_space(members, strings, y)
    np.testing.assert_array_equal(found[CHUNK - 50 :], version_space(members, strings[CHUNK - 50 :], y[CHUNK - 50 :]))
    for task in (0, CHUNK - 1, CHUNK, CHUNK + 99):
        expected = by_hand(members.tolist(), strings[task].tolist(), y[task].tolist())
        assert found[task] == pytest.approx(expected, rel=1e-12)


def test_any_language_asks_whether_one_has_the_query() -> None:
    members = np.array([[1, 0, 0, 0], [1, 1, 0, 0]], bool)
    strings = np.array([[3, 0], [0, 1], [0, 2], [1, 3]])
    np.testing.assert_array_equal(any_language(members, strings), [1, 1, -1, -1])
