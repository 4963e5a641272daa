"""What a task on a cluster says, beside what it gives."""

import sys

import pytest

from icl_lab.lab.executors.remote import Resources, pass_on, run_remote, task_environment
from icl_lab.lab.executors.signals import Signals
from icl_lab.lab.executors.task import Context
from tests.lab.executors.work import task

pytestmark = pytest.mark.robust


def test_what_a_task_says_is_said_there_and_where_the_command_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NPROC", "PYTHONPATH", "JAX_PLATFORMS"):  # which a task sets
        monkeypatch.setenv(name, "")
    before, amounts = sys.stderr, list[int]()
    context = Context(amounts.append, Signals())
    outcome = run_remote(task("says", "say", lines=2), task_environment(Resources()), context)
    assert sys.stderr is before
    assert capsys.readouterr().err == "notice 0\nnotice 1\n"
    pass_on(outcome._replace(reported=7, said=(*outcome.said, "\x1b[31mred")), amounts.append)
    assert capsys.readouterr().err == "notice 0\nnotice 1\n\\x1b[31mred\n"
    assert amounts == [7]
