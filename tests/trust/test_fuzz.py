"""Ten thousand damaged inputs to every reader and parser: each is accepted or one of the user's errors.

Nothing hangs, nothing else is raised, nothing is written. Figures are drawn from damaged files in `test_fuzz_figures`.
"""

import json
import math
import random
import string
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab import store
from icl_lab.analysis import compare, shifts
from icl_lab.analysis.development.llc_curve import read_curve, read_like
from icl_lab.analysis.llc import settings as llc_settings
from icl_lab.analysis.llc import traces
from icl_lab.analysis.llc.settings import Settings
from icl_lab.benchmarks import bench, report
from icl_lab.families.languages import expressions
from icl_lab.lab import cli
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.lab.configs.registry import outputs_of
from icl_lab.lab.executors import choice
from icl_lab.lab.registries import FAMILIES
from icl_lab.runners import summary
from icl_lab.scripts import gpu_check
from icl_lab.src.data_config import DataConfig
from icl_lab.src.words import words_of
from icl_lab.store import checkpoint, export, layout, listing, manifest, ownership, provenance, rundir, snapshots
from icl_lab.store.atomic import csv_bytes, write_csv
from icl_lab.store.metrics import append_metrics, read_metrics
from icl_lab.store.params import read_params
from icl_lab.store.readers import read_csv, read_npy
from icl_lab.studies import conjecture, conjecture_page, drawing, ledger
from icl_lab.studies.order_noise import table as order_cells
from icl_lab.studies.order_noise.agreement import read_predictions
from icl_lab.studies.study import load
from icl_lab.sweeps import collect, status, table
from icl_lab.sweeps.plan_file import read_plan, read_plans
from tests.analysis.llc_runs import estimated, trained, words
from tests.doors import snapshot
from tests.runners.tiny import LSA1, SIZES, Workshop, copied
from tests.sweeps.tiny_sweep import GRID, Paths
from tests.sweeps.tiny_sweep import copied as copied_sweep
from tests.trust.damage import BY_SUBPROCESS, INPUTS, Readers, damage, is_read, mutated

pytestmark = pytest.mark.robust

REPRODUCTION = load("reproduction")
SHARES = [0.03, pytest.param(1.0, marks=pytest.mark.slow)]


def test_there_are_ten_thousand_inputs() -> None:
    assert sum(INPUTS.values()) >= 10_000
    assert BY_SUBPROCESS >= 200


# --- files ---


class Ignored:
    """TensorBoard's place, where nothing is written."""

    def __init__(self, *_: object) -> None: ...

    def write(self, step: int, values: dict[str, float]) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def run(workshop: Workshop, tmp_path: Path) -> Path:
    """A finished run with snapshots and traces, to be damaged."""
    run = copied(trained(workshop, "lsa1"), tmp_path / "runs" / "run")
    estimated(workshop, run, *words())
    (run / layout.LOCK).write_bytes(ownership.Owner("0" * 16, "elsewhere", 1, "1").content())
    return run


def of_run(run: Path) -> Readers:
    """Who reads each file of a run."""

    def listed() -> list[listing.Entry]:
        return listing.list_runs(run.parent)

    def exported() -> object:
        return export.main([str(run.parent), "--tensorboard", str(run.parent / "logs")])

    readers: dict[str, list[Callable[[], object]]] = {
        layout.CONFIG: [
            lambda: rundir.read_config(run),
            lambda: store.load(run),
            listed,
            lambda: rundir.stored_id(run),
        ],
        layout.META: [
            lambda: rundir.read_status(run),
            lambda: provenance.is_bitwise(rundir.read_meta(run)),
            lambda: provenance.changed_files(rundir.read_meta(run)),
            lambda: provenance.resumed_notice([rundir.read_meta(run)]),
            listed,
            exported,
        ],
        layout.METRICS: [
            lambda: read_metrics(run),
            lambda: read_metrics(run, ("eval_gd_loss",)),
            listed,
            exported,
        ],
        layout.SUMMARY: [
            lambda: rundir.read_json(run / layout.SUMMARY),
            lambda: compare.compare([run]),
            lambda: summary.summary_text(run),
            lambda: store.table(run.parent),
            listed,
        ],
        layout.PARAMS: [lambda: read_params(run), lambda: store.load(run)],
        layout.ANALYSIS_BATCH: [lambda: store.load(run)],
        layout.SNAPSHOTS: [lambda: list(snapshots.read(run)), lambda: snapshots.steps(run)],
        layout.MANIFEST: [
            lambda: manifest.names(run),
            lambda: manifest.files(run),
            lambda: manifest.foreign_files(run),
        ],
        layout.LOCK: [lambda: ownership.read(run / layout.LOCK)],
        layout.ALIGNMENT_CURVE: [lambda: read_csv(run / layout.ALIGNMENT_CURVE, ("step",))],
        layout.LLC: [lambda: read_csv(run / layout.LLC, ("step", "llc"))],
        layout.WEIGHTS: [lambda: store.readers.read_npz(run / layout.WEIGHTS, ("kq",))],
    }
    return {run / name: those for name, those in readers.items()}


