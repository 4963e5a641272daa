"""Files of one's own contexts: what they hold comes back as it was written, and what is wrong is one sentence."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab.families import own_data
from icl_lab.src.checks import UserError

RANDOM = np.random.default_rng(0)
X, Y = RANDOM.normal(size=(7, 4, 3)), RANDOM.normal(size=(7, 4))


def written(path: Path, **arrays: Any) -> Path:
    """An NPZ of these arrays."""
    np.savez(path, **arrays)
    return path


def table(path: Path, text: str) -> Path:
    """A CSV of this text, whose lines are indented for reading."""
    path.write_text("\n".join(line.strip() for line in text.strip().splitlines()) + "\n")
    return path


def test_a_stack_predicts_the_last_pair_from_the_others_and_a_decoder_every_pair(tmp_path: Path) -> None:
    data = own_data.read(written(tmp_path / "own.npz", x=X, y=Y))
    stack, sequence = own_data.take(data), own_data.take(data, sequences=True)
    np.testing.assert_array_equal(stack.batch.x, X[:, :-1].astype(np.float32))
    np.testing.assert_array_equal(stack.batch.x_query, X[:, -1].astype(np.float32))
    np.testing.assert_array_equal(stack.batch.y_query, Y[:, -1].astype(np.float32))
    np.testing.assert_array_equal(sequence.batch.x, X.astype(np.float32))
    np.testing.assert_array_equal(sequence.batch.y_query, Y.astype(np.float32))
    assert (own_data.pairs_of(data, None), own_data.pairs_of(data, None, sequences=True)) == (3, 4)


def test_a_query_of_the_file_is_a_stacks_query_and_a_sequences_last_pair(tmp_path: Path) -> None:
    query, w = {"x_query": X[:, 0] + 1, "y_query": Y[:, 0] + 1}, X[:, 1]
    data = own_data.read(written(tmp_path / "own.npz", x=X, y=Y, w=w, **query))
    stack, sequence = own_data.take(data, np.array([5, 2])), own_data.take(data, sequences=True)
    np.testing.assert_array_equal(stack.batch.x, X[[5, 2]].astype(np.float32))
    np.testing.assert_array_equal(stack.batch.x_query, query["x_query"][[5, 2]].astype(np.float32))
    np.testing.assert_array_equal(stack.batch.w, w[[5, 2]].astype(np.float32))
    np.testing.assert_array_equal(sequence.batch.x[:, -1], query["x_query"].astype(np.float32))
    assert sequence.batch.y.shape == (7, 5)


def test_contexts_of_any_length_give_pairs_of_their_own_without_repeats(tmp_path: Path) -> None:
    lines = [f"c{row % 5},{row},{row * row},{10 * row}" for row in range(60)]
    lines = [line for line in lines if not line.startswith("c4") or int(line.split(",")[1]) < 15]  # c4: 3 pairs
    data = own_data.read(table(tmp_path / "own.csv", "\n".join(["context,a,b,y", *lines])))
    assert data.lengths.tolist() == [12, 12, 12, 12, 3]
    assert data.names.tolist() == ["c0", "c1", "c2", "c3", "c4"]
    taken = own_data.take(data, num_pairs=6, seed=1)
    rows = np.concatenate([taken.batch.x[:, :, 0], taken.batch.x_query[:, None, 0]], axis=1).astype(int)
    assert (taken.left_out, taken.contexts.tolist()) == (1, [0, 1, 2, 3])
    for context, drawn in enumerate(rows):
        assert len(set(drawn)) == 7
        assert {*(drawn % 5)} == {context}
    np.testing.assert_array_equal(taken.batch.x[:, :, 1], taken.batch.x[:, :, 0] ** 2)
    np.testing.assert_array_equal(taken.batch.y, 10 * taken.batch.x[:, :, 0])
    again, other = (own_data.take(data, num_pairs=6, seed=seed).batch.y for seed in (1, 2))
    np.testing.assert_array_equal(again, taken.batch.y)
    assert (other != taken.batch.y).any()


def test_a_split_is_read_from_words_numbers_and_a_column(tmp_path: Path) -> None:
    words = np.array(["train", "test", "eval", "train", "train", "test", "eval"])
    for split in (words, [0, 2, 1, 0, 0, 2, 1]):
        data = own_data.read(written(tmp_path / f"{len(split)}.npz", x=X, y=Y, split=split))
        assert data.split is not None
        assert data.split.tolist() == [0, 2, 1, 0, 0, 2, 1]
    data = own_data.read(table(tmp_path / "own.csv", "context,a,y,split\nb,1,2,test\na,1,2,train\nb,3,4,test"))
    assert data.split is not None
    assert data.split.tolist() == [2, 0]


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    path = written(tmp_path / "own.npz", x=X, y=Y)
    own_data.read(path)
    written(path, x=X[:5], y=Y[:5])
    assert len(own_data.read(path).lengths) == 5


NAN = np.where(np.arange(28).reshape(7, 4) == 9, np.nan, Y)
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no y": ({"x": X}, "has no array y"),
    "flat x": ({"x": X[:, :, 0], "y": Y}, r"x of shape \[7, 4\]; it must be \[n, N, D\]"),
    "other contexts": ({"x": X, "y": Y[:5]}, r"y of shape \[5, 4\].* it must be \[7, 4\]"),
    "several labels": ({"x": X, "y": np.stack([Y, Y], axis=2)}, "several labels a pair"),
    "nan": ({"x": X, "y": NAN}, r"nan in y at \[2, 1\]"),
    "beyond float32": ({"x": X * 1e300, "y": Y}, "float32 must hold every number"),
    "complex": ({"x": X * 1j, "y": Y}, "real numbers"),
    "words": ({"x": X, "y": Y.astype(str)}, "real numbers"),
    "no pair": ({"x": X[:, :0], "y": Y[:, :0]}, "holds no pair"),
    "half a query": ({"x": X, "y": Y, "x_query": X[:, 0]}, "x_query alone"),
    "weights": ({"x": X, "y": Y, "w": X[:, 0, :2]}, r"w of shape \[7, 2\]"),
    "split": ({"x": X, "y": Y, "split": ["train"] * 6 + ["trian"]}, "'trian' in split"),
    "misspelt": ({"x": X, "y": Y, "x_qury": X[:, 0]}, "did you mean x_query"),
    "pickled": ({"x": X, "y": np.array([[{}] * 4] * 7, dtype=object)}, "pickled objects, which are never read"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_arrays_are_one_sentence(what: str, tmp_path: Path) -> None:
    arrays, said = WRONG[what]
    with pytest.raises(UserError, match=said) as error:
        own_data.read(written(tmp_path / "own.npz", **arrays))
    assert "own.npz" in str(error.value)
    assert "\n" not in str(error.value)


class Executed:
    """What a pickle would run."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("executed"),))


