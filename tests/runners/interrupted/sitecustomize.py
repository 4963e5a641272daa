"""Python imports this at its start when the folder is on PYTHONPATH: it sends the process a signal at a chosen place.

INTERRUPT is `before:NAME:SIGNAL` or `after:NAME:SIGNAL`: the signal comes right before or after a file of that name
gets its final name, so where a run is interrupted depends on neither clock nor load.
"""

import os
import signal
from typing import Any

when, name, number = os.environ["INTERRUPT"].split(":")
replace = os.replace


def interrupting(source: Any, target: Any) -> None:
    """`os.replace` with a signal before or after."""
    hit = os.path.basename(target) == name
    if hit and when == "before":
        os.kill(os.getpid(), signal.Signals[number])
    replace(source, target)
    if hit and when == "after":
        os.kill(os.getpid(), signal.Signals[number])


os.replace = interrupting
