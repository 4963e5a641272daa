"""Trains runs: flags become a config, and training fills a run directory."""

import environment  # noqa: F401 - it ends a process that lacks packages, before they are imported
