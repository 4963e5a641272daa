"""The depth curve: a prediction after every layer: its config, its task, and what a run leaves."""
