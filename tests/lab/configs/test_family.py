"""Flags come from the fields that they set; columns from fields and from numbers of a summary."""

from dataclasses import dataclass

import pytest

from icl_lab.lab.configs import columns
from icl_lab.lab.configs.family import Flag, flag_of
from icl_lab.src.fields import field


@dataclass(frozen=True)
class Section:
    """A section of two."""

    kind: str = field("a", "kind of it", names=("a", "b"))
    share: float = field(0.5, "share of it", low=0, high=1)


@dataclass(frozen=True)
class Config:
    """A config of one section."""

    count: int = field(1, "how many", least=1)
    data: Section = Section()


@pytest.mark.parametrize("owner", [Config(), Section()])
def test_a_flag_has_the_name_the_type_and_the_text_of_its_field(owner: object) -> None:
    assert flag_of(owner, "data.share") == Flag("share", "data.share", float, "share of it")
    assert flag_of(owner, "data.kind", "which", former=("what",)) == Flag(
        "which", "data.kind", str, "kind of it", ("a", "b"), former=("what",)
    )


def test_what_is_given_takes_the_place_of_what_stands_beside_the_field() -> None:
    assert flag_of(Config(), "count", text="how often", read=float) == Flag("count", "count", float, "how often")


def test_columns_are_fields_and_numbers_by_their_last_names() -> None:
    asked = columns.fields("count", "data.kind")
    assert {name: value(Config(count=3)) for name, value in asked.items()} == {"count": 3, "kind": "a"}
    summary = {"headline": {"loss": 1.0, "other": 4.0, "zero": 0.0}}
    assert {name: value(summary) for name, value in columns.headline("loss", "other").items()} == {
        "loss": 1,
        "other": 4,
    }
    assert columns.over("headline", "loss", "other")(None, summary) == 0.25
    assert columns.over("headline", "loss", "zero")(None, summary) is None
