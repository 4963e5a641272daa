import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import make_model
from icl_lab.families.task import model_of
from icl_lab.lab.configs.presets import preset, resolve
from icl_lab.src.config import TrainConfig
from icl_lab.src.data import sample_batch
from icl_lab.src.data_config import DataConfig
from icl_lab.src.losses import half_mse
from icl_lab.src.model import Model
from icl_lab.src.optimizer import make_optimizer
from icl_lab.src.prng import key
from icl_lab.src.train import (
    NEVER,
    Hyperparameters,
    Trainer,
    TrainState,
    by_jax,
    in_blocks,
    make_trainer,
    run_of,
    updated,
)

CONFIG = RegressionConfig(data=DataConfig(dim=4, num_pairs=5), training=TrainConfig(batch_size=64))
MODEL, NOTHING = make_model(CONFIG), {}


def batch_fn(data_key, step, batched, shared=NOTHING):
    """Batches whose labels are multiplied by a run's own scale."""
    batch = sample_batch(jax.random.fold_in(data_key, step), CONFIG.data, CONFIG.training.batch_size)
    return batch._replace(y=batched["scale"] * batch.y, y_query=batched["scale"] * batch.y_query)


def run(seed, lr=1e-3, scale=1.0):
    return Hyperparameters(key(seed), key(seed + 1000), jnp.float32(lr), {"scale": jnp.float32(scale)})


