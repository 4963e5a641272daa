"""Registers a user's own orderings, noise modes, distributions and more, from a file outside of this tree.

Commands load a plugin with `--plugin FILE`, Python with `plugins.load(FILE)` or an import. docs/extending.md has an
example of each kind.

A plugin is a `.py` file, or a folder with an `__init__.py` that imports its other files relatively. Its name is that of
the file or folder. A name that is built in or another plugin's is refused.

A run that uses one of its names records `NAME:HASH` in config.json, with 16 digits of the SHA-256 of the sources: with
other sources it is another run. Runs that use none of the names keep their ids. A command that reads such a run without
the plugin, or after its file has changed, says so. Nothing in a run directory loads a plugin.

Data files are declared at the top level by paths from the plugin's folder, `FILES = ("data.csv",)`, and read while the
plugin is loaded; the hash then includes them. Files that are not declared, and modules imported from elsewhere, are not
in the hash. Sources and data are regular files; a source has at most 16 MiB.

A plugin may import JAX, but should compute nothing at its top level: the first computation fixes the number of threads.
A function that needs several random numbers derives a key for each: `src.prng.purpose_key(key, purpose("MY_SIGNS"))`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import math
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from icl_lab.lab.configs.family_checks import check, check_presets
from icl_lab.lab.configs.presets import sections_of_kinds
from icl_lab.lab.configs.registry import named
from icl_lab.lab.configs.run import RunConfig
from icl_lab.lab.flag_types import Whole
from icl_lab.lab.plugin_files import PluginError, calling_plugin, load
from icl_lab.lab.registries import CONJECTURES, FAMILIES, Conjecture
from icl_lab.src import registries
from icl_lab.src.checks import ConfigError, require
from icl_lab.src.fields import OfKinds, every_kind
from icl_lab.src.registry import Registry

__all__ = [
    "PluginError",
    "attention",
    "baseline",
    "conjecture",
    "family",
    "function_class",
    "input_distribution",
    "load",
    "noise_mode",
    "opponent",
    "ordering",
    "purpose",
    "schedule",
    "task_distribution",
]

F = TypeVar("F", bound=Callable[..., Any])

SEEDS = Whole(3, 1000, "each is a training")  # of a conjecture: fewer have hardly an interval
NUMBERS = (2**16, 2**31)  # range of plugins' key purposes, above the built-in ones


def ordering(name: str, *, by_difficulty: bool = False) -> Callable[[F], F]:
    """Registers f(batch, difficulty) -> index [B, N]: position i gets pair index[b, i].

    `difficulty` is a tuple of sort keys [B, N], most important first; empty unless `by_difficulty`.
    """

    def entry(function: F) -> Any:
        return registries.Ordering(by_difficulty, function)

    return _registering(registries.ORDERINGS, name, "batch difficulty", entry)


def noise_mode(
    name: str,
    *,
    additive: bool = False,
    ignores_sigma: bool = False,
    linear_mmse: Callable[..., Any] | None = None,
    mask_bayes: Callable[..., Any] | None = None,
) -> Callable[[F], F]:
    """Registers f(key, batch, hit, sigma, data) -> (batch, label error [B, N]); pairs that are not hit must not change.

    `additive`: no effect at sigma = 0. `ignores_sigma`: runs that differ in sigma alone are equivalent. `linear_mmse`
    (batch, data, context) -> [B] is the best linear predictor under this noise; `mask_bayes` (pair, context, out)
    conditions the table of moments on a hit pair and returns the label's log density, as in `baselines.mask_bayes`.
    Without them these baselines are null.
    """
    _check_function("linear_mmse", linear_mmse, "batch data context")
    _check_function("mask_bayes", mask_bayes, "pair context out")

    def entry(function: F) -> Any:
        return registries.NoiseMode(additive, ignores_sigma, function, linear_mmse, mask_bayes)

    return _registering(registries.NOISE_MODES, name, "key batch hit sigma data", entry)


def input_distribution(
    name: str,
    *,
    variance: Callable[[float], float] | None = None,
    fourth: Callable[[float], float] | None = None,
) -> Callable[[F], F]:
    """Registers f(key, input_range, shape) -> x with independent coordinates, symmetric about 0.

    `variance` and `fourth` moment of a coordinate are functions of `input_range`. Results that need a missing moment
    are null, with the reason; runs that need it, as an order by `gd_error` and the depth curve do, are refused before
    training. Where coordinates differ in variance, give neither.
    """
    _check_function("variance", variance, "input_range")
    _check_function("fourth", fourth, "input_range")

    def entry(function: F) -> Any:
        return registries.InputDistribution(variance, fourth, function)

    return _registering(registries.INPUT_DISTRIBUTIONS, name, "key input_range shape", entry)


def task_distribution(
    name: str,
    *,
    variance: Callable[[float, int], float] | None = None,
    bayes: str | Callable[..., Any] = "",
) -> Callable[[F], F]:
    """Registers f(key, dim) -> w [D], a task before scaling by `weight_scale`.

    `variance` of a coordinate is a function of `weight_scale` and the dimension; ridge regression needs it. `bayes` is
    the posterior mean: "ridge", or a function (batch, config) -> predictions [B, K].
    """
    require(callable(bayes) or bayes in ("", "ridge"), f"bayes is {bayes!r}; it must be 'ridge' or a function")
    _check_function("variance", variance, "weight_scale dim")
    mean = bayes if callable(bayes) else None
    _check_function("bayes", mean, "batch config")

    def entry(function: F) -> Any:
        return registries.TaskDistribution(variance, "own" if mean else str(bayes), function, mean)

    return _registering(registries.TASK_DISTRIBUTIONS, name, "key dim", entry)


def attention(name: str, *, causal: Callable[..., Any] | None = None) -> Callable[[F], F]:
    """Registers f(scores [B, H, R, N], key_size) -> weights [B, H, R, N], the attention of row r to the pairs.

    Scores are products of queries and keys, which the function scales itself.
    `causal` is its form in a decoder, which is refused without one: (scores [B, H, R, T], key_size, visible, count) ->
    weights [B, H, R, T]. Row r sees the keys that `visible` [1, 1, R, T] names, `count` [1, 1, R, 1] of them; the
    weights of others must be 0, and nothing may depend on their scores.
    """
    _check_function("causal", causal, "scores key_size visible count")

    def entry(function: F) -> Any:
        return registries.AttentionKind(function, causal)

    return _registering(registries.ATTENTION_KINDS, name, "scores key_size", entry)


def baseline(name: str) -> Callable[[F], F]:
    """Registers f(batch, config) -> predictions [B]: `--config.baselines=NAME` compares a run with it on the test set.

    Predictions have the shape of `batch.y_query`, [B, K] where a context has K queries or positions. Where a baseline
    is not defined it raises `src.checks.ConfigError`; the summary then has null with that reason. `opponent` and
    `--config.opponents` are earlier names.
    """
    return _registering(
        registries.BASELINES, name, "batch config", lambda predict: registries.Baseline(predict=predict)
    )


opponent = baseline  # its name in earlier versions


def schedule(name: str) -> Callable[[F], F]:
    """Registers f(lr, config, step) -> the learning rate at a step (from 0); `config` is the run's `TrainConfig`."""
    return _registering(registries.SCHEDULES, name, "lr config step", registries.Schedule)


