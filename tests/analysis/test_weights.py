"""The products that a layer computes with, and the scale that moves between them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_lab.analysis.weights import products, rescale
from icl_lab.baselines.construction import gd_params
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import make_model
from icl_lab.src.config import ModelConfig
from icl_lab.src.data_config import DataConfig
from icl_lab.src.prng import key
from tests import reference
from tests.runners.tiny import tokens

DATA = DataConfig(dim=3, num_pairs=5)


def config(**model: object) -> RegressionConfig:
    return RegressionConfig(data=DATA, model=ModelConfig(**model))  # type: ignore[arg-type]


@given(st.floats(0.01, 2), st.floats(0, 0.5))
def test_the_construction_has_the_products_of_the_paper(step_size: float, gamma: float) -> None:
    """W_K^T W_Q = diag(I, 0) and P W_V = diag(-gamma I, -c) for columns. Von Oswald et al. 2023, Prop. 1, App. A.10."""
    kq, pv = products(config(), gd_params(config().architecture, step_size, gamma))
    np.testing.assert_allclose(kq, np.diag([1.0, 1, 1, 0])[None, None], atol=1e-12)
    np.testing.assert_allclose(pv, np.diag([-gamma] * 3 + [-step_size])[None, None], atol=1e-12)


@pytest.mark.parametrize(
    ("model", "layers"),
    [
        ({}, 1),
        ({"num_layers": 3}, 3),
        ({"num_layers": 2, "num_heads": 2}, 2),
        ({"num_layers": 3, "recurrent": True}, 1),
    ],
)
def test_a_layer_computes_with_its_products_alone(model: dict[str, object], layers: int) -> None:
    """For columns e: a token moves by sum_n PV e_n (KQ^T-weighted e_n), checked against explicit Q, K, V and P."""
    built = config(init_scale=1.0, **model)
    params = {
        module: {name: np.asarray(value, np.float64) for name, value in leaf.items()}
        for module, leaf in make_model(built).init(key(0)).items()
    }
    kq, pv = products(built, params)
    assert len(kq) == len(pv) == layers
    rows = tokens(reference.random_batch(0, pairs=5, dim=3), "concatenated")
    for layer, part in enumerate(params.values()):
        expected, _ = reference.attention(part, "linear", rows, rows[:, :-1])
        found = np.zeros_like(rows)
        for head in range(kq.shape[1]):
            scores = np.einsum("bnw,wu,bru->brn", rows[:, :-1], kq[layer, head], rows)
            found += np.einsum("brn,uw,bnw->bru", scores, pv[layer, head], rows[:, :-1])
        np.testing.assert_allclose(found, expected, atol=1e-10)


MATRICES = np.random.default_rng(0).normal(size=(2, 2, 3, 4, 4))  # kq and pv of two layers with three heads


def test_rescaling_leaves_the_effect_unchanged() -> None:
    """A linear layer depends on the product of an entry of one with an entry of the other."""
    kq, pv = MATRICES
    scaled_kq, scaled_pv = rescale(kq, pv, 3)
    before, after = (np.einsum("lhij,lhuv->lhijuv", *pair) for pair in ((kq, pv), (scaled_kq, scaled_pv)))
    np.testing.assert_allclose(after, before, atol=1e-12)
    diagonal = np.diagonal(scaled_kq, axis1=2, axis2=3)[..., :3]
    np.testing.assert_allclose(diagonal.mean(axis=-1), 1, atol=1e-12)


@given(st.floats(-50, 50).filter(lambda s: abs(s) > 0.01))
def test_it_does_not_matter_where_the_scale_was(scale: float) -> None:
    kq, pv = MATRICES
    for found, expected in zip(rescale(scale * kq, pv / scale, 3), rescale(kq, pv, 3), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_construction_is_where_it_should_be_already() -> None:
    kq, pv = products(config(), gd_params(config().architecture, 0.6))
    for found, before in zip(rescale(kq, pv, 3), (kq, pv), strict=True):
        np.testing.assert_allclose(found, before, atol=1e-12)


def test_without_a_scale_to_move_nothing_moves() -> None:
    kq, pv = np.zeros((1, 1, 4, 4)), MATRICES[1, :1, :1]
    scaled_kq, scaled_pv = rescale(kq, pv, 3)
    np.testing.assert_array_equal(scaled_kq, kq)
    np.testing.assert_array_equal(scaled_pv, pv)


def test_codes_are_part_of_the_products() -> None:
    built = replace(config(pos_enc_size=4))
    kq, pv = products(built, gd_params(built.architecture, 0.5))
    assert kq.shape == pv.shape == (1, 1, 8, 8)
    np.testing.assert_allclose(pv[0, 0], np.diag([0.0] * 3 + [-0.5] + [0.0] * 4), atol=1e-12)
