"""The analytic count of operations against XLA's count of the same step's program."""

import jax
import jax.numpy as jnp
import pytest

from icl_lab.benchmarks import flops
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import make_model
from icl_lab.src.batch import Batch
from icl_lab.src.config import ModelConfig, TrainConfig
from icl_lab.src.data import labels, query_labels, sample_batch
from icl_lab.src.data_config import DataConfig
from icl_lab.src.optimizer import make_optimizer
from icl_lab.src.prng import key
from icl_lab.src.train import TrainState, updated


def run_config(model: ModelConfig, dim: int = 20, pairs: int = 20) -> RegressionConfig:
    return RegressionConfig(model=model, data=DataConfig(dim, pairs), training=TrainConfig(batch_size=64))


CONFIGS = {
    "lsa1": RegressionConfig(),
    "wide": run_config(ModelConfig(), 40, 10),
    "long": run_config(ModelConfig(), 10, 40),
    "two layers": run_config(ModelConfig(num_layers=2)),
    "recurrent": run_config(ModelConfig(num_layers=4, recurrent=True), 10, 10),
    "heads": run_config(ModelConfig(num_layers=3, num_heads=2, key_size=16)),
    "biases": run_config(ModelConfig(num_layers=2, bias=True)),
    "layer norm": run_config(ModelConfig(num_layers=2, layer_norm=True), 40, 40),
    "mlp": run_config(ModelConfig(num_layers=2, mlp_width=64), 40, 40),
    "twolayer": run_config(
        ModelConfig(("softmax", "linear"), 2, tokens="interleaved", pos_enc_size=10), dim=10, pairs=10
    ),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_xla_counts_the_same_and_at_most_a_tenth_more(config: RegressionConfig) -> None:
    """Of the program before optimisation, for what fusions and library calls hide is there still in the open.

    XLA counts elementwise operations too, so it must find more, but few.
    """
    model, optimizer = make_model(config), make_optimizer(config.training)

    def step(state: TrainState, x: jax.Array, x_query: jax.Array, w: jax.Array) -> TrainState:
        batch = Batch(x, labels(x, w), x_query, query_labels(x_query, w), w)
        return updated(optimizer, state, jax.grad(model.loss)(state.params, batch), jnp.float32(1e-3))

    params = jax.eval_shape(model.init, key(0))
    state = TrainState(params, jax.eval_shape(optimizer.init, params))
    batch = jax.eval_shape(lambda: sample_batch(key(0), config.data, config.training.batch_size))
    counted = jax.jit(step).lower(state, batch.x, batch.x_query, batch.w).cost_analysis()["flops"]
    assert 1 < counted / flops.training_step(config) < 1.1


def test_one_layer_by_hand() -> None:
    """B = 1, N = D = 1: tokens are 2 wide, two rows, and only the query's is updated.

    Labels: two products of one multiply and add, 4. Forward: two weight products of 2*2*2 multiply-adds, 16 each; the
    query's row times a 2 x 2 matrix, 8, before and after; scores and pooled, two multiply-adds, 4 each. Backward: both
    operands for the weight products and the update; the weights' side alone for the others.
    """
    config = RegressionConfig(data=DataConfig(1, 1), training=TrainConfig(batch_size=1))
    assert flops.training_step(config) == 4 + 3 * (16 + 16 + 8) + 2 * (8 + 4 + 4)


def test_a_deep_stack_costs_a_full_layer_more_for_each_layer() -> None:
    """Between the first layer, whose tokens need no gradient, and the last, of one row, all layers are alike."""
    costs = [flops.training_step(RegressionConfig(model=ModelConfig(num_layers=layers))) for layers in (2, 3, 4, 5)]
    assert costs[1] - costs[0] == costs[2] - costs[1] == costs[3] - costs[2] > 0
