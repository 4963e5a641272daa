"""Losses whose learning coefficient is known, what an estimate has to give on them, and the checks of ours."""