def stacked(runs):
    """A pack of the runs, in this order."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *runs)


@cache  # its programs compile once for each width
def trainer(config=CONFIG.training) -> Trainer:
    return make_trainer(lambda shared: MODEL, config, batch_fn)


def trained(runs, *stops, program=None):
    """The state and the last info after chunks that end at these steps."""
    program = trainer() if program is None else program
    pack = stacked(runs)
    state, start = program.init(pack, NOTHING), 0
    for stop in stops:
        state, info = program.chunk(state, pack, NOTHING, jnp.int32(start), jnp.int32(stop))
        start = stop
    return state, info


def same_bits(a, b):
    return all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


def test_a_pack_agrees_with_the_runs_alone():
    """DESIGN: parameters to 1e-5 after 300 steps; programs of other widths round differently."""
    runs = [run(0), run(1, lr=5e-4), run(2, scale=0.5)]
    together, _ = trained(runs, 300)
    for index, alone in enumerate(runs):
        single, _ = trained([alone], 300)
        pairs = zip(jax.tree.leaves(run_of(together.params, index)), jax.tree.leaves(single.params), strict=True)
        for in_pack, by_itself in pairs:
            np.testing.assert_allclose(in_pack, by_itself[0], atol=1e-5)


def test_a_run_alone_without_vmap_is_the_run_up_to_rounding():
    """Of a model that asks for it; a pack of two has `vmap`."""
    widths = []
    scale = jax.custom_batching.custom_vmap(lambda value: value)

    @scale.def_vmap
    def _(width, is_batched, value):
        widths.append(width)
        return value, is_batched[0]

    def batches(data_key, step, batched, shared):
        return batch_fn(data_key, step, {"scale": scale(batched["scale"])})

    bare = MODEL._replace(alone_without_vmap=True)
    program = make_trainer(lambda shared: bare, CONFIG.training, batches)
    found, expected = trained([run(0)], 30, program=program), trained([run(0)], 30)
    norms = [each.norms(expected[0], stacked([run(0)]), NOTHING, jnp.int32(30)) for each in (program, trainer())]
    for one, other in zip(*map(jax.tree.leaves, ((found, norms[0]), (expected, norms[1]))), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)  # as packs and single runs
    assert not widths
    trained([run(0), run(1)], 1, program=program)
    assert widths == [2]


@pytest.mark.parametrize(
    ("name", "bare"),
    [("tiny", True), ("functions_tiny", True), ("lsa1", False), ("languages", False), ("markov", False)],
)
def test_models_that_are_faster_alone_without_vmap_ask_for_it(name, bare):
    """As benchmarks/performance.md has them."""
    config = resolve(preset(name))
    assert model_of(config).alone_without_vmap == bare


def test_blocks_of_a_batch_give_its_loss_and_gradient(x64):
    made = MODEL.init(key(1)), batch_fn(key(2), 0, {"scale": 1.0})
    params, batch = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), made)
    wanted = jax.tree.leaves(by_jax(MODEL)(params, batch))
    for size in (1, 16, 64):
        found = jax.tree.leaves(jax.jit(in_blocks(size)(MODEL))(params, batch))
        for one, other in zip(found, wanted, strict=True):
            # sums of 64 numbers of order 1 in another order, in float64
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-14)


def test_a_model_sees_a_block_at_a_time():
    seen = set()

    def losses(params, batch):
        seen.add(batch.y.shape[0])
        return MODEL.losses(params, batch)

    batch = batch_fn(key(2), 0, {"scale": 1.0})
    in_blocks(16)(MODEL._replace(losses=losses, mean_loss=None))(MODEL.init(key(1)), batch)
    assert seen == {16}


def test_the_data_of_a_pack_are_those_of_the_runs_alone_to_the_bit():
    keys = jnp.stack([key(5), key(6), key(7)])
    one = {"scale": jnp.float32(1)}
    together = jax.jit(jax.vmap(batch_fn, in_axes=(0, None, None)))(keys, 3, one)
    for index in range(3):
        assert same_bits(run_of(together, index), jax.jit(batch_fn)(keys[index], 3, one))


def test_neither_lane_nor_companions_change_a_members_bits():
    chosen = run(3)
    first, _ = trained([chosen, run(1), run(2)], 40)
    last, _ = trained([run(8, lr=3e-3), run(9, scale=2.0), chosen], 40)
    assert same_bits(run_of(first, 0), run_of(last, 2))
    assert not same_bits(run_of(first, 0), run_of(first, 1))


def test_chunk_boundaries_change_no_bit():
    whole, info = trained([run(0)], 50)
    parts, last = trained([run(0)], 1, 20, 50)
    assert same_bits(whole, parts)
    assert same_bits(info.loss, last.loss)


def test_a_second_chunk_of_any_length_does_not_recompile():
    calls = []

    def counted(data_key, step, batched, shared):
        calls.append(step)
        return batch_fn(data_key, step, batched)

    program = make_trainer(lambda shared: MODEL, CONFIG.training, counted)
    trained([run(0)], 5, program=program)
    traces = len(calls)
    trained([run(1)], 5, 7, 30, program=program)
    assert traces > 0
    assert len(calls) == traces
    assert program.chunk._cache_size() == 1


def test_a_full_batch_is_that_of_the_first_step_at_every_step():
    """Two chunks over a pool are two steps of the optimiser on one batch; on fresh tasks they are not."""
    pool = replace(CONFIG.training, full_batch=True)
    state, info = trained([run(0)], 2, program=trainer(pool))
    same = make_trainer(
        lambda shared: MODEL, CONFIG.training, lambda key, step, batched, _: batch_fn(key, jnp.int32(0), batched)
    )
    expected, expected_info = trained([run(0)], 2, program=same)
    assert same_bits(state, expected)
    assert same_bits(info, expected_info)
    assert not same_bits(state, trained([run(0)], 2)[0])


def test_training_lowers_the_loss():
    """From the loss of answering 0, D v/2 = 4/24 = .167, towards one step's, .0893 in closed form at D = 4, N = 5."""
    test = sample_batch(key(99), CONFIG.data, 4000)
    state, _ = trained([run(0, lr=3e-3)], 600)
    before = half_mse(jnp.zeros_like(test.y_query), test.y_query)
    after = half_mse(MODEL.predict(run_of(state.params, 0), test), test.y_query)
    assert after < 0.65 * before


