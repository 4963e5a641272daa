# %% [markdown]
# # Change one thing
#
# In the [first tutorial](1_one_step.ipynb) one layer of linear attention became one step of gradient descent. Is this
# still so with noisy labels? With pairs in another order? Against a baseline of your own? On your data? Each section
# changes one thing.
#
# The models are smaller here than in the other tutorials: four dimensions, and short trainings. Each comparison of
# models has three seeds.
#
# ## Noise
#
# Each label in a context gets normal noise of standard deviation sigma, in training and in the test. The layer is
# compared with one step of gradient descent, whose step size is tuned for this noise, and with ridge regression that
# knows sigma. This is the best possible predictor here. Dots are seeds, lines are medians.

# %% Loss against label noise: without noise ridge regression is far better than the layer, with noise little
import matplotlib.pyplot as plt
import numpy as np

import icl_lab

plt.rcParams |= {"figure.figsize": (7, 3), "figure.dpi": 120}

SEEDS = range(3)
SMALL = {"dim": 4, "num_pairs": 10, "steps": 1500, "batch_size": 512, "lr": 3e-3, "eval_every": 500}
SMALL |= {"test_tasks": 4000, "step_size_tasks": 8192, "quiet": True}


def trained(name, model="lsa1", **settings):
    """A run for each seed."""
    return [icl_lab.train(model, seed=seed, out=f"runs/{name}_{seed}", **SMALL | settings) for seed in SEEDS]


sigmas = (0.0, 0.5, 1.0)
noisy = {s: trained(f"noise_{s}", noise_mode="label_noise", noise_p=1.0, noise_sigma=s) for s in sigmas if s}
noisy[0.0] = trained("clean")
plain = noisy[0.0]


def loss(predictions, batch):
    """Half the mean squared error."""
    return np.mean((predictions - batch.y_query) ** 2) / 2


names = {
    "model": "one layer",
    "gd_tuned_step": "one step of gradient descent",
    "linear_mmse": "ridge regression that knows sigma",
}
losses, batches = {name: [] for name in names}, {s: icl_lab.sample(noisy[s][0], 4000, seed=1) for s in sigmas}
for sigma, batch in batches.items():
    losses["model"].append([loss(run.predict(*batch[:3]), batch) for run in noisy[sigma]])
    for name in ("gd_tuned_step", "linear_mmse"):
        losses[name].append([loss(icl_lab.baseline(name, noisy[sigma][0])(batch), batch)])
for (name, label), marker in zip(names.items(), "o+^", strict=True):
    plt.plot(sigmas, losses[name], f"C{list(names).index(name)}{marker}")
    plt.plot(sigmas, np.median(losses[name], axis=1), f"C{list(names).index(name)}", label=label)
plt.xlabel("noise of labels, sigma")
plt.ylabel("loss")
plt.legend(loc="lower right", fontsize=8)
plt.show()

# %% [markdown]
# Without noise ridge regression is far better than the layer. The more noise, the closer are both. The layer still is
# one step of gradient descent, but for one seed that ends at a higher loss: some seeds find [another
# solution](2_eight_seeds.ipynb).
#
# The left panel below has the step that the layer takes. With more noise it is shorter: a noisy label says less about
# w. The layer has learnt this from its training. What if it was trained without noise, and meets noise only in the
# test? The right panel divides its loss by the loss of the layer of the same seed that was trained with this noise.
# Training with noise pays, but for the seed that ended elsewhere.


# %% Step size against noise: shorter with more noise, three seeds of each
def step_size(run, batch):
    """The layer's step size: the slope of its predictions against those of gradient descent with step size one."""
    unit = np.einsum("bn,bnd,bd->b", batch.y, batch.x, batch.x_query)
    return np.sum(run.predict(*batch[:3]) * unit) / np.sum(unit**2)


steps = [[step_size(run, batches[sigma]) for run in noisy[sigma]] for sigma in sigmas]
worse = []
for sigma, batch in batches.items():
    before, after = ([loss(run.predict(*batch[:3]), batch) for run in each] for each in (plain, noisy[sigma]))
    worse.append(np.divide(before, after))
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
left.plot(sigmas, steps, "C0o")
left.set(xlabel="noise of labels, sigma", ylabel="step size of the layer", ylim=0)
right.plot(sigmas, worse, "C0o")
right.axhline(1, color="grey", linestyle=":")
right.set(xlabel="noise in the test, sigma", ylabel="loss, trained clean / trained noisy")
plt.show()

# %% [markdown]
# ## Order
#
# Does the order of the pairs matter? Take one context, and show it in 200 orders. A layer without positional
# encodings adds up the pairs, and its prediction cannot change. The model `lsa1_pe` has positional encodings. It
# could use the order, although it was trained on random orders.

# %% Predictions for one context in 200 orders: one value without positional encodings, several with them
encoded = trained("encoded", model="lsa1_pe")
batch = icl_lab.sample(plain[0], 1, seed=4)
draw = np.random.default_rng(0)
orders = np.stack([draw.permutation(SMALL["num_pairs"]) for _ in range(200)])
x, y, query = batch.x[0][orders], batch.y[0][orders], np.repeat(batch.x_query, 200, axis=0)
figure, panels = plt.subplots(1, 2, figsize=(8, 2.6), layout="constrained", sharex=True, sharey=True)
for axes, each, title in zip(panels, (plain, encoded), ("lsa1", "lsa1_pe"), strict=True):
    for seed, run in enumerate(each):
        predictions = run.predict(x, y, query)
        axes.plot(predictions, np.full(200, seed) + draw.uniform(-0.2, 0.2, 200), ".", markersize=3)
    axes.set(title=title, xlabel="prediction", yticks=SEEDS)