def conjecture(
    says: str,
    *,
    algorithm: str = "",
    model: str = "lsa1",
    settings: Mapping[str, Any] | None = None,
    seeds: int = 8,
    loss_ratio: tuple[float, float] | None = None,
    cosine: tuple[float, float] | None = None,
    measure: Callable[..., Any] | None = None,
    accepted: tuple[float, float] | None = None,
    scale: str = "linear",
    control: Mapping[str, Any] | None = None,
) -> None:
    """States the conjecture of this file, which `python -m studies.run FILE` tests: docs/extending.md.

    A `model` of any family, trained with `settings` on `seeds` seeds, is said to do what `algorithm` does: a baseline
    of yours, or one that its family is compared with. Without an algorithm the `measure` alone is stated. `loss_ratio`,
    `cosine`: the accepted (low, high) of its loss over the algorithm's and of the cosine of their sensitivities, d
    prediction / d x_query. `measure(run)` -> a number of a run directory (`analysis.load_run`), with its `accepted`
    range; `scale` is that of its interval (`src.intervals.SCALES`). With an algorithm a further prediction is always
    made: the mean prediction difference to it is at most .99 of that to the nearest other one, for 1 is a tie.

    `control`: settings that differ in the control, which is trained on as many seeds; by default the control is the
    same networks untrained. A prediction is uninformative where the untrained networks' estimate lies in the range; a
    trained control's whole interval must lie outside, and where seeds are the same, that of the differences must not
    have 0 in it.

    Means and verdict are of the runs that trained by their family's criterion; where none did, it is undecided. A
    verdict of fewer than 8 seeds is provisional. `--profile full` trains three times as many. Values written into the
    call are in no run's id: another range, sentence or algorithm trains nothing again. Any other change of the file
    does, so a measure that changes is best kept apart from data, which `--plugin` can load from a file of their own.

    What `algorithm` may be: of linear regression (`lsa1`, `twolayer`) an entry of `src.registries.BASELINES` that says
    ALWAYS or ALGORITHM; of the depth curve (`lsa`, `linear`, `softmax`) the same, with as many steps as layers; of task
    diversity (`tiny`, ...) `ridge`, `dmmse` of a pool, the task distribution's own posterior mean, `zero`; of languages
    those of docs/contract.md; of sines `zero`. A baseline of yours works for all of these; for decoders it predicts all
    positions, [B, K], and differences and losses are means over these. Of models without queries, as autoencoders, only
    a measure can be stated.
    """
    from icl_lab.src import intervals  # imports NumPy

    require(bool(str(says).strip()), f"says is {says!r}; it must be the sentence that the conjecture claims")
    require(SEEDS.has(seeds), f"seeds is {seeds!r}; it must be {SEEDS}")
    ranges = {"loss_ratio": loss_ratio, "cosine": cosine, "accepted": accepted}
    for name, given in ranges.items():
        _check_range(name, given)
    require(
        any(ranges.values()), "a conjecture needs an accepted range: loss_ratio, cosine, or a measure with accepted"
    )
    ranges_of_algorithm = [name for name in ("loss_ratio", "cosine") if ranges[name]]
    require(bool(algorithm) or not ranges_of_algorithm, f"{' and '.join(ranges_of_algorithm)} need an algorithm")
    require((measure is None) == (accepted is None), "measure and accepted go together: a function and its range")
    _check_function("measure", measure, "run")
    known = ", ".join(intervals.SCALES)
    require(scale in intervals.SCALES, f"scale is {scale!r}; it must be one of {known}")
    plugin, frame = calling_plugin(__file__), sys._getframe(1)
    require(plugin.name not in CONJECTURES, "a plugin states one conjecture, and this is its second")
    place = (frame.f_code.co_filename, frame.f_lineno)
    ranges_given = (loss_ratio, cosine, measure, accepted, scale)
    entry = Conjecture(says, algorithm, model, {**(settings or {})}, seeds, *ranges_given, control, *place)
    CONJECTURES.add(plugin.name, entry, plugin.name)


