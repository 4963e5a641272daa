"""From flags to the config in force: names of fields, their types, and what `auto` takes from where."""

import math
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_lab.families.regression.config import RegressionConfig
from icl_lab.lab.configs.keys import OUTSIDE, find_key, leaves
from icl_lab.lab.configs.presets import completed, preset, resolve, set_values
from icl_lab.lab.configs.registry import from_dict
from icl_lab.lab.configs.run import default_of, fields_of, to_dict
from icl_lab.lab.registries import FAMILIES
from icl_lab.runners import flags
from icl_lab.src.checks import ConfigError, UsageError
from icl_lab.src.config import DIFFICULTIES, NOISE_MODES, ORDERINGS, PLACEMENTS
from icl_lab.src.fields import every_kind
from icl_lab.src.words import words_of


def read(*words: str, model: str = "lsa1") -> RegressionConfig:
    """The config that a runner's command line gives."""
    return flags.read(model, "prog", "text", words).config


# Names


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("num_layers", "model.num_layers"),
        ("model.num_layers", "model.num_layers"),
        ("lr", "training.lr"),
        ("dim", "data.dim"),
        ("noise_std", "data.noise_std"),
        ("eval_every", "eval_every"),
        ("base.noise_p", "base.noise_p"),
        ("eval.ordering", "eval.ordering"),
    ],
)
def test_fields_have_a_short_and_a_dotted_name(name: str, key: str) -> None:
    assert find_key(preset("lsa1"), name) == key


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("num_layer", "num_layers"),
        ("leraning_rate", None),
        ("model.num_head", "model.num_heads"),
        ("training.lrr", "training.lr"),
        ("batchsize", "batch_size"),
    ],
)
def test_an_unknown_field_names_the_nearest(name: str, nearest: str | None) -> None:
    with pytest.raises(UsageError, match=f"unknown config key '{name}'") as caught:
        find_key(preset("lsa1"), name)
    assert nearest is None or str(caught.value).endswith(f"did you mean {nearest}?")


@pytest.mark.parametrize("name", ["ordering", "noise_p", "difficulty"])
def test_a_short_name_that_three_contexts_share_is_not_guessed(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        find_key(preset("lsa1"), name)


# Values

LEAVES = [
    (section, name)
    for section, value in fields_of(RegressionConfig()).items()
    if section not in OUTSIDE
    for name in (value if isinstance(value, dict) else [""])
]


def leaf(config: RegressionConfig, section: str, name: str) -> Any:
    owner = getattr(config, section)
    return getattr(owner, name) if name else owner


@pytest.mark.parametrize(("section", "name"), LEAVES)
def test_every_field_can_be_set_from_text(section: str, name: str) -> None:
    """Setting each field to the text of its own default, on a config that has another value, restores the default."""
    default = leaf(RegressionConfig(), section, name)
    others = {"model": "twolayer", "training": "twolayer", "name": "twolayer", "preset": "lsa1"}
    config = preset(others.get(section, "lsa1"), "paper")
    text = ",".join(default) if isinstance(default, tuple) else str(default)
    set_values(config, {f"{section}.{name}" if name else section: text})
    found = leaf(resolve(config), section, name)
    assert found == default
    assert type(found) is type(default)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("lr", "1e-4", 1e-4),
        ("lr", "1", 1.0),
        ("steps", "12", 12),
        ("recurrent", "true", True),
        ("recurrent", "0", False),
        ("attention", "softmax,linear", ("softmax", "linear")),
        ("attention", "(softmax, linear)", ("softmax", "linear")),
        ("tokens", "interleaved", "interleaved"),
    ],
)
def test_text_becomes_a_value_of_the_fields_type(name: str, text: str, value: Any) -> None:
    config = preset("lsa1")
    set_values(config, {name: text})
    section, _, field = find_key(config, name).rpartition(".")
    found = leaf(resolve(config), section, field)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("steps", "2.5", "steps is '2.5'; it must be a whole number"),
        ("steps", "", "a whole number"),
        ("lr", "fast", "lr is 'fast'; it must be a number"),
        ("recurrent", "yes", "true or false"),
    ],
)
def test_text_of_another_type_is_refused(name: str, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        set_values(preset("lsa1"), {name: text})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ()),
        (" , ", ()),
        ("a", ("a",)),
        ("a,b", ("a", "b")),
        (" a, b,", ("a", "b")),
        ("(a, b)", ("a", "b")),
        ("((a|b)c)*", ("((a|b)c)*",)),
        ("(a|b)", ("(a|b)",)),
        ("(a)|(b)", ("(a)|(b)",)),
        ("(a),(b)", ("(a)", "(b)")),
        ("((a|b)c, (ab))", ("(a|b)c", "(ab)")),
        ("a{2,3}b,c", ("a{2,3}b", "c")),
        ("a* b, c", ("a* b", "c")),  # a blank is no comma, and is not dropped
        ("(a{2,3})", ("(a{2,3})",)),
        ("a*bc*,((a|b)c)*,(abc?)*", ("a*bc*", "((a|b)c)*", "(abc?)*")),
    ],
)
def test_words_are_parted_by_commas_outside_brackets(text: str, words: tuple[str, ...]) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize("text", ["a)", "c*ba*,(b|c)a)*", "a,b]"])
def test_of_brackets_that_do_not_match_no_word_is_lost(text: str) -> None:
    assert "".join(words_of(text)) == text.replace(",", "")


