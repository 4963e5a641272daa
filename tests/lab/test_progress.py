"""Loggers: what they say, and where."""

import io
import re

import pytest

from icl_lab.lab import progress
from icl_lab.lab.progress import ConsoleLogger, Logger, NullLogger, along, duration_text, meter, rate_text, say


def a_run(logger: Logger) -> None:
    """What a training tells a logger."""
    logger.line("device: cpu")
    logger.start(20, 100)
    for step in (40, 70, 100):
        logger.progress(step, 1 / step)
    logger.stop()
    logger.line("done")


class Terminal(io.StringIO):
    """Standard error that is one, as far as it says."""

    def isatty(self) -> bool:
        return True


def test_nothing_is_said_by_the_one_that_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    a_run(NullLogger())
    assert capsys.readouterr() == ("", "")


def test_a_quiet_one_says_nothing_either(capsys: pytest.CaptureFixture[str]) -> None:
    a_run(ConsoleLogger(quiet=True))
    assert capsys.readouterr() == ("", "")


def test_a_quiet_one_says_nothing_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    a_run(ConsoleLogger(quiet=True))
    assert (capsys.readouterr().out, terminal.getvalue()) == ("", "")


@pytest.mark.parametrize("seconds", [0.0, 3600.0])
def test_a_loop_shows_a_bar_on_a_terminal_once_it_takes_long(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    monkeypatch.setattr(progress, "PATIENCE", seconds)
    assert [*along(iter("abcd"), 4, "checkpoints")] == [*"abcd"]
    assert ("4 checkpoints" in terminal.getvalue()) == (seconds == 0)


def test_lines_are_printed_above_the_bar_of_a_loop(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    for item in along("ab", 2, "checkpoints"):
        say(f"{item} is done")
    assert capsys.readouterr().out == "a is done\nb is done\n"


def test_a_loop_is_quiet_without_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    assert [*along(range(3), 3, "checkpoints")] == [0, 1, 2]
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr("sys.stderr", None)
    assert [*along(range(3), 3, "checkpoints")] == [0, 1, 2]


def test_lines_are_output_and_progress_is_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    a_run(ConsoleLogger())
    assert capsys.readouterr().out == "device: cpu\ndone\n"
    assert "100 % |" in terminal.getvalue()
    assert "100/100 steps" in terminal.getvalue()
    assert re.search(r"  [\d.]+ step/s  ", terminal.getvalue())


def test_the_bar_begins_where_a_resumed_run_does_and_shows_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    logger = ConsoleLogger()
    logger.start(20, 100)
    assert " 20/100" in terminal.getvalue()
    logger.progress(100, 0.25)
    logger.stop()
    assert "loss 0.2500" in terminal.getvalue()


def test_a_logger_that_was_not_started_hears_of_progress_in_silence(capsys: pytest.CaptureFixture[str]) -> None:
    logger = ConsoleLogger()
    logger.progress(3, 0.5)
    logger.stop()
    logger.stop()
    assert capsys.readouterr() == ("", "")


def test_without_standard_error_there_is_no_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", None)
    a_run(ConsoleLogger())
    assert capsys.readouterr().out == "device: cpu\ndone\n"


def test_a_logger_serves_one_run_after_another(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = ConsoleLogger()
    for _ in range(2):
        monkeypatch.setattr("sys.stderr", terminal := Terminal())
        a_run(logger)
        assert capsys.readouterr().out == "device: cpu\ndone\n"
        assert " 20/100" in terminal.getvalue()


# Without a terminal


class Clock:
    """A clock that goes on as the steps do: 500 a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


def lines(
    steps: list[int], start: int, total: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """What is said as these steps are reached."""
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    logger = ConsoleLogger()
    logger.start(start, total)
    for step in steps:
        clock.now = (step - start) / 500
        logger.progress(step, 0.21044)
    logger.stop()
    said = capsys.readouterr()
    assert said.out == ""
    assert "\r" not in said.err
    return said.err.splitlines()


def test_there_is_a_line_for_each_tenth(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = lines(list(range(50, 5001, 50)), 0, 5000, capsys, monkeypatch)
    assert [line.partition("  ")[0] for line in found] == [f"{tenth} %" for tenth in range(10, 101, 10)]
    assert found[2] == "30 %  1500/5000 steps  500.0 step/s  7 s left  loss 0.2104"


def test_steps_that_pass_several_tenths_are_one_line_and_the_first_ones_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = lines([1, 9, 47, 48, 100], 0, 100, capsys, monkeypatch)
    assert [line.split("  ")[0] for line in found] == ["47 %", "100 %"]


def test_a_resumed_run_counts_its_own_steps_for_its_speed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = lines([3000, 4000], 2500, 5000, capsys, monkeypatch)
    assert found[0] == "60 %  3000/5000 steps  500.0 step/s  4 s left  loss 0.2104"
    assert found[1].startswith("80 %  4000/5000 steps  500.0 step/s  2 s left")


def test_a_pipe_is_no_terminal_and_gets_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    shown = meter(10)
    shown.reach(10, "")
    shown.close()
    assert re.fullmatch(r"100 %  10/10 steps  [\d.]+ step/s  0 s left\n", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("rate", "text"), [(549.23, "549.2 step/s"), (12345.6, "12345.6 step/s"), (0.0213, "0.021 step/s")]
)
def test_speeds(rate: float, text: str) -> None:
    assert rate_text(rate) == text


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (99, "99 s"), (2100, "35 min"), (12_600, "3.5 h")])
def test_times(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
