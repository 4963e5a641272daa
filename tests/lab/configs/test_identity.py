"""Ids of runs stay what they were, whatever fields came later."""

import pytest

from icl_lab.lab.configs import identity
from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.configs.keys import leaves
from icl_lab.lab.configs.presets import preset, resolve
from icl_lab.lab.configs.registry import family_of_model, models
from icl_lab.runners.flags import read

# model -> the ids of its presets, computed before runs had stop_when, patience, keep_best, log_norms, init_from and
# train_only, and data a file; those of lsa1 to sine_control before stacks had first_norm, shared_mlp, mlp_bias and
# clip_before_mlp, and sines tied_phase, but for what is published; those of sequences of symbols as they were first
OF_PRESETS = {
    "lsa1": {"default": "ad7438153448f986", "paper": "ad7438153448f986", "published": "2a45f76675f32418"},
    "lsa1_pe": {"default": "903877122dbca8ff", "paper": "903877122dbca8ff"},
    "twolayer": {"default": "4553a40b5ae79c39", "paper": "504d7df1a63d0fb7", "published": "3d664f9f9c71c757"},
    "lsa": {"default": "80e4ddf8d1ce2adc", "paper": "5a424234b1af690b"},
    "linear": {"default": "a9d00cd1340d3d7a", "paper": "a219630fd9b14af2"},
    "softmax": {"default": "2ba0ef21c7fe2e0b", "paper": "c997397748da6bdc"},
    "sine": {"default": "215b9ed3a1343328", "paper": "6bc0b9ddd19044e1", "published": "fecc7ca9ca078ab9"},
    "sine_control": {"default": "5174d6277a731307", "paper": "304586a7fd710579", "published": "d1accc757a854b41"},
    "tiny": {"default": "f5038c2b49353bfc", "paper": "d62a3febbddf806a"},
    "small": {"default": "e786679e60a75625", "paper": "5bbc5b100785098f"},
    "base": {"default": "91c94f0a60a75577", "paper": "4e53734801cfee8a"},
    "large": {"default": "badcdc50bde7ca79", "paper": "fc90ef05e2fb073d"},
    "hoogland": {"default": "12e056621636655c", "paper": "a2de7919b6067f7a"},
    "carroll": {"default": "70541bfe2d0abefb", "paper": "ffd9c549b9cc855e"},
    "autoencoder": {"default": "0fb95075b664e5d1", "paper": "891121b7a0047694", "published": "7b17b73d43ba304c"},
    "languages": {"default": "4c2ef66b8e41b1a2", "paper": "504984688bcb8bb7", "published": "61138acde7ba717d"},
    "languages_softmax": {"default": "74e269a9f6c8a0b1", "paper": "7e16274e7043da69", "published": "53cffdccb685c348"},
    "markov": {"default": "8dea6faac15b8947", "paper": "22f445155dd497f5"},
    "markov_plateau": {"default": "ce50c265cd6958c1", "paper": "cab223a4b5daaa34"},
    "triggers": {"default": "ffc6b5af217503c2", "paper": "c8faba7552189e5d"},
    "text": {"default": "288537580bbd7030", "paper": "12abe0186998b6d8"},
    "text_control": {"default": "9f9e23bcd4bf134b", "paper": "a0b17da50538edb4"},
    "functions_tiny": {"default": "f1adb2f921878dae", "paper": "9439ba7483e67973"},
    "functions_small": {"default": "fc2dc8e58b2a4e0f", "paper": "bdd86d21d3f89a5b"},
    "functions_standard": {"default": "77f1d3d87dd625f2", "paper": "0f7a7efc5dc38c92"},
}


def test_all_models_and_presets_have_an_id_here() -> None:
    assert {model: [*ids] for model, ids in OF_PRESETS.items()} == {
        model: [*family_of_model(model).models[model]] for model in models()
    }


@pytest.mark.parametrize("model", OF_PRESETS)
def test_fields_that_came_later_change_no_id(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "RESULTS_VERSION", 4)  # of then
    assert {name: config_id(resolve(preset(model, name))) for name in OF_PRESETS[model]} == OF_PRESETS[model]


# what came later, at its default, as a user types it
SPELLED = {
    **{"stop_when": "", "patience": "0", "keep_best": "false", "log_norms": "false", "training.train_only": ""},
    **{"data.file": "", "data.split_seed": "0", "data.standardize": "false"},
}


@pytest.mark.parametrize("model", models())
def test_a_later_field_spelled_at_its_default_is_not_given(model: str) -> None:
    known = {*leaves(preset(model).to_dict()).values()}
    assert {*SPELLED} - known <= {name for name in SPELLED if name.startswith("data.")}
    words = [f"--config.{name}={value}" for name, value in SPELLED.items() if name in known]
    plain, spelled = (read(model, "run", "", each).config for each in ([], words))
    assert spelled == plain
    assert config_id(spelled) == config_id(plain)
