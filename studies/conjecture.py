"""A user's own conjecture: from the plugin that states it to a study, and what is measured of its runs.

`lab.plugins.conjecture` states one, `python -m studies.run FILE` tests it: docs/extending.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis import algorithm_distance, compared
from icl_lab.analysis.algorithm_distance import FINAL, OF_LANGUAGES
from icl_lab.analysis.compared import has_queries
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.lab import cli
from icl_lab.lab.configs.registry import family_of_model
from icl_lab.lab.loaded_plugins import LOADED
from icl_lab.lab.plugin_files import PluginError, plugin_errors
from icl_lab.lab.registries import CONJECTURES, Conjecture
from icl_lab.plots.algorithm_distance import draw_matrices, draw_over_training
from icl_lab.src import intervals
from icl_lab.src.checks import ConfigError
from icl_lab.src.registries import MODEL, NAMED_BASELINES
from icl_lab.store import layout
from icl_lab.store.lock import locked
from icl_lab.store.readers import StoreError, expecting, read_csv
from icl_lab.studies import conjecture_checks, conjecture_seeds
from icl_lab.studies.claim import OURS, UNTRAINED_SUFFIX, Claim, Rival, Untrained
from icl_lab.studies.distance_figure import SCALE_OF, Distances
from icl_lab.studies.runs import Runs
from icl_lab.studies.study import RUNS_DIRS, Study
from icl_lab.sweeps.plan import plan, runs_of

PROFILES = {"quick": 1, "full": 3}  # times as many seeds
TRAINED, CONTROL = "trained", "control"
TIE = 0.99  # share of the distance to the nearest other algorithm above which the two count as equally near

Row = dict[str, Any]


# --- from a file to a study ---


def load(file: Path, profile: str) -> Study:
    """The conjecture that a plugin states, as a study; `ConfigError` and `UsageError` say what is wrong with it."""
    cli.load_plugins([str(file)])
    plugin = next(plugin for plugin in LOADED.values() if plugin.path == file.resolve())
    if plugin.name not in CONJECTURES:
        raise cli.UsageError(
            f"{file} states no conjecture and no study: it calls no plugins.conjecture(...) "
            "and has no STUDY; docs/extending.md has an example of both"
        )
    if plugin.name in RUNS_DIRS or f"runs/{plugin.name}" in RUNS_DIRS.values():
        raise cli.UsageError(f"{file} has the name of a study, whose runs it would mix with its own; rename the file")
    conjecture = CONJECTURES[plugin.name]
    with _errors_at(conjecture, file):
        study = study_of(plugin.name, file, profile)
        configs = [runs_of(plan([runs.grid]))[-1].config for runs in study.runs.values()]
        conjecture_checks.check(conjecture, configs[0], file)
    return study


def again(files: Sequence[Path], name: str, file: Path, profile: str) -> Study:
    """The study in another process, of these plugins."""
    cli.load_plugins([str(each) for each in files])
    return study_of(name, file, profile)


def study_of(name: str, file: Path, profile: str) -> Study:
    """The study of a registered conjecture."""
    conjecture = CONJECTURES[name]
    trained = Runs(conjecture.model, _settings(conjecture), tuple(range(conjecture.seeds * PROFILES[profile])))
    beside, control = control_of(conjecture), replace(trained.untrained(), seeds=trained.seeds)
    if conjecture.control is not None:
        control = replace(trained, settings={**trained.settings, **conjecture.control})
    config = trained.cells[0].config
    files = tuple(plugin.path for plugin in LOADED.values())
    study = Study(
        name,
        {TRAINED: trained, beside: control},
        _claims(conjecture, file),
        file=file,
        again=partial(again, files, name, file, profile),
    )
    if not has_queries(config):
        return study
    analyses = {TRAINED: partial(_analyse, snapshots=config.snapshots), beside: partial(_analyse, snapshots=False)}
    return replace(study, figures=FIGURES if config.snapshots else FIGURES[:1], analyses=analyses)


def _settings(conjecture: Conjecture) -> dict[str, Any]:
    """What is trained. Runs of linear regression are compared with all baselines that can be named, over training."""
    settings = {"baselines" if key == "opponents" else key: value for key, value in conjecture.settings.items()}
    if family_of_model(conjecture.model).name != RegressionConfig.family:
        return settings
    baselines = tuple(dict.fromkeys([*settings.get("baselines", ()), *NAMED_BASELINES]))
    return settings | {"baselines": baselines, "snapshots": True}


def control_of(conjecture: Conjecture) -> str:
    """The name of the runs that the control is measured on: untrained, unless the conjecture names other settings."""
    return f"{TRAINED}{UNTRAINED_SUFFIX}" if conjecture.control is None else CONTROL


@contextmanager
def _errors_at(conjecture: Conjecture, file: Path) -> Iterator[None]:
    """Names the file and line of a conjecture in errors that its values cause."""
    try:
        yield
    except PluginError:
        raise
    except (ConfigError, cli.UsageError) as error:
        raise PluginError(f"plugin {_place(conjecture.file, conjecture.line, file)}: {error}") from None


def _place(source: str, line: int, file: Path) -> str:
    """A file and a line, the file as it was typed if it is the plugin itself."""
    return f"{file if Path(source).resolve() == file.resolve() else source}, line {line}"


# --- what is measured ---


def _analyse(run: Path, snapshots: bool) -> None:
    """Writes the distances of a run to all algorithms, over training too, beside it."""
    with locked(run, timeout=math.inf):
        algorithm_distance.write(compared.load(run), snapshots)


@lru_cache(maxsize=1024)
def table_of(run: Path) -> list[Row]:
    """The rows of a run's algorithm-distance matrix, at its snapshots and at its end.

    `StoreError` for a value that its measure cannot have.
    """
    path = run / layout.ALGORITHM_DISTANCE
    table = read_csv(path, ("value",), ("step", "row", "column", "measure", "reason"))
    for measure, scale in SCALE_OF.items():
        low, high = intervals.SCALES[scale].lowest, intervals.SCALES[scale].highest
        values = table.loc[table["measure"] == measure, "value"].dropna()
        if not values.between(low - intervals.ROUNDING, high + intervals.ROUNDING).all():
            raise StoreError(f"{path} has a {measure} that is not between {low:g} and {high:g}")
    rows: list[Row] = table.to_dict("records")
    return [
        row | {side: MODEL if row[side] == OF_LANGUAGES else row[side] for side in ("row", "column")} for row in rows
    ]


def _final(run: Path) -> dict[tuple[str, str, str], float]:
    """What is measured at the end of training, by row, column and measure."""
    return {(row["row"], row["column"], row["measure"]): row["value"] for row in table_of(run) if row["step"] == FINAL}


def _to(algorithm: str, measure: str) -> partial[float]:
    """A distance of the transformer to an algorithm."""
    return partial(lambda run: float(_final(run)[MODEL, algorithm, measure]))


def to_others(run: Path, measure: str, algorithm: str = "") -> dict[str, float]:
    """A distance of the transformer to each algorithm but one, of those for which it is defined."""
    distances = {column: value for (row, column, of), value in _final(run).items() if row == MODEL and of == measure}
    return {
        name: value for name, value in distances.items() if name not in ("", MODEL, algorithm) and np.isfinite(value)
    }


def _nearer(algorithm: str, run: Path) -> float:
    """The mean |prediction difference| to an algorithm over that to the nearest of the others; nan without another."""
    nearest = min(to_others(run, "difference", algorithm).values(), default=math.nan)
    return _to(algorithm, "difference")(run) / nearest


def _own(conjecture: Conjecture, file: Path, run: Path) -> float:
    """The user's measure of a run; `PluginError` for what it raises, and for what its scale does not have."""
    assert conjecture.measure is not None
    with plugin_errors(file):
        value = conjecture.measure(run)
    try:
        number = math.nan if isinstance(value, str) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    scale = intervals.SCALES[conjecture.scale]
    possible = scale.lowest <= number <= scale.highest and not (conjecture.scale == "log" and number == 0)
    if not possible:
        kind = "no number" if math.isnan(number) else f"not possible on the scale {conjecture.scale!r}"
        code = getattr(conjecture.measure, "__code__", None)
        where = _place(code.co_filename, code.co_firstlineno, file) if code else str(file)
        raise PluginError(f"plugin {where}: the measure gives {value!r} for {run}, which is {kind}")
    return number


