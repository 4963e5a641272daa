"""Sine functions in context: its config, its task, and what a run leaves."""
