# %% [markdown]
# # Recall or inference? Pools of tasks, and pools of chains
#
# A model is trained on contexts whose tasks come from a *pool* of M tasks. It can learn in context in two ways. It
# can *recall* the tasks of the pool, and find out which of them this context has. Or it can *infer* any task from the
# pairs. Each way has an optimal predictor:
#
# - **dMMSE** is the Bayes predictor for tasks of the pool. It weights the M tasks by how well they fit the pairs.
# - **Ridge regression** is the Bayes predictor for any Gaussian task.
#
# The picture shows both in one dimension, for a pool of three tasks (grey lines). The pairs come from a task that is
# not in the pool. dMMSE takes the nearest task of its pool, and ridge regression follows the points.

# %% One context with a new task: ridge regression follows the points, dMMSE takes the nearest task of its pool
import matplotlib.pyplot as plt
import numpy as np

import icl_lab

plt.rcParams |= {"figure.figsize": (7, 3), "figure.dpi": 120}

draw = np.random.default_rng(3)
pool, task, sigma = np.array([-1.5, 0.2, 1.8]), 1.0, 0.3
x = draw.normal(size=6)
y = task * x + sigma * draw.normal(size=6)
weights = np.exp(-((y - pool[:, None] * x) ** 2).sum(axis=1) / (2 * sigma**2))
dmmse, ridge = weights @ pool / weights.sum(), x @ y / (x @ x + sigma**2)
line = np.array([-2, 2])
for each in pool:
    plt.plot(line, each * line, color="lightgrey", linewidth=2)
plt.plot(line, dmmse * line, "C0", label="dMMSE")
plt.plot(line, ridge * line, "C1", label="ridge regression")
plt.plot(x, y, "ko", label="pairs of a new task")
plt.xlabel("input x")
plt.ylabel("label y")
plt.ylim(-3, 3)
plt.legend()
plt.show()

# %% [markdown]
# Now train small decoders on pools of 2, 16 and 128 tasks in four dimensions. A decoder predicts every label of a
# sequence from the pairs before it. During training we test it on tasks of its pool and on fresh tasks. The loss is
# the squared error without the noise, divided by the number of dimensions. With two tasks in the pool, training makes
# the decoder better on these tasks and worse on fresh ones.

# %% Loss over training on tasks of the pool and on fresh tasks, for three sizes of the pool and two seeds
SEEDS, POOLS = range(2), (2, 16, 128)
SMALL = {"steps": 2500, "batch_size": 64, "eval_every": 250, "eval_tasks": 256, "test_tasks": 1000, "quiet": True}


def trained(model, axis, sizes, settings):
    """Runs by size of the pool, one for each seed."""
    return {
        size: [icl_lab.train(model, seed=s, out=f"runs/{model}_{size}_{s}", **{axis: size}, **settings) for s in SEEDS]
        for size in sizes
    }


runs = trained("tiny", "num_tasks", POOLS, SMALL)
figure, panels = plt.subplots(1, 2, figsize=(8, 3), layout="constrained", sharey=True)
for axes, which, title in zip(panels, ("id", "ood"), ("tasks of the pool", "fresh tasks"), strict=True):
    for number, size in enumerate(POOLS):
        for run in runs[size]:
            label = f"{size} tasks" if run is runs[size][0] else None
            axes.plot(run.metrics.index, run.metrics[f"eval_{which}_loss"], f"C{number}", label=label)
    axes.set(title=title, xlabel="training step")
panels[0].set_ylabel("loss")
panels[0].set_ylim(0)
panels[0].legend()
plt.show()

# %% [markdown]
# Which of both predictors is the decoder nearer to? The *relative distance* to a predictor is the mean squared
# difference between the predictions of both, divided by the mean squared difference between dMMSE and ridge
# regression. At 0 the decoder predicts like this predictor. The left panel is on tasks of the pool, the right panel
# on fresh tasks.

# %% Relative distance to dMMSE and to ridge regression against the size of the pool, two seeds
figure, panels = plt.subplots(1, 2, figsize=(8, 3), layout="constrained", sharey=True)
for axes, which, title in zip(panels, ("id", "ood"), ("tasks of the pool", "fresh tasks"), strict=True):
    for name, label in (("dmmse", "dMMSE"), ("ridge", "ridge regression")):
        ratio = [
            [
                run.summary[f"headline.{which}_delta_{name}"] / run.summary[f"headline.{which}_apart"]
                for run in runs[size]
            ]
            for size in POOLS
        ]
        axes.plot(POOLS, np.mean(ratio, axis=1), label=f"to {label}")
        axes.plot(POOLS, ratio, "ko", markersize=3)
    axes.set(title=title, xlabel="tasks in the pool", xscale="log")
    axes.set_xticks(POOLS, map(str, POOLS))
