"""The autoencoders of strings: the published program's layers, by hand, and ours."""

import jax
import numpy as np

from icl_lab.families.autoencoder.config import AutoencoderConfig, AutoencoderModel
from icl_lab.families.autoencoder.task import codes_of, make_model, network_of
from icl_lab.families.languages.data import LanguageData
from icl_lab.src.batch import StringBatch

DATA = LanguageData(languages=("a*bc*", "(abc?)*"), unseen_languages=())
STRINGS = np.random.default_rng(0).integers(4, size=(64, 20)).astype(np.uint8)


def layer(params: dict[str, dict[str, np.ndarray]], name: str, inputs: np.ndarray) -> np.ndarray:
    part = params[name]
    return np.asarray(inputs @ np.asarray(part["w"], np.float64) + np.asarray(part["b"], np.float64))


def test_the_published_autoencoder_reads_numbers_and_its_codes_are_at_least_0() -> None:
    """20 - 16 linear, 16 - 8 - 16 ReLU, 8, 16 ReLU and 20 numbers; half squared errors."""
    config = AutoencoderConfig(data=DATA, model=AutoencoderModel(dim=16, hidden=8, input="raw_index"))
    model = make_model(config)
    params = model.init(jax.random.key(0))
    assert [np.shape(params[name]["w"]) for name in ("encoder_in", "encoder_out", "code")] == [
        (20, 16),
        (16, 8),
        (8, 16),
    ]
    hidden = np.maximum(layer(params, "encoder_out", layer(params, "encoder_in", STRINGS.astype(float))), 0)
    codes = np.maximum(layer(params, "code", hidden), 0)
    np.testing.assert_allclose(codes_of(config, params, STRINGS), codes, atol=1e-5)
    assert codes.min() == 0 < codes.max()
    back = np.maximum(layer(params, "decoder_in", codes), 0)
    numbers = layer(params, "decoder_out", np.maximum(layer(params, "decoder_hidden", back), 0))
    losses = model.losses(params, StringBatch(STRINGS))
    np.testing.assert_allclose(losses, 0.5 * np.mean((numbers - STRINGS) ** 2, axis=1), rtol=1e-5)


def test_ours_reads_one_hot_symbols_and_its_code_is_linear() -> None:
    config = AutoencoderConfig(data=DATA)
    params = make_model(config).init(jax.random.key(0))
    codes = codes_of(config, params, STRINGS)
    assert codes.min() < 0 < codes.max()
    assert np.shape(network_of(config).decode(params, STRINGS)) == (64, 20, 4)
