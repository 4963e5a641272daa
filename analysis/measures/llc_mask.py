"""Matches the mask of an LLC, a regular expression, in a process whose time is limited.

Some expressions, such as ((.+)+)+X, take longer than the age of the universe on a name of 30 letters.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import lru_cache

from icl_lab.src.checks import ConfigError

SECONDS = 1  # of a processor, for all names; a match takes microseconds
MATCH = f"""
import json, re, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS}, {SECONDS}))
pattern, names = json.load(sys.stdin)
json.dump([re.search(pattern, name) is not None for name in names], sys.stdout)
"""


@lru_cache(maxsize=8)
def found_in(pattern: str, names: tuple[str, ...]) -> tuple[bool, ...]:
    """Whether a valid regular expression is found in each name; `ConfigError` if that takes more than `SECONDS`."""
    line, given = [sys.executable, "-I", "-S", "-c", MATCH], json.dumps([pattern, names])
    done = subprocess.run(line, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConfigError(
            f"mask is {pattern!r}, which takes more than {SECONDS} s to match with the names of the parameters; "
            "leave out repetitions of repetitions"
        )
    return tuple(json.loads(done.stdout))
