"""Negatives that nobody chose, and the summary's lines on strings."""

from types import SimpleNamespace

import pytest

from icl_lab.families.languages.data import LanguageData
from icl_lab.families.languages.flags import strings_lines
from icl_lab.lab.configs.presets import completed, preset, set_values


@pytest.mark.parametrize("model", ["languages", "languages_softmax", "autoencoder"])
@pytest.mark.parametrize(
    ("values", "negatives"),
    [
        ({}, "other_language"),
        ({"languages": ("a*bc*",)}, "random_abc"),
        ({"languages": ("a*bc*", "(ab)*")}, "other_language"),
        ({"languages": ("tomita1",)}, "random_abc"),
        ({"languages": ("tomita",)}, "other_language"),
        ({"languages": ("random",), "num_languages": 1}, "random_abc"),
        ({"languages": ("random",), "num_languages": 2}, "other_language"),
        ({"languages": ("a*bc*",), "negatives": "other_language"}, "other_language"),  # refused with the pools
        ({"languages": ("a*bc*",), "negatives": "near_miss"}, "near_miss"),
    ],
)
def test_negatives_that_nobody_chose_follow_the_number_of_languages(
    model: str, values: dict[str, object], negatives: str
) -> None:
    config = preset(model)
    set_values(config, values)
    assert completed(config).data.negatives == negatives


@pytest.mark.parametrize("model", ["languages", "autoencoder"])
def test_a_preset_that_chooses_negatives_keeps_them(model: str) -> None:
    config = preset(model, "published")
    set_values(config, {"languages": ("a*bc*",)})
    assert completed(config).data.negatives == "random_hash"


def test_the_lines_on_strings() -> None:
    counts = {"members": [3, 8], "non_members": [5, 5]}
    config = SimpleNamespace(data=LanguageData())
    said = ["negatives other_language", "distinct members and non-members of a language: train 3 to 8 and 5"]
    assert strings_lines(config, {"strings": {"train": counts}}) == said
    assert strings_lines(config, {}) == said[:1]  # of a run that counted none
    alone = SimpleNamespace(data=LanguageData(languages=("a*",), negatives="random_abc"))
    assert strings_lines(alone, {}) == ["negatives random_abc (of a single language)"]
