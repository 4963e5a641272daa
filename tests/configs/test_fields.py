"""What `--config.help` lists: every field that means something, as it is."""

import subprocess
import sys
from pathlib import Path

import pytest

from cli import UsageError
from configs.fields import MEANINGS, fields
from configs.keys import leaves
from configs.meaning import without_meaning
from configs.overrides import resolve, set_values
from configs.presets import ARCHITECTURE, preset
from configs.regression import RegressionConfig
from configs.run import to_dict


def every_field() -> set[str]:
    """The dotted names of a config's fields."""
    return {
        f"{section}.{name}" if name else section
        for section, value in to_dict(RegressionConfig()).items()
        for name in (value if isinstance(value, dict) else [""])
    }


def test_every_field_has_a_meaning_and_no_other_has() -> None:
    assert set(MEANINGS) == every_field() - {"preset", "plugins"}
    assert all(0 < len(text.split()) < 20 for text in MEANINGS.values())
    assert len(set(MEANINGS.values())) == len(MEANINGS)


@pytest.mark.parametrize("model", ARCHITECTURE)
def test_the_fields_are_those_with_a_meaning(model: str) -> None:
    listed = [name for name, *_ in fields(preset(model))]
    idle = without_meaning(resolve(preset(model)))
    expected = [name for name in every_field() if name not in idle and name.split(".")[0] not in idle]
    assert len(set(listed)) == len(listed)
    assert set(listed) == {*expected} - {"preset", "plugins"}


@pytest.mark.parametrize("model", ARCHITECTURE)
@pytest.mark.parametrize("name", ["default", "paper"])
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
    for model in ARCHITECTURE:
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
        ("runners.run_task_diversity --model large", ["model.num_layers whole number 12"], "model.tokens"),
        ("runners.run_sine --control", ["model.step_size number 0.01"], "model.num_layers"),
        ("eval_order --models lsa1,twolayer", ["fields of lsa1", "fields of twolayer"], "data_seed"),
        ("eval_diversity --config.dim=8", ["data.num_tasks whole number 16"], "data_seed"),
        ("report.study", ["fields of lsa1_pe", "model.pos_enc_size whole number 20"], "data_seed"),
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
