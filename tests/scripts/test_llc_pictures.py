"""The pictures of docs/llc/reference.md: one of each verdict and each reason, and each has what it is drawn for."""

import pytest

from icl_lab.scripts.llc_pictures import REASONS, VERDICTS, Picture, estimated, reported, said
from icl_lab.store import llc_rows
from icl_lab.store.llc_rows import NONE, WORDS


def test_there_is_one_of_each() -> None:
    assert sorted(picture.title for picture in VERDICTS) == sorted({*llc_rows.VERDICTS} - {NONE})
    assert sorted(picture.title for picture in REASONS) == sorted(WORDS)


@pytest.mark.slow
@pytest.mark.parametrize("picture", [*VERDICTS, *REASONS], ids=lambda picture: picture.title)
def test_a_picture_has_the_verdict_or_the_reason_that_it_is_drawn_for(picture: Picture) -> None:
    found = estimated(picture)
    assert said(found) == picture.title
    assert (f"{found.value:.2f}" if found.value == found.value else "no number") in reported(found)
    assert ("degree" in reported(found)) == (found.verdict != NONE)
