"""What the family computes: its model, its tasks, and its numbers in training and on the test set."""

import math
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from icl_lab.families.task import EvalSet, TaskSpec, batches_of, sampled
from icl_lab.src.batch import Batch
from icl_lab.src.data import concatenated_tokens
from icl_lab.src.losses import binary_cross_entropies
from icl_lab.src.model import as_model
from icl_lab.src.prng import Purpose, purpose_key
from icl_lab.src.statistics import means_and_errors
from icl_lab.src.transformer import run_stack

LOG_2 = math.log(2)  # the cross-entropy of saying 1/2


def sample(key, config, count, weight_scale):
    """Fresh tasks of the config's sizes: y ~ Bernoulli(sigmoid(w.x)), the query's label too."""
    dim, pairs = config.data.dim, config.data.num_pairs
    w = weight_scale * jax.random.normal(purpose_key(key, Purpose.TASK), (count, dim))
    x = jax.random.normal(purpose_key(key, Purpose.INPUT), (count, pairs + 1, dim))
    p = jax.nn.sigmoid(jnp.einsum("bnd,bd->bn", x, w))
    y = (jax.random.uniform(purpose_key(key, Purpose.OBSERVATION), p.shape) < p).astype(x.dtype)
    return Batch(x[:, :-1], y[:, :-1], x[:, -1], y[:, -1], w)


@lru_cache
def model_of(architecture):
    """Always the same stack of an architecture, on tokens (x, y - 1/2); its predictions are logits."""
    return as_model(
        lambda tokens, hook: run_stack(tokens, architecture, hook),
        lambda batch: concatenated_tokens(batch._replace(y=batch.y - 0.5)),
        (architecture.num_rows, architecture.token_width),
        loss="binary_cross_entropy",
    )


def test_metrics(config, model, params, eval_set):
    """The loss on the test set, that of saying 1/2, that of who knows w, and the share of labels that are right."""
    batch = sampled(sample, config, Purpose.TEST_SET, config.test_tasks)
    logits = {"loss": jax.jit(model.predict)(params, batch), "teacher_loss": jnp.sum(batch.x_query * batch.w, axis=1)}
    losses = {name: binary_cross_entropies(z, batch.y_query) for name, z in logits.items()}
    numbers = {"tasks": config.test_tasks, "constant_loss": LOG_2, "constant_loss_se": 0.0}
    return numbers | means_and_errors(losses) | {"accuracy": float(((logits["loss"] > 0) == batch.y_query).mean())}


TASK = TaskSpec(
    make_model=lambda config, shared: model_of(config.architecture),
    batches=batches_of(sample),
    make_eval_set=lambda config, shared: EvalSet(sampled(sample, config, Purpose.EVAL, config.eval_tasks)),
    eval_metrics=lambda model, params, eval_set: {
        "eval_loss": float(jax.jit(model.losses)(params, eval_set.batch).mean()),
        "eval_constant_loss": LOG_2,
    },
    batched=lambda config: {"weight_scale": np.float32(config.data.weight_scale)},
    predictions=lambda model, params, eval_set: {"logits": jax.jit(model.predict)(params, eval_set.batch)},
    test_metrics=test_metrics,
)