def _claims(conjecture: Conjecture, file: Path) -> tuple[Claim, ...]:
    """The predictions: those with ranges in the file, and that no other algorithm is as near."""
    name = conjecture.algorithm

    def claim(key: str, says: str, expected: float, accepted: Any, source: str, measure: Any, scale: str) -> Claim:
        control = Rival("the same model with other settings", runs=(CONTROL,)) if conjecture.control else Untrained()
        return Claim(
            key,
            "",
            says,
            expected,
            accepted[0],
            accepted[1],
            source,
            measure,
            TRAINED,
            "quick",
            "",
            scale,
            "ours",
            control,
            paper=OURS,
        )

    claims = []
    if conjecture.loss_ratio:
        says = f"loss over that of `{name}`, on the same tasks"
        claims.append(claim("loss_ratio", says, 1.0, conjecture.loss_ratio, "the file", _to(name, "loss_ratio"), "log"))
    if conjecture.cosine:
        says = f"cosine of sensitivities with `{name}`"
        claims.append(claim("cosine", says, 1.0, conjecture.cosine, "the file", _to(name, "cosine"), "fisher"))
    if conjecture.measure:
        key = getattr(conjecture.measure, "__name__", "measure").strip("<>")
        user_measure, scale = partial(_own, conjecture, file), conjecture.scale
        claims.append(
            claim(key, f"`{key}` of the file", math.nan, conjecture.accepted, "the file", user_measure, scale)
        )
    if name:
        says = f"mean prediction difference to `{name}` over that to the nearest other algorithm"
        claims.append(claim("nearest", says, 0.0, (0.0, TIE), "below 1, a tie", partial(_nearer, name), "log"))
    return tuple(claims)


def _between_pairs(run: Path) -> dict[tuple[str, str, str], float]:
    """At the end of training; nothing of a run that did not train."""
    if conjecture_seeds.of_run(run) is False:
        return {}
    return {key: value for key, value in _final(run).items() if key[1] and key[2] in SCALE_OF}


def _at_snapshots(run: Path) -> dict[tuple[str, int, str], float]:
    if conjecture_seeds.of_run(run) is False:
        return {}
    rows = [row for row in table_of(run) if row["step"] != FINAL and row["column"] and row["measure"] in SCALE_OF]
    with expecting(run / layout.ALGORITHM_DISTANCE, "the algorithm distances of a run"):
        return {(row["column"], int(row["step"]), row["measure"]): row["value"] for row in rows}


FIGURES = (
    Distances(
        "distances",
        "The transformer and the algorithms at the end of training",
        (TRAINED,),
        _between_pairs,
        ("row", "column"),
        draw_matrices,
    ),
    Distances(
        "over_training",
        "The transformer and each algorithm over training",
        (TRAINED,),
        _at_snapshots,
        ("algorithm", "step"),
        draw_over_training,
    ),
)
