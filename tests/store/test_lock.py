"""One process at a time in a run directory; the kernel frees the lock of a process that is killed."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from store import StoreError
from store.lock import locked

HOLD = """
import sys
from pathlib import Path
from store.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_is_refused_until_the_first_is_killed(root: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-c", HOLD, str(tmp_path / "run")]
    with subprocess.Popen(words, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match=r"run is in use by another process"), locked(tmp_path / "run"):
            pytest.fail("two held the lock")
        holder.kill()
        assert holder.wait(60) == -signal.SIGKILL
        with locked(tmp_path / "run"):
            second = subprocess.run(words, cwd=root, input="", capture_output=True, text=True, timeout=60)
            assert second.returncode == 1
            assert "is in use by another process" in second.stderr


def test_the_lock_is_freed_by_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path):
        _ = 1 / 0
    with locked(tmp_path):
        assert [path.name for path in tmp_path.iterdir()] == [".lock"]
