"""What pip meets where it would build a distribution of the laboratory (`build-backend` in pyproject.toml): a sentence.

There is none: everything runs from the repository's root. pip shows the sentence, and nothing is left behind, not even
the compiled form of this file.
"""

from pathlib import Path
from typing import Any, NoReturn

SENTENCE = (
    "The laboratory is not installed but run from its root: `make env` there makes .venv with all that it needs, and "
    "`.venv/bin/python -m runners.run_concat_inputs_targets` is a first command."
)


def refuse(*_: Any, **__: Any) -> NoReturn:
    """Any hook of a build."""
    if name := getattr(__spec__, "cached", None):  # a file that is run by its name has no __spec__
        cached = Path(name)
        cached.unlink(missing_ok=True)
        if cached.parent.is_dir() and not any(cached.parent.iterdir()):
            cached.parent.rmdir()
    raise SystemExit(SENTENCE)


get_requires_for_build_wheel = get_requires_for_build_editable = get_requires_for_build_sdist = refuse
build_wheel = build_editable = build_sdist = refuse
