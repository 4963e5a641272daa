"""Runs of a few seconds for the tests of runners, analyses, figures and scripts, made once and shared.

Every process compiles into one cache, so all but the first of a kind start at once. A run is done to the bit whether
its programs came from there or not.
"""

import fcntl
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from icl_lab.lab.environment import processors
from icl_lab.src.batch import Batch
from icl_lab.store import layout
from tests import processes
from tests.processes import Done

ROOT = Path(__file__).resolve().parent.parent.parent
INTERRUPTED = str(Path(__file__).parent / "interrupted")  # on PYTHONPATH, it sends signals at chosen places
LSA1, TWOLAYER, SINE = "runners.run_concat_inputs_targets", "runners.run_softmax_copy", "runners.run_sine"

STEPS, EVERY, BATCH, TASKS, DIM, PAIRS = 100, 30, 64, 64, 4, 6
RECORDED = (0, 30, 60, 90, 100)  # steps with a record: the first, every EVERY-th, the last
SIZES = (
    f"--steps {STEPS} --eval_every {EVERY} --batch_size {BATCH} --config.eval_tasks={TASKS} --config.dim={DIM} "
    f"--config.num_pairs={PAIRS} --config.test_tasks=200 --config.step_size_tasks=256 --attention_batch 16"
).split()
SINE_SIZES = (
    f"--steps {STEPS} --eval_every {EVERY} --batch_size {BATCH} --config.eval_tasks={TASKS} --config.num_pairs={PAIRS} "
    "--config.test_tasks=200 --config.d_model=6 --config.mlp_width=8"
).split()

# For what is killed at a checkpoint: otherwise there is none in the first seconds.
EVERY_CHUNK = ("--checkpoint_seconds", "0")

# Threads of a run whose NPROC is unset.
THREADS = processors()


class Workshop:
    """A folder for the shared runs and the compiled programs, the same for all processes that test."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def run(self, module: str, *words: object, **environment: str) -> Done:
        """A command in a process of its own, from the repository root, with warnings as errors."""
        return processes.command(module, *words, **environment)

    def python(self, *words: object, **environment: str) -> Done:
        """Python in a process of its own; NPROC is unset unless given."""
        return processes.python(*words, **environment)

    def finished(self, name: str, module: str, *words: object, sizes: Sequence[str] = SIZES) -> Path:
        """The directory of a finished run, trained by whichever test process comes first; not to be changed."""
        out, said = self.folder / name, self.folder / f"{name}.txt"
        with open(self.folder / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not said.exists():
                done = self.run(module, *sizes, "--out", out, *words)
                assert done.returncode == 0, done.stderr
                said.write_text(done.stdout)
        return out

    def said(self, name: str) -> str:
        """What the command of a finished run printed."""
        return (self.folder / f"{name}.txt").read_text()


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """Where shared runs are made."""
    base = tmp_path_factory.getbasetemp()
    return Workshop((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "workshop")


@pytest.fixture(scope="session")
def lsa1_run(workshop: Workshop) -> Path:
    """A finished run of lsa1 with attention. Read only."""
    return workshop.finished("lsa1", LSA1, "--save_attention")


@pytest.fixture(scope="session")
def twolayer_run(workshop: Workshop) -> Path:
    """A finished run of twolayer with attention. Read only."""
    return workshop.finished("twolayer", TWOLAYER, "--save_attention")


@pytest.fixture(scope="session")
def sine_run(workshop: Workshop) -> Path:
    """A finished run of sine. Read only."""
    return workshop.finished("sine", SINE, "--config.key_size=6", sizes=SINE_SIZES)


@pytest.fixture(scope="session")
def control_run(workshop: Workshop) -> Path:
    """A finished run of sine_control. Read only."""
    return workshop.finished("sine_control", SINE, "--control", sizes=SINE_SIZES)


def copied(folder: Path, to: Path, *without: str) -> Path:
    """A copy of a run, or of a folder with runs, to be changed: without these files and the locks of other tests."""
    named = shutil.ignore_patterns(*without)
    left_out = lambda at, names: named(at, names) | layout.not_copied(at, names)  # noqa: E731
    copy = Path(shutil.copytree(folder, to, symlinks=True, ignore=left_out))
    for lock in folder.rglob(layout.LOCK):
        if (beside := copy / lock.relative_to(folder)).parent.is_dir():
            beside.touch()  # nobody owns it
    return copy


def results(run: Path) -> dict[str, bytes]:
    """Every file of a run that two trainings of one config must share to the byte.

    That is all but meta.json, which tells the time, the figures, whose format does, the manifest, and the lock.
    """
    files = {str(path.relative_to(run)): path for path in run.rglob("*") if path.is_file()}
    free = {
        name for name in files if name in (layout.META, layout.LOCK, layout.MANIFEST) or name.startswith(layout.FIGURES)
    }
    return {name: path.read_bytes() for name, path in files.items() if name not in free}


def tokens(batch: Batch, layout_of_pairs: str, code_size: int = 0) -> np.ndarray:
    """Tokens [B, R, W] row by row in float64: pairs as (x, y) or as (x, 0), (0, y); the query (x, 0); codes behind."""
    stacked = []
    for x, y, x_query in zip(batch.x, batch.y, batch.x_query, strict=True):
        rows = []
        for x_i, y_i in zip(x, y, strict=True):
            rows += [[*x_i, y_i]] if layout_of_pairs == "concatenated" else [[*x_i, 0.0], [*np.zeros_like(x_i), y_i]]
        stacked.append([*rows, [*x_query, 0.0]])
    plain = np.array(stacked, dtype=float)
    half = code_size // 2
    codes = np.zeros((plain.shape[1], code_size))
    for row in range(plain.shape[1]):
        for i in range(half):
            angle = row / 10_000 ** (2 * i / code_size)
            codes[row, i], codes[row, half + i] = np.sin(angle), np.cos(angle)
    return np.concatenate([plain, np.broadcast_to(codes, (len(plain), *codes.shape))], axis=2)


def in_float64(run: Path) -> tuple[dict[str, dict[str, np.ndarray]], Batch]:
    """A run's parameters and analysis batch in float64, read without the library's readers."""
    from safetensors.numpy import load_file

    params: dict[str, dict[str, np.ndarray]] = {}
    for key, value in load_file(run / layout.PARAMS).items():
        module, _, name = key.rpartition("/")
        params.setdefault(module, {})[name] = value.astype(float)
    with np.load(run / layout.ANALYSIS_BATCH) as archive:
        return params, Batch(**{name: archive[name].astype(float) for name in Batch._fields})
