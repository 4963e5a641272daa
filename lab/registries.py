"""What plugins register besides the names of the core: families of experiments, and conjectures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from icl_lab.src import registries
from icl_lab.src.registry import Registry

Function = Callable[..., Any]


class Conjecture(NamedTuple):
    """A conjecture about a trained model; `studies.conjecture` trains the model, measures it and gives a verdict.

    says: the sentence. model and settings are trained with `seeds` seeds, compared with `algorithm` and all others;
    algorithm is "" where the measure alone is stated.
    loss_ratio, cosine: accepted values of the loss over the algorithm's, and of the cosine of sensitivities with it.
    measure: a number of a run directory, with its accepted values and the scale of its interval. control: settings that
    differ in the control, or None for the same networks untrained. file and line: where it stands.
    """

    says: str
    algorithm: str
    model: str
    settings: Mapping[str, Any]
    seeds: int
    loss_ratio: tuple[float, float] | None
    cosine: tuple[float, float] | None
    measure: Function | None
    accepted: tuple[float, float] | None
    scale: str
    control: Mapping[str, Any] | None
    file: str
    line: int


FAMILIES: Registry[Any] = Registry("family", {})  # `lab.configs.registry` has the built-in ones
CONJECTURES: Registry[Conjecture] = Registry("conjecture", {})  # plugin -> the one that it states
ALL: tuple[Registry[Any], ...] = (*registries.ALL, FAMILIES, CONJECTURES)
