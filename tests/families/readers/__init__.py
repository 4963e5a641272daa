"""Sequences of Markov chains, a family of its own: `--plugin tests/families/readers`."""

from icl_lab.lab import plugins

from .config import FAMILY

plugins.family(FAMILY)
