"""Regular expressions of parameters' names: checked, and matched in limited time."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from functools import lru_cache

from icl_lab.src.checks import ConfigError

SECONDS = 1  # of a processor, for all names; a match takes microseconds
MATCH = f"""
import json, re, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS}, {SECONDS}))
pattern, names = json.load(sys.stdin)
json.dump([re.search(pattern, name) is not None for name in names], sys.stdout)
"""


def check_pattern(pattern: str) -> None:
    """`ConfigError` for what is no regular expression."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)  # at a set in a set, whose meaning is to change
            re.compile(pattern)
    except (re.error, FutureWarning, OverflowError, RecursionError) as error:
        raise ConfigError(f"mask is {pattern!r}, which is not a regular expression: {error}") from None


@lru_cache(maxsize=8)
def matches(pattern: str, names: tuple[str, ...]) -> tuple[bool, ...]:
    """Whether a valid regular expression is found in each name; `ConfigError` if that takes more than `SECONDS`.

    It is matched in a process whose time is limited: some, such as ((.+)+)+X, would take longer than the age of the
    universe on a name of 30 letters.
    """
    line, given = [sys.executable, "-I", "-S", "-c", MATCH], json.dumps([pattern, names])
    done = subprocess.run(line, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConfigError(
            f"mask is {pattern!r}, which takes more than {SECONDS} s to match with the names of the parameters; "
            "avoid nested repetition, such as (a+)+"
        )
    return tuple(json.loads(done.stdout))
