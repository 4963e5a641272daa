"""The depth curve's presets."""

import pytest

from icl_lab.families.layerwise import config as layerwise
from icl_lab.lab.configs.family import PRESETS
from icl_lab.lab.configs.presets import preset, resolve


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("model", layerwise.MODELS)
def test_every_preset_is_about_the_same_tasks(model: str, name: str) -> None:
    config = resolve(preset(model, name))
    data = config.data
    assert (config.family, config.name, config.preset) == ("layerwise", model, name)
    assert (data.dim, data.num_pairs, data.num_queries, data.input_distribution, data.noise_std) == (
        *(20, 20, 20),
        *("gaussian", 0.05),
    )
    assert config.test_tasks == 5000


def test_the_softmax_stack_of_the_paper_preset() -> None:
    """Width 128, 4 heads, MLP x 4, pre-LN; AdamW 1e-4, decay .01, clip 1, 2000 steps of warm-up, batches of 64."""
    config = resolve(preset("softmax", "paper", 12))
    model, training = config.model, config.training
    assert (model.num_layers, model.d_model, model.num_heads, model.mlp_width) == (12, 128, 4, 4 * 128)
    assert (model.kind(11), model.layer_norm, model.key_size) == ("softmax", True, 128)
    assert (training.lr, training.weight_decay, training.grad_clip) == (1e-4, 0.01, 1.0)
    assert (training.warmup_steps, training.batch_size, training.steps) == (2000, 64, 50_000)
