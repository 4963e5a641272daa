"""Python imports this at its start when the folder is on PYTHONPATH: writing a file whose path matches FAIL fails."""

import fnmatch
import os
from typing import Any

replace = os.replace


def failing_replace(source: Any, target: Any) -> None:
    """`os.replace`, or an error that no command line expects."""
    if fnmatch.fnmatch(os.fspath(target), os.environ["FAIL"]):
        raise RuntimeError("the sky has fallen")
    replace(source, target)


os.replace = failing_replace
