"""What all figures have in common: a caption of two lines at most, and where the rest of it is."""

from pathlib import Path

from PIL import Image

from icl_lab.plots import style


def test_a_caption_has_two_lines_and_the_file_keeps_what_they_cannot_hold(tmp_path: Path) -> None:
    """Whole parts between semicolons alone are left out, and never the first."""
    figure, _ = style.styled(style.new_figure)(width=3.3, height=2.0)
    parts = ["what is shown", "n = 5 seeds (0-4)", *(f"a condition that all runs share, number {k}" for k in range(9))]
    style.caption(figure, "; ".join(parts))
    shown = figure.get_supxlabel()
    assert shown.count("\n") == 1
    assert " ".join(shown.replace("\N{NO-BREAK SPACE}", " ").split()) == "; ".join(parts[: shown.count(";") + 1])
    assert style.whole_caption(figure) == "; ".join(parts)
    style.save(figure, tmp_path / "figure.png")
    with Image.open(tmp_path / "figure.png") as image:
        assert image.info["Description"] == "; ".join(parts)
    style.caption(figure, "; ".join(parts[:2]))
    style.save(figure, tmp_path / "short.png")
    with Image.open(tmp_path / "short.png") as image:
        assert "Description" not in image.info
    style.caption(figure, long := "one part " * 30)
    assert style.whole_caption(figure) == long.strip()
