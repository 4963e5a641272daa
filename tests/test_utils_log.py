"""Loggers: what they say, and where."""

import re

import pytest

from utils_log import ConsoleLogger, Logger, NullLogger


def a_run(logger: Logger) -> None:
    """What a training tells a logger."""
    logger.line("device: cpu")
    logger.start(20, 100)
    for step in (40, 70, 100):
        logger.progress(step, 1 / step)
    logger.stop()
    logger.line("done")


def test_nothing_is_said_by_the_one_that_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    a_run(NullLogger())
    assert capsys.readouterr() == ("", "")


def test_lines_are_output_and_progress_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    a_run(ConsoleLogger())
    said = capsys.readouterr()
    assert said.out == "device: cpu\ndone\n"
    assert "100/100" in said.err
    assert re.search(r"steps?/s|s/step", said.err)


def test_the_bar_begins_where_a_resumed_run_does_and_shows_the_loss(capsys: pytest.CaptureFixture[str]) -> None:
    logger = ConsoleLogger()
    logger.start(20, 100)
    assert " 20/100" in capsys.readouterr().err
    logger.progress(100, 0.25)
    logger.stop()
    assert "loss 0.2500" in capsys.readouterr().err


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


def test_a_logger_serves_one_run_after_another(capsys: pytest.CaptureFixture[str]) -> None:
    logger = ConsoleLogger()
    a_run(logger)
    capsys.readouterr()
    a_run(logger)
    said = capsys.readouterr()
    assert said.out == "device: cpu\ndone\n"
    assert " 20/100" in said.err
