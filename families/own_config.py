"""Runs on contexts from a file: the flags that name one, and what configs take from it. No JAX is imported."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from icl_lab.families.own_data import SPLITS, OwnData, pairs_of, read, rows_needed
from icl_lab.families.own_sets import LEAST, Sets, sets_of, split, stamp
from icl_lab.lab.configs.family import Flag
from icl_lab.lab.configs.run import RunConfig, fields_of
from icl_lab.src.checks import ConfigError, require
from icl_lab.src.data_config import FileData, LinearData
from icl_lab.store.outputs import in_path

FAR = 3.0  # times the scale that a preset is made for, or less than a third of it
HELD_OUT = 10  # one context in so many is kept for the evaluation, and one for the test
PAIRS_A_DIM = 2  # of a sequence whose length nobody says, as of drawn ones
ROUNDING = 4 * float(np.finfo(np.float32).eps)  # relative: numbers that differ by less are one


def file_name(text: str) -> str:
    """The name of a file to read; `argparse.ArgumentTypeError` for an empty one."""
    return str(in_path(text))


FLAGS = (
    Flag("data", "data.file", file_name, "train on contexts of your own: an NPZ or CSV file (docs/own_data.md)"),
    Flag(
        "standardize",
        "data.standardize",
        bool,
        "rescale inputs and labels of --data to the mean and scale of generated ones",
    ),
)


class OwnDataRun(RunConfig):
    """A run whose section `data` may name a file of contexts. `sequences`: its model predicts every pair."""

    sequences: ClassVar[bool] = False

    @property
    def shares_arrays(self) -> bool:
        """Whether there is a file, whose contexts all runs of a pack have in common."""
        return bool(data_of(self).file)

    @property
    def data_file(self) -> str:
        """The file of its contexts; empty if they are drawn."""
        return data_of(self).file

    def notes(self) -> Iterator[str]:
        """Contexts that are left out, and a scale that is far from that of drawn ones."""
        if not self.shares_arrays:
            return
        data, sets = data_of(self), sets_of(self)
        if count := sets.left_out:
            needed = rows_needed(sets.data, data.num_pairs, self.sequences)
            who, are = (f"{count} contexts have", "are") if count > 1 else ("1 context has", "is")
            yield f"{data.file}: {who} fewer than {needed} pairs and {are} left out"
        if not data.standardize:
            yield from _far(self, sets)

    def check_drawn(self) -> None:
        """`ConfigError` if contexts are a file's, of which there are no new ones."""
        data_of(self).check_drawn("a sample of new contexts")

    def as_evaluated(self) -> Self:
        """Itself; `ConfigError` if its contexts are a file's."""
        self.check_drawn()
        return self

    def shared_arrays(self) -> Mapping[str, np.ndarray]:
        """The training contexts of the file."""
        return sets_of(self).stored if self.shares_arrays else {}

    def hashed_as(self) -> Mapping[str, np.ndarray]:
        """What is hashed in their place: the content of the file and the split, not where the file is."""
        if not self.shares_arrays:
            return {}
        sets = sets_of(self)
        return {name: sets.hashes.get(name, sets.hashes["lengths"]) for name in (*sets.stored, "split")}


def data_of(config: Any) -> FileData:
    """The section `data` of a config that may name a file."""
    data: FileData = config.data
    return data


def with_file(values: dict[str, Any], kind: type[FileData], sequences: bool) -> dict[str, Any]:
    """The values of a config that names a file, with those that the file has: D, N, sizes of sets, means and scales.

    `ConfigError` for a file whose contexts no run can be trained on, and for fields that say otherwise than the file.
    """
    before = values["data"]
    path = os.path.abspath(before["file"])
    data = read(path)
    asked = PAIRS_A_DIM * data.dim if before["num_pairs"] is None else before["num_pairs"]
    pairs = pairs_of(data, asked, sequences)
    alone = data.fixed and pairs < 1 + int(sequences)
    require(not alone, f"{path} has contexts of one pair; a query needs another before it")
    usable = data.lengths >= rows_needed(data, pairs, sequences)
    least, count = LEAST * len(SPLITS), int(usable.sum())
    enough = f"of at least {rows_needed(data, pairs, sequences)} pairs; training, evaluation and test take {LEAST} each"
    require(count >= least, f"{path} has {count} context{'s' * (count != 1)} {enough}")
    counts = _counts(data, usable, values)
    known = {"dim": data.dim, "num_pairs": pairs, "file": path, "split_seed": before["split_seed"]}
    sets = split(path, stamp(path), pairs, sequences, before["split_seed"], *counts)
    if before["standardize"]:
        known |= {"standardize": True, **_scaling(sets, drawn_scale(before, data.dim))}
    made = kind(**known)
    result = values | {"data": fields_of(made), "eval_tasks": counts[0], "test_tasks": counts[1]}
    _check_same(values, result)
    return result