def test_one_word_may_stand_as_a_tuple_of_one() -> None:
    assert words_of("(softmax,)") == ("softmax",)


@pytest.mark.parametrize("value", [None, "auto"])
def test_nothing_and_auto_leave_a_field_as_it_is(value: str | None) -> None:
    config = preset("lsa1")
    set_values(config, {"training.lr": 0.5, "base.noise_p": 0.25})
    set_values(config, {"training.lr": value, "base.noise_p": value, "train.noise_p": value})
    resolved = resolve(config)
    assert (resolved.training.lr, resolved.train.noise_p) == (0.5, 0.25)


def test_a_value_that_cannot_be_is_refused_when_resolved() -> None:
    config = preset("lsa1")
    set_values(config, {"num_heads": "2", "key_size": "7"})
    with pytest.raises(ConfigError, match="key_size is 7; it does not divide among 2 heads"):
        resolve(config)


# Flags and --config


def test_config_flags_win_over_flags() -> None:
    assert read("--lr", "0.5", "--config.lr=0.25").training.lr == 0.25
    assert read("--config.training.lr", "0.25", "--lr", "0.5").training.lr == 0.25


@pytest.mark.parametrize(
    "words", [("--num_layers", "4"), ("--config.num_layers=4",), ("--config.model.num_layers", "4")]
)
def test_depth_chooses_the_presets_row_however_it_is_given(words: tuple[str, ...]) -> None:
    config = read(*words)
    assert (config.training.lr, config.training.grad_clip, config.model.activation_clip) == (5e-4, 10.0, 10.0)
    assert config.training.steps == 50_000
    assert read(*words, "--config.recurrent=true").training.steps == 5000
    assert read(*words, "--lr", "0.5").training.lr == 0.5


def test_seeds() -> None:
    def seeds(*words: str) -> tuple[int, int]:
        config = read(*words)
        return config.data_seed, config.init_seed

    assert seeds() == (0, 0)
    assert seeds("--seed", "3") == (3, 3)
    assert seeds("--seed", "3", "--data_seed", "4") == (4, 3)
    assert seeds("--seed", "3", "--init-seed", "0") == (3, 0)


def test_what_is_not_given_is_the_presets() -> None:
    for model in ("lsa1", "twolayer"):
        for name in ("default", "paper"):
            assert read("--preset", name, model=model) == resolve(preset(model, name))


# Contexts

