"""A user's own study: a file with `STUDY = Study(...)`, loaded as a plugin and carried out as the studies here are.

`python -m studies.run FILE` trains, measures and judges it: docs/extending.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from icl_lab.lab import cli
from icl_lab.lab.loaded_plugins import LOADED
from icl_lab.lab.plugin_files import plugin_errors
from icl_lab.lab.registries import CONJECTURES
from icl_lab.src.checks import ConfigError, require
from icl_lab.studies import history
from icl_lab.studies.claim import Claim, Rival
from icl_lab.studies.study import RUNS_DIRS, Study


def load(file: Path) -> Study | None:
    """The study of a file, by the file's name; None for a plugin without one. `ConfigError` if it cannot be kept."""
    cli.load_plugins([str(file)])
    plugin = next(plugin for plugin in LOADED.values() if plugin.path == file.resolve())
    stated = getattr(sys.modules[plugin.name], "STUDY", None)
    if stated is None:
        return None
    if not isinstance(stated, Study):
        raise ConfigError(f"{file}: STUDY is a {type(stated).__name__}; it must be a studies.study.Study")
    require(plugin.name not in CONJECTURES, f"{file} states a conjecture and a study; keep one of them")
    is_free = plugin.name not in RUNS_DIRS and f"runs/{plugin.name}" not in RUNS_DIRS.values()
    require(is_free, f"{file} has the name of a study, whose runs it would mix with its own; rename the file")
    for claim in stated.claims:
        is_new = not history.events(claim.name)
        require(is_new, f"claim {claim.name} of {file} has the name of a claim of the laboratory; rename it")
    files = tuple(one.path for one in LOADED.values())
    return replace(
        stated,
        name=plugin.name,
        claims=[_guarded(claim, file) for claim in stated.claims],
        file=file,
        again=partial(again, files, file),
    )


def again(files: Sequence[Path], file: Path) -> Study:
    """The study in another process, of these plugins."""
    cli.load_plugins([str(each) for each in files])
    study = load(file)
    assert study is not None
    return study


def _guarded(claim: Claim, file: Path) -> Claim:
    """The claim with measures whose errors name the file and the line."""
    control = claim.control
    if isinstance(control, Rival) and control.measure:
        control = control._replace(measure=partial(_measured, control.measure, file))
    among = claim.among and partial(_measured, claim.among, file)
    return claim._replace(measure=partial(_measured, claim.measure, file), control=control, among=among)


def _measured(measure: Callable[..., float], file: Path, *runs: Any) -> float:
    with plugin_errors(file):
        return float(measure(*runs))
