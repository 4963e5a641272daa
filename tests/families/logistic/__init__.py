"""Logistic regression in context, a family of its own: `--plugin tests/families/logistic`."""

from icl_lab.lab import plugins

from .config import FAMILY

plugins.family(FAMILY)
