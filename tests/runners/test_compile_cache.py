"""Programs kept between processes: found again, the same results, and only in a folder of one's own."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from runners import compile_cache
from store.readers import StoreError
from tests.runners.tiny import LSA1, SIZES, Workshop, copied, results

HITS_AND_MISSES = """
import collections, sys, jax
from pathlib import Path
from runners import compile_cache
seen = collections.Counter()
jax.monitoring.register_event_listener(lambda name, **_: seen.update([name.rpartition("/")[2]]))
compile_cache.enable(Path(sys.argv[1]))
jax.jit(lambda x: x @ x + 1)(jax.numpy.ones((8, 8)))
print(seen["cache_hits"], seen["cache_misses"])
"""


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*-cache")}


@pytest.mark.slow
def test_the_second_process_finds_the_programs_of_the_first_and_the_same_results(
    workshop: Workshop, lsa1_run: Path, tmp_path: Path
) -> None:
    compiled = []
    for _ in range(2):
        again = copied(lsa1_run, tmp_path / f"run{len(compiled)}")
        words = (*SIZES, "--save_attention", "--overwrite", "--compile_cache", "--out", again)
        done = workshop.run(LSA1, *words, XDG_CACHE_HOME=str(tmp_path))
        assert done.returncode == 0, done.stderr
        assert results(again) == results(lsa1_run)
        compiled.append(files(tmp_path / "icl-lab"))
    assert len(compiled[0]) > 5
    assert compiled[1] == compiled[0]  # nothing was compiled that had to be kept


def test_jax_counts_hits(root: Path, tmp_path: Path) -> None:
    line = [sys.executable, "-c", HITS_AND_MISSES, str(tmp_path)]
    said = [subprocess.run(line, cwd=root, capture_output=True, text=True).stdout.split() for _ in range(2)]
    (first_hits, first_misses), (second_hits, second_misses) = [map(int, words) for words in said]
    assert (first_hits, second_misses) == (0, 0)
    assert first_misses == second_hits > 0


@pytest.mark.slow
def test_without_the_flag_nothing_is_kept(workshop: Workshop, tmp_path: Path) -> None:
    done = workshop.run(LSA1, *SIZES, "--steps", 1, "--out", tmp_path / "run", XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "cache" / "icl-lab").exists()


def test_the_folder_is_made_for_this_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = compile_cache.default_folder()
    assert folder == tmp_path / "cache" / "icl-lab"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert compile_cache.default_folder() == folder


@pytest.mark.parametrize("given", ["", "relative/folder"])
def test_a_cache_home_that_is_no_absolute_path_does_not_count(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the XDG base directory specification has it."""
    monkeypatch.setenv("XDG_CACHE_HOME", given)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert compile_cache.default_folder() == tmp_path / ".cache" / "icl-lab"


def test_without_a_home_another_folder_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a user whom the system does not know, in a container."""

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(StoreError, match=r"there is no home folder .* set XDG_CACHE_HOME"):
        compile_cache.default_folder()


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o707, 0o720])
def test_a_folder_open_to_others_is_refused(mode: int, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(mode)
    with pytest.raises(StoreError, match="open is open to other users"):
        compile_cache.private_folder(tmp_path / "open")


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(StoreError, match="link is a link, not a folder"):
        compile_cache.private_folder(tmp_path / "link")


def test_another_users_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "theirs").mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: (tmp_path / "theirs").stat().st_uid + 1)
    with pytest.raises(StoreError, match="theirs belongs to another user"):
        compile_cache.private_folder(tmp_path / "theirs")


def test_a_runner_refuses_it_before_anything_is_made(workshop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "icl-lab").mkdir(mode=0o755)
    done = workshop.run(LSA1, "--compile_cache", "--out", tmp_path / "run", XDG_CACHE_HOME=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {tmp_path}/icl-lab is open to other users")
    assert not (tmp_path / "run").exists()


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
