"""Figures from damaged files: each is drawn, or the file is refused by one of the user's errors."""

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from icl_lab.analysis import develop
from icl_lab.analysis import develop as develop_command
from icl_lab.plots import compare_depth, effects, predictions, style
from icl_lab.plots.algorithm_distance import draw_algorithm_distance
from icl_lab.plots.attention_quick import draw_attention
from icl_lab.plots.develop import draw_dynamics
from icl_lab.plots.fig_templates import draw_sweep
from icl_lab.plots.heat_maps import draw_calibration, draw_weights
from icl_lab.plots.llc import draw_llc
from icl_lab.plots.sines import draw_functions
from icl_lab.plots.stages import draw_stages
from icl_lab.plots.training import draw_alignment, draw_loss, draw_metrics
from icl_lab.store import layout, outputs
from icl_lab.store.atomic import write_csv, write_json, write_npz
from icl_lab.studies import drawing, ledger
from icl_lab.studies.study import Study, load
from tests.plots.test_compare_depth import GD, TF
from tests.plots.test_llc import NAME, ROW
from tests.plots.test_stages import FACTS
from tests.runners.tiny import LSA1, SIZES, Workshop, copied
from tests.sweeps.tiny_sweep import Paths
from tests.trust.damage import Readers, damage

pytestmark = pytest.mark.robust

