"""A door to `runners.progress`: loggers, which tell a person of a run, and meters, which show its progress."""

from runners.progress import NULL_LOGGER, Bar, ConsoleLogger, Lines, Logger, Meter, NullLogger, Silence, meter

__all__ = ["NULL_LOGGER", "Bar", "ConsoleLogger", "Lines", "Logger", "Meter", "NullLogger", "Silence", "meter"]
