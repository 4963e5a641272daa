"""While a sweep trains, writing its table takes a tenth of the time at most."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from icl_lab.lab.executors.signals import Signals
from icl_lab.lab.executors.throttle import Throttle
from icl_lab.lab.native.kernel import XLA
from icl_lab.sweeps import work
from icl_lab.sweeps.execution import Execution
from icl_lab.sweeps.plan import runs_of
from icl_lab.sweeps.training import PackResult
from tests.sweeps.tiny_sweep import tiny_plan


def test_a_table_that_takes_long_is_written_rarely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, now, written = tiny_plan(range(50)), [0.0], []

    def results(waiting: Any, *_: object) -> Iterator[PackResult]:
        for pack in waiting:
            now[0] += 1
            yield PackResult(pack, {})

    def write(*_: object, **__: object) -> None:
        written.append(now[0])
        now[0] += 2

    monkeypatch.setattr(work, "Throttle", partial(Throttle, clock=lambda: now[0]))
    monkeypatch.setattr(work, "_results", results)
    monkeypatch.setattr(work, "_write", write)
    how = Execution(tmp_path, tmp_path / "table.csv", "serial", 1, (1, 1), False, False, quiet=True)
    assert work._train(rows, runs_of(rows), how, Signals(), XLA) == ([], {})
    assert written == [10, 32, 54]  # of fifty packs, a second each