def _check_range(name: str, given: Any) -> None:
    """`ConfigError` if an accepted range is given and is not two numbers, the lower first."""
    if given is None:
        return
    numbers = isinstance(given, tuple | list) and len(given) == 2 and all(isinstance(end, int | float) for end in given)
    require(numbers and not any(map(math.isnan, given)), f"{name} is {given!r}; it must be two numbers, (low, high)")
    require(given[0] <= given[1], f"{name} is {given!r}, whose low end is above its high end")


def family(description: Any) -> Any:
    """Registers and returns a family of experiments, a `lab.configs.family.Family`.

    The config's folder has the other two parts: `task.py` with a `TASK` (`families.task`), and `outputs.py` with
    `OUTPUTS` (`lab.configs.outputs`). `ConfigError` if a part is missing or a name is taken.

    Further parts, if needed: values that differ between the runs of a pack (`Family.batched`, `TaskSpec.batched`),
    arrays that runs share (`RunConfig.shared_arrays`, `hashed_as`), flags that read lists (`src.words.words_of`), and
    runs that a run builds on (`RunConfig.required_runs`, `TaskSpec.frozen`). tests/families/tokens has the last.
    """
    plugin = calling_plugin(__file__)
    check(description)
    FAMILIES.add(description.name, description, plugin.name)
    check_presets(description)
    return description


