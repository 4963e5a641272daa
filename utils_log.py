"""Loggers and progress displays, re-exported from `runners.progress`."""

from icl_lab.runners.progress import NULL_LOGGER, Bar, ConsoleLogger, Lines, Logger, Meter, NullLogger, meter

__all__ = ["NULL_LOGGER", "Bar", "ConsoleLogger", "Lines", "Logger", "Meter", "NullLogger", "meter"]
