"""Committed results: what was asked, what was measured, and the pages that say so."""
