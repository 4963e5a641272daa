"""A SLURM cluster on this machine: its controller and one node, real ones, without accounting and with small arrays.

A job that is queued again waits until its credential has expired, here after five seconds.
"""

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.executors.waiting import until

DAEMONS = ("munged", "slurmctld", "slurmd")
LARGEST_ARRAY = 5
CONFIG = """
ClusterName=here
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
MinJobAge=2
KillWait=20
MaxArraySize={largest}
SchedulerParameters=sched_interval=1,batch_sched_delay=0
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@contextmanager
def slurm_cluster() -> Iterator[None]:
    """Its commands answer within; SLURM_CONF is set. Skips the test where SLURM is not installed."""
    missing = [name for name in DAEMONS if not shutil.which(name)]
    if missing:
        pytest.skip(f"{', '.join(missing)} not found; Debian has them in slurmctld, slurmd, slurm-client and munge")
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))  # a socket's path is short
    host, ports = socket.gethostname().partition(".")[0], [_free_port(), _free_port()]
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key, config = folder / "munge.key", folder / "slurm.conf"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    config.write_text(
        CONFIG.format(host=host, ports=ports, folder=folder, user=getpass.getuser(), largest=LARGEST_ARRAY)
    )
    names = {name: f"--{name}-file={folder}/munge.{name}" for name in ("key", "pid", "log", "seed")}
    munged = ["munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *names.values()]
    before = os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = str(config)
    daemons = []
    try:
        for words in (munged, ["slurmctld", "-D"], ["slurmd", "-D"]):
            with (folder / f"{words[0]}.out").open("wb") as out:
                daemons.append(subprocess.Popen(words, stdout=out, stderr=out))
            time.sleep(0.5)
        until("an idle node", _is_idle, seconds=60)
        yield
    finally:
        subprocess.run(["scancel", f"--user={getpass.getuser()}", "--signal=KILL"], capture_output=True)
        for daemon in reversed(daemons):
            daemon.terminate()
            daemon.wait(60)
        os.environ.pop("SLURM_CONF")
        if before is not None:
            os.environ["SLURM_CONF"] = before
        shutil.rmtree(folder, ignore_errors=True)


def running_jobs() -> list[str]:
    """The ids of the jobs that run."""
    return queued("%i", "--states=RUNNING")


def queued(form: str, *flags: str) -> list[str]:
    """What squeue prints of each job in this form."""
    words = ["squeue", "--noheader", "--array", f"--format={form}", *flags]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()


def _is_idle() -> bool:
    said = subprocess.run(["sinfo", "--noheader", "--format=%t"], capture_output=True, text=True).stdout
    return said.strip() == "idle"


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port
