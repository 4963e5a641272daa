"""The `build-backend` in pyproject.toml: refuses `pip install` with one sentence.

Everything runs from the repository's root. Nothing is left behind, not even the compiled form of this file.
"""

from pathlib import Path
from typing import Any, NoReturn

SENTENCE = (
    "The laboratory is not installed but run from its root: `make env` there makes .venv with all that it needs, and "
    "`.venv/bin/python -m runners.run_concat_inputs_targets` is a first command."
)


def refuse(*_: Any, **__: Any) -> NoReturn:
    """Any hook of the build backend."""
    if name := getattr(__spec__, "cached", None):  # a file run as a script has no __spec__
        cached = Path(name)
        cached.unlink(missing_ok=True)
        if cached.parent.is_dir() and not any(cached.parent.iterdir()):
            cached.parent.rmdir()
    raise SystemExit(SENTENCE)


get_requires_for_build_wheel = get_requires_for_build_editable = get_requires_for_build_sdist = refuse
build_wheel = build_editable = build_sdist = refuse