def adam_in_numpy(gradients, params, lr, b1, b2, clip, decay):
    """AdamW after clipping by global norm, in float64 (Kingma & Ba; Loshchilov & Hutter)."""
    first, second = np.zeros_like(params), np.zeros_like(params)
    for step, gradient in enumerate(gradients, start=1):
        norm = np.linalg.norm(gradient)
        gradient = gradient * min(1.0, clip / norm) if clip else gradient
        first = b1 * first + (1 - b1) * gradient
        second = b2 * second + (1 - b2) * gradient**2
        direction = (first / (1 - b1**step)) / (np.sqrt(second / (1 - b2**step)) + 1e-8)
        params = params - lr * (direction + decay * params)
    return params


@pytest.mark.parametrize(("clip", "decay"), [(0.0, 0.0), (0.5, 0.0), (0.5, 0.1)])
def test_the_optimiser_is_clipped_adamw(clip, decay, x64):
    config = TrainConfig(grad_clip=clip, weight_decay=decay)
    optimizer = make_optimizer(config)
    rng = np.random.default_rng(0)
    params, gradients = rng.normal(size=6), rng.normal(size=(5, 6))
    moved, state = jnp.asarray(params), optimizer.init(jnp.asarray(params))
    for gradient in gradients:
        direction, state = optimizer.update(jnp.asarray(gradient), state, moved)
        moved = moved - 0.01 * direction
    expected = adam_in_numpy(gradients, params, 0.01, config.b1, config.b2, clip, decay)
    np.testing.assert_allclose(moved, expected, rtol=1e-7)  # 1e-7: optax adds its 1e-8 in another place of the sum


def moved_by(optimizer, params, gradients, lr=1.0):
    """Parameters after a step of size lr against each direction that the optimiser makes of a gradient."""
    state = optimizer.init(params)
    for gradient in gradients:
        direction, state = optimizer.update(gradient, state, params)
        params = jax.tree.map(lambda value, change: value - lr * change, params, direction)
    return params


OPTAX = {
    "adamw": lambda lr, decay, mask: optax.adamw(lr, 0.8, 0.95, weight_decay=decay, mask=mask),
    "sgd": lambda lr, decay, mask: optax.chain(optax.add_decayed_weights(decay, mask), optax.sgd(lr)),
}


@pytest.mark.parametrize("name", OPTAX)
def test_an_optimiser_is_optaxs_after_a_clip(name, x64):
    """On two arrays whose gradients are clipped together, and of which one alone decays; optax takes lr inside."""
    rng, decayed = np.random.default_rng(1), {"kernel": True, "bias": False}
    drawn = [{part: jnp.asarray(scale * rng.normal(size=3)) for part in decayed} for scale in (1, 5, 0.01, 5)]
    config = TrainConfig(optimizer=name, grad_clip=0.5, weight_decay=0.1, b1=0.8, b2=0.95)
    found = moved_by(make_optimizer(config, lambda _: decayed), drawn[0], drawn[1:], 0.1)
    own = optax.chain(optax.clip_by_global_norm(0.5), OPTAX[name](0.1, 0.1, decayed))
    expected = moved_by(own, drawn[0], drawn[1:], -1.0)  # which gives what is added
    for part in decayed:
        np.testing.assert_allclose(found[part], expected[part], rtol=1e-12)


def test_sgd_is_clipped_gradient_descent_by_hand(x64):
    """(3, 4) has norm 5 and is clipped to (.6, .8), (.3, .4) is not; then the decay of what is left."""
    config = TrainConfig(optimizer="sgd", grad_clip=1.0, weight_decay=0.5)
    found = moved_by(make_optimizer(config), jnp.array([1.0, 2.0]), jnp.array([[3.0, 4.0], [0.3, 0.4]]), 0.1)
    first = np.array([1.0, 2.0]) - 0.1 * (np.array([0.6, 0.8]) + 0.5 * np.array([1.0, 2.0]))
    np.testing.assert_allclose(found, first - 0.1 * (np.array([0.3, 0.4]) + 0.5 * first), rtol=1e-12)