@pytest.mark.parametrize("share", SHARES)
def test_damaged_files_of_runs_are_read_or_refused(
    share: float, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "TensorBoard", Ignored)
    monkeypatch.setattr("icl_lab.lab.environment.find_spec", lambda name: name)  # as if it was installed
    assert 0 < damage("runs", share, of_run(run), 1, tmp_path) < 1  # some damage is none


@pytest.mark.parametrize("share", SHARES)
def test_damaged_files_of_sweeps_are_read_or_refused(share: float, swept: Paths, run: Path, tmp_path: Path) -> None:
    at = copied_sweep(swept, tmp_path / "sweep")
    plan, cell = next(at.runs.glob("plan_*.json")), next(at.runs.glob(f"*/{layout.SUMMARY}")).parent
    trace = next((run / layout.LLC_TRACES).iterdir())
    state = {"w": np.ones((3, 2), np.float32), "step": np.int32(4)}
    checkpoint.save(run, 7, state, {"step": 7})
    array = tmp_path / "array.npy"
    np.save(array, np.arange(12.0).reshape(3, 4))
    config, rows = rundir.read_config(cell), read_plans(at.runs)
    analyses = [name for name in outputs_of(FAMILIES[config.family]).columns.files.values() if (cell / name).exists()]
    assert analyses
    readers: Readers = {
        plan: [lambda: read_plan(plan)],
        at.out: [lambda: table.read(at.out), lambda: store.table(at.out)],
        trace: [lambda: traces.read_row(trace), lambda: traces.read_digest(trace)],
        layout.checkpoint(run, 7): [lambda: checkpoint.restore_last([run], state)],
        array: [lambda: read_npy(array)],
        cell / layout.META: [lambda: status.main(["--runs_dir", str(at.runs)])],
        **{
            cell / name: [lambda: collect.run_files(cell, config), lambda: collect.current_rows(rows, at.runs, at.out)]
            for name in (layout.SUMMARY, *analyses)
        },
    }
    assert 0 < damage("sweeps", share, readers, 2, tmp_path) < 1


def growing_snapshots(folder: Path) -> Readers:
    """Of a run in training, with two of three snapshots."""
    params = {"layer": {"w": np.ones((2, 3), np.float32), "b": np.ones(3, np.float32)}}
    snapshots.begin(folder, [0, 5, 7], params)
    for step in (0, 5):
        snapshots.write(folder, step, params)
        append_metrics(folder, {"step": step})

    def so_far() -> object:
        snapshots.check(folder)
        return list(snapshots.so_far(folder, snapshots.steps(folder)))

    names = (layout.GROWING_SNAPSHOTS, layout.SNAPSHOTS_INDEX, layout.METRICS)
    return {folder / name: [so_far] for name in names}


def llc_curve(folder: Path, config: bytes) -> Readers:
    """Of a run with an LLC at each of twelve checkpoints."""
    chains = {"settings": "0123abcd", "verdict": "undecided", "reasons": "", "null_loss": 2.0, **asdict(Settings())}
    rows = [
        chains | {"step": step, "llc": step, "llc_low": step - 1, "llc_high": step + 1, "loss": 1 / (1 + step)}
        for step in range(12)
    ]
    write_csv(folder / layout.LLC, rows)
    (folder / layout.CONFIG).write_bytes(config)
    first = read_curve(folder)
    return {folder / layout.LLC: [lambda: read_curve(folder), lambda: read_like(folder, first)]}


def benchmark_results(path: Path, results: Path, monkeypatch: pytest.MonkeyPatch) -> Readers:
    """Of a machine, some of them; and of a check of a GPU that was begun."""
    facts = json.loads((results / "amd-epyc-2-threads.json").read_bytes())
    facts["results"] = {name: facts["results"][name] for name in ("lsa1_1", "evaluation", "same_loss")}
    path.write_text(json.dumps(facts))
    monkeypatch.setattr(gpu_check, "_device", lambda: "cpu")
    monkeypatch.setattr(gpu_check, "git_commit", lambda: "0123")
    check = path.with_name("gpu_check.json")
    check.write_text(json.dumps(gpu_check._so_far(check, True) | {"parts": {"tests": {"exit_status": [0, 1]}}}))
    return {
        path: [lambda: bench._earlier(path, facts), lambda: report.section([path])],
        check: [lambda: [any(part["exit_status"]) for part in gpu_check._so_far(check, True)["parts"].values()]],
    }


