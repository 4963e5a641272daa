"""Programs kept between processes: found again, the same results, and only in a folder of one's own."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from icl_lab.lab import caches, compile_cache

HITS_AND_MISSES = """
import collections, sys, jax
from pathlib import Path
from icl_lab.lab import compile_cache
seen = collections.Counter()
jax.monitoring.register_event_listener(lambda name, **_: seen.update([name.rpartition("/")[2]]))
compile_cache.keep_in(Path(sys.argv[1]))
jax.jit(lambda x: x @ x + 1)(jax.numpy.ones((8, 8)))
print(seen["cache_hits"], seen["cache_misses"])
"""


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*-cache")}


def test_jax_counts_hits(root: Path, tmp_path: Path) -> None:
    line = [sys.executable, "-c", HITS_AND_MISSES, str(tmp_path)]
    said = [subprocess.run(line, cwd=root, capture_output=True, text=True).stdout.split() for _ in range(2)]
    (first_hits, first_misses), (second_hits, second_misses) = [map(int, words) for words in said]
    assert (first_hits, second_misses) == (0, 0)
    assert first_misses == second_hits > 0


def kept_by(root: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    line = [
        sys.executable,
        "-c",
        "from icl_lab.lab import compile_cache; import jax; compile_cache.enable(); jax.jit(lambda x: x + 1)(1.0)",
    ]
    return subprocess.run(line, cwd=root, env=os.environ | environment, capture_output=True, text=True)


def test_commands_keep_programs_unless_jax_is_told_otherwise(root: Path, tmp_path: Path) -> None:
    own = {"XDG_CACHE_HOME": str(tmp_path)}
    assert kept_by(root, **own, JAX_ENABLE_COMPILATION_CACHE="false").returncode == 0
    elsewhere = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "mine"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    assert kept_by(root, **own, **elsewhere).returncode == 0
    assert not (tmp_path / "icl-lab").exists()
    assert files(tmp_path / "mine")
    assert kept_by(root, **own).returncode == 0
    assert files(tmp_path / "icl-lab")


def test_a_folder_open_to_others_is_told_and_not_used(root: Path, tmp_path: Path) -> None:
    (tmp_path / "icl-lab").mkdir(mode=0o755)
    done = kept_by(root, XDG_CACHE_HOME=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (0, "", 1)
    assert done.stderr.startswith(f"compiled programs are not kept: {tmp_path}/icl-lab is open to other users")
    assert not [*(tmp_path / "icl-lab").iterdir()]


def test_a_place_that_cannot_be_written_to_is_told(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = kept_by(root, XDG_CACHE_HOME=str(tmp_path / "file"))
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert done.stderr.startswith("compiled programs are not kept: ")


def test_a_program_that_a_kill_cut_short_is_kept_anew(root: Path, tmp_path: Path) -> None:
    """JAX warns of it, and would at every start: here warnings are errors."""
    line = [sys.executable, "-W", "error", "-c", HITS_AND_MISSES, str(tmp_path)]
    assert subprocess.run(line, cwd=root).returncode == 0
    whole = {path: path.stat().st_size for path in tmp_path.rglob("*-cache")}
    for path in whole:
        os.truncate(path, 20)
    cut = subprocess.run(line, cwd=root, capture_output=True, text=True)
    assert (cut.returncode, cut.stderr) == (0, "")
    assert {path: path.stat().st_size for path in tmp_path.rglob("*-cache")} == whole
    again = subprocess.run(line, cwd=root, capture_output=True, text=True)
    assert again.stdout.split() == [str(len(whole)), "0"]


def test_other_warnings_are_shown(root: Path, tmp_path: Path) -> None:
    code = "import sys, warnings, pathlib; from icl_lab.lab import compile_cache"
    code += "; compile_cache.keep_in(pathlib.Path(sys.argv[1]))"
    line = [sys.executable, "-c", f"{code}; warnings.warn('of something else')", str(tmp_path)]
    assert "UserWarning: of something else" in subprocess.run(line, cwd=root, capture_output=True, text=True).stderr


def test_what_is_no_program_is_not_read_and_the_bound_is_kept(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JAX would wait for a pipe for ever."""
    programs = compile_cache.keep_in(tmp_path)
    os.mkfifo(programs / "pipe-cache")
    (programs / "endless-cache").symlink_to("/dev/zero")
    (programs / "large-cache").write_bytes(bytes(2000))
    (programs / "notes.txt").write_text("mine")
    monkeypatch.setattr(caches, "MOST_BYTES", 1000)
    assert compile_cache.keep_in(tmp_path) == programs
    assert [path.name for path in programs.iterdir()] == ["notes.txt"]


def test_the_folder_is_made_for_this_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = compile_cache.default_folder()
    assert folder == tmp_path / "cache" / "icl-lab"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert compile_cache.default_folder() == folder


def test_each_cpu_and_each_number_of_threads_has_programs_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cores = {
        "a": "processor: 0\nmodel name: X\nflags: fpu avx\ncpu MHz: 2000\n\nprocessor: 1\n",
        "b": "processor: 0\nmodel name: X\nflags: fpu avx avx512f\ncpu MHz: 2000\n\nprocessor: 1\n",
        "c": "processor: 0\nmodel name: X\nflags: fpu avx\ncpu MHz: 2596\n\nprocessor: 1\n",
    }
    keys = {}
    for name, text in cores.items():
        (tmp_path / name).write_text(text)
        monkeypatch.setattr(compile_cache, "CPUINFO", tmp_path / name)
        for threads in ("1", "2"):
            monkeypatch.setenv("NPROC", threads)
            keys[name, threads] = compile_cache.key()
    assert len(set(keys.values())) == 4
    assert keys["a", "1"] == keys["c", "1"]  # the clock's speed of the moment is not the CPU
