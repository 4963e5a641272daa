"""Every family has its parts, and a run of any of them gets its own model and batches by its config alone."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from icl_lab.families.autoencoder import task as autoencoder
from icl_lab.families.task import model_of, shared_of, task_key, task_of, training_set, with_parts_as_batches
from icl_lab.lab.configs.presets import preset, resolve
from icl_lab.lab.configs.registry import family_of_model
from icl_lab.lab.registries import FAMILIES
from icl_lab.src import decoder, language_model, layerwise, sine, transformer
from icl_lab.src.prng import Purpose, key
from icl_lab.src.train import mean_over_parts
from icl_lab.store.params import flattened

FIRST = {name: next(iter(family.models)) for name, family in FAMILIES.items()}
OWN = {  # how the model of each is made by hand
    "regression": lambda config: transformer.make_model(config.architecture),
    "layerwise": lambda config: layerwise.make_model(config.architecture, config.training.deep_supervision),
    "sine": lambda config: sine.make_model(config.architecture),
    "autoencoder": lambda config: autoencoder.make_model(config),
    "languages": lambda config: layerwise.make_model(config.architecture),
    "diversity": lambda config: decoder.make_model(config.model, config.data.dim, config.data.num_pairs),
    "functions": lambda config: decoder.make_model(config.model, config.data.dim, config.data.num_pairs),
    "tokens": lambda config: language_model.make_model(config.model, 3, 64, 32**-0.5, True),
}


def config_of(family: str):
    """The preset of a family's first model, with a small batch."""
    config = resolve(preset(FIRST[family]))
    return replace(config, training=replace(config.training, batch_size=6))


@pytest.mark.parametrize("family", FIRST)
def test_a_config_has_the_model_of_its_family(family: str) -> None:
    config = config_of(family)
    model = model_of(config)
    by_hand = OWN[family](config)
    assert model is model_of(replace(config, data_seed=3))  # programs are kept by the model they are of
    shapes, expected = (flattened(jax.eval_shape(made.init, key(0))) for made in (model, by_hand))
    assert {name: leaf.shape for name, leaf in shapes.items()} == {name: leaf.shape for name, leaf in expected.items()}


def test_the_control_is_another_model_than_the_one_it_controls() -> None:
    shapes = [
        set(flattened(jax.eval_shape(model_of(resolve(preset(name))).init, key(0))))
        for name in ("sine", "sine_control")
    ]
    assert shapes[1] < shapes[0]
    assert family_of_model("sine_control") is family_of_model("sine")


@pytest.mark.parametrize("family", FIRST)
def test_batches_have_the_shapes_that_the_family_says_its_evaluation_batch_has(family: str) -> None:
    config = config_of(family)
    task = task_of(config)
    batched, shared = task.batched(config), shared_of(config)
    drawn = jax.eval_shape(lambda: task.batches(config)(key(0), np.int32(0), batched, shared))
    expected = replace(config, eval_tasks=6).batch_shapes()
    assert {name: part.shape for name, part in drawn._asdict().items()} == dict(expected)


def test_what_there_is_to_train_on_is_the_first_batch_of_a_full_batch_run() -> None:
    config = config_of("regression")
    assert training_set(config) is None
    full = replace(config, training=replace(config.training, full_batch=True))
    task, batched = task_of(full), task_of(full).batched(full)
    data_key = jax.random.fold_in(key(full.data_seed), int(Purpose.TRAIN))
    drawn = task.batches(full)(data_key, np.int32(0), batched, {})
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), training_set(full), drawn)


@pytest.mark.parametrize("family", FIRST)
def test_a_batch_in_parts_has_the_gradient_of_the_parts_together(family: str) -> None:
    """The mean over four parts is the gradient on all of their tasks at once."""
    config = config_of(family)
    config = replace(config, training=replace(config.training, batch_size=24, micro_batches=4, full_batch=True))
    task = task_of(config)
    shared = shared_of(config)
    model, draw = task.make_model(config, shared), task.batches(with_parts_as_batches(config))
    weights, key = model.init(jax.random.key(0)), task_key(config, Purpose.TRAIN)

    def of_part(own: jax.Array) -> tuple[jax.Array, object]:
        batch = draw(own, np.int32(0), task.batched(config), shared)
        return jax.value_and_grad(model.loss)(weights, batch)

    loss, gradient = jax.jit(lambda: mean_over_parts(of_part, key, 4))()
    whole = training_set(config)
    assert whole is not None
    assert {len(leaf) for leaf in jax.tree.leaves(whole)} == {24}
    assert any((leaf[:6] != leaf[6:12]).any() for leaf in jax.tree.leaves(whole))  # each part is drawn anew
    expected_loss, expected = jax.jit(jax.value_and_grad(model.loss))(weights, whole)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-5)
    for leaf, other in zip(jax.tree.leaves(gradient), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(leaf, other, atol=1e-5 * float(np.abs(other).max()) + 1e-8)
