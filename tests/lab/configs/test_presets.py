"""The presets are the published table; a config is locked."""

from dataclasses import replace
from typing import Any

import pytest
from ml_collections import ConfigDict

from icl_lab.families.regression.config import RegressionConfig
from icl_lab.lab.configs.presets import preset, resolve, title_of
from icl_lab.runners import flags
from icl_lab.src.checks import ConfigError, UsageError

# (learning rate, gradient clip, activation clip) by number of layers, and what holds at any depth. Source: the
# published code of von Oswald et al. 2023 and the project's contract. Clip 0 is off.
CONCATENATED = {1: (1e-3, 1e-3, 0), 2: (1e-3, 1e-3, 0), 3: (1e-3, 10, 0), 4: (5e-4, 10, 10), 12: (5e-4, 10, 10)}
INTERLEAVED = {1: (1e-3, 10, 0), 2: (1e-3, 10, 0), 3: (1e-3, 10, 0), 4: (5e-4, 10, 10), 12: (5e-4, 10, 10)}
ANY_DEPTH = {  # (batch size, variance scale of the initialisation)
    ("lsa1", "default"): (2048, 0.002),
    ("lsa1", "paper"): (2048, 0.002),
    ("twolayer", "default"): (512, 0.5),
    ("twolayer", "paper"): (2048, 0.02),
    ("lsa1", "published"): (2048, 0.002),
    ("twolayer", "published"): (2048, 0.02),
}
MODELS = list(ANY_DEPTH)


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 12])
@pytest.mark.parametrize(("model", "name"), MODELS)
def test_the_table(model: str, name: str, depth: int) -> None:
    config = resolve(preset(model, name, depth))
    training = config.training
    by_depth = (training.lr, training.grad_clip, config.model.activation_clip)
    assert by_depth == (CONCATENATED if model == "lsa1" else INTERLEAVED)[depth]
    assert (training.batch_size, config.model.init_scale) == ANY_DEPTH[model, name]
    assert (training.b1, training.b2, training.weight_decay) == (0.9, 0.98, 0.0)
    assert config.model.num_layers == depth


@pytest.mark.parametrize(
    ("model", "name", "depth", "recurrent", "steps"),
    [
        ("lsa1", "default", 1, False, 5000),
        ("lsa1", "paper", 1, False, 5000),
        ("lsa1", "paper", 2, False, 50_000),
        ("lsa1", "paper", 5, False, 50_000),
        ("lsa1", "paper", 2, True, 5000),
        ("lsa1", "paper", 12, True, 5000),
        ("lsa1", "published", 1, False, 5000),
        ("lsa1", "published", 12, False, 50_000),
        ("twolayer", "published", 2, False, 10_000),
        ("twolayer", "paper", 2, False, 10_000),
        ("twolayer", "default", 2, False, 5000),
    ],
)
def test_steps(model: str, name: str, depth: int, recurrent: bool, steps: int) -> None:
    config = resolve(preset(model, name, depth, recurrent))
    assert (config.training.steps, config.model.recurrent) == (steps, recurrent)


# What the published stacks do otherwise: an MLP without biases and a clip before it; and where each of several layers
# has untied weights, one MLP for all of them and no norm before the first. Source: a comparison with that program.
PUBLISHED_STACK = {"mlp_bias": False, "clip_before_mlp": True}
# Its interleaved tokens have as many channels as x and are read in their last, which is one of the code's.
PUBLISHED_TOKENS = {"lsa1": {}, "twolayer": {"tokens": "interleaved_shared", "prediction_channel": "last"}}


@pytest.mark.parametrize("model", ["lsa1", "twolayer"])
@pytest.mark.parametrize(("depth", "recurrent"), [(1, False), (1, True), (2, False), (5, False), (12, False)])
def test_published_is_paper_with_the_published_stack(model: str, depth: int, recurrent: bool) -> None:
    own = depth > 1 and not recurrent
    paper, published = (resolve(preset(model, name, depth, recurrent)) for name in ("paper", "published"))
    stack = replace(paper.model, **PUBLISHED_STACK, shared_mlp=own, first_norm=not own, **PUBLISHED_TOKENS[model])
    assert published == replace(paper, model=stack, preset="published")


def test_published_recurrent_layers_keep_their_norm() -> None:
    published = resolve(preset("lsa1", "published", 10, True)).model
    assert (published.shared_mlp, published.first_norm, published.mlp_bias) == (False, True, False)


@pytest.mark.parametrize("model", ["sine", "sine_control"])
def test_published_sines_are_of_one_parameter(model: str) -> None:
    paper, published = (resolve(preset(model, name)) for name in ("paper", "published"))
    assert (paper.data.tied_phase, published.data.tied_phase) == (False, True)
    training = replace(paper.training, steps=20_000)
    assert published == replace(paper, data=replace(paper.data, tied_phase=True), training=training, preset="published")


