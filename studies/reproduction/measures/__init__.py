"""Measures: functions from a finished run, or from a seed where nothing is trained, to a number."""
