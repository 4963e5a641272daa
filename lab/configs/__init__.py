"""The configs of runs: what all families' have in common, their presets, and what the user sets on top of them."""