def test_training_by_sgd_on_a_parabola_is_a_geometric_series(x64):
    """The loss mean((w - y)^2) / 2 of one w has its minimum at the mean of y, from which w is off by (1 - lr)^steps."""
    targets = jnp.array([1.0, 2.0, 6.0])
    parabola = Model(lambda _: {"m": {"w": jnp.array(0.0)}}, None, lambda params, y: 0.5 * (params["m"]["w"] - y) ** 2)
    config = TrainConfig(steps=20, batch_size=3, optimizer="sgd", grad_clip=0.0)
    program = make_trainer(lambda shared: parabola, config, lambda key, step, batched, shared: shared["y"])
    pack = Hyperparameters(key(0)[None], key(1)[None], jnp.full(1, 0.1))
    state, info = program.chunk(program.init(pack, {"y": targets}), pack, {"y": targets}, jnp.int32(0), jnp.int32(20))
    np.testing.assert_allclose(state.params["m"]["w"], 3.0 * (1 - 0.9**20), rtol=1e-12)
    np.testing.assert_allclose(info.loss, 0.5 * (9 * 0.9**38 + targets.var()), rtol=1e-12)  # before the last step


def test_a_step_follows_the_gradient_of_half_the_mean_squared_error(x64):
    """With the plain gradient as direction, params - lr * dL/dparams; the slope is checked by finite differences."""
    params = jax.tree.map(lambda leaf: jnp.full(leaf.shape, 0.3, jnp.float64), MODEL.init(key(0)))
    batch = sample_batch(key(1), CONFIG.data, 32)

    state = TrainState(params, optax.identity().init(params))
    loss, gradient = jax.jit(jax.value_and_grad(MODEL.loss))(params, batch)
    after = updated(optax.identity(), state, gradient, jnp.asarray(1.0))
    errors = np.asarray(MODEL.predict(params, batch)) - np.asarray(batch.y_query)
    assert float(loss) == pytest.approx(0.5 * float(np.mean(errors**2)), rel=1e-12)
    slope = params["layer_0/attention"]["query"] - after.params["layer_0/attention"]["query"]
    nudge = jnp.zeros_like(slope).at[1, 0, 2].set(1e-6)

    def loss_at(sign):
        part = params["layer_0/attention"]
        moved = {"layer_0/attention": part | {"query": part["query"] + sign * nudge}}
        return half_mse(MODEL.predict(moved, batch), batch.y_query)

    assert float(slope[1, 0, 2]) == pytest.approx(float(loss_at(1) - loss_at(-1)) / 2e-6, rel=1e-6)


def test_divergence_is_told_of_the_member_alone():
    wild = trainer(replace(CONFIG.training, grad_clip=0.0))
    state, info = trained([run(0), run(1, scale=1e30)], 30, program=wild)
    calm, _ = trained([run(0), run(1)], 30, program=wild)
    assert int(info.diverged_at[0]) == NEVER
    assert 1 <= int(info.diverged_at[1]) <= 30
    assert same_bits(run_of(state, 0), run_of(calm, 0))


def poisoned(data_key, step, batched, shared):
    """Good batches, but for the target of one step, which makes its loss infinite and the next ones NaN."""
    batch = batch_fn(data_key, step, {"scale": 1.0})
    return batch._replace(y_query=jnp.where(step == batched["at"], jnp.inf, batch.y_query))


def overflowing(data_key, step, batched, shared):
    """Batches whose inputs alone are multiplied by a run's own scale."""
    batch = batch_fn(data_key, step, {"scale": 1.0})
    return batch._replace(x=batched["scale"] * batch.x)


def test_divergence_is_dated_by_the_first_loss_that_is_not_finite():
    """As a count of steps done, for step i of 0, 1, ... that is i + 1; a run that never diverges is not dated."""
    program = make_trainer(lambda shared: MODEL, CONFIG.training, poisoned)
    runs = [run(seed)._replace(batched={"at": jnp.int32(at)}) for seed, at in ((0, 4), (1, 99), (2, 0))]
    _, info = trained(runs, 9, program=program)
    assert info.diverged_at.tolist() == [5, NEVER, 1]
    assert np.isnan(info.loss).tolist() == [True, False, True]


