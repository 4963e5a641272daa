"""The scores of linear probes: a row for each target, activation, row of tokens and control.

Controls are scored on the same contexts and folds:

    trained        the run's activations
    untrained      those of the network that its training began with
    other_context  the run's, for the target of another context
    tokens         all numbers of the tokens that the row sees: what a linear map of them has
    read_out       the layer's own prediction, where the target is a prediction; nothing is fitted
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.analysis.probes.features import contexts_of, features_at, layers_below, units_in
from icl_lab.analysis.probes.question import Question, check, check_features, count, places
from icl_lab.analysis.probes.scores import (
    CONSTANT,
    FOLDS,
    PENALTIES,
    Score,
    fitted_on,
    out_of_fold,
    score,
    varying,
)
from icl_lab.analysis.probes.targets import MASK, PREDICTIONS, TARGETS, Contexts, Row, Target, asked, parted, rows_of
from icl_lab.plots.probes import OTHER_CONTEXT, READ_OUT, TOKENS, TRAINED, UNTRAINED
from icl_lab.src import patching
from icl_lab.src.activations import matching
from icl_lab.src.checks import require
from icl_lab.src.model import untraced

COLUMNS = (
    *("target", "steps", "activation", "position", "probe", "measure", "score", "low", "high"),
    *("features", "coordinates", "contexts", "reason"),
)

Scored = dict[str, Any]
Value = TypeVar("Value")


def probe(loaded: LoadedRun, question: Question) -> tuple[list[Scored], dict[str, Any]]:
    """The scores, and facts; `ConfigError` for what a run has not, and for fewer contexts than features."""
    check(loaded.config, question)
    hooked = loaded.model.watch is not untraced
    require(hooked, f"the family {loaded.config.family} does not expose its activations")
    shapes = patching.shapes_of(loaded.model, loaded.params, loaded.batch)
    chosen = tuple(matching(question.activations, [*shapes]))
    check_features({at: shapes[at] for at in chosen}, question.tasks or count(loaded.config))
    batch, contexts = contexts_of(loaded, question.tasks, question.eta)
    num_rows = next(shape.shape[1] for at, shape in shapes.items() if at in ("embed", "blocks.0.resid_post"))
    rows = [Row(0)] * num_rows if contexts is None else rows_of(contexts.batch, num_rows)
    probing = _Probing(loaded, question, contexts, chosen, rows, places(question.positions, rows))
    return [*probing.table(batch, [*shapes])], probing.facts()


class _Probing(NamedTuple):
    """The probes of a run at some rows."""

    loaded: LoadedRun
    question: Question
    contexts: Contexts | None
    chosen: tuple[str, ...]
    rows: list[Row]
    places: list[int]

    def table(self, batch: Any, present: Sequence[str]) -> Iterator[Scored]:
        """A row for each score, and for each target that a row of tokens has not."""
        run, read_outs = self.loaded, tuple(at for at in present if at.startswith("blocks.") and _is_prediction(at))
        every = tuple(dict.fromkeys((*self.chosen, *read_outs)))
        trained = features_at(run.model, run.params, batch, every, self.places)
        untrained = features_at(run.model, run.untrained().params, batch, self.chosen, self.places)
        depth, given = sum(at.endswith(".resid_post") for at in present), self.question.steps
        steps = {at: layers_below(at, depth) if given is None else given for at in every}
        for index, place in enumerate(self.places):
            row, scored = self.rows[place], list[Scored]()
            targets = self.targets(row, sorted({*steps.values()}))
            arrays = {target: values for target, values in targets.items() if not isinstance(values, str)}
            for at in self.chosen:
                number = index if len(trained[at]) > 1 else 0
                whys = {target: why for target, why in targets.items() if isinstance(why, str)}
                scored += [_refused(target, at, why) for target, why in _of(steps[at], whys).items()]
                scored += _of_features(at, trained[at][number], untrained[at][number], _of(steps[at], arrays))
            scored += self.of_tokens(row, arrays)
            for at in read_outs:
                scored += self.of_read_out(at, trained[at][0], row, _of(steps[at], arrays))
            yield from ({"position": place, **each} for each in scored)

    def targets(self, row: Row, steps: Sequence[int]) -> dict[Target, np.ndarray | str]:
        """The targets at a row, or why it has none."""
        names = self.question.targets or (() if self.contexts is None or self.question.own else self.defined())
        own = {Target(name): _columns(values) for name, values in self.question.own.items()}
        named = {} if self.contexts is None else {t: self.contexts.target(t, row) for t in asked(names, steps)}
        return {**named, **own}

    def defined(self) -> tuple[str, ...]:
        """The targets of the contexts."""
        masked = self.contexts is not None and self.contexts.corrupted is not None
        return tuple(name for name in TARGETS if masked or name != MASK)

    def of_tokens(self, row: Row, arrays: Mapping[Target, np.ndarray]) -> list[Scored]:
        """What a linear map of the numbers in the tokens has of each target; null where these are too many."""
        if self.contexts is None:
            return []
        features = self.contexts.tokens(row)
        contexts, width = features.shape
        if 0 < width < fitted_on(contexts):
            return [_row(target, TOKENS, TOKENS, s, arrays, width) for target, s in _scores(features, arrays).items()]
        why = f"{width} features, and {fitted_on(contexts)} contexts to fit a probe of them on"
        return [_refused(target, TOKENS, why, TOKENS) for target in arrays]

    def of_read_out(self, at: str, values: np.ndarray, row: Row, arrays: Mapping[Target, np.ndarray]) -> list[Scored]:
        """The R^2 of a layer's own predictions [B, Q], where the target is one."""
        units = units_in(self.loaded.config)
        said = values if units is None else (values - units.y_mean) / units.y_scale
        column = said[:, [(row.query or 0) if said.shape[1] > 1 else 0]]
        kept = {target: each for target, each in arrays.items() if target.name in PREDICTIONS}
        return [_row(target, at, READ_OUT, score(column, each), kept, 0) for target, each in kept.items()]

    def facts(self) -> dict[str, Any]:
        """What holds for all scores."""
        step_size = None if self.contexts is None else self.contexts.step_size
        return {
            "scores": "R2: of contexts that the probe was not fitted on, mean over coordinates; AUROC of flags",
            "intervals": "95 %, bootstrap over contexts; the probe is not fitted again",
            "folds": FOLDS,
            "penalties": list(PENALTIES),
            "step_size": step_size,
            "positions": self.places,
            "activations": list(self.chosen),
        }


