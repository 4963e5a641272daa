"""Scores of heads of symbols: constructed maps, an induction head by hand, uniform attention, and random weights."""

import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.analysis.development import heads
from icl_lab.src import language_model, patching
from icl_lab.src.batch import TokenBatch
from icl_lab.src.decoder_config import DecoderConfig
from icl_lab.src.model import Model
from icl_lab.src.prng import key
from tests.src.induction_head import decoder_config, induction

RNG = np.random.default_rng(0)
K, ROWS = 12, 24


def harmonic(first: int, last: int) -> float:
    """The mean of 1/n from first to last."""
    return float(np.mean(1 / np.arange(first, last + 1)))


def maps_by_hand(x: np.ndarray, start: bool = False) -> list[np.ndarray]:
    """The maps of both layers of an induction head by hand on symbols [B, ROWS]."""
    rows = ROWS + int(start)
    model = language_model.make_model(decoder_config(K, start), K, rows, 0.3, start)
    read = np.concatenate([np.full((len(x), 1), K), x], axis=1) if start else x
    batch = TokenBatch(jnp.asarray(read, jnp.int32), jnp.asarray(x, jnp.int32))
    seen = patching.capture(model, induction(40.0, K, rows, start), batch, "blocks.*.attn.pattern")
    return [np.asarray(maps) for maps in seen.values()]


def repeated(count: int = 5) -> np.ndarray:
    """Sequences r r of distinct symbols."""
    r = np.stack([RNG.permutation(K) for _ in range(count)])
    return np.concatenate([r, r], axis=1)