def test_a_state_that_is_not_finite_is_divergence_although_its_loss_was():
    """Inputs of 1e10 make a loss of 1e27, finite in float32; the squares of its gradient, which Adam keeps, are not."""
    program = make_trainer(lambda shared: MODEL, replace(CONFIG.training, grad_clip=0.0), overflowing)
    runs = [run(seed)._replace(batched={"scale": jnp.float32(scale)}) for seed, scale in ((0, 1.0), (1, 1e10))]
    state, info = trained(runs, 1, program=program)
    assert np.isfinite(info.loss).all()
    assert info.diverged_at.tolist() == [NEVER, 1]
    assert np.isfinite(np.concatenate([leaf.ravel() for leaf in jax.tree.leaves(run_of(state, 0))])).all()


def test_a_chunk_gives_its_input_states_memory_away():
    program, pack = trainer(), stacked([run(0)])
    state = program.init(pack, NOTHING)
    program.chunk(state, pack, NOTHING, jnp.int32(0), jnp.int32(1))
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(state.params))
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves(pack))


DATA_PARALLEL = """
import sys; sys.path.insert(0, {root!r}); sys.path.insert(0, {here!r})
import jax, numpy as np
from test_train import NOTHING, run, stacked, trained, trainer
assert len(jax.devices()) == {count}
program, runs = trainer(), [run(0), run(1)]
state, _ = trained(runs, 60, program=program)
compiled = program.chunk.lower(state, stacked(runs), NOTHING, 0, 1).compile()
print(int("all-reduce" in compiled.as_text()))
np.savez({out!r}, *jax.tree.leaves(state.params))
"""


@pytest.mark.slow
def test_several_devices_give_what_one_gives(root: Path, tmp_path: Path):
    """Four virtual CPU devices share each batch; sums over tasks are then taken in another order, hence 1e-5."""
    found = {}
    for count in (1, 4):
        out = tmp_path / f"{count}.npz"
        code = DATA_PARALLEL.format(root=str(root), here=str(Path(__file__).parent), count=count, out=str(out))
        flags = f"--xla_force_host_platform_device_count={count}"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | {"XLA_FLAGS": flags}
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == str(int(count > 1)), "gradients are summed across devices when there are some"
        with np.load(out) as arrays:
            found[count] = [arrays[name] for name in arrays]
    for one, four in zip(found[1], found[4], strict=True):
        np.testing.assert_allclose(four, one, atol=1e-5)


@pytest.mark.parametrize("train_only", ["", "value|key"])
def test_norms_are_of_the_gradient_of_the_next_batch_before_clipping(train_only):
    """Against the gradient of the loss, summed in NumPy; what is not trained has no part in the first of them."""
    config = replace(CONFIG.training, train_only=train_only, warmup_steps=8, grad_clip=1e-3)
    program, runs = trainer(config), [run(0), run(1, lr=1e-2)]
    pack = stacked(runs)
    state = program.init(pack, NOTHING)
    gradient_norms, param_norms, rates = program.norms(state, pack, NOTHING, jnp.int32(3))
    for index, each in enumerate(runs):
        params = run_of(state.params, index)
        gradient = jax.grad(MODEL.loss)(params, batch_fn(each.data_key, jnp.int32(3), each.batched))
        trained_too = [leaf for leaves in gradient.values() for name, leaf in leaves.items() if name in train_only]
        counted = trained_too if train_only else jax.tree.leaves(gradient)
        for found, leaves in ((gradient_norms, counted), (param_norms, jax.tree.leaves(params))):
            expected = np.sqrt(sum((np.asarray(leaf, float) ** 2).sum() for leaf in leaves))
            np.testing.assert_allclose(found[index], expected, rtol=1e-5)  # float32
        np.testing.assert_allclose(rates[index], each.lr * 4 / 8, rtol=1e-6)
