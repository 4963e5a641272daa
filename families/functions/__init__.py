"""Decoders on prompts of functions of a class: classes, their sampling, shifts, the task, and what a run leaves."""
