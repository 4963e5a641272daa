"""A container's share of the processors counts as its cores do, in either version of control groups."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from icl_lab.lab import environment
from icl_lab.lab.cpu_quota import cpu_quota
from icl_lab.lab.executors.worker import available_cores
from tests.doors import ROOT

V1, V2 = "cgroup cgroup rw,cpu,cpuacct", "cgroup2 cgroup2 rw"
PERIOD = 100_000


class Machine:
    """A folder with the files that Linux shows to a process."""

    def __init__(self, folder: Path):
        self.folder, self.process = folder, folder / "proc"
        self.process.mkdir()

    def mount(self, at: str, kind: str, root: str = "/") -> None:
        """Mounts a hierarchy; the group `root` is its uppermost."""
        (self.folder / at).mkdir(parents=True, exist_ok=True)
        with (self.process / "mountinfo").open("a") as file:
            escaped = str(self.folder / at).replace(" ", "\\040")
            file.write(f"32 31 0:29 {root} {escaped} rw,relatime shared:9 - {kind}\n")

    def group(self, line: str) -> None:
        """Puts the process into a group."""
        with (self.process / "cgroup").open("a") as file:
            file.write(f"{line}\n")

    def limit(self, folder: str, **files: object) -> None:
        """Writes a group's files; a double underscore stands for a dot."""
        (self.folder / folder).mkdir(parents=True, exist_ok=True)
        for name, value in files.items():
            (self.folder / folder / name.replace("__", ".")).write_text(f"{value}\n")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_without_limits_there_is_none(machine: Machine) -> None:
    assert cpu_quota(machine.process) is None  # no Linux
    machine.mount("cg", V2)
    machine.group("0::/a/b")
    assert cpu_quota(machine.process) is None  # no controller
    machine.limit("cg/a/b", cpu__max=f"max {PERIOD}")
    assert cpu_quota(machine.process) is None


@pytest.mark.parametrize("group", ["a/b", "a", ""])
def test_version_2_is_limited_by_the_groups_around_too(group: str, machine: Machine) -> None:
    machine.mount("c g", V2)
    machine.group("0::/a/b")
    machine.limit("c g/a/b", cpu__max=f"800000 {PERIOD}")
    machine.limit(f"c g/{group}", cpu__max=f"150000 {PERIOD}")
    assert cpu_quota(machine.process) == 1.5


@pytest.mark.parametrize("group", ["a/b", "a", ""])
def test_version_1_is_limited_by_the_groups_around_too(group: str, machine: Machine) -> None:
    """By those of the controller of processors, beside a hierarchy of version 2 that has none."""
    for at, kind in (("memory", "cgroup cgroup rw,memory"), ("cpu", V1), ("unified", V2)):
        machine.mount(at, kind)
    for line in ("5:memory:/m", "4:cpu,cpuacct:/a/b", "1:name=systemd:/", "0::/"):
        machine.group(line)
    machine.limit("memory/m", cpu__cfs_quota_us=1, cpu__cfs_period_us=PERIOD)  # which no kernel would write
    machine.limit("cpu", cpu__cfs_quota_us=-1, cpu__cfs_period_us=PERIOD)
    machine.limit("cpu/a/b", cpu__cfs_quota_us=900_000, cpu__cfs_period_us=PERIOD)
    machine.limit(f"cpu/{group}", cpu__cfs_quota_us=25_000, cpu__cfs_period_us=PERIOD)
    assert cpu_quota(machine.process) == 0.25


@pytest.mark.parametrize("group", ["/docker/abc", "/docker/abc/inner", "/", "/../.."])
def test_in_a_container_the_mounted_group_is_its_own(group: str, machine: Machine) -> None:
    """The group's name may be the host's, with the folder mounted of that group, or be seen from another group."""
    machine.mount("cg", V2, root="/docker/abc")
    machine.group(f"0::{group}")
    machine.limit("cg", cpu__max=f"300000 {PERIOD}")
    assert cpu_quota(machine.process) == 3


@pytest.mark.parametrize("text", ["", "max", "1", "a b", "100000 0", "0 100000"])
def test_a_limit_that_cannot_be_read_is_none(text: str, machine: Machine) -> None:
    machine.mount("cg", V2)
    machine.group("0::/a")
    machine.limit("cg/a", cpu__max=text)
    assert cpu_quota(machine.process) is None


@pytest.mark.parametrize(
    ("quota", "threads"), [(None, 4), (0.2, 1), (1.0, 1), (1.5, 2), (3.0001, 4), (4.0, 4), (64.0, 4)]
)
def test_threads_and_worker_processes_are_as_many_as_the_quota_rounded_up(
    quota: float | None, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NPROC", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 2, 5, 7}, raising=False)
    monkeypatch.setattr(environment, "cpu_quota", lambda: quota)
    assert environment.num_threads() == threads
    assert available_cores() == [1, 2, 5, 7][:threads]
    environment.fix_threads()
    assert os.environ.get("NPROC") == (None if threads == 4 else str(threads))
    monkeypatch.setenv("NPROC", "9")
    environment.fix_threads()
    assert environment.num_threads() == 9


@pytest.fixture
def real_group() -> Iterator[Path]:
    """A group of this machine that is limited to one processor's time and a half."""
    for at in ("cpu", "cpu,cpuacct", ""):
        group = Path("/sys/fs/cgroup", at, f"icl-lab-test-{os.getpid()}")
        limits = {"cpu.max": "75000 50000"} if not at else {"cpu.cfs_period_us": "50000", "cpu.cfs_quota_us": "75000"}
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            for name, value in limits.items():
                (group / name).write_text(value)
            yield group
            return
        except OSError:
            continue
        finally:
            group.rmdir()
    pytest.skip("no control group can be made here")


def test_a_process_in_a_real_group_has_its_share(real_group: Path) -> None:
    script = (
        f"import os; open({str(real_group / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))\n"
        "from icl_lab.lab import cpu_quota; print(cpu_quota.cpu_quota())"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("1.5\n", "")
