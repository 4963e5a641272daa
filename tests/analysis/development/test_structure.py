"""Embeddings, layer norms and the unembedding, on weights that are constructed."""

import haiku as hk
import numpy as np
import pytest

from icl_lab.analysis.development.structure import (
    effective,
    embeddings,
    layer_norms,
    overlaps,
    participation,
    singular_shares,
    top_share,
    unembedding,
)

RNG = np.random.default_rng(0)


def orthonormal(size: int) -> np.ndarray:
    """A random rotation [size, size]."""
    return np.linalg.qr(RNG.standard_normal((size, size)))[0]


def test_shares_are_of_the_singular_values_that_a_matrix_was_made_of() -> None:
    sizes = np.array([3.0, 2.0, 1.0])
    matrix = orthonormal(3) @ np.diag(sizes) @ orthonormal(6)[:3]
    np.testing.assert_allclose(singular_shares(matrix), sizes**2 / 14)
    np.testing.assert_array_equal(singular_shares(np.zeros((2, 3))), [0, 0])


def test_overlap_is_the_part_of_a_direction_within_the_span_of_positions() -> None:
    axes = orthonormal(8)
    inside, outside, between = axes[0], axes[4], 0.6 * axes[1] + 0.8 * axes[5]
    tokens = np.diag([3.0, 2.0, 1.0]) @ np.stack([inside, outside, between])
    positions = RNG.standard_normal((5, 3)) @ axes[:3]  # five positions of rank three
    np.testing.assert_allclose(overlaps(tokens, positions), [1, 0, 0.6], atol=1e-10)


def test_embeddings_name_what_a_model_has() -> None:
    tokens, positions = np.diag([2.0, 1.0, 1.0])[:2], np.eye(3)[:1]
    both = embeddings({"embed/linear": {"w": tokens}, "embed": {"positions": positions}})
    assert both == pytest.approx(
        {
            "embedding_share_1": 0.8,
            "embedding_share_2": 0.2,
            "embedding_smallest_share": 0.2,
            "position_share_1": 1.0,
            "position_top_share": 1.0,
            "embedding_in_positions_1": 1.0,
            "embedding_in_positions_2": 0.0,
        }
    )
    assert set(embeddings({"embed": {"w": tokens}})) == {name for name in both if name.startswith("embedding_s")}
    assert embeddings({"layer_0": {"w": tokens}}) == {}


def test_layer_norms_count_what_is_small_in_size() -> None:
    norm = {"scale": np.array([-0.05, 0.05, 0.5, -2.0]), "offset": np.array([0.0, 0.2, -0.3, 0.1])}
    values = layer_norms({"layer_0/mlp_norm": norm, "layer_0/mlp_in": {"w": np.eye(2), "b": np.zeros(2)}})
    assert values == pytest.approx(
        {
            "layer_0_mlp_norm_gamma_mean": -0.375,
            "layer_0_mlp_norm_gamma_small": 0.5,
            "layer_0_mlp_norm_beta_small": 0.25,
        }
    )


def test_the_effective_weight_reads_what_haikus_norm_and_map_read() -> None:
    def read_out(stream: np.ndarray) -> object:
        normed = hk.LayerNorm(axis=-1, create_scale=True, create_offset=True, name="norm")(stream)
        return hk.Linear(3, name="linear")(normed)[:, 0]

    stream = RNG.standard_normal((7, 5)).astype(np.float32)
    norm = {"scale": RNG.standard_normal(5), "offset": RNG.standard_normal(5)}
    linear = {"w": RNG.standard_normal((5, 3)), "b": RNG.standard_normal(3)}
    predictions = hk.without_apply_rng(hk.transform(read_out)).apply({"norm": norm, "linear": linear}, stream)
    weight, bias = effective({"read_out/norm": norm, "read_out/linear": linear})
    z = (stream - stream.mean(axis=1, keepdims=True)) / np.sqrt(stream.var(axis=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(predictions, z @ weight + bias, rtol=1e-4, atol=1e-5)


def test_without_norm_and_bias_the_weight_is_its_own() -> None:
    column = np.array([3.0, 4.0])
    assert unembedding({"read_out/linear": {"w": column[:, None]}}) == pytest.approx(
        {
            "unembedding_norm": 5.0,
            "unembedding_bias": 0.0,
            "unembedding_participation": 25**2 / (2 * (81 + 256)),
            "unembedding_top_share": 1.0,
        }
    )
    assert unembedding({"embed": {"w": column[:, None]}}) == {}


def test_participation_and_share_of_few_coordinates() -> None:
    assert participation(np.full(8, -2.0)) == pytest.approx(1)
    assert participation(np.eye(8)[3]) == pytest.approx(1 / 8)
    assert participation(np.repeat([1.0, 0.0], [2, 6])) == pytest.approx(2 / 8)
    assert top_share(np.array([1.0, -5.0, 1.0, 1.0, 1.0, 1.0]), few=2) == pytest.approx(26 / 30)