def test_published_languages_have_the_published_strings_codes_and_training() -> None:
    config = resolve(preset("languages", "published"))
    assert (config.data.negatives, config.data.max_length, config.data.num_pairs) == ("random_hash", 20, 10)
    code = config.code
    assert (code.kind, code.scale, code.autoencoder_input, code.constant) == ("autoencoder", "raw", "raw_index", False)
    assert config.model.query_in_keys
    training = config.training
    assert (training.batch_size, training.steps, training.lr, training.schedule) == (
        64,
        70_000,
        1e-3,
        "cosine_oscillation",
    )
    assert (training.b2, training.grad_clip, config.model.init_scale) == (0.999, 0.0, 1.0)
    encoder = resolve(preset("autoencoder", "published"))
    assert (encoder.model.input, encoder.model.dim, encoder.model.hidden) == ("raw_index", 16, 8)
    assert encoder.negative_share == 0


def test_a_model_that_is_in_no_published_code_has_no_such_preset() -> None:
    """Codes on concatenated tokens are not."""
    with pytest.raises(KeyError, match="published"):
        preset("lsa1_pe", "published")
    for words in (["--preset", "published"], ["--preset=publishd"]):
        with pytest.raises(UsageError, match=r"--preset: invalid choice: .*choose from '?default'?, '?paper'?\)"):
            flags.read("lsa1_pe", "runners.run lsa1_pe", "", words)
    assert flags.read("sine", "runners.run sine", "", ["--preset", "published", "--control"]).config.data.tied_phase


@pytest.mark.parametrize("name", ["default", "paper"])
def test_the_models(name: str) -> None:
    """lsa1: a linear layer without codes on (x, y); twolayer: softmax below linear, interleaved tokens, codes of 10."""
    one, two = resolve(preset("lsa1", name)), resolve(preset("twolayer", name))
    assert (one.name, one.model.tokens, one.model.pos_enc_size) == ("lsa1", "concatenated", 0)
    assert [one.model.kind(layer) for layer in range(one.model.num_layers)] == ["linear"]
    assert (two.name, two.model.tokens, two.model.pos_enc_size) == ("twolayer", "interleaved", 10)
    assert [two.model.kind(layer) for layer in range(two.model.num_layers)] == ["softmax", "linear"]
    for config in (one, two):
        assert (config.architecture.token_width, config.architecture.num_rows) == {
            "lsa1": (11, 11),
            "twolayer": (21, 21),
        }[config.name]
        assert (config.data.dim, config.data.num_pairs, config.data.input_distribution) == (10, 10, "uniform")
        assert (config.data.input_range, config.data.weight_scale, config.data.noise_std) == (1.0, 1.0, 0.0)
        assert (config.eval_every, config.eval_tasks, config.test_tasks) == (500, 2048, 10_000)
        assert config.model.num_heads == 1
        assert config.preset == name


@pytest.mark.parametrize("model", ["lsa1", "twolayer"])
def test_a_preset_is_clean_and_in_random_order(model: str) -> None:
    config = resolve(preset(model))
    for context in (config.base, config.train, config.eval):
        assert (context.ordering, context.noise_mode, context.noise_placement) == ("random", "clean", "mixed")
        assert (context.noise_p, context.noise_sigma, context.difficulty) == (0.0, 0.0, "gd_error")


def set_misspelt(config: ConfigDict) -> None:
    config.training.lrr = 1.0


def set_at_the_top(config: ConfigDict) -> None:
    config.lr = 1.0


def set_by_item(config: ConfigDict) -> None:
    config["model"]["heads"] = 2


@pytest.mark.parametrize("change", [set_misspelt, set_at_the_top, set_by_item])
def test_a_preset_is_locked(change: Any) -> None:
    with pytest.raises((AttributeError, KeyError)):
        change(preset("lsa1"))


def test_a_locked_preset_can_be_changed_where_it_has_fields() -> None:
    config = preset("lsa1")
    config.training.lr = 0.25
    assert resolve(config).training.lr == 0.25


def test_presets_share_nothing() -> None:
    """Changing one preset does not reach the next one: no table is handed out."""
    first = preset("twolayer", "paper")
    first.training.lr = 7.0
    first.base.ordering = "easy2hard"
    assert resolve(preset("twolayer", "paper")) != resolve(first)
    assert resolve(preset("twolayer", "paper")).base == RegressionConfig().base


def test_there_is_no_preset_of_another_name() -> None:
    with pytest.raises(ConfigError, match=r"unknown model 'lsa2'; known are lsa1.*, did you mean lsa"):
        preset("lsa2")
    with pytest.raises(KeyError, match="papers"):
        preset("lsa1", "papers")


def test_a_title_says_how_many_layers_where_a_model_has_others() -> None:
    """The sweep's directories and the figures' captions have it; the column `model` keeps the name."""
    assert title_of(resolve(preset("lsa1"))) == "lsa1"
    assert title_of(resolve(preset("lsa1", num_layers=2))) == "lsa1_2layers"
    assert title_of(resolve(preset("twolayer"))) == title_of(resolve(preset("twolayer", "paper"))) == "twolayer"
    assert title_of(resolve(preset("twolayer", num_layers=1))) == "twolayer_1layer"
    named = replace(resolve(preset("lsa1", num_layers=2)), name="mine")
    assert title_of(named) == "mine"
    assert title_of(resolve(preset("autoencoder"))) == "autoencoder"
