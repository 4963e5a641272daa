"""What `--config.help` lists: every field that means something, as it is."""

import subprocess
import sys
from pathlib import Path

import pytest

from icl_lab.lab.configs.config_help import fields
from icl_lab.lab.configs.keys import leaves
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.lab.configs.registry import family_of_model, models
from icl_lab.lab.configs.run import fields_of
from icl_lab.lab.registries import FAMILIES
from icl_lab.src.checks import ConfigError, UsageError
from icl_lab.src.fields import meanings

OTHER = {  # values of a stack's layers that are not their defaults
    **{f"model.{name}": "2" for name in ("num_layers", "num_heads", "damping", "activation_clip", "init_scale")},
    **{
        f"model.{name}": "true"
        for name in ("recurrent", "bias", "layer_norm", "shared_mlp", "clip_before_mlp", "merged")
    },
    **{f"data.{name}": "2" for name in ("x_mean", "x_scale", "y_mean", "y_scale")},  # of a file, if it is standardised
    **{"model.key_size": "4", "model.attention": "softmax", "model.first_norm": "false"},
    **{
        "model.tokens": "interleaved_shared",
        "model.read_out": "token",
        "model.loss": "absolute_error",
    },  # of decoders of pairs
    **{f"data.{name}": "2" for name in ("chain_order", "concentration", "num_chains")},
    **{"data.trigger_rate": "0.5", "data.repeated_share": "0.5", "data.shortest_repeat": "4", "data.file": "LICENSE"},
}
# a flag of its own, and what comes with the other fields
FOUND = {"preset", "plugins", "shared", "requires", "init_from"}


def every_field(family: str) -> set[str]:
    """The dotted names of the fields of a family's config."""
    return {
        f"{section}.{name}" if name else section
        for section, value in fields_of(FAMILIES[family].config()).items()
        for name in (value if isinstance(value, dict) else [""])
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_every_field_has_a_meaning_and_no_other_has(family: str) -> None:
    said = dict(meanings(FAMILIES[family].config()))
    assert {*said} <= every_field(family) <= {*said} | FOUND
    texts = {name: str(meaning) for name, meaning in said.items()}
    assert all(0 < len(meaning.text.split()) < 20 for meaning in said.values())
    assert len(set(texts.values())) == len(texts)


@pytest.mark.parametrize("model", models())
def test_the_fields_are_those_of_the_family(model: str) -> None:
    listed = [name for name, *_ in fields(preset(model))]
    assert len(set(listed)) == len(listed)
    config = resolve(preset(model))
    kind = (
        "(a control|a stack whose MLP stands below|a file that is not standardised|a decoder of symbols|sequences of)"
    )
    idle = {f"model.{name}" for name in ("num_layers", "attention")} if model == "sine_control" else set()
    expected = every_field(config.family) - FOUND
    assert set(listed) <= expected
    assert expected - set(listed) >= idle
    for name in expected - set(listed):  # it is refused beside the others
        changed = preset(model)
        set_values(changed, {name: OTHER[name]})
        with pytest.raises(ConfigError, match=f"{name.rpartition('.')[2]} is .*, but has no meaning for {kind}"):
            resolve(changed)


@pytest.mark.parametrize(
    ("model", "name"), [(model, name) for model in models() for name in family_of_model(model).models[model]]
)
def test_the_values_are_what_the_preset_has_and_can_be_typed(model: str, name: str) -> None:
    """Setting every field to the value shown for it changes nothing."""
    config = preset(model, name)
    shown = {field: value for field, _, value, _ in fields(config)}
    typed = {field: value for field, value in shown.items() if value != "as base"}
    changed = preset(model, name)
    set_values(changed, typed)
    assert resolve(changed) == resolve(config)
    assert all(shown[field] == "as base" for field in set(shown) - set(typed))
    assert {field.split(".")[0] for field in set(shown) - set(typed)} <= {"train", "eval"}


@pytest.mark.parametrize("model", ["lsa1", "tiny", "softmax", "sine_control"])
def test_the_types_are_those_that_are_accepted(model: str) -> None:
    for field, kind, _, _ in fields(preset(model)):
        wrong = {"whole number": "1.5", "number": "x", "true/false": "maybe"}.get(kind)
        if wrong:
            with pytest.raises(UsageError, match=field.rpartition(".")[2]):
                set_values(preset(model), {field: wrong})
        else:
            set_values(preset(model), {field: "x"})


def test_every_name_can_be_set() -> None:
    for model in models():
        assert {name for name, *_ in fields(preset(model))} <= set(leaves(preset(model)))


@pytest.mark.parametrize(
    ("words", "shown", "absent"),
    [
        (
            "runners.run_softmax_copy --preset paper",
            ["model.init_scale number 0.02", "train.noise_p number as base"],
            "data.num_tasks",
        ),
        ("runners.run_concat_inputs_targets --num_layers 5", ["training.lr number 0.0005"], "model.block"),
        ("runners.run_task_diversity --model large", ["model.num_layers whole number 12"], "model.key_size"),
        ("runners.run_sine --control", ["model.step_size number 0.01"], "model.num_layers"),
        ("eval_order --models lsa1,twolayer", ["fields of lsa1", "fields of twolayer"], "data_seed"),
        ("eval_diversity --config.dim=8", ["data.num_tasks whole number 16"], "data_seed"),
    ],
)
def test_commands_list_the_fields_without_jax(words: str, shown: list[str], absent: str, root: Path) -> None:
    command, *flags = words.split()
    script = f"import sys, runpy; sys.modules['jax'] = None; runpy.run_module('{command}', run_name='__main__')"
    line = [sys.executable, "-c", script, *flags, "--config.help"]
    done = subprocess.run(line, cwd=root, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    text = " ".join(done.stdout.split())
    for part in shown:
        assert part in text
    assert absent not in text
