"""Ten thousand damaged inputs to every reader and parser: each is accepted or one of the user's errors.

Nothing hangs, nothing else is raised, nothing is written. Inputs are valid ones with bytes flipped, cut, doubled,
spliced or replaced by what parsers trip over; seeds are fixed, so the same inputs come each time.
"""

import random
import signal
import string
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cli
import store
from analysis import llc, shifts
from analysis.measures import llc_traces
from configs.overrides import resolve, set_values
from configs.presets import preset
from executors import choice
from languages import automata
from src.checks import ConfigError
from src.data_config import DataConfig
from store import checkpoint, conditions, layout, listing, manifest, owners, rundir, snapshots, sources
from store.params import read_params
from store.readers import StoreError, read_csv, read_npy
from studies import ledger
from sweeps import status, table
from sweeps.plan import read_plan
from tests.analysis.llc_runs import estimated, trained, words
from tests.doors import snapshot
from tests.runners.tiny import LSA1, SIZES, Workshop, copied
from tests.sweeps.tiny_sweep import Paths
from tests.sweeps.tiny_sweep import copied as copied_sweep

USER_ERRORS = (cli.UsageError, ConfigError, StoreError)
SECONDS = 10  # in which an input must be read
TOKENS = (
    *(b"null", b"NaN", b"-Infinity", b"1e999", b"-1", b"0", b"9" * 400, b"true", b"[]", b"{}", b"[" * 3000, b'""'),
    *(b"\x00", b"\xff\xfe", b"\xe2\x80\xae", b"\n", b"\r\n", b",", b'"', b"\\u0000", b"../../x", b"/", b"%s", b"$(x)"),
)
FILES, WORDS, BY_SUBPROCESS = 7100, 3000, 200


def mutated(draw: random.Random, content: bytes) -> bytes:
    """A content with one to four kinds of damage."""
    for _ in range(draw.choice((1, 1, 2, 4))):
        at, size = draw.randint(0, len(content)), draw.choice((1, 2, 8, 64))
        change = draw.randrange(6)
        if change == 0 and content:
            flipped = bytearray(content)
            for _ in range(size):
                flipped[draw.randrange(len(flipped))] ^= 1 << draw.randrange(8)
            content = bytes(flipped)
        elif change == 1:
            content = content[:at]
        elif change == 2:
            content = content[:at] + content[at + size :]
        elif change == 3:
            content = content[:at] + content[max(0, at - size) :]
        elif change == 4:
            content = content[:at] + draw.choice(TOKENS) + content[at + draw.choice((0, size)) :]
        else:
            other = draw.randint(0, len(content))
            content = content[:at] + content[other : other + size] + content[at:]
    return content


