"""Committed results: what was asked, what was measured, and the pages that say so."""

import environment  # noqa: F401 - it ends a process that lacks packages, before they are imported