def function_class(kind: Any) -> Any:
    """Registers a class of functions under the default of its `kind`: `--function NAME`, its fields being flags too.

    It is a frozen dataclass that extends `families.functions.function_class.FunctionClass`, with `sample` and `label`
    of its own. A field that other classes have is of the same type; none has the name of another field of a run.
    """
    plugin, registry = calling_plugin(__file__), registries.FUNCTION_CLASSES
    of_kinds = isinstance(kind, type) and issubclass(kind, OfKinds) and dataclasses.is_dataclass(kind)
    require(of_kinds, f"{kind!r} is no dataclass that extends families.functions.function_class.FunctionClass")
    name = kind.kind
    for method in ("sample", "label"):
        own = getattr(kind, method).__qualname__ != f"FunctionClass.{method}"
        require(own, f"{registry.kind} {name!r} has no {method}")
    registry.add(name, kind, plugin.name)
    for each, defaults in every_kind(kind).items():
        types = {type(default).__name__ for default in defaults.values()}
        one = f"{each} of the {registry.kind} {name!r}"
        require(len(types) == 1, f"{one} is of another type than in others, {' and '.join(sorted(types))}")
        for family in (named(other) for other in FAMILIES if sections_of_kinds(named(other).config)):
            taken = {flag.name for flag in (*family.flags, *family.axes)} | {*RunConfig.__dataclass_fields__}
            require(each not in taken, f"{one} has the name of another field of a run; take another")
    return kind


def purpose(name: str) -> int:
    """A number for `src.prng.purpose_key`, unique to this purpose and determined by its name alone."""
    plugin = calling_plugin(__file__)
    first, last = NUMBERS
    number = first + int.from_bytes(hashlib.sha256(str(name).encode()).digest()[:8]) % (last - first)
    from icl_lab.src.prng import Purpose  # imports JAX

    require(name not in Purpose.__members__, f"key purpose {name!r} is built in and cannot be replaced")
    if registries.PURPOSES.owner(name) == plugin.name:  # asked for again by the same plugin
        return number
    taken = [other for other, value in registries.PURPOSES.items() if value == number and other != name]
    require(not taken, f"key purpose {name!r} has the same number as {''.join(taken[:1])!r}; choose another name")
    registries.PURPOSES.add(name, number, plugin.name)
    return number


def _registering(registry: Registry[Any], name: str, arguments: str, entry: Callable[[Any], Any]) -> Callable[[F], F]:
    """A decorator that adds `entry(function)` to a registry under a name."""
    require(isinstance(name, str), f"the {registry.kind} has no name; give one as the first argument")
    plugin = calling_plugin(__file__)

    def add(function: F) -> F:
        require(callable(function), f"{registry.kind} {name!r} is {function!r}; it must be a function")
        _check_function(f"{registry.kind} {name!r}", function, arguments)
        registry.add(name, entry(function), plugin.name)
        return function

    return add


def _check_function(what: str, function: Callable[..., Any] | None, arguments: str) -> None:
    """`ConfigError` if a function is given and cannot be called with these arguments."""
    if function is None:
        return
    names = arguments.split()
    require(callable(function), f"{what} is {function!r}; it must be a function of ({', '.join(names)})")
    try:
        inspect.signature(function).bind(*names)
    except TypeError as error:
        raise ConfigError(f"{what} must take the arguments ({', '.join(names)}): {error}") from None
    except ValueError:  # a builtin without a signature
        return
