"""Fields that earlier versions called otherwise: their old names give what they gave."""

from typing import Any

import pytest

from cli import UsageError
from configs.keys import RENAMED, find_key, leaves, renamed
from configs.overrides import resolve, set_values
from configs.presets import preset
from runners import flags


def schedule(model: str, *words: str) -> str:
    """The schedule that a runner's command line gives."""
    config: Any = flags.read(model, "prog", "text", words).config
    return str(config.training.schedule)


@pytest.mark.parametrize("prefix", ["", "training."])
@pytest.mark.parametrize(
    ("model", "typed", "found"),
    [
        ("lsa1", "cosine=true", "cosine"),  # constant in the preset
        ("lsa1", "cosine=1", "cosine"),
        ("lsa1", "cosine=False", "constant"),
        ("lsa1", "triangle=TRUE", "triangle"),
        ("lsa1", "triangle=0", "constant"),
        ("lsa", "cosine=false", "constant"),  # cosine in the preset
        ("lsa", "cosine=true", "cosine"),
        ("lsa", "triangle=false", "cosine"),
        ("tiny", "triangle=false", "constant"),  # triangle in the preset
        ("tiny", "triangle=true", "triangle"),
        ("tiny", "cosine=false", "triangle"),
    ],
)
def test_a_schedule_that_had_a_truth_value_of_its_own(model: str, prefix: str, typed: str, found: str) -> None:
    assert schedule(model, f"--config.{prefix}{typed}") == found


def test_values_that_are_read_already_serve_too() -> None:
    config = preset("lsa1")
    set_values(config, {"cosine": True})
    assert resolve(config).training.schedule == "cosine"
    set_values(config, {"training.cosine": False})
    assert resolve(config).training.schedule == "constant"


@pytest.mark.parametrize("value", ["yes", "", "cosine", "2"])
@pytest.mark.parametrize("name", ["cosine", "triangle"])
def test_another_value_is_refused_under_the_name_that_was_typed(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"^{name} is '{value}'; it must be true or false$"):
        schedule("lsa1", f"--config.{name}={value}")


def test_todays_name_is_listed_and_the_earlier_ones_are_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        schedule("tiny", "--config.help")
    assert not ended.value.code
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    assert "training.schedule" in listed
    assert not listed & {*RENAMED}


@pytest.mark.parametrize("model", ["lsa1", "lsa", "sine", "tiny"])
def test_a_renamed_key_is_no_field_and_what_it_became_is_one(model: str) -> None:
    known = leaves(preset(model).to_dict())
    for name, new in RENAMED.items():
        assert name not in known
        assert find_key(preset(model).to_dict(), new.key) == new.key
        assert renamed(name) is renamed(name.rpartition(".")[2]) is new
    assert renamed("schedule") is renamed("training.schedule") is renamed("training.cosines") is None