def _is_prediction(at: str) -> bool:
    return at.endswith(".prediction")


def _of(steps: int, values: Mapping[Target, Value]) -> dict[Target, Value]:
    """Those that do not depend on steps of gradient descent, or are of so many."""
    return {target: value for target, value in values.items() if target.steps in (None, steps)}


def _columns(values: np.ndarray) -> np.ndarray | str:
    """An array of one's own as coordinates [B, C]."""
    flat = values.reshape(len(values), -1)
    flat = flat if flat.dtype == bool else flat.astype(np.float64)
    return flat if varying(flat).any() else CONSTANT


def _scores(features: np.ndarray, targets: Mapping[Any, np.ndarray]) -> dict[Any, Score]:
    """The score of each target [B, C]; those of a kind are fitted together."""
    scores: dict[Any, Score] = {}
    for kind in parted(targets):
        widths = np.cumsum([values.shape[1] for values in kind.values()])[:-1]
        said = np.split(out_of_fold(features, np.concatenate([*kind.values()], axis=1)), widths, axis=1)
        scores |= {name: score(part, kind[name]) for name, part in zip(kind, said, strict=True)}
    return {name: scores[name] for name in targets}


def _of_features(
    at: str, trained: np.ndarray, untrained: np.ndarray, arrays: Mapping[Target, np.ndarray]
) -> list[Scored]:
    """The scores of an activation [B, F], and its controls."""
    of_others = {(OTHER_CONTEXT, target): np.roll(values, -1, axis=0) for target, values in arrays.items()}
    both = _scores(trained, {(TRAINED, target): values for target, values in arrays.items()} | of_others)
    before = {(UNTRAINED, target): found for target, found in _scores(untrained, arrays).items()}
    return [_row(target, at, name, s, arrays, trained.shape[1]) for (name, target), s in (both | before).items()]


def _row(
    target: Target, at: str, name: str, found: Score, arrays: Mapping[Target, np.ndarray], features: int
) -> Scored:
    values = arrays[target]
    return {
        "target": target.name,
        "steps": target.steps,
        "activation": at,
        "probe": name,
        "measure": "AUROC" if values.dtype == bool else "R2",
        **found._asdict(),
        "features": features,
        "coordinates": int(varying(values).sum()),
        "contexts": len(values),
    }


def _refused(target: Target, at: str, why: str, name: str = TRAINED) -> Scored:
    return {"target": target.name, "steps": target.steps, "activation": at, "probe": name, "reason": why}