def test_nothing_in_a_file_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.npz").write_bytes(pickle.dumps(Executed()))
    written(Path("object.npz"), x=np.array([Executed()], dtype=object), y=Y)
    for name in ("own.npz", "object.npz", "missing.npz", "."):
        with pytest.raises(UserError):
            own_data.read(name)
    assert not Path("executed").exists()


WRONG_TABLES = {
    "context,a\nc,1": "has no column y",
    "a,y\n1,2": "has no column context",
    "c,1,2\nc,3,4": "its first line must name the columns",
    "context,y\nc,1": "it needs inputs, each with a name",
    "context,a,y,y2\nc,1,2,3": "several labels a pair, y, y2",
    "context,a,y,y\nc,1,2,3": "several labels a pair",
    "context,a,a,y\nc,1,2,3": "two columns a",
    "context,a,y": "no pair",
    "context,a,y\nc,1,\nc,1,2": "'nan' in its column y on line 2",
    "context,a,y\nc,1,2\nc,one,2": "'one' in its column a on line 3",
    "context,a,y\nc,1,2\nc,inf,2": "'inf' in its column a on line 3",
    "context,a,y\nc,1,2\n,1,2": "a line without a context",
    "context,a,y\nc,1,2,3\nc,1,2,3": "cannot be read",
    "context,a,y,split\nc,1,2,train\nc,1,2,test": "pairs of the context c in two splits",
}


@pytest.mark.parametrize("text", WRONG_TABLES)
def test_wrong_tables_are_one_sentence(text: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=WRONG_TABLES[text]) as error:
        own_data.read(table(tmp_path / "own.csv", text))
    assert "own.csv" in str(error.value)


def test_a_context_may_have_any_name_and_lines_any_place(tmp_path: Path) -> None:
    data = own_data.read(table(tmp_path / "own.csv", "y,context,a\n1,NA,10\n2,007,20\n3,NA,30"))
    assert data.names.tolist() == ["NA", "007"]
    assert data.y.tolist() == [1, 3, 2]
    assert data.x[:, 0].tolist() == [10, 30, 20]