@pytest.mark.parametrize("start", [False, True])
def test_an_induction_head_by_hand_has_all_scores_near_one(start: bool) -> None:
    below, above = maps_by_hand(repeated(), start)
    assert heads.previous_token(below, int(start)) == pytest.approx(1, abs=1e-6)
    assert heads.prefix_matching(above, ROWS // 2, int(start)) == pytest.approx(1, abs=1e-2 if start else 0.06)
    assert heads.prefix_matching(below, ROWS // 2, int(start))[0] < 1e-6
    if start:
        assert heads.start_attention(below)[0] < 1e-6


@pytest.mark.parametrize("start", [False, True])
def test_match_mass_of_an_induction_head_by_hand(start: bool) -> None:
    """Without a start symbol the first row, which has none before it, is a false match of its own symbol."""
    x = RNG.integers(K, size=(20, ROWS))
    above, matching = maps_by_hand(x, start)[1], heads.matches(x)
    wanted = []
    for symbols in x:
        for t, own in enumerate(symbols):
            right = sum(symbols[j - 1] == own for j in range(1, t + 1))
            false = int(not start and symbols[0] == own)
            wanted += [right / (right + false)] if right else []
    assert np.mean(wanted) > 0.75
    assert heads.match_mass(above, matching, int(start)) == pytest.approx(np.mean(wanted), abs=1e-4)


def test_matches_are_those_of_a_loop() -> None:
    x = RNG.integers(2, size=(3, 9))
    for order in (1, 2, 3):
        found = heads.matches(x, order)
        for row, symbols in enumerate(x):
            for t in range(9):
                for j in range(9):
                    fits = j <= t and t >= order - 1 and j >= order
                    same = fits and (symbols[j - order : j] == symbols[t - order + 1 : t + 1]).all()
                    assert found[row, t, j] == same


def test_nulls_are_uniform_attentions() -> None:
    assert heads.previous_token(heads.uniform(64))[0] == pytest.approx(0.0348, abs=5e-5)  # harmonic numbers, by hand
    assert heads.previous_token(heads.uniform(64))[0] == pytest.approx(harmonic(10, 64))
    assert heads.prefix_matching(heads.uniform(128), 64)[0] == pytest.approx(harmonic(65, 128))
    assert heads.prefix_matching(heads.uniform(129), 64, 1)[0] == pytest.approx(harmonic(66, 129))
    assert heads.start_attention(heads.uniform(65))[0] == pytest.approx(harmonic(11, 65))


def test_the_null_of_matches_is_their_mean_fraction() -> None:
    x = np.array([[0, 1, 0, 0, 1]])  # row 2 has {1}, row 3 {1, 3}, row 4 {2}; rows 0 and 1 have none
    assert heads.uniform_match_mass(heads.matches(x)) == pytest.approx(np.mean([1 / 3, 2 / 4, 1 / 5]))
    assert heads.uniform_match_mass(heads.matches(x), 1) == pytest.approx(np.mean([1 / 4, 2 / 5, 1 / 6]))
    x = RNG.integers(3, size=(6, ROWS))
    even = np.broadcast_to(heads.uniform(ROWS + 1), (6, 2, ROWS + 1, ROWS + 1))
    matching = heads.matches(x)
    mass = heads.match_mass(even, matching, 1)
    # a mean over rows, and the null one over the same rows
    np.testing.assert_allclose(mass, heads.uniform_match_mass(matching, 1), rtol=1e-12)


# --- weights ---


def scores_by_circuits(params: dict[str, dict[str, np.ndarray]], layer: int, x: np.ndarray) -> np.ndarray:
    return np.asarray(np.einsum("bti,hij,bsj->bhts", x, heads.circuits(params, layer, 2).qk, x))


@pytest.mark.parametrize("positions", ["relative", "query_key"])
def test_circuits_are_what_the_model_computes(positions: str) -> None:
    """Scores are x W_QK x^T and a head's result is the mix of x W_OV, where positions are 0."""
    config = DecoderConfig(block="plain", num_layers=1, num_heads=2, d_model=8, mlp_width=0, positions=positions)
    model: Model = language_model.make_model(config, 5, 6, 0.5, False)
    params = {m: {n: np.asarray(v) for n, v in arrays.items()} for m, arrays in model.init(key(1)).items()}
    if positions == "query_key":
        params["embed"]["positions"] = np.zeros_like(params["embed"]["positions"])
    x = RNG.integers(5, size=(3, 6)).astype(np.int32)
    seen = patching.capture(model, params, TokenBatch(jnp.asarray(x), jnp.asarray(x)))
    stream = np.asarray(seen["embed"], float)
    np.testing.assert_allclose(
        seen["blocks.0.attn.scores"], scores_by_circuits(params, 0, stream), rtol=1e-4, atol=1e-5
    )
    mixed = np.asarray(seen["blocks.0.attn.pattern"]) @ (stream[:, None] @ heads.circuits(params, 0, 2).ov[None])
    np.testing.assert_allclose(seen["blocks.0.attn.result"], mixed, rtol=1e-4, atol=1e-5)


def test_k_composition_is_the_ratio_of_norms() -> None:
    ov, qk = RNG.normal(size=(3, 7, 7)), RNG.normal(size=(2, 7, 7))
    found = heads.k_composition(ov, qk)
    assert found.shape == (2, 3)
    for above in range(2):
        for below in range(3):
            whole = np.linalg.norm(ov[below] @ qk[above].T)
            wanted = whole / (np.linalg.norm(ov[below]) * np.linalg.norm(qk[above]))
            assert found[above, below] == pytest.approx(wanted, rel=1e-12)


def test_k_composition_is_one_for_one_direction_and_zero_for_orthogonal_ones() -> None:
    first, second = np.zeros((1, 4, 4)), np.zeros((1, 4, 4))
    first[0, 0, 1], second[0, 2, 1] = 2.0, 3.0  # writes into channel 1, which keys are read from
    assert heads.k_composition(first, second) == pytest.approx(np.ones((1, 1)))
    assert heads.k_composition(first, second.swapaxes(1, 2)) == pytest.approx(np.zeros((1, 1)))
    assert heads.k_composition(np.zeros((1, 4, 4)), second) == pytest.approx(np.zeros((1, 1)))


def test_an_induction_head_by_hand_composes() -> None:
    params = induction(30.0, K, ROWS)
    below, above = (heads.circuits(params, layer, 1) for layer in range(2))
    # W_OV W_QK^T maps K symbols to K symbols, each matrix has K equal singular values: sqrt(K) / K
    assert heads.k_composition(below.ov, above.qk)[0, 0] == pytest.approx(1 / np.sqrt(K))


@pytest.mark.parametrize(("width", "count"), [(32, 1), (128, 4)])
def test_the_null_of_k_composition_is_about_one_over_the_root_of_the_width(width: int, count: int) -> None:
    assert heads.random_k_composition(width, count) == pytest.approx(1 / np.sqrt(width), rel=0.02)
