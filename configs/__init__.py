"""The presets, and what the user sets on top of them."""

import environment  # noqa: F401 - it ends a process that lacks packages, before they are imported
