"""An in-context learning laboratory: a transformer and the algorithms it might be running, on the same context.

    import icl_lab

    run = icl_lab.train("lsa1", steps=500)  # in runs/ of the working directory, as `icl-lab run lsa1 --steps 500`
    run.predict(x, y, x_query)              # a context of your own through it

Every function takes a `Run` or the path of one. Errors are of subclasses of `icl_lab.src.checks.UserError`, with the
message that the command prints. A call leaves the calling process as it was: no setting of JAX, environment variable or
signal handler stays changed. docs/own_data.md has recipes.

The subpackages are `icl_lab.src`, `icl_lab.baselines`, `icl_lab.store`, ... Each function imports what it needs when it
is called, so that `import icl_lab` costs nothing.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy as np
    import pandas as pd
    from numpy.typing import ArrayLike

    from icl_lab.analysis.evaluate import Evaluation
    from icl_lab.analysis.llc.any_model import llc, llc_over_training  # noqa: F401
    from icl_lab.analysis.llc.estimate import diagnose  # noqa: F401
    from icl_lab.analysis.llc.influence import influence, susceptibility  # noqa: F401
    from icl_lab.analysis.queries import Predicts
    from icl_lab.analysis.run import Run
    from icl_lab.lab.configs.run import RunConfig
    from icl_lab.src.batch import Batch

RunOrPath: TypeAlias = "Run | str | PathLike[str]"

__all__ = [
    *("ablate", "baseline", "batch_from_arrays", "capture", "diagnose", "evaluate", "influence", "llc", "load_run"),
    *("llc_over_training", "patch", "presets", "runs", "sample", "susceptibility", "sweep", "table", "train"),
]


# --- runs ---


def load_run(run: RunOrPath) -> Run:
    """Opens a run; its config, parameters, model, metrics and summary are read when used (`analysis.run.Run`).

    `StoreError` if there is no run.
    """
    from icl_lab.analysis.run import Run

    if isinstance(run, Run):  # whose weights may be others than its directory's
        return run
    found = Run(run)
    _ = found.config  # says now what cannot be read
    return found


def runs(folder: RunOrPath = "runs") -> list[Run]:
    """The runs at or below a folder, newest first; those that cannot be read are left out.

    `StoreError` if there is no such folder. `table` has a row for each, with the reason for broken ones.
    """
    from pathlib import Path

    from icl_lab.analysis.run import Run
    from icl_lab.store import listing
    from icl_lab.store.rundir import STATUSES

    return [Run(entry.path) for entry in listing.list_runs(Path(folder)) if entry.status in STATUSES]


def table(path: RunOrPath = "runs") -> pd.DataFrame:
    """A row for each run at or below a folder, with its config's fields and the numbers of its summary.

    For the CSV of a sweep, it returns that table's rows. `StoreError` for anything else.
    """
    from pathlib import Path

    from icl_lab import store

    return store.table(Path(path))


# --- training ---


def presets(model: str | None = None) -> pd.DataFrame:
    """All models with their families and presets; for one model, its fields and their values in each preset.

    `ConfigError` for an unknown model.
    """
    import pandas as pd

    from icl_lab.lab.configs.presets import completed, preset
    from icl_lab.lab.configs.registry import family_of_model, models
    from icl_lab.lab.configs.run import fields_of
    from icl_lab.store.listing import flat

    if model is None:
        families = [family_of_model(name) for name in models()]
        rows = [(family.name, ", ".join(family.models[name])) for name, family in zip(models(), families, strict=True)]
        return pd.DataFrame(rows, pd.Index(models(), name="model"), ["family", "presets"])
    names = family_of_model(model).models[model]
    values = {name: flat(fields_of(completed(preset(model, name)))) for name in names}
    return pd.DataFrame(values, dtype=object).drop(["name", "preset", "plugins", "shared", "requires", "init_from"])


def train(model: str | RunConfig = "lsa1", **settings: Any) -> Run:
    """Trains a model, or the config of another run, in a directory below `runs/`, and returns the run.

    Settings are the flags of `icl-lab run MODEL` and the fields of its config, under their names (`presets(model)`):
    `preset`, `seed`, `steps`, `lr`, `num_layers`, ..., `out` for another directory, `overwrite` to train again,
    `quiet`. A field is also named with its section: `**{"data.noise_std": 0.1}`.

    A finished run of the same config is returned and not trained again. An interrupted training raises
    `KeyboardInterrupt` and keeps its state: repeat the same call to resume it. `ConfigError` and `UsageError` for
    impossible settings, `Diverged` if losses stop being finite.
    """
    from icl_lab.analysis.run import Run
    from icl_lab.lab.guest import as_guest
    from icl_lab.runners import from_python

    with as_guest():
        return Run(from_python.train(model, settings))


def sweep(
    model: str | Sequence[str],
    axes: Mapping[Any, Iterable[Any]] | None = None,
    *,
    seeds: Iterable[int] = (0,),
    out: RunOrPath | None = None,
    runs_dir: RunOrPath | None = None,
    **more: Any,
) -> pd.DataFrame:
    """Trains a model, or several, at each point of a grid with each seed, and returns the table, one row for each run.

        sweep("lsa1", {"num_layers": [1, 2], ("lr", "steps"): [(1e-3, 1000), (1e-4, 5000)]}, seeds=range(5))

    An axis is a field, or a tuple of fields whose values change together. `settings` and further keyword arguments are
    those of `icl_lab.sweeps.sweep.sweep`. The table is `out` (results_MODEL.csv), the runs are in `runs_dir`
    (runs/sweep_MODEL); finished ones are not trained again. `UserError`, with the command's message, if anything fails.
    """
    from icl_lab.sweeps.sweep import sweep as carry_out

    return table(carry_out(model, axes, seeds=seeds, out=out, runs_dir=runs_dir, **more))


# --- contexts ---


def sample(run: RunOrPath, tasks: int, seed: int = 0) -> Batch:
    """Fresh contexts, drawn like those of a run's evaluation, that no run was trained or evaluated on.

    A `Batch`: x [B, N, D], y [B, N], x_query [B, D], y_query [B], w [B, D] in NumPy; for a decoder every pair is a
    query. The contexts depend only on the distribution and the seed: runs on the same distribution get the same ones.
    """
    import jax

    from icl_lab.families.shared_arrays import shared_with
    from icl_lab.families.task import fresh_tasks
    from icl_lab.lab.configs.run import check_seed
    from icl_lab.lab.guest import as_guest
    from icl_lab.src.checks import size

    size("tasks", tasks)
    check_seed("seed", seed)
    loaded = load_run(run)
    loaded.config.as_evaluated()  # there are no new contexts of a file, which need not be there
    with as_guest():
        batch: Batch = jax.device_get(fresh_tasks(loaded.config, tasks, seed, shared_with(loaded.config, loaded.path)))
    return batch


def batch_from_arrays(
    x: ArrayLike,
    y: ArrayLike,
    x_query: ArrayLike | None = None,
    y_query: ArrayLike | None = None,
    w: ArrayLike | None = None,
) -> Batch:
    """A batch of your arrays, for models and baselines: x [B, N, D], y [B, N], x_query [B, D], y_query [B], w [B, D].

    Without x_query the last pair of each context is its query. `ConfigError` says which array cannot be used.
    """
    from icl_lab.families import own_arrays

    return own_arrays.batch_from_arrays(x, y, x_query, y_query, w)


# --- inside a model ---


def capture(run: RunOrPath, batch: Batch, names: str | Sequence[str] = "*") -> dict[str, np.ndarray]:
    """Activations of a run on a batch, by address; names: patterns, as "blocks.0.attn.pattern" or "*.resid_post".

    Addresses, axes and shapes are what `icl-lab analysis.activations --run RUN` prints. `ConfigError` for a name that
    matches none, and for a batch whose sizes are not the run's.
    """
    from icl_lab.analysis import activations

    return activations.capture(load_run(run), batch, names if isinstance(names, str) else tuple(names))


def patch(
    run: RunOrPath,
    batch: Batch,
    values: Mapping[str, Any],
    layer: int | None = None,
    head: int | None = None,
    position: int | None = None,
) -> np.ndarray:
    """The predictions [B, ...] with activations patched: values maps addresses to arrays or JAX functions.

    layer, head and position (a row of tokens; negative: from the end) restrict the patch to that place. One
    compiled program serves all arrays, layers, heads and positions. `ConfigError` for what does not fit.
    """
    from icl_lab.analysis import activations
    from icl_lab.src.patching import Site

    return activations.patch(load_run(run), batch, values, Site(layer, head, position))


def ablate(
    run: RunOrPath,
    batch: Batch,
    names: str | Sequence[str],
    how: str = "zero",
    layer: int | None = None,
    head: int | None = None,
    position: int | None = None,
    shift: int = 1,
) -> np.ndarray:
    """The predictions [B, ...] with some activations ablated; for a head, ablate "blocks.0.attn.result" with `head`.

    how: zero; mean, the mean over contexts; resample, the activations of the context `shift` places later in the batch.
    layer, head, position and errors are as for `patch`.
    """
    from icl_lab.analysis import activations
    from icl_lab.src.patching import Site

    wanted = names if isinstance(names, str) else tuple(names)
    return activations.ablate(load_run(run), batch, wanted, how, Site(layer, head, position), shift)


# --- comparing ---


def baseline(name: str, run: RunOrPath | None = None) -> Callable[..., np.ndarray]:
    """A registered baseline as a function (x, y, x_query) -> predictions [B], which takes a `Batch` too.

    What the baseline must know, such as a step size or the noise, comes from the run's config or, without a run, from
    the defaults for contexts of these sizes. `ConfigError` where it is not defined (`analysis.named_baseline`).
    """
    from icl_lab.analysis import named_baseline

    return named_baseline.baseline(name, None if run is None else load_run(run))


def evaluate(
    model: Predicts,
    x: ArrayLike,
    y: ArrayLike,
    x_query: ArrayLike | None = None,
    y_query: ArrayLike | None = None,
    *,
    baselines: Mapping[str, Callable[..., Any]] | None = None,
    training: Sequence[ArrayLike] | None = None,
    estimate: bool = False,
    steps: int | None = None,
) -> Evaluation:
    """Compares a model with all baselines defined on contexts x [B, N, D], y [B, N], x_query [B, D], y_query [B].

    model: a run or its path, a function (x, y, x_query) -> predictions [B], of any library, or an array of predictions.
    Without x_query the last pair of each context is the query; a decoder, and an array [B, N], predict every pair.
    baselines: functions of yours, by name. training: contexts (x, y[, x_query, y_query]) on which a step size of
    gradient descent is fitted. estimate: estimate what baselines must know from the training contexts or, without
    them, from the pairs; if false, baselines that need more than is given are null, with the reason.

    Returns `table`, with standard errors over contexts, and `contexts`, a row for each query (`analysis.evaluate`).
    """
    from icl_lab.analysis import evaluate as analysis

    place = load_run(model) if isinstance(model, (str, PathLike)) else model
    given: Any = {"baselines": baselines, "training": training, "estimate": estimate, "steps": steps}
    return analysis.evaluate(place, x, y, x_query, y_query, **given)


def __getattr__(name: str) -> Any:
    from importlib import import_module

    from icl_lab.analysis.llc import PUBLIC

    if name not in PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"icl_lab.analysis.llc.{PUBLIC[name]}"), name)
