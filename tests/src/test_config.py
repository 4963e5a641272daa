import ast
import dataclasses
import json
import math
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.families.layerwise.config import LayerwiseConfig
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.sine.config import SineConfig
from icl_lab.lab.configs.registry import from_dict
from icl_lab.lab.configs.run import RunConfig, made_of, to_dict
from icl_lab.src import checks, config, decoder_config, fields, registries, registry
from icl_lab.src.checks import ConfigError
from icl_lab.src.config import (
    ContextConfig,
    EmbeddedModel,
    LayersTrainConfig,
    ModelConfig,
    SineModel,
    StackConfig,
    TrainConfig,
)
from icl_lab.src.data_config import DataConfig, LinearData, PoolData, QueriesData, SineData
from icl_lab.src.decoder_config import DecoderConfig

RUNS = (RegressionConfig, LayerwiseConfig, SineConfig, DiversityConfig)
PARTS = (
    *(LinearData, DataConfig, QueriesData, PoolData, SineData),
    *(StackConfig, ModelConfig, EmbeddedModel, SineModel, DecoderConfig),
    *(TrainConfig, LayersTrainConfig, ContextConfig),
)
CONFIGS = (RunConfig, *RUNS, *PARTS)
ODD = RegressionConfig(
    name="odd",
    data_seed=7,
    eval_tasks=12,
    data=DataConfig(dim=3, input_distribution="gaussian", noise_std=0.25, num_distractors=2),
    model=ModelConfig(tokens="interleaved", attention=("softmax", "linear"), num_layers=3, pos_enc_size=4, bias=True),
    training=TrainConfig(lr=3e-4, b2=0.999),
    eval=ContextConfig(ordering="easy2hard", difficulty="residual", noise_mode="label_noise", noise_p=0.1),
)


@pytest.mark.parametrize("kind", CONFIGS)
def test_frozen(kind):
    for field in dataclasses.fields(kind):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(kind(), field.name, None)


@pytest.mark.parametrize("value", [*(kind() for kind in RUNS), ODD], ids=lambda value: value.name)
def test_round_trip_through_json(value):
    text = json.dumps(to_dict(value))
    again = from_dict(json.loads(text))
    assert again == value
    assert hash(again) == hash(value)


def test_to_dict_keeps_the_values():
    values = to_dict(ODD)
    assert values["model"]["attention"] == ["softmax", "linear"]
    assert values["data"] == {
        "dim": 3,
        "num_pairs": 10,
        "input_distribution": "gaussian",
        "input_range": 1.0,
        "weight_scale": 1.0,
        "noise_std": 0.25,
        "num_distractors": 2,
        "spectrum": "isotropic",
        "spectrum_exponent": 1.0,
        "condition_number": 10.0,
        "eigenvalues": [],
        "axes": "coordinates",
        "exact_covariance": False,
        "query_covariance": "inputs",
        "task_distribution": "gaussian",
        "task_covariance": "isotropic",
        "task_mean": 0.0,
        "teacher": "linear",
        "file": "",
        "split_seed": 0,
        "standardize": False,
        "x_mean": [],
        "x_scale": [],
        "y_mean": 0.0,
        "y_scale": 1.0,
    }


@given(st.floats(1e-6, 1e3), st.floats(0, 1e3), st.integers(1, 50), st.integers(0, 2**32 - 1))
def test_any_legal_numbers_survive_json(input_range, noise_std, dim, seed):
    value = RegressionConfig(data_seed=seed, data=DataConfig(dim=dim, input_range=input_range, noise_std=noise_std))
    assert from_dict(json.loads(json.dumps(to_dict(value)))) == value


def test_missing_fields_take_their_defaults():
    tags = {"schema_version": 2, "family": "regression"}
    assert from_dict(tags | {"data": {"dim": 3}}) == RegressionConfig(data=DataConfig(dim=3))
    assert from_dict(tags) == RegressionConfig()


def test_a_whole_number_serves_as_a_float():
    value = made_of({"lr": 1}, TrainConfig)
    assert value == TrainConfig(lr=1.0)
    assert isinstance(value.lr, float)


