# %% [markdown]
# # One layer is one step of gradient descent
#
# Show a transformer ten pairs (x, y), and it predicts the label of an eleventh input without changing a weight. Which
# algorithm does it run? Here you train one layer of linear attention, and see that it takes **one step of gradient
# descent** on the ten pairs. This is the main result of von Oswald et al. (2023).
#
# First the task. A *context* has ten pairs with y = w·x, and each context has its own w. The *query* is an input
# without a label. The picture shows one context with one-dimensional inputs. Gradient descent starts at w = 0, the
# flat line, and its first step turns the line towards the points.

# %% A context of ten pairs, a query, and the lines of w = 0, one step of gradient descent, and the true w
import matplotlib.pyplot as plt
import numpy as np

import icl_lab

plt.rcParams |= {"figure.figsize": (7, 3), "figure.dpi": 120}

draw = np.random.default_rng(0)
x, w, query = draw.uniform(-0.5, 0.5, 10), 1.5, 0.4
y = w * x
step = 0.6 * np.sum(y * x)  # minus the gradient of half the squared errors at w = 0, times a step size
line = np.array([-0.5, 0.5])
plt.plot(line, 0 * line, ":", color="grey", label="w = 0")
plt.plot(line, step * line, label="one step of gradient descent")
plt.plot(line, w * line, "--", color="grey", label="the true w")
plt.plot(x, y, "ko", label="pairs")
plt.plot(query, step * query, "C0*", markersize=12, label="prediction for the query")
plt.xlabel("input x")
plt.ylabel("label y")
plt.legend()
plt.show()

# %% [markdown]
# Now the real task: ten pairs in ten dimensions. `icl_lab.train` trains the layer, and keeps its parameters during
# training (`snapshots`). Before training, its loss is the loss of predicting 0. Then the loss falls, to the loss of
# one step of gradient descent on the same contexts, and no further. The loss is half the mean squared error.

# %% Loss over training: it falls from the loss of predicting zero to the loss of one step of gradient descent
run = icl_lab.train("lsa1", snapshots=True, eval_every=50, steps=2000, quiet=True)
losses = run.metrics[run.metrics.index <= 1000]
plt.plot(losses.index, losses["eval_loss"], label="one layer")
plt.plot(losses.index, losses["eval_gd_loss"], "k--", label="one step of gradient descent")
plt.axhline(run.summary["headline.zero_loss"], color="grey", linestyle=":", label="predicting 0")
plt.xlabel("training step")
plt.ylabel("loss")
plt.ylim(0)
plt.legend()
plt.show()

# %% [markdown]
# Two predictors with equal losses may still predict differently. So we draw fresh contexts, and compare the
# predictions for each query. `icl_lab.baseline` gives gradient descent and other algorithms as functions of the same
# arrays. The layer's predictions lie on the diagonal against one step of gradient descent, and not against ridge
# regression.

# %% Predictions of the layer against one step of gradient descent, on the diagonal, and against ridge regression
batch = icl_lab.sample(run, 1000, seed=1)
names = {"gd": "one step of gradient descent", "ridge": "ridge regression"}
predicted = {name: icl_lab.baseline(name, run)(batch) for name in names}
layer = run.predict(batch.x, batch.y, batch.x_query)


def scatter(axes, other, mine):
    """Predictions of the layer against another predictor's, with the diagonal on which both are equal."""
    axes.plot([-2, 2], [-2, 2], color="grey", linewidth=1)
    axes.plot(other, mine, ".", markersize=2)
    axes.set(xlim=(-2, 2), ylim=(-2, 2), aspect="equal")


figure, panels = plt.subplots(1, 2, figsize=(7, 3.6), layout="constrained")
for axes, (name, title) in zip(panels, names.items(), strict=True):
    scatter(axes, predicted[name], layer)
    difference = np.abs(layer - predicted[name]).mean()
    axes.set(xlabel=title, ylabel="the layer", title=f"mean |difference| {difference:.3f}")
plt.show()

# %% [markdown]
# When does the layer become gradient descent? `run.checkpoints()` gives the run with the parameters that it had at
# each record. At first it predicts 0 for every query. Within a few hundred steps its predictions turn into those of
# gradient descent.

# %% Predictions against gradient descent at four steps of training: flat at first, on the diagonal at the end
steps = dict(run.checkpoints())
figure, panels = plt.subplots(1, 4, figsize=(9, 2.6), layout="constrained", sharey=True)
for axes, step in zip(panels, (0, 150, 250, 2000), strict=True):
    scatter(axes, predicted["gd"], steps[step].predict(batch.x, batch.y, batch.x_query))
    axes.set(title=f"step {step}", xlabel="gradient descent")
panels[0].set_ylabel("the layer")
plt.show()

# %% [markdown]
# How does attention take a step? The layer sees a token (x, y) for each pair, and (x, 0) for the query. Linear
# attention adds `Σ P W_V t_i (W_K t_i · W_Q t)` to the query's token t, where the sum is over the tokens t_i of the
# pairs. Let the product `W_Kᵀ W_Q` compare inputs, and let the product `P W_V` read the label and multiply it by
# minus the step size c. Then the query's label becomes `-c Σ y_i (x_i · x)`. The model outputs minus this entry, and
# this is the prediction after one step of gradient descent.
#
# These are the two products after training. Only both together matter: a factor in one can be undone in the other.

