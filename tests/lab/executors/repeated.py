"""A command that is killed while its job works, and repeated."""

import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path

from icl_lab.lab.executors.remote import Resources
from icl_lab.lab.executors.signals import Signals
from icl_lab.lab.executors.slurm import by_slurm
from icl_lab.lab.executors.task import Outcome
from tests.lab.executors.waiting import until
from tests.lab.executors.work import task
from tests.runners.tiny import ROOT

COMMAND = """
import pickle
import sys
from icl_lab.lab.executors.signals import Signals
from icl_lab.lab.executors.slurm import by_slurm

tasks, resources = pickle.loads(bytes.fromhex(sys.argv[1]))
list(by_slurm(tasks, lambda amount: None, Signals(), resources))
"""


def killed_and_repeated(resources: Resources, folder: Path) -> None:
    """The second command waits for the first one's job, and then finds what it has done."""
    alone, other = task("alone", "work_alone", folder=folder / "work"), task("two", "square", number=2)
    words = [sys.executable, "-c", COMMAND, pickle.dumps(([alone], resources)).hex()]
    with subprocess.Popen(words, cwd=ROOT) as killed:
        until("work", (folder / "work/in_work").exists)
        killed.send_signal(signal.SIGKILL)
    outcomes: list[Outcome] = []

    def repeat() -> None:
        for outcome in by_slurm([alone, other], lambda amount: None, Signals(), resources):
            outcomes.append(outcome)
            (folder / "work/go_on").touch()  # the other one has ended meanwhile

    repeated = threading.Thread(target=repeat)
    repeated.start()
    repeated.join(120)
    assert [(outcome.task.name, outcome.value, outcome.error) for outcome in outcomes] == [
        ("two", 4, None),
        ("alone", "found done", None),
    ]