BAD_VALUES = (
    (RunConfig, "stop_when", "test_loss < 1", "never its test set"),
    (RunConfig, "patience", -1, "at least 0"),
    (TrainConfig, "train_only", "(", "not a regular expression"),
    *(
        (kind, name, value, words)
        for kind in (DataConfig, PoolData)
        for name, value, words in (
            ("split_seed", -1, "at least 0"),
            ("x_mean", (1.0,), "no meaning for a file that is not standardised"),
            ("x_scale", (1.0,), "no meaning for a file that is not standardised"),
            ("y_mean", 0.5, "no meaning for a file that is not standardised"),
            ("y_scale", 0.0, "above 0"),
        )
    ),
    (LinearData, "dim", 0, "at least 1"),
    (LinearData, "num_pairs", 0, "at least 1"),
    (LinearData, "input_distribution", "cauchy", "uniform, gaussian"),
    (LinearData, "input_range", 0.0, "above 0"),
    (LinearData, "input_range", float("inf"), "it must be finite"),
    (LinearData, "weight_scale", -1.0, "above 0"),
    (
        LinearData,
        "weight_scale",
        1e25,
        "so labels are about 3e+25; their squares exceed 3.4",
    ),
    (LinearData, "noise_std", -0.1, "at least 0"),
    (LinearData, "noise_std", float("nan"), "it must be finite"),
    (DataConfig, "num_distractors", -1, "at least 0"),
    (DataConfig, "num_distractors", 11, "only 10 pairs"),
    (DataConfig, "spectrum", "flat", "must be one of"),
    (DataConfig, "spectrum_exponent", -1.0, "at least 0"),
    (DataConfig, "condition_number", 0.5, "at least 1"),
    (DataConfig, "eigenvalues", (1.0,), "takes 0"),
    (DataConfig, "axes", "none", "must be one of"),
    (DataConfig, "query_covariance", "none", "must be one of"),
    (DataConfig, "task_distribution", "none", "must be one of"),
    (DataConfig, "task_covariance", "none", "must be one of"),
    (DataConfig, "task_mean", math.inf, "must be finite"),
    (DataConfig, "teacher", "none", "must be one of"),
    (QueriesData, "num_queries", 0, "at least 1"),
    (PoolData, "num_pairs", 1, "a sequence is at least 2 pairs long"),
    (PoolData, "num_tasks", -1, "at least 1, or inf"),
    (PoolData, "num_tasks", 1.5, "whole number"),
    (PoolData, "num_tasks", math.nan, "whole number"),
    (PoolData, "num_tasks", 2**31, "below 2^31"),
    (PoolData, "task_distribution", "cauchy", "one of gaussian, laplace, sphere, mixture, sparse"),
    (SineData, "num_pairs", 0, "at least 1"),
    (SineData, "input_range", 0.0, "above 0"),
    (SineData, "amplitude_low", -0.1, "at least 0"),
    (SineData, "amplitude_high", 0.1, "above 0.1"),
    (StackConfig, "attention", (), "at least one layer"),
    (StackConfig, "attention", ("linear", "cubic"), "linear, softmax"),
    (StackConfig, "num_layers", 0, "at least 1"),
    (StackConfig, "num_heads", 0, "at least 1"),
    (StackConfig, "key_size", -1, "at least 0"),
    (StackConfig, "mlp_width", -1, "at least 0"),
    (StackConfig, "damping", 0.0, "above 0"),
    (StackConfig, "activation_clip", -1.0, "at least 0"),
    (StackConfig, "init_scale", 0.0, "above 0"),
    (ModelConfig, "tokens", "words", "concatenated, interleaved, interleaved_shared"),
    (ModelConfig, "prediction_channel", "first", "label, last"),
    (ModelConfig, "pos_enc_size", -2, "at least 0"),
    (ModelConfig, "pos_enc_size", 3, "even"),
    (EmbeddedModel, "d_model", -1, "at least 0"),
    (SineModel, "d_model", 1, "at least 2"),
    (SineModel, "embedded", "labels", "pairs, inputs"),
    (SineModel, "step_size", -0.1, "at least 0"),
    (DecoderConfig, "num_layers", 0, "at least 1"),
    (DecoderConfig, "num_heads", 0, "at least 1"),
    (DecoderConfig, "block", "gpt3", "one of gpt2, regression, plain"),
    (DecoderConfig, "d_model", 0, "does not divide among 1 heads"),
    (DecoderConfig, "mlp_width", -1, "a whole number of at least 0"),
    (DecoderConfig, "attention", (), "at least one layer"),
    (DecoderConfig, "attention", ("cubic",), "linear, softmax"),
    (DecoderConfig, "tokens", "concatenated", "one of interleaved, interleaved_shared"),
    (DecoderConfig, "positions", "added", "one of learned, sinusoidal, rotary, query_key, relative, none"),
    (DecoderConfig, "norm", "both", "one of pre, post"),
    (DecoderConfig, "norm", "post", "there is no layer norm to place"),
    (DecoderConfig, "mlp_ratio", -1.0, "between 0 and 1024"),
    (DecoderConfig, "mlp_ratio", 0.001, "a whole number of channels"),
    (DecoderConfig, "activation", "sine", "one of block, gelu, relu, silu, tanh"),
    (DecoderConfig, "loss", "cross_entropy", "one of half_squared_error, absolute_error"),
    (DecoderConfig, "read_out", "last", "one of block, label, token"),
    (TrainConfig, "steps", 0, "at least 1"),
    (TrainConfig, "steps", 2**31 - 1, "below 2^31 - 1"),
    (TrainConfig, "batch_size", 0, "at least 1"),
    (TrainConfig, "lr", 0.0, "above 0"),
    (TrainConfig, "b1", 1.0, "below 1"),
    (TrainConfig, "b2", -0.1, "below 1"),
    (TrainConfig, "weight_decay", -1.0, "at least 0"),
    (TrainConfig, "grad_clip", float("nan"), "it must be finite"),
    (TrainConfig, "warmup_steps", -1, "at least 0"),
    (TrainConfig, "micro_batches", 0, "at least 1"),
    (TrainConfig, "schedule", "square", "one of constant, cosine, linear_up_down"),
    (TrainConfig, "optimizer", "adam", "one of adamw, sgd"),
    (ContextConfig, "ordering", "largest", "smallnorm2largenorm"),
    (ContextConfig, "difficulty", "ridge", "residual, gd_error"),
    (ContextConfig, "noise_mode", "pink", "label_noise"),
    (ContextConfig, "noise_p", 1.1, "between 0 and 1"),
    (ContextConfig, "noise_p", -0.1, "between 0 and 1"),
    (ContextConfig, "noise_sigma", -0.5, "at least 0"),
    (ContextConfig, "noise_placement", "last", "clean_first"),
    (RunConfig, "log_records", -1, "at least 0"),
    (RunConfig, "eval_every", 0, "at least 1"),
    (RunConfig, "eval_tasks", 1, "at least 2"),
    (RunConfig, "test_tasks", 0, "at least 2"),
    (RunConfig, "name", "a/b", "a plain file name"),
    (RunConfig, "data_seed", -1, "from 0 to"),
    (RunConfig, "init_seed", 2**32, "from 0 to"),
    (RegressionConfig, "step_size_tasks", 0, "at least 2"),
    (RegressionConfig, "baselines", ("nobody",), "baselines has 'nobody'; known are preconditioned_gd"),
    (RegressionConfig, "eval_tasks", 2**31 // 121 + 1, "an array of 2^31 elements or more"),
    (RegressionConfig, "test_tasks", 10**30, "it must be below 2^31"),
    (RegressionConfig, "step_size_tasks", 2**31 - 1, "an array of 2^31 elements or more"),
    (ModelConfig, "num_layers", 1001, "it must be at most 1000, because each is compiled"),
    (DecoderConfig, "num_layers", 10**30, "it must be below 2^31"),
    (RegressionConfig, "log_records", 2**23, "records of the metrics, more than the 2^23"),
    (RegressionConfig, "eval_every", 2**31, "it must be below 2^31"),
)


@pytest.mark.parametrize(("kind", "name", "value", "words"), BAD_VALUES)
def test_a_bad_value_is_one_sentence_that_names_it(kind, name, value, words):
    with pytest.raises(ConfigError) as error:
        kind(**{name: value})
    sentence = str(error.value)
    assert name in sentence
    assert words in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"bias": True}, "bias is on, but merged matrices have none"),
        ({"key_size": 4}, "key_size is 4; merged matrices"),
    ],
)
def test_merged_matrices_have_neither_biases_nor_a_size_of_keys(other, words):
    with pytest.raises(ConfigError, match=words):
        StackConfig(merged=True, **other)


