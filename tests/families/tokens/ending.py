"""What a run of the family leaves: the losses of its sequences, its numbers on the test set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from icl_lab.analysis.measures.test_set import mean_and_error
from icl_lab.runners.finish import Ending, Wanted
from icl_lab.runners.summary import header, row
from icl_lab.src.losses import cross_entropies
from icl_lab.src.model import Model
from icl_lab.store import layout
from icl_lab.store.atomic import write_npz

from .config import TokensConfig
from .experiment import Chains, EvalSet, make_test_chains, masked_mean


def finish(
    run: Path, config: TokensConfig, model: Model, params: Any, eval_set: EvalSet, wanted: Wanted
) -> Iterator[dict[str, Any]]:
    """Writes the run's files, and yields its measures."""
    losses = jax.jit(model.losses)
    write_npz(run / layout.PREDICTIONS, {"losses": np.asarray(losses(params, eval_set.batch))})
    yield {}
    chains = make_test_chains(config)
    measured = {"loss": losses(params, chains.batch), "chain_loss": _losses_of_the_chain(chains)}
    numbers: dict[str, Any] = {"tasks": config.test_tasks}
    for name, values in measured.items():
        numbers[name], numbers[f"{name}_se"] = mean_and_error(np.asarray(values, np.float64))
    yield {"headline": numbers}


@jax.jit
def _losses_of_the_chain(chains: Chains) -> jax.Array:
    """The losses of who knows each sequence's chain."""
    batch = chains.batch
    rows = jnp.take_along_axis(chains.transitions, batch.tokens[:, :, None], axis=1)
    return masked_mean(cross_entropies(jnp.log(rows), batch.targets), batch.mask)


def summary_lines(summary: Mapping[str, Any], run: Path, config: TokensConfig) -> list[str]:
    """The loss, and that of who knows the chains."""
    numbers = summary["headline"]
    rows = {"trained reader": "loss", "its chain": "chain_loss"}
    return [header(numbers, "cross-entropy, nats"), *(row(label, numbers, name) for label, name in rows.items())]


ENDING = Ending(finish, summary_lines)
