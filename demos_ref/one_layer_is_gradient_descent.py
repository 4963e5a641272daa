# %% [markdown]
# # One linear self-attention layer is one step of gradient descent
#
# A walk through the main experiment, from constructed weights to trained ones. Run it as a script from the repository's
# root, `python -m demos_ref.one_layer_is_gradient_descent`, or cell by cell in an editor that knows the percent format. It
# takes about half a minute on a laptop. The notebook tutorials/1_one_step.ipynb shows the same in figures.

# %%
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from icl_lab import store
from icl_lab.analysis.weights import products, rescale
from icl_lab.baselines.comparison import compare
from icl_lab.baselines.construction import gd_params
from icl_lab.baselines.gradient_descent import fit_step_size, gd
from icl_lab.baselines.linear_mmse import ridge
from icl_lab.families.regression.task import make_model
from icl_lab.lab.configs.presets import preset, resolve
from icl_lab.runners.loop import run_one
from icl_lab.src.data import sample_batch, take_pairs
from icl_lab.src.losses import half_mse
from icl_lab.src.one_step import one_step_loss, one_step_size
from icl_lab.src.prng import key

# %% [markdown]
# ## The task
#
# A context is ten pairs (x, y) with y = w.x, and each context has its own w; the query asks for the label of one more x.
# The loss is half the mean squared error throughout. Predicting 0 has loss 10/24 = .4167.

# %%
config = resolve(preset("lsa1"))
batch = sample_batch(key(7), config.data, 10_000)
print("shapes:", {name: value.shape for name, value in batch._asdict().items()})
print(f"loss of predicting 0: {half_mse(jnp.zeros_like(batch.y_query), batch.y_query):.4f}")

# %% [markdown]
# ## One step of gradient descent
#
# From w = 0, one step of size c predicts c * sum_i y_i (x_i . x_query). The best c has a closed form, which least squares on
# sampled tasks confirms.

# %%
best = one_step_size(config.data)
print(f"best step: {best:.4f} in closed form, {fit_step_size(batch):.4f} on these tasks")
print(
    f"its loss:  {one_step_loss(config.data, best):.4f} in closed form, "
    f"{half_mse(gd(batch, best), batch.y_query):.4f} on these tasks"
)

# %% [markdown]
# ## The same step as attention
#
# With W_K^T W_Q = diag(I, 0) and P W_V = diag(0, -c) the layer adds exactly minus the step's prediction to the query's label
# channel. The model is the one that is trained below; only its weights are constructed.

# %%
model = make_model(config)
built = gd_params(config.architecture, best)
gap = jnp.abs(model.predict(built, batch) - gd(batch, best)).max()
print(f"largest |constructed layer - gradient descent| over {len(batch.y_query)} tasks: {gap:.1e}")

# %% [markdown]
# ## What training finds
#
# A short training of the same model from small random weights. Everything is in the run directory; a second call finds the
# run done and returns at once.

# %%
run = Path("runs/walk_one_layer")
print(run_one(config, run))
_, params, test = store.load(run)
step_size = fit_step_size(batch)
comparison = compare(lambda b: model.predict(params, b), lambda b: gd(b, step_size), jax.tree.map(jnp.asarray, test))
for name in ("tf_loss", "gd_loss", "preds_diff", "model_cos"):
    print(f"{name:10s} {comparison[name]:.4f}")

# %% [markdown]
# Up to a free scale between the two products, its weights are the construction's:

# %%
kq, pv = (matrix[0, 0] for matrix in rescale(*products(config, params), config.data.dim))
built_kq, built_pv = (matrix[0, 0] for matrix in products(config, built))
with np.printoptions(precision=2, suppress=True):
    print("diagonal of W_K^T W_Q:", np.diagonal(kq))
    print(f"label entry of P W_V: {pv[-1, -1]:.3f}   construction: {built_pv[-1, -1]:.3f}")

# %% [markdown]
# Halfway between trained and constructed weights the loss is the same; for two unrelated solutions that would be a
# coincidence.


# %%
def with_products(kq: np.ndarray, pv: np.ndarray) -> dict[str, dict[str, np.ndarray]]:
    """Parameters with these products, where W_K and P are the identity."""
    identity = np.eye(len(kq))
    return {
        "layer_0/attention": {
            "query": kq.T[:, None, :],
            "key": identity[:, None, :],
            "value": pv.T[:, None, :],
            "projection": identity[None],
        }
    }


half_way = with_products((kq + built_kq) / 2, (pv + built_pv) / 2)
for name, weights in {"trained": params, "half way": half_way, "constructed": built}.items():
    print(f"loss, {name:12s} {half_mse(model.predict(weights, batch), batch.y_query):.4f}")

# %% [markdown]
# ## What it is not
#
# One step of gradient descent is a poor learner: on the same contexts ridge regression is almost exact. And without
# positional codes the layer ignores the order of the pairs.

# %%
print(f"ridge: {half_mse(ridge(batch, 1e-6), batch.y_query):.4f}")
index = jnp.broadcast_to(jnp.arange(10)[::-1][None], batch.y.shape)
gap = jnp.abs(model.predict(params, take_pairs(batch, index)) - model.predict(params, batch)).max()
print(f"largest change of a prediction when the context is reversed: {gap:.1e}")