def test_every_checked_field_is_tried_above():
    """A field is tried with a bad value, where it is declared, unless every value of its type is legal."""
    free = {"preset", "plugins", "shared", "requires", "init_from", "file"}  # a word in passing, and what is found
    tried = {(kind, name) for kind, name, _, _ in BAD_VALUES}
    checked = {
        (kind, field.name)
        for kind in CONFIGS
        for field in dataclasses.fields(kind)
        if not (isinstance(field.default, bool) or dataclasses.is_dataclass(field.default) or field.name in free)
    }
    untried = {(kind, name) for kind, name in checked if not any((base, name) in tried for base in kind.__mro__)}
    assert not untried


def test_values_that_do_not_fit_together():
    with pytest.raises(ConfigError, match="over the first half"):
        TrainConfig(schedule="linear_up_down", warmup_steps=3)
    with pytest.raises(ConfigError, match="micro_batches is 3; it must divide batch_size, 8"):
        TrainConfig(batch_size=8, micro_batches=3)
    with pytest.raises(ConfigError, match="d_model is 5; it does not divide among 2 heads"):
        DecoderConfig(d_model=5, num_heads=2)
    with pytest.raises(ConfigError, match="num_layers is 2, but has no meaning for a control"):
        SineModel(step_size=0.1, num_layers=2)
    for name in ("shared_mlp", "clip_before_mlp"):
        with pytest.raises(ConfigError, match=f"{name} is True, but has no meaning for a stack whose MLP stands below"):
            SineModel(**{name: True})
    with pytest.raises(ConfigError, match="does not divide among 2 heads"):
        ModelConfig(key_size=5, num_heads=2)
    with pytest.raises(ConfigError, match="share their weights"):
        ModelConfig(attention=("softmax", "linear"), num_layers=2, recurrent=True)
    ModelConfig(attention=("softmax", "linear"), num_layers=1, recurrent=True)  # one layer is of one kind


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"dimension": 3}, "unknown config fields: dimension"),
        ({"data": {"dims": 3}}, "unknown config fields: dims"),
        ({"eval_tasks": "12"}, "eval_tasks is '12'; it must be of type int"),
        ({"eval_tasks": 12.5}, "it must be of type int"),
        ({"eval_tasks": True}, "it must be of type int"),
        ({"training": {"lr": True}}, "it must be of type float"),
        ({"training": {"lr": None}}, "it must be of type float"),
        ({"model": {"bias": 1}}, "it must be of type bool"),
        ({"model": {"attention": "linear"}}, "it must be a list of words"),
        ({"model": {"attention": [1]}}, "it must be a list of words"),
        ({"data": 3}, "a config must be an object, not int"),
        ([], "a config must be an object, not list"),
        ({"data": {"dim": 0}}, "dim is 0"),
    ],
)
def test_what_json_can_get_wrong(values, words):
    tags = {"schema_version": 2, "family": "regression"}
    with pytest.raises(ConfigError, match=words):
        from_dict(tags | values if isinstance(values, dict) else values)


