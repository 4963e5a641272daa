"""The dashboard of local learning coefficients and the heat maps of a calibration, from tables that are made here."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from icl_lab.analysis.llc import verdict
from icl_lab.analysis.llc.estimate import diagnose
from icl_lab.analysis.llc.spectrum import Nodes, Spectrum
from icl_lab.plots import style
from icl_lab.plots.heat_maps import draw_calibration
from icl_lab.plots.llc import BOUNDS, draw_llc
from icl_lab.store import layout
from icl_lab.store.atomic import write_csv, write_json, write_npz
from tests.plots.readable import check_readable

NAME = "0123abcd"
ROW: dict[str, Any] = {
    **{"step": 0, "llc": 5.0, "llc_low": 4.0, "llc_high": 6.0, "loss": 0.1, "null_loss": 0.2, "draw_loss": 0.105},
    **{"saturation": 0.05, "acceptance": 0.9, "stability": 0.1, "trend": 0.3, "distance": 0.9, "radius": 1.0},
    **{
        "norm": 3.0,
        "verdict": "undecided",
        "reasons": "",
        "eps": 1e-4,
        "nbeta": 1000.0,
        "gamma": 100.0,
        "batch_size": 64,
    },
    **{"data": "fixed", "chains": 3, "burn_in": 20, "draws": 60},
}
GONE: dict[str, Any] = dict.fromkeys(("llc", "llc_low", "llc_high", "draw_loss", "saturation", "distance"), np.nan)
GONE |= {"acceptance": np.nan, "verdict": "none"}
GONE |= {"reasons": "cannot be computed: chain 1 diverged at draw 7, as eps is too large for these nbeta and gamma"}
TRENDING = {"verdict": "none", "reasons": "not mixed: +2.4 standard errors from the first to the last quarter"}


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are saved."""
    seen: list[Figure] = []

    def keep(figure: Figure, path: Path, run: Path | None = None) -> Path:
        figure.canvas.draw()
        seen.append(figure)
        return path

    monkeypatch.setattr(style, "save", keep)
    return seen


def drawn(run: Path, *changes: dict[str, Any]) -> None:
    """The dashboard of rows that differ from `ROW` in these, at steps 0, 100, 200, ..."""
    rows = [{"settings": NAME, **ROW, "step": 100 * place, **change} for place, change in enumerate(changes)]
    write_csv(run / layout.LLC, rows)
    for row in rows:
        excess = np.random.default_rng(row["step"]).normal(0.005, 0.002, (3, 80)).astype(np.float32)
        if np.isnan(row["llc"]):
            excess[1, 7:] = np.nan
        write_npz(run / layout.LLC_TRACES / f"{NAME}_step_{row['step']:08d}.npz", {"excess": excess})
    draw_llc(run, NAME)


def test_no_line_goes_through_what_is_not_usable(tmp_path: Path, figures: list[Figure]) -> None:
    drawn(tmp_path, {}, TRENDING, {}, {"llc": 7.0})
    joined, hollow, *_ = figures[0].axes[0].lines
    np.testing.assert_array_equal(joined.get_ydata(), [5.0, np.nan, 5.0, 7.0])
    assert (list(hollow.get_xdata()), hollow.get_markerfacecolor()) == ([100.0], "white")


def test_chains_that_diverged_are_drawn_and_named(tmp_path: Path, figures: list[Figure]) -> None:
    drawn(tmp_path, GONE, GONE, GONE)
    llc, *_ = figures[0].axes
    crosses = next(line for line in llc.lines if line.get_marker() == "x")
    np.testing.assert_array_equal(crosses.get_xdata(), [50.0, 100.0, 200.0])  # step 0 at half of the next
    assert [label.get_text() for label in llc.get_xticklabels()] == ["0", "100", "200"]
    assert figures[0].axes[6].get_title().startswith("step 0: chain 1 diverged at draw 7")


