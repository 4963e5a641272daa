import jax
import jax.numpy as jnp
import numpy as np

from icl_lab.families.languages.contexts import Drawn, coded, draw, drawn_from

TASKS, PAIRS, SHARE = 6000, 4, 0.3
POSITIVES, NEGATIVES = jnp.arange(15).reshape(3, 5), jnp.arange(15, 30).reshape(3, 5)


def drawn(seed: int = 0) -> Drawn:
    return drawn_from(jax.random.key(seed), {"positives": POSITIVES, "negatives": NEGATIVES}, TASKS, PAIRS, SHARE)


def test_a_string_is_of_the_tasks_language_and_of_its_label() -> None:
    found = drawn()
    positive = np.asarray(found.labels) == 1
    assert set(np.unique(found.labels)) == {-1.0, 1.0}
    np.testing.assert_array_equal(np.asarray(found.strings) < 15, positive)
    np.testing.assert_array_equal(np.asarray(found.strings) % 15 // 5, np.asarray(found.language)[:, None].repeat(5, 1))


def test_languages_labels_and_draws_are_uniform_and_independent() -> None:
    """Every language, label and draw of the pool at every place, within 4.5 standard errors of some 150 shares."""
    found = drawn()
    strings = np.asarray(found.strings)
    chances = np.repeat([SHARE / 15, (1 - SHARE) / 15], 15)
    for place in range(PAIRS + 1):
        shares = np.bincount(strings[:, place], minlength=30) / TASKS
        assert (np.abs(shares - chances) < 4.5 * np.sqrt(chances / TASKS)).all()
    both = np.asarray(found.labels) == 1
    together = (both[:, :-1] & both[:, 1:]).mean(axis=0)
    assert (np.abs(together - SHARE**2) < 4.5 * SHARE / np.sqrt(TASKS)).all()
    again = (strings[:, :-1] % 5 == strings[:, 1:] % 5).mean(axis=0)  # places of the pool, of neighbours
    assert (np.abs(again - 0.2) < 4.5 * 0.4 / np.sqrt(TASKS)).all()


def test_draws_are_of_the_key() -> None:
    inside = jax.jit(draw, static_argnums=(3, 4, 5))(jax.random.key(0), POSITIVES, NEGATIVES, TASKS, PAIRS, SHARE)
    for one, again in zip(drawn(), inside, strict=True):
        np.testing.assert_array_equal(one, again)
    assert (np.asarray(drawn(1).strings) != np.asarray(drawn().strings)).mean() > 0.9


def test_the_query_is_the_last_string() -> None:
    codes = jnp.stack([jnp.arange(30.0), -jnp.arange(30.0)], axis=1)
    strings, labels = jnp.array([[3, 7, 20], [1, 1, 2]]), jnp.array([[1.0, -1.0, 1.0], [-1.0, 1.0, -1.0]])
    batch = coded(Drawn(jnp.array([2, 0]), strings, labels), codes)
    np.testing.assert_array_equal(batch.x, [[[3, -3], [7, -7]], [[1, -1], [1, -1]]])
    np.testing.assert_array_equal(batch.y, [[1, -1], [-1, 1]])
    np.testing.assert_array_equal(batch.x_query, [[20, -20], [2, -2]])
    np.testing.assert_array_equal(batch.y_query, [1, -1])
    np.testing.assert_array_equal(batch.w, [[2], [0]])
