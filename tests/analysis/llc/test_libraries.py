"""Estimates of models of other libraries (docs/llc.md), and the export to ArviZ and xarray."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import icl_lab
from icl_lab.analysis.llc.estimate import Estimate
from icl_lab.analysis.llc.mixing import mixing
from icl_lab.store.llc_rows import LLC

TITLE = "Models of Flax, Equinox and PyTorch"
BLOCK = re.compile(r"```python\n(.*?)```", re.S)


def recipe(root: Path, word: str) -> str:
    """The recipe of the page in which a word stands."""
    section = (root / "docs/llc.md").read_text().split(f"\n## {TITLE}\n")[1].split("\n## ")[0]
    (code,) = [code for code in BLOCK.findall(section) if word in code]
    return str(code)


def result(code: str) -> Estimate:
    """The estimate that a recipe makes under the name `found`."""
    names: dict[str, Any] = {}
    exec(compile(code, "recipe", "exec"), names)
    found: Estimate = names["found"]
    return found


def needed(name: str) -> Any:
    """A package of the extras, without which a test is skipped."""
    return pytest.importorskip(name, reason=f"{name} is of an extra")


@pytest.fixture(scope="module")
def plain(root: Path) -> Estimate:
    return result(recipe(root, 'params["weight"]'))


def test_a_recipe_of_named_arrays_has_the_llc_of_least_squares(plain: Estimate) -> None:
    """Five directions count (1/2) nbeta h / (nbeta h + gamma) each, h the eigenvalues of the mean of (x, 1)(x, 1)'."""
    x = np.asarray(jax.random.normal(jax.random.key(0), (1000, 4)), np.float64)
    inputs = np.concatenate([x, np.ones((1000, 1))], axis=1)
    h = np.linalg.eigvalsh(inputs.T @ inputs / 1000)
    assert plain.prediction is not None
    assert plain.prediction.curvature == pytest.approx(np.sum(500 * h / (1000 * h + 10)), rel=1e-4)
    assert plain.verdict == LLC


@pytest.mark.parametrize(("library", "word"), [("flax", "linen"), ("flax", "nnx"), ("equinox", "eqx")])
def test_recipes_of_other_libraries_have_the_same_hessian(library: str, word: str, plain: Estimate, root: Path) -> None:
    """They are of the same function of the same data: a linear model's Hessian is the same at all its weights."""
    needed(library)
    found = result(recipe(root, word))
    assert found.prediction is not None
    assert plain.prediction is not None
    assert found.prediction.curvature == pytest.approx(plain.prediction.curvature, rel=1e-4)
    assert found.verdict == LLC
    assert found.loss == pytest.approx(0.0, abs=1e-9)


def test_masks_name_the_parameters_of_flax_and_equinox() -> None:
    """A regular expression finds the bias alone, which counts (1/2) nbeta / (nbeta + gamma), as its h is 1."""
    nn, eqx = needed("flax").linen, needed("equinox")
    x = np.asarray(jax.random.normal(jax.random.key(0), (200, 4)))
    dense = nn.Dense(1)
    models: dict[str, Any] = {
        "params/bias": (dense.init(jax.random.key(1), x), lambda params, x: dense.apply(params, x)),
        "^bias$": (eqx.nn.Linear(4, 1, key=jax.random.key(1)), lambda model, x: jax.vmap(model)(x)),
    }
    for mask, (params, apply) in models.items():

        def loss(params: Any, batch: Any, apply: Any = apply) -> Any:
            return 0.5 * (apply(params, batch[0])[:, 0] - batch[1]) ** 2

        data = x, np.asarray(apply(params, x)[:, 0])
        found = icl_lab.llc(loss, params, data, nbeta=100.0, gamma=25.0, mask=mask, draws=40)
        assert found.prediction is not None
        assert found.prediction.curvature == pytest.approx(0.5 * 100 / 125, rel=1e-4)


def test_xarray_has_the_draws_and_the_row(plain: Estimate) -> None:
    needed("xarray")
    found = plain.to_xarray()
    np.testing.assert_array_equal(found["excess"].values, plain.excess)
    assert found["excess"].dims == ("chain", "draw")
    assert found["fixed_loss"].dims == ("chain", "check")
    assert found.attrs["llc"] == plain.value
    assert found.attrs["verdict"] == LLC


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of ArviZ when it is imported: it is to change
def test_arviz_has_the_draws_and_its_own_diagnostics_of_them(plain: Estimate) -> None:
    """R-hat of the excess losses by ArviZ is ours of the same numbers."""
    needed("arviz")
    arviz = import_module("arviz")
    found = plain.to_arviz()
    np.testing.assert_array_equal(found.posterior["excess"].values, plain.excess)
    theirs = float(arviz.rhat(found, var_names=["excess"])["excess"])
    assert theirs == pytest.approx(mixing(plain.excess)["r_hat"], abs=2e-3)
