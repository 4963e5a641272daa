"""Baselines by name, as functions of arrays: against NumPy, and against what runs left."""

from pathlib import Path

import numpy as np
import pytest

import icl_lab
from icl_lab.src.checks import ConfigError
from icl_lab.src.registries import BASELINES
from icl_lab.store import layout
from tests.runners.tiny import lsa1_run, workshop
from tests.test_icl_lab import decoder_run

__all__ = ["decoder_run", "lsa1_run", "workshop"]

DRAWN = np.random.default_rng(0)
X, X_QUERY = DRAWN.uniform(-0.5, 0.5, size=(5, 6, 3)), DRAWN.uniform(-0.5, 0.5, size=(5, 3))
Y = np.einsum("bnd,bd->bn", X, DRAWN.normal(size=(5, 3)))
# without arrays' own facts these are not defined -> why
UNDEFINED = {
    **dict.fromkeys(("gd_own_steps",), "with one step this baseline is the same as gd"),
    **dict.fromkeys(("gd_plus_plus", "gd_plus_plus_paper", "gd_plus_plus_own_rates"), "several linear layers"),
    **dict.fromkeys(("mixture_posterior", "sparse_posterior"), "noise_std is 0"),
    **dict.fromkeys(("version_space", "any_language"), "the strings of languages"),
    **dict.fromkeys(("optimum", "optimum_biased", "logit", "nearest", "majority", "no_context"), "fitted on languages"),
    "discriminants": "fitted on languages",
}


def test_ridge_without_noise_is_least_squares() -> None:
    expected = np.einsum("bdn,bn,bd->b", np.linalg.pinv(X), Y, X_QUERY)
    ridge = icl_lab.baseline("ridge")
    np.testing.assert_allclose(ridge(X, Y, X_QUERY), expected, rtol=1e-4, atol=1e-5)  # float32
    np.testing.assert_array_equal(ridge(icl_lab.batch_from_arrays(X, Y, X_QUERY)), ridge(X, Y, X_QUERY))
    assert (icl_lab.baseline("zero")(X, Y, X_QUERY) == 0).all()
    assert ridge.__name__ == "ridge"


def test_of_a_run_it_is_what_the_run_was_compared_with(lsa1_run: Path) -> None:
    run, stored = icl_lab.load_run(lsa1_run), np.load(lsa1_run / layout.PREDICTIONS)
    np.testing.assert_allclose(icl_lab.baseline("gd", run)(run.batch), stored["gd"], rtol=1e-4, atol=1e-6)


def test_of_a_decoder_it_knows_the_pool(decoder_run: Path) -> None:
    run, stored = icl_lab.load_run(decoder_run), np.load(decoder_run / layout.PREDICTIONS)
    x, y = np.asarray(run.batch.x), np.asarray(run.batch.y)
    for name in ("dmmse", "ridge"):
        predict = icl_lab.baseline(name, decoder_run)
        np.testing.assert_allclose(predict(x, y), stored[f"id_{name}"], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(predict(x[:, :3], y[:, :3], x[:, 3]), predict(x, y)[:, 3], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in BASELINES if name in UNDEFINED])
def test_where_it_is_not_defined_a_sentence_says_why(name: str) -> None:
    with pytest.raises(ConfigError, match=UNDEFINED[name]):
        icl_lab.baseline(name)(X, Y, X_QUERY)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in BASELINES if name not in UNDEFINED])
def test_every_other_name_gives_predictions_that_are_finite(name: str) -> None:
    shape = (5, 6) if name == "loo_gd" else (5,)
    values = icl_lab.baseline(name)(X, Y, X_QUERY)
    assert values.shape == shape
    assert np.isfinite(values).all()


def test_unknown_names_and_other_families_are_refused(lsa1_run: Path) -> None:
    with pytest.raises(ConfigError, match="no baseline is called 'rigde', did you mean ridge"):
        icl_lab.baseline("rigde")
    with pytest.raises(ConfigError, match="dmmse is not a baseline of runs of the family regression"):
        icl_lab.baseline("dmmse", lsa1_run)
    with pytest.raises(ConfigError, match="takes x, y and x_query, or a batch"):
        icl_lab.baseline("zero")(X)
