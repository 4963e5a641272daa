"""Growing prompts: a step that is computed on the first pairs alone has the loss and gradient of the whole prompt."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.families.functions import task
from icl_lab.families.functions.classes.labelled import Prototypes
from icl_lab.families.functions.classes.linear import Linear
from icl_lab.families.functions.config import PROGRAMS, Curriculum, FunctionModel, FunctionsConfig, PromptData
from icl_lab.families.functions.function_class import FunctionClass
from icl_lab.src.config import TrainConfig
from icl_lab.src.decoder_config import POSITIONS
from icl_lab.src.model import Params
from icl_lab.src.prng import key
from icl_lab.src.train import Hyperparameters, make_trainer

DIM, PAIRS = 2, 9
GROWING = Curriculum(start_points=2, points_by=2, points_every=3)
COUNTS = {0: 2, 3: 4, 9: 8, 12: 9}  # step -> predictions that count


def config_of(function: FunctionClass = Linear(), **model: str) -> FunctionsConfig:
    return FunctionsConfig(
        function=function,
        data=PromptData(dim=DIM, num_pairs=PAIRS),
        model=replace(FunctionModel(num_layers=2, d_model=8, mlp_width=8, num_heads=2), **model),
        curriculum=GROWING,
        training=TrainConfig(batch_size=4, steps=40),
    )


def moved(params: Params) -> Params:
    """Parameters of which none is 0, as distances are at first."""
    leaves, tree = jax.tree.flatten(params)
    keys = jax.random.split(key(7), len(leaves))
    return jax.tree.unflatten(
        tree, [leaf + 0.3 * jax.random.normal(k, leaf.shape) for k, leaf in zip(keys, leaves, strict=True)]
    )


@pytest.mark.parametrize(
    ("pairs", "curriculum", "lengths"),
    [
        (9, GROWING, (4, 6, 8, 9)),
        (21, Curriculum(start_points=5), (9, 13, 17, 21)),
        (6, Curriculum(start_points=5), (5, 6)),
        (6, Curriculum(start_points=6), (6,)),
        (6, Curriculum(start_dims=1), ()),
    ],
)
def test_lengths_are_few_and_the_last_is_the_whole(
    pairs: int, curriculum: Curriculum, lengths: tuple[int, ...]
) -> None:
    assert curriculum.lengths(pairs) == lengths
    assert len(lengths) <= PROGRAMS


@pytest.mark.parametrize(
    ("function", "positions"), [*((Linear(), positions) for positions in POSITIONS), (Prototypes(), "learned")]
)
def test_the_first_pairs_alone_have_the_loss_and_gradient_of_the_whole_prompt(
    function: FunctionClass, positions: str
) -> None:
    """To rounding in float32: sums over fewer rows are added in another order."""
    config = config_of(function, positions=positions)
    short = task.make_model(config)
    whole = task.make_model(replace(config, curriculum=Curriculum()))
    params = moved(short.init(key(1)))
    batch_fn, of_both = task.batches(config), [jax.jit(jax.value_and_grad(model.mean_loss)) for model in (short, whole)]
    for step, count in COUNTS.items():
        batch = batch_fn(key(3), jnp.int32(step), task.batched(config), {})
        assert int(batch.counted[0].sum()) == count
        found, expected = (of_one(params, batch) for of_one in of_both)
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(one, other, atol=2e-5 * max(1.0, float(jnp.abs(other).max())))


def test_in_a_pack_a_step_computes_one_length_and_not_all() -> None:
    """The branch stays a branch: were it taken for each run, all lengths would be computed."""
    config = config_of()
    assert program_of(config).count("stablehlo.case") > program_of(replace(config, curriculum=Curriculum())).count(
        "stablehlo.case"
    )


def program_of(config: FunctionsConfig) -> str:
    """The training program of a pack of two."""
    model = task.make_model(config)
    trainer = make_trainer(lambda shared: model, config.training, task.batches(config))
    keys = jax.random.split(key(0), 2)
    batched = jax.tree.map(
        lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *[task.batched(config)] * 2
    )
    pack = Hyperparameters(keys, keys, jnp.full(2, 1e-3), batched)
    return trainer.chunk.lower(trainer.init(pack, {}), pack, {}, jnp.int32(0), jnp.int32(1)).as_text()


def test_in_a_pack_a_run_with_growing_prompts_trains_as_it_does_beside_others() -> None:
    """Its bits depend on its own values and on the pack's width, whatever trains beside it."""
    config = replace(config_of(), curriculum=replace(GROWING, start_dims=1, dims_every=5))
    model = task.make_model(config)
    trainer = make_trainer(lambda shared: model, config.training, task.batches(config))
    ends = []
    for other in (1, 2):
        keys = jnp.stack([key(0), key(other)])
        batched = jax.tree.map(lambda leaf: jnp.stack([jnp.asarray(leaf)] * 2), task.batched(config))
        pack = Hyperparameters(keys, keys, jnp.full(2, 1e-3), batched)
        state, _ = trainer.chunk(trainer.init(pack, {}), pack, {}, jnp.int32(0), jnp.int32(14))
        ends.append(state.params)
    first, second = (jax.tree.leaves(jax.tree.map(np.asarray, params)) for params in ends)
    assert all((one[0] == other[0]).all() for one, other in zip(first, second, strict=True))
    assert any((one[1] != other[1]).any() for one, other in zip(first, second, strict=True))
