"""Decoders on pools of M tasks: its config, its task, and what a run leaves."""