# %% The two products of trained weights: the first is the identity on inputs, the second has one entry, of the label
weights = run.params["layer_0/attention"]
compare = np.einsum("ihk,jhk->ij", weights["key"], weights["query"])  # W_K^T W_Q
read = np.einsum("ihv,hvo->oi", weights["value"], weights["projection"])  # P W_V
figure, panels = plt.subplots(1, 2, figsize=(7, 2.8), layout="constrained")
for axes, product, title in zip(panels, (compare, read), ("compares inputs", "reads the label"), strict=True):
    most = np.abs(product).max()
    shown = axes.imshow(product, cmap="RdBu", vmin=-most, vmax=most)
    axes.set(title=title, xlabel="channel (10 is the label)", ylabel="channel", xticks=[0, 5, 10], yticks=[0, 5, 10])
    figure.colorbar(shown)
plt.show()

# %% [markdown]
# The first product is a multiple of the identity on the ten inputs, and the second has a single entry, at the label.
# Multiplied with each other they give the layer's own step size c. The best step size is known in closed form: for
# inputs uniform in an interval of length 1, it is `N v / a` with N pairs in D dimensions, the variance `v = 1/12`,
# and `a = N (1/80 + (D - 1) v²) + N (N - 1) v²`. Below are the ten step sizes that the layer takes along the ten
# coordinates.

# %% The layer's step sizes along ten coordinates, close to the best step size
dim, pairs, variance = 10, 10, 1 / 12
best = pairs * variance / (pairs * (1 / 80 + (dim - 1) * variance**2) + pairs * (pairs - 1) * variance**2)
own = -np.diagonal(compare)[:dim] * read[-1, -1]
plt.bar(np.arange(1, dim + 1), own)
plt.axhline(best, color="k", linestyle="--", label=f"the best step size, {best:.3f}")
plt.xlabel("coordinate of the input")
plt.ylabel("step size")
plt.legend(loc="lower right")
plt.show()

# %% [markdown]
# Was this a lucky seed? A result about training needs several. Each dot below is a run with its own data and initial
# weights. The left panel divides the layer's loss by the loss of one step of gradient descent on the same contexts.
# The right panel has the mean cosine between the gradients of both predictions with respect to the query. At 1, both
# predictors are the same linear map.

# %% Five seeds: loss ratio to one step of gradient descent and cosine of sensitivities, all close to one
seeds = [run] + [icl_lab.train("lsa1", seed=seed, steps=2000, eval_every=500, quiet=True) for seed in range(1, 5)]
figure, panels = plt.subplots(1, 2, figsize=(8, 2.6), layout="constrained")
for axes, name in zip(panels, ("headline.loss_ratio", "alignment.align_cos"), strict=True):
    values = np.array([each.summary[name] for each in seeds])
    axes.plot(range(5), values, "o")
    axes.axhline(1, color="grey", linestyle=":")
    axes.set(xlabel="seed", xticks=range(5))
    axes.set_title(f"mean {values.mean():.4f} ({values.min():.4f} to {values.max():.4f})", fontsize=10)
panels[0].set_ylabel("loss / loss of gradient descent")
panels[1].set_ylabel("cosine of sensitivities")
plt.show()

# %% [markdown]
# Does the layer also make the mistakes of gradient descent? Multiply all inputs of the test contexts by a factor.
# Training has not shown such inputs to the layer. Gradient descent with a fixed step size overshoots on large inputs,
# and its loss grows far above the loss of predicting 0. The loss of the layer grows with it, in each of the five
# seeds.

# %% Losses when inputs are scaled, and their ratio to gradient descent, for five seeds
factors, truth = np.linspace(0.5, 3, 11), batch.y_query
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
for number, each in enumerate(seeds):
    losses, descend = [], icl_lab.baseline("gd", each)
    for factor in factors:
        scaled = (factor * batch.x, factor * batch.y, factor * batch.x_query)  # labels are linear in the inputs
        answers = each.predict(*scaled), descend(*scaled), 0
        losses.append([((answer - factor * truth) ** 2).mean() / 2 for answer in answers])
    model, descent, zero = np.transpose(losses)
    left.semilogy(factors, model, "C0", alpha=0.6, label="one layer" if number == 0 else None)
    right.plot(factors, model / descent, "C0", alpha=0.6)
left.semilogy(factors, descent, "k--", label="one step of gradient descent")
left.semilogy(factors, zero, ":", color="grey", label="predicting 0")
left.set(xlabel="inputs multiplied by", ylabel="loss")
left.legend(loc="lower right", fontsize=8)
right.axhline(1, color="grey", linestyle=":")
right.set(xlabel="inputs multiplied by", ylabel="loss / loss of gradient descent", ylim=(0.9, 1.1))
plt.show()

# %% [markdown]
# **What you have seen.** The layer's predictions, its weights and its errors on other inputs are those of one step of
# gradient descent. One step is not a good learner: ridge regression is almost exact on these contexts. With one layer
# of linear attention, one step is what there is to learn.
#
# **Try:** `num_layers=2` (what happens with two layers?), `num_pairs=40`, or `noise_mode="label_noise", noise_p=0.5,
# noise_sigma=0.5`. With two-dimensional inputs (`dim=2`) some seeds end elsewhere: that is the [next
# tutorial](2_eight_seeds.ipynb).
#
# **Read on:** [What is compared](../docs/learn.md), and [all results on gradient descent](../report/reproduction.md).
