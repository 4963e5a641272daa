"""Orders and noise asked for on the command line reach the files, each in the contexts it was asked for."""

import json
from pathlib import Path

import numpy as np
import pytest

from icl_lab.analysis.contexts import _with_effects
from icl_lab.src.config import ContextConfig
from icl_lab.src.context import Context, draw_context
from icl_lab.src.data_config import DataConfig
from icl_lab.src.prng import key
from icl_lab.store import layout
from tests.runners.tiny import DIM, LSA1, PAIRS, TASKS, Workshop, in_float64


def metadata(run: Path) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = json.loads((run / layout.ANALYSIS_METADATA).read_text())
    return found


def leave_one_out_error(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """|y_i - c sum_(j != i) y_j x_j.x_i| of one context, with c = E tr S / E tr S^2 of N - 1 pairs from U(-1/2, 1/2)^D.

    E tr S = N D v, E tr S^2 = N(N - 1) D v^2 + N (D m + D(D - 1) v^2), v = 1/12, m = 1/80.
    """
    n, d, v, m = PAIRS - 1, DIM, 1 / 12, 1 / 80
    c = n * d * v / (n * (n - 1) * d * v**2 + n * (d * m + d * (d - 1) * v**2))
    others = [sum(y[j] * (x[j] @ x[i]) for j in range(PAIRS) if j != i) for i in range(PAIRS)]
    return np.abs(y - c * np.array(others))


@pytest.fixture(scope="module")
def train_noise(workshop: Workshop) -> Path:
    """easy2hard everywhere, label noise in training alone."""
    noise = "--train_noise_mode label_noise --train-noise-p 0.5 --train_noise_sigma 1".split()
    return workshop.finished("train_noise", LSA1, "--ordering", "easy2hard", *noise)


@pytest.fixture(scope="module")
def eval_noise(workshop: Workshop) -> Path:
    """easy2hard and label noise, corrupted pairs first, in evaluation alone."""
    noise = "--eval_noise_mode label_noise --eval-noise-p 0.5 --eval_noise_sigma 1 --eval_noise_placement noisy_first"
    return workshop.finished("eval_noise", LSA1, "--eval_ordering", "easy2hard", *noise.split())


def test_noise_in_training_alone_leaves_the_evaluation_clean(train_noise: Path) -> None:
    _, batch = in_float64(train_noise)
    np.testing.assert_allclose(batch.y, np.einsum("bnd,bd->bn", batch.x, batch.w), atol=1e-6)
    assert not np.load(train_noise / layout.NOISE_MASK).any()
    mask = np.load(train_noise / "analysis/train_noise_mask.npy")
    assert abs(mask.mean() - 0.5) < 4 * 0.5 / np.sqrt(mask.size)


def test_without_noisy_labels_easy_is_a_small_error_of_gradient_descent(train_noise: Path) -> None:
    _, batch = in_float64(train_noise)
    errors = np.array([leave_one_out_error(x, y) for x, y in zip(batch.x, batch.y, strict=True)])
    assert (np.diff(errors, axis=1) >= -1e-6).all()
    index = np.load(train_noise / layout.ORDERING_INDEX)
    np.testing.assert_array_equal(np.sort(index, axis=1), np.tile(np.arange(PAIRS), (TASKS, 1)))
    assert (index != np.arange(PAIRS)).any(axis=1).mean() > 0.9


def test_in_noisy_training_easy_pairs_are_those_not_hit(train_noise: Path) -> None:
    """By residual, which is 0 where nothing was hit, so every mask is False up to some position and True after it."""
    mask = np.load(train_noise / "analysis/train_noise_mask.npy")
    assert (np.diff(mask.astype(int), axis=1) >= 0).all()


def test_the_metadata_tells_both_contexts_apart(train_noise: Path) -> None:
    words = metadata(train_noise)
    told = ("ordering", "difficulty", "noise_mode", "noise_p", "order_had_effect", "noise_had_effect")
    assert [words["train"][name] for name in told] == ["easy2hard", "residual", "label_noise", 0.5, True, True]
    assert [words["eval"][name] for name in told] == ["easy2hard", "gd_error", "clean", 0.0, True, False]
    summary = json.loads((train_noise / layout.SUMMARY).read_text())
    for context in ("train", "eval"):
        kept = {name: value for name, value in words[context].items() if not name.endswith("had_effect")}
        assert summary["contexts"][context] == kept


@pytest.mark.slow
def test_evaluation_noise_hits_the_pairs_that_the_mask_tells(eval_noise: Path) -> None:
    _, batch = in_float64(eval_noise)
    error = np.abs(batch.y - np.einsum("bnd,bd->bn", batch.x, batch.w))
    mask = np.load(eval_noise / layout.NOISE_MASK)
    assert error[~mask].max() < 1e-6
    assert (error[mask] > 1e-6).mean() > 0.99
    assert abs(mask.mean() - 0.5) < 4 * 0.5 / np.sqrt(mask.size)
    assert abs(np.mean(error[mask] ** 2) - 1) < 4 * np.sqrt(2 / mask.sum())  # a chi-squared of that many N(0, 1)
    np.testing.assert_allclose(batch.y_query, np.einsum("bd,bd->b", batch.x_query, batch.w), atol=1e-6)


@pytest.mark.slow
def test_placement_acts_after_the_order_and_keeps_it_inside_each_group(eval_noise: Path) -> None:
    _, batch = in_float64(eval_noise)
    error = np.abs(batch.y - np.einsum("bnd,bd->bn", batch.x, batch.w))
    mask = np.load(eval_noise / layout.NOISE_MASK)
    assert (np.diff(mask.astype(int), axis=1) <= 0).all()
    for residuals, hit in zip(error, mask, strict=True):
        assert (np.diff(residuals[hit]) >= -1e-6).all()


@pytest.mark.slow
def test_training_stays_as_it_was(eval_noise: Path, lsa1_run: Path) -> None:
    """Nothing but the evaluation differs from the plain run, so the trained parameters are the same to the bit."""
    assert (eval_noise / layout.PARAMS_PICKLE).read_bytes() == (lsa1_run / layout.PARAMS_PICKLE).read_bytes()
    for name in ("train_ordering_idx.npy", "train_noise_mask.npy"):
        folder = layout.ANALYSIS
        assert (eval_noise / folder / name).read_bytes() == (lsa1_run / folder / name).read_bytes()
    words = metadata(eval_noise)
    assert [words["train"][name] for name in ("ordering", "noise_mode", "noise_had_effect")] == [
        "random",
        "clean",
        False,
    ]
    assert [words["eval"][name] for name in ("difficulty", "noise_had_effect")] == ["residual", True]


def words_of(**settings: object) -> dict[str, object]:
    """Whether ordering and placement had an effect on 64 contexts."""
    context = ContextConfig(noise_mode="label_noise", noise_sigma=1.0, **settings)  # type: ignore[arg-type]
    words = _with_effects(context, draw_context(key(0), DataConfig(dim=DIM, num_pairs=PAIRS), context, 64))
    return {name: words[f"{name}_had_effect"] for name in ("order", "placement")}


BY_RESIDUAL = {"ordering": "easy2hard", "difficulty": "residual", "noise_p": 0.5}


@pytest.mark.parametrize(
    ("settings", "order", "placement"),
    [
        ({"ordering": "random", "noise_p": 0.5, "noise_placement": "mixed"}, False, False),
        ({"ordering": "random", "noise_p": 0.5, "noise_placement": "clean_first"}, False, True),
        ({"ordering": "random", "noise_p": 1.0, "noise_placement": "clean_first"}, False, False),
        ({"ordering": "easy2hard", "noise_p": 0.5, "noise_placement": "mixed"}, True, False),
        # by residual, which is 0 where nothing was hit, the order is the placement already, or its reverse
        (BY_RESIDUAL | {"noise_placement": "clean_first"}, True, False),
        (BY_RESIDUAL | {"noise_placement": "noisy_first"}, True, True),
    ],
)
def test_ordering_and_placement_are_told_apart(settings: dict[str, object], order: bool, placement: bool) -> None:
    assert words_of(**settings) == {"order": order, "placement": placement}


def test_an_order_that_placement_undoes_had_an_effect_all_the_same() -> None:
    """Of two pairs exchanged and then exchanged back, the last index says nothing."""
    index = np.array([[0, 1]])
    context = Context(None, index, np.array([[True, False]]), index[:, ::-1])  # type: ignore[arg-type]
    words = _with_effects(ContextConfig(ordering="easy2hard", noise_placement="noisy_first"), context)
    assert (words["order_had_effect"], words["placement_had_effect"]) == (True, True)


@pytest.mark.slow
def test_noise_makes_the_headline_worse_and_its_clean_average_absent(eval_noise: Path, lsa1_run: Path) -> None:
    noisy, clean = (json.loads((run / layout.SUMMARY).read_text())["headline"] for run in (eval_noise, lsa1_run))
    assert noisy["gd_loss"] > clean["gd_loss"]
    assert noisy["ridge_loss"] > 100 * clean["ridge_loss"]
    assert "gd_loss_averaged" in clean
    assert "gd_loss_averaged" not in noisy
