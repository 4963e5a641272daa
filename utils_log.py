"""Loggers and progress displays, re-exported from `lab.progress`."""

from icl_lab.lab.progress import NULL_LOGGER, Bar, ConsoleLogger, Lines, Logger, Meter, NullLogger, meter

__all__ = ["NULL_LOGGER", "Bar", "ConsoleLogger", "Lines", "Logger", "Meter", "NullLogger", "meter"]
