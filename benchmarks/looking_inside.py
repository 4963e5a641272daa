"""Measures what reading activations costs: all of them, or an early one, against passes that read none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax

from icl_lab.benchmarks.cases import CASES, Settings, lsa1
from icl_lab.benchmarks.llc import against
from icl_lab.benchmarks.timing import in_turns, seconds_of, spread
from icl_lab.families.task import fresh_tasks, model_of
from icl_lab.lab.configs.run import RunConfig
from icl_lab.src import patching
from icl_lab.src.prng import key

CONTEXTS = 256
NOTE = "Memory for captured activations is asked of the system anew each time, which is a part of what they cost"
ALL_ROWS, PREDICTION = "a pass of all rows", "a prediction"

Entry = dict[str, Any]


class Passes(NamedTuple):
    """Passes of a model as it begins, each one program, by what is read; and the megabytes of all activations."""

    calls: Mapping[str, Callable[[], Any]]
    megabytes: float


def passes_of(config: RunConfig, contexts: int) -> Passes:
    """The passes on so many contexts.

    The prediction of a stack computes the query's row alone in its last layer; a pass of all rows ends with its stream.
    """
    model, batch = model_of(config), fresh_tasks(config, contexts, 0)
    params = model.init(key(0))
    shapes = patching.shapes_of(model, params, batch)
    last = [at for at in shapes if at.endswith("resid_post")][-1]
    read = {"everything": "*", "blocks.0.resid_post": "blocks.0.resid_post", ALL_ROWS: last}
    programs = {
        name: jax.jit(lambda params, batch, names=names: patching.capture(model, params, batch, names))
        for name, names in read.items()
    }
    both = {**programs, PREDICTION: jax.jit(model.predict)}
    calls = {name: partial(_ready, program, params, batch) for name, program in both.items()}
    return Passes(calls, sum(shape.size for shape in shapes.values()) * 4e-6)


def _ready(program: Callable[..., Any], *arguments: Any) -> None:
    jax.block_until_ready(program(*arguments))


def cost(config: RunConfig, read: str, text: str, settings: Settings) -> Entry:
    """The seconds of a pass that reads activations, against those of a pass of all rows and of a prediction."""
    contexts = CONTEXTS if settings.points is None else CONTEXTS // 16
    passes, megabytes = passes_of(config, contexts)
    calls = {"ours": passes[read], ALL_ROWS: passes[ALL_ROWS], PREDICTION: passes[PREDICTION]}
    for call in calls.values():
        call()  # compiles
    turns = in_turns({who: partial(seconds_of, call) for who, call in calls.items()}, 4 * settings.repeats)
    seconds = {who: spread(values)._asdict() for who, values in turns.items()}
    said = f", {megabytes:.0f} MB" if read == "everything" else ""
    return {"text": f"{text}, {contexts} contexts{said}", "note": NOTE, **against(seconds)}


SMALL, LSA1 = CASES["decoder_small"].config, lsa1(3)

MEASURED: dict[str, Callable[[Settings], Entry]] = {
    "capture_small": partial(cost, SMALL, "everything", "capture all activations of the decoder small"),
    "capture_small_early": partial(cost, SMALL, "blocks.0.resid_post", "capture one of its first layer's"),
    "capture_lsa1": partial(cost, LSA1, "everything", "capture all activations of 3 layers of lsa1"),
    "capture_lsa1_early": partial(cost, LSA1, "blocks.0.resid_post", "capture one of their first layer's"),
}