@contextmanager
def limited() -> Iterator[None]:
    """An error instead of a hang."""

    def late(number: int, frame: object) -> None:
        raise AssertionError(f"it takes longer than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def is_read_or_refused(read: Callable[[], object], what: object) -> bool:
    """Whether it was accepted; anything but one of the user's errors, of one line, fails."""
    with limited(), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            read()
        except USER_ERRORS as error:
            return not str(error) and bool(pytest.fail(f"{what!r} is refused without a word"))
        except Exception as error:
            raise AssertionError(f"{what!r} raises {type(error).__name__}: {error}") from error
    return True


# --- files ---


def of_run(run: Path) -> dict[str, list[Callable[[], object]]]:
    """file of a run -> who reads it."""

    def listed() -> list[listing.Entry]:
        return listing.list_runs(run.parent)

    return {
        layout.CONFIG: [
            lambda: rundir.read_config(run),
            lambda: store.load(run),
            listed,
            lambda: rundir.stored_id(run),
        ],
        layout.META: [
            lambda: rundir.read_status(run),
            lambda: conditions.is_bitwise(rundir.read_meta(run)),
            lambda: sources.changed_files(rundir.read_meta(run)),
            lambda: conditions.notice([rundir.read_meta(run)]),
            listed,
        ],
        layout.METRICS: [lambda: rundir.read_metrics(run), lambda: rundir.read_metrics(run, ("gd_loss",)), listed],
        layout.SUMMARY: [lambda: rundir.read_json(run / layout.SUMMARY), listed],
        layout.PARAMS: [lambda: read_params(run), lambda: store.load(run)],
        layout.ANALYSIS_BATCH: [lambda: store.load(run)],
        layout.SNAPSHOTS: [lambda: list(snapshots.read(run)), lambda: snapshots.steps(run)],
        layout.MANIFEST: [
            lambda: manifest.names(run),
            lambda: manifest.files(run),
            lambda: manifest.foreign_files(run),
        ],
        layout.LOCK: [lambda: owners.read(run / layout.LOCK)],
        layout.ALIGNMENT_CURVE: [lambda: read_csv(run / layout.ALIGNMENT_CURVE, ("step",))],
        layout.LLC: [lambda: read_csv(run / layout.LLC, ("step", "llc"))],
        layout.WEIGHTS: [lambda: store.readers.read_npz(run / layout.WEIGHTS, ("kq",))],
    }


@pytest.fixture
def run(workshop: Workshop, tmp_path: Path) -> Path:
    """A finished run with snapshots and traces, to be damaged."""
    run = copied(trained(workshop, "lsa1"), tmp_path / "runs" / "run")
    estimated(workshop, run, *words())
    (run / layout.LOCK).write_bytes(owners.Owner("0" * 16, "elsewhere", 1, "1").content())
    return run


def damage(path: Path, readers: list[Callable[[], object]], number: int, draw: random.Random, tmp_path: Path) -> int:
    """Reads a file damaged in many ways; how often it was accepted."""
    good, accepted = path.read_bytes(), 0
    for _ in range(number):
        content = mutated(draw, good)
        path.write_bytes(content)
        before = snapshot(tmp_path) if draw.random() < 0.02 else None
        accepted += is_read_or_refused(draw.choice(readers), (path.name, content[:4000]))
        if before is not None:
            assert snapshot(tmp_path) == before
    path.write_bytes(good)
    return accepted


@pytest.mark.parametrize("share", [0.03, pytest.param(1.0, marks=pytest.mark.slow)])
def test_damaged_files_of_runs_are_read_or_refused(share: float, run: Path, tmp_path: Path) -> None:
    readers, draw = of_run(run), random.Random(1)
    each = int(share * FILES * 0.7 / len(readers))
    accepted = [damage(run / name, those, each, draw, tmp_path) for name, those in readers.items()]
    assert 0 < sum(accepted) < each * len(readers)  # some damage is none


@pytest.mark.parametrize("share", [0.03, pytest.param(1.0, marks=pytest.mark.slow)])
def test_damaged_files_of_sweeps_and_studies_are_read_or_refused(
    share: float, swept: Paths, run: Path, root: Path, tmp_path: Path
) -> None:
    at, draw = copied_sweep(swept, tmp_path / "sweep"), random.Random(2)
    plan = next(at.runs.glob("plan_*.json"))
    claims = tmp_path / ledger.TABLE
    claims.write_bytes(b"".join((root / "report" / ledger.TABLE).read_bytes().splitlines(keepends=True)[:6]))
    trace = next((run / layout.LLC_TRACES).iterdir())
    state = {"w": np.ones((3, 2), np.float32), "step": np.int32(4)}
    checkpoint.save(run, 7, state, {"step": 7})
    array = tmp_path / "array.npy"
    np.save(array, np.arange(12.0).reshape(3, 4))
    readers: dict[Path, list[Callable[[], object]]] = {
        plan: [lambda: read_plan(plan)],
        at.out: [lambda: table.read(at.out)],
        claims: [lambda: ledger.read_measurements(claims)],
        trace: [lambda: llc_traces.read_row(trace), lambda: llc_traces.read_digest(trace)],
        layout.checkpoint(run, 7): [lambda: checkpoint.restore_last([run], state)],
        array: [lambda: read_npy(array)],
        next(at.runs.glob("*/meta.json")): [lambda: status.main(["--runs_dir", str(at.runs)])],
    }
    each = int(share * FILES * 0.3 / len(readers))
    for path, those in readers.items():
        damage(path, those, each, draw, tmp_path)


def test_a_damaged_checkpoint_is_left_for_the_one_before(run: Path) -> None:
    state = {"w": np.ones(3, np.float32)}
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
        llc.add_flags(built)
        choice.add_flags(built)
        return llc.settings_of(built.parse(text.split()))

    flags = ("--eps 1e-4 --chains 3", "--nbeta 10 --mask linear", "--slurm partition=a,minutes=3 --task_gpus 0.25")
    return {
        "override": (
            ("data.dim=4", "training.lr=1e-3", "model.num_layers=2", "noise_p=0.5", "snapshots=true"),
            overridden,
        ),
        "expression": (
            ("a*bc*", "((a|b)c)*", "(abc?)*", "[a-c]b{2,3}", "(ab|ba)+"),
            lambda t: automata.of_expression(t, "abc"),
        ),
        "shift": (
            ("num_pairs=5", "spectrum=given,eigenvalues=1:.5:.25", "task_mean=1,noise_std=.5"),
            lambda text: shifts.shifted(DataConfig(dim=3), text),
        ),
        "selection": (("all", "last", "every:3", "100,200"), llc.check_selection),
        "settings": (flags, settings),
        "words": (("a,b", "(a, b)", "a{1,2},b", "((a|b)c)*"), cli.words_of),
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
def test_damaged_words_are_parsed_or_refused(kind: str, share: float, tmp_path: Path) -> None:
    texts, parse = parsers()[kind]
    draw = random.Random(4)
    for _ in range(int(share * WORDS / len(parsers()))):
        text = damaged_text(draw, draw.choice(texts))
        is_read_or_refused(lambda text=text: parse(text), text)
    assert list(tmp_path.iterdir()) == []


# --- the same by commands ---


def commands(run: Path) -> dict[str, list[Any]]:
    """file of a run -> a command that reads it."""
    return {
        layout.CONFIG: ["analysis.losses", "--run", run],
        layout.META: [LSA1, *SIZES, "--out", run],
        layout.METRICS: ["plots.run_figures", "--run", run],
        layout.PARAMS: ["analysis.losses", "--run", run],
        layout.SUMMARY: ["store.runs", run.parent],
    }


@pytest.mark.slow
def test_commands_end_with_one_sentence(run: Path, workshop: Workshop, tmp_path: Path) -> None:
    """What is refused leaves every file as it is, and none that is new."""
    draw, refused = random.Random(5), 0
    (run / layout.LOCK).unlink()
    kept = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    for number in range(BY_SUBPROCESS):
        name = list(commands(run))[number % len(commands(run))]
        content = mutated(draw, kept[run / name])
        (run / name).write_bytes(content)
        before = snapshot(tmp_path)
        done = workshop.run(*commands(run)[name])
        what = f"{name} as {content[:2000]!r}: {done.stderr[-3000:]}"
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
        for path in {path for path in run.rglob("*") if path.is_file()} - {*kept}:
            path.unlink()
    assert refused > BY_SUBPROCESS / 4


def changed(before: dict[str, tuple[bytes, int]], after: dict[str, tuple[bytes, int]]) -> list[str]:
    """The files and folders that are new, gone or written, but for the run's lock, which trying makes."""
    names = {name for name in before.keys() | after.keys() if Path(name).name != layout.LOCK}
    return sorted(name for name in names if before.get(name) != after.get(name))