@pytest.mark.parametrize(("law", "input_range"), [("uniform", 1.0), ("uniform", 3.0), ("gaussian", 0.5)])
def test_moments_of_the_input_laws(law, input_range):
    """Against SciPy's distributions."""
    data = DataConfig(input_distribution=law, input_range=input_range)
    exact = stats.uniform(-input_range / 2, input_range) if law == "uniform" else stats.norm(0, input_range)
    assert data.input_variance == pytest.approx(exact.moment(2), rel=1e-12)
    assert data.input_fourth_moment == pytest.approx(exact.moment(4), rel=1e-12)


@pytest.mark.parametrize(
    ("tokens", "rows", "data_width"), [("concatenated", 8, 4), ("interleaved", 15, 4), ("interleaved_shared", 15, 3)]
)
def test_derived_sizes(tokens, rows, data_width):
    """The label's channel is the last of the data's; the last of all is one of the code's, if there is a code."""
    data = DataConfig(dim=3, num_pairs=7)
    for channel, size, read in (("label", 4, data_width - 1), ("last", 4, data_width + 3), ("last", 0, data_width - 1)):
        model = ModelConfig(tokens=tokens, pos_enc_size=size, prediction_channel=channel)
        architecture = RegressionConfig(data=data, model=model).architecture
        assert (architecture.num_rows, architecture.data_width) == (rows, data_width)
        assert architecture.token_width == data_width + size
        assert architecture.prediction_channel == read
        assert model.interleaved == (rows == 15)


