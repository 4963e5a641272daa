"""Detectors of corruption: what only pairs together tell, against loops, closed forms and an enumeration."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab.analysis import separation as detectors_of
from icl_lab.analysis.separation import detectors, matched_auroc, separation
from icl_lab.baselines.gradient_descent import minus_gd_error
from icl_lab.baselines.mask_bayes import clean_posterior
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.outputs import OUTPUTS
from icl_lab.families.regression.table import DETECTORS
from icl_lab.families.regression.task import clean_twin, evaluation_context
from icl_lab.plots import style
from icl_lab.plots.dots import draw_attention_stats
from icl_lab.src.config import ContextConfig
from icl_lab.src.context import Context
from icl_lab.src.data_config import DataConfig
from icl_lab.src.registries import INPUT_DISTRIBUTIONS, NOISE_MODES, InputDistribution, NoiseMode
from icl_lab.store import layout
from tests.runners.tiny import Workshop, copied

RANDOM_PAIRS = ContextConfig(noise_mode="random_pairs", noise_p=0.25)
LABEL_NOISE = ContextConfig(noise_mode="label_noise", noise_p=0.25, noise_sigma=0.5)
MODES = pytest.mark.parametrize("noise", [RANDOM_PAIRS, LABEL_NOISE], ids=lambda noise: noise.noise_mode)


def drawn(noise: ContextConfig, tasks: int = 2000, **data: Any) -> tuple[RegressionConfig, Context]:
    config = RegressionConfig(eval=noise, eval_tasks=tasks, data=DataConfig(**data))
    return config, evaluation_context(config)


def measured(noise: ContextConfig, tasks: int = 2000, **data: Any) -> dict[str, dict[str, Any]]:
    config, context = drawn(noise, tasks, **data)
    return detectors(config, context, clean_twin(config, context), seed=0)


def auroc(scores: np.ndarray, context: Context) -> float:
    return float(matched_auroc(scores, np.asarray(context.hit), np.ones((len(scores), 1)))[0])


def test_the_leave_one_out_error_is_that_of_a_step_from_the_other_pairs() -> None:
    """Pair by pair; the step is E tr S / E tr S^2 of 4 pairs in 3 dimensions, x ~ U(-1/2, 1/2): E x^4 = 1/80."""
    config, context = drawn(RANDOM_PAIRS, tasks=20, dim=3, num_pairs=5)
    x, y = (np.asarray(part, np.float64) for part in context.batch[:2])
    variance, fourth = 1 / 12, 1 / 80
    square = 4 * 3 * (fourth + 2 * variance**2) + 4 * 3 * 3 * variance**2
    step = 4 * 3 * variance / square
    expected = np.empty_like(y)
    for task in range(20):
        for pair in range(5):
            weights = step * sum(y[task, j] * x[task, j] for j in range(5) if j != pair)
            expected[task, pair] = -abs(y[task, pair] - weights @ x[task, pair])
    np.testing.assert_allclose(minus_gd_error(context.batch, config), expected, atol=1e-6)


def test_a_pair_that_contradicts_the_others_is_recognised() -> None:
    """The sign: a clean pair has the larger score, of either detector."""
    config, context = drawn(replace(LABEL_NOISE, noise_sigma=50.0), tasks=200)
    assert auroc(clean_posterior(context.batch, config), context) > 0.95
    assert auroc(minus_gd_error(context.batch, config), context) > 0.8


@pytest.mark.parametrize(
    ("noise", "posterior", "error"),
    [(RANDOM_PAIRS, 0.741, 0.614), (LABEL_NOISE, 0.657, 0.568)],
    ids=["pairs", "labels"],
)
def test_they_reach_what_an_enumeration_reached(noise: ContextConfig, posterior: float, error: float) -> None:
    """D = N = 10, p = .25, all positions: an independent enumeration of 700 tasks, with a standard error of .0075."""
    found = measured(noise)
    for name, expected in (("mask_bayes", posterior), ("loo_gd", error)):
        low, high = found[name]["auroc_interval"]
        spread = np.hypot(0.0075, (high - low) / 2 / 1.96)
        assert abs(found[name]["auroc"] - expected) < 3 * spread
        assert 3 * spread < 0.03
        assert abs(found[name]["auroc_raw"] - found[name]["auroc"]) < 0.01  # mixed: position tells nothing
        assert found[name]["tasks"] == 2000


def of_one_pair(context: Context) -> dict[str, np.ndarray]:
    """Scores that look at one pair, and the query: linear, nonlinear, and as a linear layer's influence is."""
    x, y, query = (np.asarray(part, np.float64) for part in (*context.batch[:2], context.batch.x_query))
    towards = np.einsum("bnd,bd->bn", x, query)
    features = np.tanh(
        np.random.default_rng(0).normal(size=(8, x.shape[2] + 1)) @ np.append(x, y[..., None], 2)[..., None]
    )
    return {
        "|y|": abs(y),
        "|y| / |x|": abs(y) / np.linalg.norm(x, axis=2),
        "|influence|": abs(towards),
        "|contribution|": abs(y * towards),
        "network": features.sum(axis=(2, 3)),
    }