def _counts(data: OwnData, usable: np.ndarray, values: Mapping[str, Any]) -> tuple[int, int]:
    """How many contexts the evaluation and the test have."""
    if data.split is not None:
        evaluation, test = (int((data.split[usable] == code).sum()) for code in (1, 2))
        return evaluation, test
    tenth = max(LEAST, int(usable.sum()) // HELD_OUT)
    return min(values["eval_tasks"], tenth), min(values["test_tasks"], tenth)


def _scaling(sets: Sets, scale: tuple[float, float]) -> dict[str, Any]:
    """Means of inputs and labels over the training contexts, and what brings them to this scale.

    An input, or a label, that is the same everywhere is divided by 1.
    """
    stored = sets.stored
    x, y = np.asarray(stored["x"], np.float64), np.asarray(stored["y"], np.float64)
    if "x_query" in stored:
        x, y = np.concatenate([x, stored["x_query"]]), np.concatenate([y, stored["y_query"]])

    def divisors(values: np.ndarray, drawn: float) -> np.ndarray:
        varies = np.ptp(values, axis=0) > ROUNDING * np.abs(values).max(axis=0)
        return np.where(varies, values.std(axis=0) / drawn, 1.0)

    return {
        "x_mean": tuple(x.mean(axis=0).tolist()),
        "x_scale": tuple(divisors(x, scale[0]).tolist()),
        "y_mean": float(y.mean()),
        "y_scale": float(divisors(y, scale[1])),
    }


def drawn_scale(data: Mapping[str, Any], dim: int) -> tuple[float, float]:
    """Standard deviations of inputs and of labels w.x that are drawn, as the fields of `data` say, in D dimensions."""
    drawn = LinearData(dim, 1, data["input_distribution"], data["input_range"], data["weight_scale"])
    deviation = drawn.input_variance**0.5
    return deviation, deviation * drawn.weight_scale * math.sqrt(dim)


def _far(config: Any, sets: Sets) -> Iterator[str]:
    """A line if the root mean square of inputs or labels is far from that of drawn ones."""
    from icl_lab.lab.configs.presets import preset

    try:
        begun = preset(config.name, config.preset).to_dict()["data"]
    except (ConfigError, KeyError):
        begun = fields_of(type(config)().data)
    for name, drawn in zip(("x", "y"), drawn_scale(begun, config.data.dim), strict=True):
        is_now = float(np.sqrt(np.mean(np.square(sets.stored[name], dtype=np.float64))))
        if not 1 / FAR <= is_now / drawn <= FAR:
            yield (
                f"{config.data.file}: {name} has a root mean square of {is_now:.3g}; the preset's learning rate and "
                f"clipping are for {drawn:.3g}: --standardize rescales the data to that"
            )
            return


def _check_same(values: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    """`ConfigError` if a field has a value that is neither its preset's nor what the file makes of it."""
    from icl_lab.lab.configs.presets import preset

    try:
        begun: Mapping[str, Any] = preset(values["name"], values["preset"]).to_dict()
    except (ConfigError, KeyError):  # a run with a name of its own
        begun = result
    file = result["data"]["file"]
    for section in ("data", ""):
        given, now, default = (each[section] if section else each for each in (values, result, begun))
        for name in given if section else ("eval_tasks", "test_tasks"):
            is_own = name == "file" or given[name] in (None, default[name], now[name])
            require(is_own, f"{name} is {given[name]}, but with the data of {file} it must be {now[name]}")