def of_studies(folder: Path, report: Path) -> Readers:
    """The ledger, the rates at which its rules err, what a figure is drawn with, and a conjecture's results."""
    (folder / "ledger").mkdir(parents=True)
    claims, rates, bundle = folder / ledger.TABLE, folder / ledger.ERROR_RATES, folder / "sizes.json"
    claims.write_bytes(b"".join((report / ledger.TABLE).read_bytes().splitlines(keepends=True)[:6]))
    rates.write_bytes((report / ledger.ERROR_RATES).read_bytes())
    bundle.write_bytes((report / "reproduction" / "sizes.json").read_bytes())
    bundle.with_suffix(".png").touch()
    predictions, cells = (folder / name for name in (order_cells.PREDICTIONS, order_cells.CELLS))
    for path in (predictions, cells):
        content = (report / order_cells.FOLDER / path.name).read_bytes()
        path.write_bytes(b"".join(content.splitlines(keepends=True)[:6]))
    history = folder / conjecture_page.HISTORY
    row = {"date": "2026-01-01", "file_hash": "a", "file_commit": "", "profile": "quick", "accepted": "", "n": 3}
    history.write_bytes(csv_bytes([row | {"verdict": "reproduced"}]))
    distances = folder / layout.ALGORITHM_DISTANCE
    columns = ("step", "row", "column", "measure", "value", "reason")
    measures = ("cosine", "difference", "loss_ratio")
    lines = [(step, "tf", "gd", name, 0.5, "") for step in (0, 100, "final") for name in measures]
    write_csv(distances, [dict(zip(columns, line, strict=True)) for line in lines])

    def distances_of_a_run() -> object:
        conjecture.table_of.cache_clear()
        return [figure.rows({conjecture.TRAINED: [folder]}) for figure in conjecture.FIGURES]

    return {
        claims: [
            lambda: ledger.read_measurements(claims),
            lambda: ledger.page(ledger.rows_of([REPRODUCTION], ledger.known(folder))),
        ],
        rates: [lambda: ledger.page([], (), ledger.error_rates_in(folder))],
        bundle: [lambda: drawing.as_drawn(REPRODUCTION, folder)],
        history: [lambda: conjecture_page._history(history, row | {"file_hash": "b"})],
        distances: [distances_of_a_run],
        predictions: [lambda: read_predictions(predictions)],
        cells: [lambda: order_cells.read_cells(cells.parent), lambda: order_cells.number_planned(cells.parent)],
    }


