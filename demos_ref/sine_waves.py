# %% [markdown]
# # Sines: gradient descent on the features of an MLP
#
# A linear layer can only do linear regression, and a sine is not linear. An MLP below it helps: on its features m(x) one
# layer can take a step of gradient descent on the MLP's output weights. Run this as a script from the repository's root,
# `python -m demos_ref.sine_waves`. It takes about two minutes on two cores.

# %%
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from icl_lab.analysis import load_run
from icl_lab.analysis.compare_sine import AMPLITUDE, PHASE, compare, functions
from icl_lab.baselines.linear_mmse import ridge
from icl_lab.baselines.mlp_gd import least_step_loss
from icl_lab.families.sine.task import make_model
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.runners.loop import run_one
from icl_lab.src.losses import half_mse
from icl_lab.src.prng import key
from icl_lab.src.sine import sample_sines

# %% [markdown]
# ## The task
#
# A context is ten pairs of one sine, with its own amplitude and phase. Predicting 0 has loss .0258; a linear function of x
# fitted to the context is worse.

# %%
config = preset("sine")
set_values(config, {"training.steps": 4000})
config = resolve(config)
batch = sample_sines(key(7), config.data, 10_000)
print(f"loss of predicting 0: {half_mse(jnp.zeros_like(batch.y_query), batch.y_query):.4f}")
print(f"loss of a line:       {half_mse(ridge(batch, 1e-3), batch.y_query):.4f}")

# %% [markdown]
# All sines of one frequency are a sin(x) + b cos(x): on these two features ten pairs determine the task, and ridge
# regression finds it. One step of gradient descent cannot, whatever the features of x: its loss has a lower bound, because
# ten random inputs cover the range unevenly.

# %%
features = batch._replace(
    x=jnp.concatenate([jnp.sin(batch.x), jnp.cos(batch.x)], axis=2),
    x_query=jnp.concatenate([jnp.sin(batch.x_query), jnp.cos(batch.x_query)], axis=1),
)
print(f"ridge on sin and cos: {half_mse(ridge(features, 1e-6), batch.y_query):.1e}")
print(f"least loss of one step on features of x: {least_step_loss(config.data):.5f}")

# %% [markdown]
# ## One layer, built by hand, is the step
#
# The control is an MLP whose output weights take one step of gradient descent on the context; it has no attention layer. The
# transformer's layer, with the weights of Prop. 1, does the same to the same tokens.

# %%
literal = preset("sine_control")
set_values(literal, {"embedded": "inputs"})  # tokens hold features of x alone, and y, as in Prop. 2
control_config = resolve(literal)
control = make_model(control_config)
params = dict(control.init(key(1)))
width = control_config.model.d_model
label = np.diag(np.arange(width) == width - 1).astype(np.float32)
built: dict[str, np.ndarray] = {
    "query": np.eye(width) - label,
    "key": np.eye(width) - label,
    "value": -label,
    "projection": 0.01 * np.eye(width),
}
shaped = {name: jnp.asarray(w[None] if name == "projection" else w[:, None], "float32") for name, w in built.items()}
with_layer = preset("sine")
set_values(with_layer, {"embedded": "inputs"})
transformer = make_model(resolve(with_layer))
gap = transformer.predict(params | {"layer_0/attention": shaped}, batch) - control.predict(params, batch)
print(f"largest |constructed layer - gradient descent| over {len(gap)} tasks: {jnp.abs(gap).max():.1e}")

# %% [markdown]
# ## Both, trained
#
# Each learns its own MLP from different random weights: the transformer with its layer, the control through its step.

# %%
runs = {"transformer": Path("runs/walk_sine"), "control": Path("runs/walk_sine_control")}
control_config = preset("sine_control")
set_values(control_config, {"training.steps": 4000, "init_seed": 1})
print(run_one(config, runs["transformer"]), run_one(resolve(control_config), runs["control"]))
trained = {name: load_run(run) for name, run in runs.items()}
for name, value in compare(*trained.values()).items():
    print(f"{name:18s} {value:.5f}")

# %% [markdown]
# Both have learnt nearly the same initial function, the mean of all sines; the context moves it to the current sine.

# %%
print(f"{AMPLITUDE} sin(x + {PHASE:.3f}) and the functions of both, before and after its context")
curves = {name: functions(loaded) for name, loaded in trained.items()}
for name, curve in curves.items():
    print(f"{name:12s}", *(f"{when} {half_mse(curve[when], curve['target']):.5f}" for when in ("before", "after")))
between = {
    when: np.abs(np.subtract(*(curve[when] for curve in curves.values()))).mean() for when in ("before", "after")
}
print(f"mean |difference| of the two: {between['before']:.4f} before, {between['after']:.4f} after")