panels[0].set_ylabel("relative distance")
panels[1].legend()
plt.show()

# %% [markdown]
# The decoder of two tasks predicts like dMMSE. The others are nearer to ridge regression than to dMMSE on fresh
# tasks, but after this short training they are still far from it.
#
# Test it yourself. Below, the last label of a sequence is predicted for fresh tasks: the true value against the
# prediction. The decoder of two tasks answers with the tasks that it knows. The decoders of more tasks follow the new
# task.

# %% Predictions for fresh tasks against the true values: little relation after two tasks, a line after many
batch = icl_lab.sample(runs[2][0], 500, seed=1)
w = np.random.default_rng(5).normal(size=batch.w.shape)
clean = np.einsum("bnd,bd->bn", batch.x, w)
noisy = clean + runs[2][0].config.data.noise_std * np.random.default_rng(6).normal(size=clean.shape)
figure, panels = plt.subplots(1, len(POOLS), figsize=(9, 3), layout="constrained", sharey=True)
for axes, size in zip(panels, POOLS, strict=True):
    found = [run.predict(batch.x, noisy)[:, -1] for run in runs[size]]
    axes.plot([-5, 5], [-5, 5], color="grey", linewidth=1)
    axes.plot(clean[:, -1], found[0], ".", markersize=3)
    r = [np.corrcoef(clean[:, -1], each)[0, 1] for each in found]
    axes.set(title=f"{size} tasks, correlation {r[0]:.2f}, {r[1]:.2f}", xlabel="true value", xlim=(-5, 5), ylim=(-5, 5))
    axes.title.set_fontsize(9)
panels[0].set_ylabel("prediction")
plt.show()

# %% [markdown]
# ## Chains of symbols
#
# The same question for sequences of symbols. Each sequence is drawn from a Markov chain, from a pool of M chains with
# three symbols. The decoder predicts the next symbol. Again there are two optimal predictors: the posterior over the
# chains of the *pool*, and the *Bayes* predictor for any chain, which counts the transitions in the sequence.
#
# The picture shows the divergence (KL) from each predictor to the decoder, over training. The unigram predictor,
# which only counts symbols, is the simplest of the three. With many chains, the decoder is first nearest to it, and
# later to Bayes. With two chains, it ends nearest to the posterior of the pool.

# %% Divergence from three predictors to decoders over training, for pools of two and of 64 chains
CHAINS = (2, 8, 64)
SMALL_TOKENS = {"num_tokens": 32, "steps": 800, "eval_every": 50, "eval_tasks": 256, "test_tasks": 1000, "quiet": True}
chains = trained("markov", "num_chains", CHAINS, SMALL_TOKENS)
names = {"unigram": "unigrams of the context", "bayes": "Bayes for any chain", "pool": "posterior of the pool"}
figure, panels = plt.subplots(1, 2, figsize=(8, 3), layout="constrained", sharey=True)
for axes, size in zip(panels, (CHAINS[0], CHAINS[-1]), strict=True):
    for number, (name, label) in enumerate(names.items()):
        for run in chains[size]:
            first = run is chains[size][0]
            axes.semilogy(
                run.metrics.index, run.metrics[f"eval_kl_{name}"], f"C{number}", label=label if first else None
            )
    axes.set(title=f"{size} chains", xlabel="training step")
panels[0].set_ylabel("KL to the decoder (nats)")
panels[1].legend(fontsize=8)
plt.show()

# %% [markdown]
# At the end of training, which predictor is the nearest for each pool? Few chains are recalled. With many, the
# decoder infers the transitions.

# %% Divergence at the end of training against the number of chains in the pool, two seeds
for number, (name, label) in enumerate(names.items()):
    ends = [[run.metrics[f"eval_kl_{name}"].iloc[-1] for run in chains[size]] for size in CHAINS]
    plt.plot(CHAINS, np.mean(ends, axis=1), f"C{number}", label=label)
    plt.plot(CHAINS, ends, f"C{number}o", markersize=4)
plt.xscale("log")
plt.yscale("log")
plt.minorticks_off()
plt.xticks(CHAINS, map(str, CHAINS))
plt.xlabel("chains in the pool")
plt.ylabel("KL to the decoder (nats)")
plt.legend(loc="upper right", fontsize=8)
plt.show()

# %% [markdown]
# **What you have seen.** With few tasks in its pool a decoder recalls them, and fails on new ones. With many tasks it
# infers new ones. The same holds for chains of symbols.
#
# **Try:** more training (`steps`), which moves a pool of many tasks nearer to ridge regression;
# `num_tasks=float("inf")`, a fresh task for each sequence.
#
# **Read on:** [Task diversity](../report/task_diversity.md) and [Markov chains and text](../report/language_model.md)
# have the results with more seeds and longer training.