@pytest.mark.parametrize("share", SHARES)
def test_damaged_results_are_read_or_refused(
    share: float, run: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tmp_path / "record.jsonl"
    manifest.append(record, [{"file": "a.csv", "writer": "b", "sha256": "0" * 64}] * 3)
    readers: Readers = {
        record: [lambda: list(manifest.entries(record))],
        **growing_snapshots(tmp_path / "growing"),
        **llc_curve(tmp_path / "curve", (run / layout.CONFIG).read_bytes()),
        **benchmark_results(tmp_path / "bench.json", root / "benchmarks" / "results", monkeypatch),
        **of_studies(tmp_path / "report", root / "report"),
    }
    assert 0 < damage("results", share, readers, 3, tmp_path) < 1


def test_a_damaged_checkpoint_is_left_for_the_one_before(run: Path) -> None:
    state = {"w": np.ones(3, np.float32)}
    checkpoint.remove_after(run, 0)  # the state that a finished run keeps
    for step in (10, 20):
        checkpoint.save(run, step, {"w": np.full(3, step, np.float32)}, {"step": step})
    last = layout.checkpoint(run, 20)
    last.write_bytes(last.read_bytes()[:-5])
    step, (arrays,), damaged = checkpoint.restore_last([run], state)
    assert step == 10
    assert damaged == [last.with_name(f"{last.name}.damaged")]
    assert arrays["w"].tolist() == [10.0] * 3


# --- words ---


def parsers() -> dict[str, tuple[tuple[str, ...], Callable[[str], object]]]:
    """what is parsed -> valid texts, and who parses them."""

    def overridden(text: str) -> object:
        config, (name, _, value) = preset("lsa1", "default"), text.partition("=")
        set_values(config, {name: value})
        return resolve(config)

    def settings(text: str) -> object:
        built = cli.Parser("test", "")
        llc_settings.add_flags(built)
        choice.add_flags(built)
        return llc_settings.settings_of(built.parse(text.split()))

    def selected(text: str) -> object:
        built = cli.Parser("test", "")
        built.add_argument("--checkpoints", type=llc_settings.selection)
        return built.parse([f"--checkpoints={text}"])

    flags = ("--eps 1e-4 --chains 3", "--nbeta 10 --mask linear", "--slurm partition=a,minutes=3 --task_gpus 0.25")
    return {
        "override": (
            ("data.dim=4", "training.lr=1e-3", "model.num_layers=2", "noise_p=0.5", "snapshots=true"),
            overridden,
        ),
        "expression": (
            ("a*bc*", "((a|b)c)*", "(abc?)*", "[a-c]b{2,3}", "(ab|ba)+"),
            lambda t: expressions.of_expression(t, "abc"),
        ),
        "shift": (
            ("num_pairs=5", "spectrum=given,eigenvalues=1:.5:.25", "task_mean=1,noise_std=.5"),
            lambda text: shifts.shifted(DataConfig(dim=3), text),
        ),
        "selection": (("all", "last", "every:3", "log:30:50", "100,200"), selected),
        "settings": (flags, settings),
        "words": (("a,b", "(a, b)", "a{1,2},b", "((a|b)c)*"), words_of),
    }


def damaged_text(draw: random.Random, text: str) -> str:
    alphabet = string.printable + "äΩ∞\u202e\u0661\x00"
    content = mutated(draw, text.encode()).decode(errors="replace")[:500]
    if draw.random() < 0.5:
        at = draw.randint(0, len(content))
        content = content[:at] + draw.choice(alphabet) + content[at:]
    return content


@pytest.mark.parametrize("share", [0.05, pytest.param(1.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", parsers())
def test_damaged_words_are_parsed_or_refused(
    kind: str, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where a stray file would be
    texts, parse = parsers()[kind]
    draw = random.Random(4)
    for _ in range(math.ceil(share * INPUTS["words"] / len(parsers()))):
        text = damaged_text(draw, draw.choice(texts))
        is_read(lambda text=text: parse(text), text)
    assert list(tmp_path.iterdir()) == []


# --- the same by commands ---


def commands(run: Path, at: Paths) -> list[tuple[Path, list[Any]]]:
    """Files of a run and of a sweep, each with a command that reads it."""
    plan, cell = next(at.runs.glob("plan_*.json")), next(at.runs.glob(f"*/{layout.SUMMARY}")).parent
    places = ["--runs_dir", at.runs]
    return [
        (run / layout.CONFIG, ["analysis.losses", "--run", run]),
        (run / layout.META, [LSA1, *SIZES, "--out", run]),
        (run / layout.METRICS, ["plots.run_figures", "--run", run]),
        (run / layout.PARAMS, ["analysis.losses", "--run", run]),
        (run / layout.SUMMARY, ["store.runs", run.parent]),
        (plan, ["sweeps.status", *places]),
        (cell / layout.CONFIG, ["sweeps.status", *places]),
        (cell / layout.SUMMARY, ["sweeps.collect", *at.flags()]),
        (at.out, ["sweeps.collect", *at.flags(), "--append"]),
        (cell / layout.META, ["eval_noise", *GRID, "--seeds", "0,1", *at.flags(), "--executor", "serial"]),
    ]


@pytest.mark.slow
def test_commands_end_with_one_sentence(run: Path, swept: Paths, workshop: Workshop, tmp_path: Path) -> None:
    """What is refused leaves every file as it is, and none that is new."""
    draw, refused = random.Random(5), 0
    (run / layout.LOCK).unlink()
    pairs = commands(run, copied_sweep(swept, tmp_path / "sweep"))
    kept = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for number in range(BY_SUBPROCESS):
        damaged, command = pairs[number % len(pairs)]
        content = mutated(draw, kept[damaged])
        damaged.write_bytes(content)
        before = snapshot(tmp_path)
        done = workshop.run(*command, NPROC="1")
        what = f"{damaged.name} as {content[:2000]!r} to {command[0]}: {done.stderr[-3000:]}"
        assert "Traceback" not in done.stderr, what
        assert done.returncode in (0, 1, 2), what
        if done.returncode == 2:
            refused += 1
            assert done.stderr.startswith("error: "), what
            assert done.stderr.count("\n") == 1, what
            assert changed(before, snapshot(tmp_path)) == [], what
        for path, good in kept.items():
            if not path.exists() or path.read_bytes() != good:
                path.write_bytes(good)
        for path in {path for path in tmp_path.rglob("*") if path.is_file()} - {*kept}:
            path.unlink()
    assert refused > BY_SUBPROCESS / 4


def changed(before: dict[str, tuple[bytes, int]], after: dict[str, tuple[bytes, int]]) -> list[str]:
    """The files and folders that are new, gone or written, but for locks, which trying makes."""
    names = {name for name in before.keys() | after.keys() if not name.endswith(".lock")}
    return sorted(name for name in names if before.get(name) != after.get(name))