def test_a_saturated_curve_has_its_ceiling_beside_it(tmp_path: Path, figures: list[Figure]) -> None:
    drawn(tmp_path, {}, {})
    above = {"saturation": 0.9, "verdict": "none", "reasons": "saturated"}
    drawn(tmp_path, above, above)
    usable, saturated = (figure.axes[0] for figure in figures)
    assert usable.get_legend() is None
    np.testing.assert_allclose(saturated.lines[-1].get_ydata(), 1000 * (0.2 - 0.1))


@pytest.mark.parametrize("changes", [[{}], [{}] * 11, [GONE, {}, TRENDING]])
def test_the_dashboard_is_readable(changes: list[dict[str, Any]], tmp_path: Path, figures: list[Figure]) -> None:
    drawn(tmp_path, *changes)
    check_readable(figures[0], smallest=6.0, width=None)


@pytest.mark.parametrize("cell", [{"eps": 2e-4, "nbeta": 10.0, "gamma": 100.0}, None])
def test_the_heat_maps_frame_what_is_recommended(
    cell: dict[str, float] | None, tmp_path: Path, figures: list[Figure]
) -> None:
    settings = [{"eps": eps, "nbeta": 10.0, "gamma": gamma} for gamma in (10.0, 100.0) for eps in (1e-4, 2e-4)]
    rows = [ROW | setting | {"step": step} for setting in settings for step in (100, 200)]
    assert (rows[0]["eps"], rows[0]["gamma"]) == (1e-4, 10.0)
    rows = [row for row in rows[1:] if (row["eps"], row["gamma"]) != (1e-4, 10.0)]  # whose chains are too short
    write_csv(tmp_path / layout.LLC_CALIBRATION, [rows[0] | GONE, *rows[1:]])
    write_json(tmp_path / layout.LLC_ADVICE, {"cell": cell})
    draw_calibration(tmp_path)
    check_readable(figures[0], smallest=6.0, width=None)
    frames = [line for panel in figures[0].axes for line in panel.lines if line.get_color() == "red"]
    assert len(frames) == (8 if cell else 0)  # on each of four measures at two steps
    for frame in frames:
        assert {*frame.get_xdata()} == {0.5, 1.5} == {*frame.get_ydata()}  # the second column of the second row
    assert json.loads((tmp_path / layout.LLC_ADVICE).read_text())["cell"] == cell


@pytest.mark.parametrize("known", [True, False])
def test_an_estimate_is_drawn_beside_its_prediction(known: bool) -> None:
    """Where there is one, and |w*| where it is known."""
    excess = np.random.default_rng(0).exponential(0.01, (3, 200))
    one = np.ones(1)
    spectrum = Spectrum((Nodes(2 * one, one, 0 * one, 0 * one),), 1, 2.0, 2.0, 0.0) if known else None
    traces = {"excess": excess, "distance": 10 * excess}
    estimate = diagnose(traces, 100.0, 50.0, burn_in=40, norm=3.0 if known else None, spectrum=spectrum)
    figure = estimate.plot()
    figure.canvas.draw()
    chains, value, distance = figure.axes
    assert len(chains.lines) == 3 + 1  # and the estimate
    points = [container.lines[0].get_ydata()[0] for container in value.containers]
    assert points == pytest.approx(
        [estimate.value, 0.4] if known else [estimate.value]
    )  # nbeta h / 2 (nbeta h + gamma)
    assert len(distance.lines) == 3 + known
    assert value.get_title() == f"LLC: {estimate.verdict}"
    check_readable(figure, smallest=6.0, width=None)


def test_the_bounds_that_are_drawn_are_those_of_the_reasons() -> None:
    """Plots import no measures, so the numbers stand twice."""
    bounds = verdict.MOST_SATURATED, verdict.UNSTABLE, verdict.REJECTED
    assert tuple(BOUNDS[name] for name in ("saturation", "stability", "acceptance")) == bounds