def test_the_last_kind_of_attention_repeats():
    model = ModelConfig(attention=("softmax", "linear"), num_layers=4)
    assert [model.kind(layer) for layer in range(4)] == ["softmax", "linear", "linear", "linear"]


def test_layer_names():
    assert ModelConfig(num_layers=3).layer_names == ["layer_0", "layer_1", "layer_2"]
    assert ModelConfig(num_layers=3, recurrent=True).layer_names == ["layer"]


def test_configs_need_the_standard_library_alone():
    """So that flags are checked before JAX is imported."""
    nodes = [
        node
        for part in (config, checks, decoder_config, fields, registries, registry)
        for node in ast.walk(ast.parse(Path(part.__file__).read_text()))
    ]
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom)]
    assert "dataclasses" in names
    own = {f"icl_lab.src.{name}" for name in ("checks", "config", "fields", "registries", "registry")}
    assert {name.split(".")[0] for name in names if name not in own} <= sys.stdlib_module_names


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"training": TrainConfig(batch_size=2**31 // 121 + 1)}, "batch_size is 17747799; with 11 rows of 11 channels"),
        ({"data": DataConfig(dim=2**31 - 1)}, "eval_tasks is 2048; with 11 rows of 2147483648 channels"),
        ({"data": DataConfig(num_pairs=2**31 - 1)}, "eval_tasks is 2048; with 2147483648 rows of 11 channels"),
        ({"model": ModelConfig(key_size=2**31 - 1)}, "a model of 1 layers of 2147483647 keys has 2^31 weights or more"),
        ({"model": ModelConfig(num_heads=2**31 - 1)}, "has 2^31 weights or more"),
        ({"model": ModelConfig(mlp_width=2**31 - 1)}, "has 2^31 weights or more"),
        ({"model": EmbeddedModel(d_model=2**31 - 1)}, "eval_tasks is 2048; with 11 rows of 2147483647 channels"),
        ({"data": QueriesData(num_queries=2**31 - 1)}, "eval_tasks is 2048; with 2147483657 rows of 11 channels"),
        ({"model": SineModel(d_model=2**31 - 1)}, "eval_tasks is 2048; with 11 rows of 2147483647 channels"),
        ({"model": DecoderConfig(d_model=2**30)}, "eval_tasks is 2048; with 20 rows of 1073741824 channels"),
    ],
)
def test_sizes_beyond_memory_are_refused(part, words):
    family = next(
        kind
        for kind in RUNS
        if all(type(kind.__dataclass_fields__[name].default) is type(value) for name, value in part.items())
    )
    with pytest.raises(ConfigError, match=re.escape(words)):
        family(**part)


def test_the_largest_sizes_are_allowed():
    assert 2**31 // 121 * 121 < 2**31
    RegressionConfig(eval_tasks=2**31 // 121, training=TrainConfig(batch_size=2**31 // 121, steps=2**31 - 2))


@pytest.mark.parametrize("name", ["../x", "/x", "a/b", "..", ".", ".hidden", "", "a\n", "a\x00", "a b", "$x$", "-x"])
def test_names_stay_below_the_runs_folder(name):
    with pytest.raises(ConfigError, match="it must be a plain file name"):
        RegressionConfig(name=name)


NUMBERS = [
    (kind, field.name)
    for kind in PARTS
    for field in dataclasses.fields(kind)
    if isinstance(field.default, float) and math.isfinite(field.default)
]


@pytest.mark.parametrize(("kind", "name"), NUMBERS)
@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_a_number_that_is_not_finite_is_called_so(kind, name, value):
    with pytest.raises(ConfigError, match=f"^{name} is {value}; it must be finite$"):
        kind(**{name: value})