CONTEXT = {
    "ordering": ("ordering", st.sampled_from(tuple(ORDERINGS))),
    "noise_mode": ("noise_mode", st.sampled_from(tuple(NOISE_MODES))),
    "noise_p": ("noise_p", st.floats(0, 1)),
    "noise_sigma": ("noise_sigma", st.floats(0, 10)),
    "noise_placement": ("noise_placement", st.sampled_from(PLACEMENTS)),
}
DEFAULTS = {"ordering": "random", "noise_mode": "clean", "noise_p": 0.0, "noise_sigma": 0.0, "noise_placement": "mixed"}
# flag -> value, with `auto` and absence meaning the same
GIVEN = st.fixed_dictionaries(
    {},
    optional={
        prefix + flag: st.just("auto") | values
        for prefix in ("", "train_", "eval_")
        for flag, (_, values) in CONTEXT.items()
    }
    | {"difficulty": st.sampled_from(("auto", *DIFFICULTIES))},
)


def in_force(given: dict[str, Any], prefix: str) -> dict[str, Any]:
    """What must hold: the context's own value, else the base's, else the default; then the difficulty."""

    def value(flag: str) -> Any:
        own, base = given.get(prefix + flag, "auto"), given.get(flag, "auto")
        return own if own != "auto" else base if base != "auto" else DEFAULTS[flag]

    values = {field: value(flag) for flag, (field, _) in CONTEXT.items()}
    asked = given.get("difficulty", "auto")
    noisy = values["noise_mode"] in ("label_noise", "random_pairs")
    return values | {"difficulty": asked if asked != "auto" else "residual" if noisy else "gd_error"}


@given(GIVEN)
def test_contexts_inherit_what_is_auto(given: dict[str, Any]) -> None:
    words = [word for flag, value in given.items() for word in (f"--{flag}", str(value))]
    config = read(*words)
    for prefix, context in {"": config.base, "train_": config.train, "eval_": config.eval}.items():
        assert asdict(context) == in_force(given, prefix)
    assert from_dict(to_dict(config)) == config


def test_the_difficulty_is_of_the_configuration_not_of_the_noise_drawn() -> None:
    """p = 0 is a control of the noisy configuration and must order by the same difficulty."""
    config = read("--noise_mode", "label_noise", "--noise_p", "0", "--eval_noise_mode", "clean")
    assert (config.base.difficulty, config.train.difficulty, config.eval.difficulty) == (
        "residual",
        "residual",
        "gd_error",
    )


def test_a_context_can_be_set_through_the_config_too() -> None:
    config = read("--config.eval.noise_mode=label_noise", "--config.base.noise_p=0.5")
    assert (config.train.noise_mode, config.eval.noise_mode) == ("clean", "label_noise")
    assert (config.train.noise_p, config.eval.noise_p, config.eval.difficulty) == (0.5, 0.5, "residual")


def whole_fields() -> list[tuple[str, str]]:
    """(family, key) of every field of every family's config that is a whole number, or infinite."""
    found = []
    for family, description in FAMILIES.items():
        for key in dict.fromkeys(leaves(preset(next(iter(description.models))).to_dict()).values()):
            value = default_of(description.config, key)
            if (isinstance(value, int) and not isinstance(value, bool)) or value == math.inf:
                found.append((family, key))
    return found


@pytest.mark.parametrize(("family", "key"), whole_fields())
def test_every_whole_number_of_a_config_has_an_upper_bound(family: str, key: str) -> None:
    """Below a trillion, and refused at once: in steps, layers, strings, records or bytes a trillion ends no command."""
    config = preset(next(iter(FAMILIES[family].models)))
    section, _, name = key.rpartition(".")
    kinds = every_kind(type(getattr(FAMILIES[family].config(), section))).get(name, {}) if section else {}
    set_values(config, {f"{section}.kind": kind for kind in [*kinds][:1]}, {key: "1e12"})
    with pytest.raises(ConfigError, match=rf"{key.rpartition('.')[2]} is 1000000000000;|2\^31|2\^23"):
        completed(config)