panels[0].set_ylabel("seed")
plt.show()

# %% [markdown]
# So order can matter where positions are encoded. How much does it change the predictions, compared with their error?
# For 300 contexts, below is the standard deviation of the prediction over 20 orders, divided by the root mean squared
# error. After training on random orders, the effect is small.

# %% How much the order changes predictions, relative to the error, without and with positional encodings
batch = icl_lab.sample(plain[0], 300, seed=5)


def spread_over_orders(run):
    """Standard deviation over orders, divided by the root mean squared error."""
    shuffled = [draw.permutation(SMALL["num_pairs"]) for _ in range(20)]
    found = np.stack([run.predict(batch.x[:, order], batch.y[:, order], batch.x_query) for order in shuffled])
    return np.sqrt(found.var(axis=0).mean() / np.mean((found - batch.y_query) ** 2))


for place, each in enumerate((plain, encoded)):
    plt.plot([place] * len(each), [spread_over_orders(run) for run in each], "o")
plt.xticks([0, 1], ["lsa1", "lsa1_pe"])
plt.xlim(-0.5, 1.5)
plt.ylabel("spread over orders / error")
plt.show()

# %% [markdown]
# ## A baseline of yours
#
# A baseline is a function of x [B, N, D], y [B, N] and x_query [B, D] that returns predictions [B]. Here are two: the
# label of the nearest input, and a mean of all labels with weights that fall with the distance (kernel regression).
# `icl_lab.evaluate` compares a model with all registered baselines that are defined on the contexts, and with yours.
# The bars show some of its table, for one layer without noise; black lines are one standard error over contexts.

# %% Losses of the layer, gradient descent, ridge regression and two baselines of your own


def nearest(x, y, x_query):
    """The label of the nearest input."""
    distances = ((x - x_query[:, None]) ** 2).sum(axis=2)
    return np.take_along_axis(y, distances.argmin(axis=1)[:, None], axis=1)[:, 0]


def kernel(x, y, x_query, width=0.3):
    """Nadaraya-Watson: the mean of the labels, weighted by a Gaussian kernel."""
    weights = np.exp(-((x - x_query[:, None]) ** 2).sum(axis=2) / (2 * width**2))
    return (weights * y).sum(axis=1) / weights.sum(axis=1)


found = icl_lab.evaluate(
    plain[0], *icl_lab.sample(plain[0], 2000, seed=1)[:4], baselines={"nearest pair": nearest, "kernel mean": kernel}
)
shown = found.table.loc[["zero", "nearest pair", "kernel mean", "model", "gd", "ridge"]]
plt.barh(shown.index, shown["loss"], xerr=shown["loss_se"])
plt.xlabel("loss")
plt.gca().invert_yaxis()
plt.show()

# %% [markdown]
# ## Your data
#
# Your contexts are arrays in a file: labels of one context come from one unknown function. Here each context is one
# of 2000 patients, whose response to dose, age and weight is linear with coefficients of his or her own, and with
# noise. The units are anything you like: `standardize=True` scales the data for training, and predictions are in your
# units again.

# %% Labels against predictions for patients of the test, and losses of three predictors
draw = np.random.default_rng(1)


def patients(count):
    """Inputs [count, 11, 3] and responses [count, 11]; the last pair of each is the query."""
    x = draw.normal([50, 40, 70], [20, 10, 12], size=(count, 11, 3))  # dose, age, weight
    own = draw.normal([0.5, -0.2, 0.1], [0.3, 0.1, 0.1], size=(count, 3))
    return x, np.einsum("bnd,bd->bn", x - [50, 40, 70], own) + 100 + draw.normal(0, 2, size=(count, 11))


x, y = patients(2000)
np.savez("patients.npz", x=x, y=y)
own_data = {"data": "patients.npz", "standardize": True, "steps": 2000, "lr": 3e-3, "quiet": True}
own = [icl_lab.train("lsa1", seed=seed, out=f"runs/patients_{seed}", **own_data) for seed in SEEDS]
x, y = patients(1000)
truth, answers = y[:, -1], [run.predict(x[:, :-1], y[:, :-1], x[:, -1]) for run in own]
mean = y[:, :-1].mean(axis=1)
design = np.concatenate([np.ones((1000, 11, 1)), x], axis=2)
weights = np.linalg.pinv(design[:, :-1]) @ y[:, :-1, None]
squares = np.einsum("bd,bdo->b", design[:, -1], weights)
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
left.plot(answers[0], truth, ".", markersize=3)
left.axline((100, 100), slope=1, color="grey", linewidth=1)
left.set(xlabel="prediction of the layer", ylabel="response", aspect="equal")
for place, each in enumerate(([mean], answers, [squares])):
    right.plot([place] * len(each), [np.mean((one - truth) ** 2) / 2 for one in each], "o")
right.set_xticks(range(3), ["the patient's mean", "layer", "least squares"])
right.set(ylabel="loss", ylim=0, xlim=(-0.5, 2.5))
plt.show()

# %% [markdown]
# One step of gradient descent predicts much better than the mean of the patient's responses. Least squares with a
# constant is better still: one step is not a full fit.
#
# **What you have seen.** A layer of linear attention adapts its step to the noise that it was trained with. Order
# does not matter to it, unless positions are encoded. Functions of yours and data of yours are compared in a few
# lines.
#
# **Try:** `noise_p=0.2` (few labels are noisy), `ordering="easy2hard"` for `lsa1_pe`, another width of the kernel.
#
# **Read on:** [Order and noise](../report/order_noise.md), [your own data and model](../docs/own_data.md), and [your
# own baseline, noise or claim](../docs/extending.md).