SHARES = [0.03, pytest.param(1.0, marks=pytest.mark.slow)]
# a figure of each kind in report/, small ones
OF_STUDIES = {
    **{"capacity": "task_diversity", "quick_phase": "task_diversity", "weights_one_layer": "reproduction"},
    **{"constructed_kq": "languages", "plateau_shares": "theory", "linear_llc": "stages"},
    **{"distances_one_layer": "reproduction", "nearest_two_layers": "reproduction"},
}
WHOLE = ("weights_one_layer", "constructed_kq")  # matrices, of which a part is none
ROWS = 12  # of the other tables


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are laid out, in which all of them is drawn, and not rendered."""

    def rendered(figure: Figure, suffix: str) -> bytes:
        if suffix == "png":
            figure.draw_without_rendering()
        return suffix.encode()

    monkeypatch.setattr(style, "rendered", rendered)


def of_studies(report: Path, out: Path) -> Readers:
    """Tables of studies and the bundles beside them, as `studies.remake` reads them; further ones of commands."""
    readers: Readers = {}
    for name, study in OF_STUDIES.items():
        (figure,) = (one for one in load(study).figures if one.name == name)
        alone = Study(study, figures=[figure])
        table, bundle = out / study / f"{name}.csv", out / study / f"{name}.json"
        table.parent.mkdir(exist_ok=True, parents=True)
        lines = (report / study / table.name).read_bytes().splitlines(keepends=True)
        table.write_bytes(b"".join(lines if name in WHOLE else lines[: ROWS + 1]))
        written = json.loads((report / study / bundle.name).read_bytes())
        content = json.dumps(written | {"configs": written["configs"][:1]}).encode()
        outputs.write({bundle: content}, ledger.WRITER)  # as drawing it again does
        readers |= {path: [lambda alone=alone: drawing.redraw(alone, out)] for path in (table, bundle)}
    return readers


def of_tables(report: Path, swept: Paths, out: Path) -> Readers:
    """Tables that commands draw, and the losses of `plots.compare_depth`."""
    tables = {
        "contrasts.csv": (report / "order_noise", effects.draw_effects),
        "agreement.csv": (report / "order_noise", predictions.draw_predictions),
        swept.out.name: (swept.out.parent, draw_sweep),
    }
    readers: Readers = {}
    for name, (source, draw) in tables.items():
        lines = (source / name).read_bytes().splitlines(keepends=True)
        (out / name).write_bytes(b"".join(lines[: ROWS + 1]))
        readers[out / name] = [lambda name=name, draw=draw: draw(out / name, out / "figures")]
    gd, layers = out / "gd.json", out / "layers.json"
    gd.write_text(json.dumps(GD | {"data": {"dim": 4}, "references": {"ridge": {"mse": [1.0], "sem": [0.1]}}}))
    layers.write_text(json.dumps(TF | {"data": {"dim": 4}, "model": "lsa", "seed": 0}))

    def compared() -> object:
        return compare_depth.compare(gd, [layers, layers], out / "figures", ["ridge"])

    return readers | {gd: [compared], layers: [compared]}


def of_runs(run: Path, sine: Path, llc: Path) -> Readers:
    """Files of runs: with attention, of the sine, and what analyses leave of the LLC."""
    checkpoints = [{"settings": NAME, **ROW, "step": step} for step in (0, 100, 200)]
    write_csv(llc / layout.LLC, checkpoints)
    for one in checkpoints:
        write_npz(llc / layout.LLC_TRACES / f"{NAME}_step_{one['step']:08d}.npz", {"excess": np.full((3, 80), 0.005)})
    columns = ("step", "row", "column", "measure", "value", "value_se", "reason")
    pairs = [(row, column) for row in ("tf", "gd") for column in ("tf", "gd")]
    lines = [
        (step, row, column, measure, 0.5, 0.1, "")
        for step in (0, 100, "final")
        for row, column in pairs
        for measure in ("cosine", "difference", "loss_ratio")
    ]
    write_csv(run / layout.ALGORITHM_DISTANCE, [dict(zip(columns, line, strict=True)) for line in lines])
    cells = [(step, eps, nbeta) for step in (0, 100) for eps in (1e-4, 1e-3) for nbeta in (10.0, 100.0)]
    measured = {"gamma": 1.0, "llc": 2.0, "saturation": 0.1, "trend": 0.5, "acceptance": 0.9, "verdict": "undecided"}
    measured |= {"llc_low": 1.5, "llc_high": 2.5, "reasons": ""}
    rows = [dict(zip(("step", "eps", "nbeta"), cell, strict=True)) | measured for cell in cells]
    write_csv(llc / layout.LLC_CALIBRATION, rows)
    write_json(llc / layout.LLC_ADVICE, {"cell": {"eps": 1e-4, "nbeta": 10.0, "gamma": 1.0}})
    stage = {"series": "LLC", "data_seed": 0, "init_seed": 0, "type": "A", "delta_loss": -1.0, "delta_llc": 1.0}
    ends = [{"start": 0.0, "end": 50.0}, {"start": 50.0, "end": 999.0}]
    write_csv(llc / layout.STAGES, [stage | {"delta_llc_se": 0.1} | each for each in ends])
    write_json(llc / layout.STAGES_FACTS, FACTS)
    return {
        run / layout.METRICS: [lambda: draw_loss(run)],
        run / layout.ALIGNMENT_CURVE: [lambda: draw_alignment(run)],
        run / layout.WEIGHTS: [lambda: draw_weights(run)],
        run / layout.ATTENTION_SUMMARY: [lambda: draw_attention(run, run / layout.FIGURES)],
        layout.attention_head(run, 0, 0): [lambda: draw_attention(run, run / layout.FIGURES)],
        run / layout.ALGORITHM_DISTANCE: [lambda: draw_algorithm_distance(run)],
        sine / layout.SINE_FUNCTIONS: [lambda: draw_functions(sine)],
        sine / layout.SINE_FUNCTIONS_FACTS: [lambda: draw_functions(sine)],
        llc / layout.LLC: [lambda: draw_llc(llc, NAME)],
        llc / layout.LLC_CALIBRATION: [lambda: draw_calibration(llc)],
        llc / layout.LLC_ADVICE: [lambda: draw_calibration(llc)],
        llc / layout.STAGES: [lambda: draw_stages(llc)],
        llc / layout.STAGES_FACTS: [lambda: draw_stages(llc)],
    }


@pytest.mark.parametrize("share", SHARES)
def test_figures_of_damaged_files_are_drawn_or_refused(
    share: float, swept: Paths, twolayer_run: Path, sine_run: Path, root: Path, tmp_path: Path
) -> None:
    run, sine = copied(twolayer_run, tmp_path / "run"), copied(sine_run, tmp_path / "sine")
    (tmp_path / "tables").mkdir()
    readers = {
        **of_studies(root / "report", tmp_path / "report"),
        **of_tables(root / "report", swept, tmp_path / "tables"),
        **of_runs(run, sine, tmp_path / "llc"),
    }
    assert 0 < damage("figures", share, readers, 6, tmp_path, draws=True) < 1


@pytest.mark.slow
def test_a_damaged_development_is_drawn_or_refused(workshop: Workshop, tmp_path: Path) -> None:
    """One of another recipe is measured again, which is not tried here."""
    every_tenth = ["10" if word == "30" else word for word in SIZES]
    run = copied(workshop.finished("develop", LSA1, "--config.snapshots=true", sizes=every_tenth), tmp_path / "run")
    chains = ["--chains", "2", "--burn_in", "4", "--draws", "16", "--tasks", "64"]
    done = workshop.run("analysis.develop", "--run", run, *chains)
    assert done.returncode == 0, done.stderr
    flags = develop_command.COMMAND.read(["--run", str(run), *chains])
    recipe = develop.Recipe(develop_command.settings_of(flags), flags.checkpoints, seed=flags.seed)
    assert develop.is_developed(run, recipe)

    def measured() -> object:
        return develop.is_developed(run, recipe) and develop_command.measure(run, flags)

    readers: Readers = {
        **{run / name: [measured] for name in (layout.DEVELOP, layout.DEVELOP_TABLE, layout.ESSENTIAL_DYNAMICS)},
        run / layout.ESSENTIAL_DYNAMICS_FACTS: [lambda: draw_dynamics(run)],
        run / layout.DEVELOPMENTAL_METRICS: [lambda: draw_metrics(run)],
    }
    assert 0 < damage("development", 1.0, readers, 7, tmp_path, draws=True) < 1
