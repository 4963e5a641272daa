"""The presets, and what the user sets on top of them."""