@pytest.mark.parametrize("placed", [{}, {"ordering": "smallnorm2largenorm"}], ids=["random", "by norm"])
def test_a_random_pair_alone_looks_clean(placed: dict[str, str]) -> None:
    """.5 by construction: x' and w' have the distributions of x and w. The same scores see label noise in y."""
    _, context = drawn(replace(RANDOM_PAIRS, **placed), tasks=8000)
    for name, scores in of_one_pair(context).items():
        found = separation(scores, np.asarray(context.hit), scores, seed=0)
        low, high = found["auroc_interval"]
        assert abs(found["auroc"] - 0.5) < 4 / 1.96 * (high - low) / 2, name
        assert high - low < 0.02
    _, context = drawn(LABEL_NOISE, tasks=8000)
    seen = {name: auroc(scores, context) for name, scores in of_one_pair(context).items()}
    assert seen["|y|"] < 0.46
    assert seen["|influence|"] == pytest.approx(0.5, abs=0.012)  # of inputs alone, which label noise leaves as they are


@MODES
def test_no_score_separates_better_than_the_posterior(noise: ContextConfig) -> None:
    config, context = drawn(noise)
    best = auroc(clean_posterior(context.batch, config), context)
    signed = {name: sign * scores for name, scores in of_one_pair(context).items() for sign in (1, -1)}
    for scores in (minus_gd_error(context.batch, config), *signed.values()):
        assert auroc(scores, context) < best - 0.03


def test_more_masks_than_a_moment_allows_are_of_fewer_contexts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file says of how many, and they are the first."""
    monkeypatch.setattr(detectors_of, "MOST_MASKS", 2**13)
    found = measured(RANDOM_PAIRS, tasks=300, dim=6, num_pairs=6)
    config, context = drawn(RANDOM_PAIRS, tasks=300, dim=6, num_pairs=6)
    scores = clean_posterior(context.batch, config)[:128]
    expected = matched_auroc(scores, np.asarray(context.hit)[:128], np.ones((128, 1)))[0]
    assert found["mask_bayes"]["tasks"] == 128
    assert found["mask_bayes"]["auroc"] == pytest.approx(expected, abs=1e-12)
    assert found["loo_gd"]["tasks"] == 300


def test_what_is_not_defined_is_null_with_its_reason(registered: Any) -> None:
    many = measured(replace(LABEL_NOISE, noise_p=0.5), tasks=50, dim=20, num_pairs=17)
    assert "num_pairs is 17" in many["mask_bayes"]["reason"]
    assert np.isnan(many["mask_bayes"]["auroc"])
    assert many["loo_gd"]["auroc"] > 0.5
    assert "reason" not in many["loo_gd"]
    registered(NOISE_MODES, "same", NoiseMode(corrupt=lambda key, batch, hit, sigma, data: (batch, 0 * batch.y)))
    unknown = measured(ContextConfig(noise_mode="same", noise_p=0.5), tasks=50, dim=4, num_pairs=4)
    assert "'same' is registered without its mask_bayes" in unknown["mask_bayes"]["reason"]
    sample = INPUT_DISTRIBUTIONS["gaussian"].sample
    registered(INPUT_DISTRIBUTIONS, "unknown", InputDistribution(sample=sample or _uniform))
    heavy = measured(RANDOM_PAIRS, tasks=50, dim=4, num_pairs=4, input_distribution="unknown")
    assert "without its variance or fourth moment" in heavy["loo_gd"]["reason"]
    assert heavy["mask_bayes"]["auroc"] > 0.5


def _uniform(key: Any, input_range: float, shape: tuple[int, ...]) -> Any:
    import jax

    return jax.random.uniform(key, shape, minval=-input_range / 2, maxval=input_range / 2)


def test_a_tables_columns_are_empty_where_the_file_is_of_an_earlier_version() -> None:
    found = {"detectors": {name: {"auroc": 0.7} for name in DETECTORS}}
    for name in DETECTORS:
        column = OUTPUTS.columns.measured[f"{name}_auroc"]
        assert column({"separation": found}) == 0.7
        assert column({"separation": {"gd": {}}}) is None


def test_the_figure_of_a_run_shows_them_where_the_file_has_them(
    lsa1_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of how many contexts, where these are fewer; a file of an earlier version has none."""
    drawn: list[Any] = []
    monkeypatch.setattr(style, "save", lambda figure, *where: drawn.append(figure))
    run = copied(lsa1_run, tmp_path / "run")
    scores = {"auroc": 0.5, "auroc_interval": [0.4, 0.6]}
    stats = {"noise_mode": "clean", "noise_p": 0, "placement": "mixed", "tasks": 64, "layers": [], "gd": {}}
    stats |= {"influence": scores, "abs_influence": scores}
    detectors = {"mask_bayes": scores | {"tasks": 8}, "loo_gd": scores | {"auroc": None, "tasks": 64}}
    for found in (stats, stats | {"detectors": detectors}):
        (run / layout.ATTENTION_STATS).write_text(json.dumps(found))
        draw_attention_stats(run)
    before, after = ([text.get_text() for text in figure.axes[0].get_yticklabels()] for figure in drawn)
    assert after == [*before, "mask_bayes, detector (8 contexts)", "loo_gd, detector"]


def test_the_command_measures_them(workshop: Workshop, lsa1_run: Path, tmp_path: Path) -> None:
    """The shared run is trained and tested clean: no AUROC, and every posterior is 1."""
    run = copied(lsa1_run, tmp_path / "run")
    done = workshop.run("analysis.attention_stats", "--run", run)
    assert done.returncode == 0, done.stderr
    for name in DETECTORS:
        assert f"detector {name}" in done.stdout
    stats = json.loads((run / layout.ATTENTION_STATS).read_text())["detectors"]
    assert stats["mask_bayes"]["clean_mean"] == 1
    assert stats["mask_bayes"]["auroc"] is stats["loo_gd"]["auroc"] is None
