"""What is said beside a field is its meaning, the names it may have, and its check."""

from dataclasses import dataclass
from typing import Any

import pytest

from icl_lab.src.checks import ConfigError
from icl_lab.src.fields import check_fields, field, meanings


@dataclass(frozen=True)
class Section:
    """A section of two."""

    kind: str = field("a", "kind of {}", names=("a", "b"))
    share: float = field(0.5, "share of {}", low=0, high=1)

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class Base:
    """A config."""

    count: int = field(1, "how many", least=1)
    words: tuple[str, ...] = field(("a",), "words", names=("a", "b"))
    scale: float = field(1.0, "a scale", scale=True, open_low=True)
    free: str = field("x", "anything", names=("a", "b"), checked=False)
    unsaid: int = 0
    one: Section = field(Section(), "the first")  # noqa: RUF009 - it is frozen

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class Other(Base):
    """A config whose count has another default."""

    count: int = 2


@pytest.mark.parametrize("kind", [Base, Other])
@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"count": 0}, "count is 0; it must be a whole number of at least 1"),
        ({"count": 2**31}, "count is 2147483648; it must be below 2^31, the most that an index can count"),
        ({"words": ("a", "c")}, "words is 'c'; it must be one of a, b"),
        ({"scale": 0.0}, "scale is 0.0; it must be above 0"),
        ({"scale": 1e39}, "scale is 1e+39; it must be at most 3.40282e+38, float32's largest number"),
    ],
)
def test_a_value_that_a_field_may_not_have_is_refused(kind: Any, values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        kind(**values)
    assert str(raised.value) == sentence


def test_a_section_checks_its_own() -> None:
    with pytest.raises(ConfigError, match=r"^share is 1\.5; it must be between 0 and 1$"):
        Section(share=1.5)


def test_meanings_are_those_of_the_fields_and_of_the_sections() -> None:
    said = {name: str(meaning) for name, meaning in meanings(Other(free="y"))}
    assert said == {
        "count": "how many",
        "words": "words: a, b",
        "scale": "a scale",
        "free": "anything: a, b",
        "one.kind": "kind of the first: a, b",
        "one.share": "share of the first",
    }
