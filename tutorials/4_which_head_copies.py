# %% [markdown]
# # Which head copies?
#
# In the [first tutorial](1_one_step.ipynb) a token held an input and its label. Now each pair is split into two
# tokens, (x, 0) and (0, y). One linear layer cannot take a step of gradient descent on these tokens, because no token
# has both x and y. So we put a softmax layer below it. This layer can *copy* each label to the token of its input. It
# has two heads. Which of them copies? Here you read activations, patch them and ablate them, and each method adds to
# the answer.
#
# The picture shows the tokens of one context, before the first layer: rows are tokens, columns are channels.

# %% The tokens of one context: inputs and labels alternate, and the query comes last
import matplotlib.pyplot as plt
import numpy as np

import icl_lab

plt.rcParams |= {"figure.figsize": (7, 3), "figure.dpi": 120}

PAIRS, SEEDS = 8, range(4)
SETTINGS = {"num_heads": 2, "dim": 4, "num_pairs": PAIRS, "steps": 3000, "batch_size": 256, "eval_every": 50}
SMALL_TEST = {"test_tasks": 2000, "step_size_tasks": 8192, "quiet": True}
runs = [icl_lab.train("twolayer", seed=seed, out=f"runs/heads_{seed}", **SETTINGS, **SMALL_TEST) for seed in SEEDS]
batch = icl_lab.sample(runs[0], 500, seed=1)
tokens = np.asarray(icl_lab.capture(runs[0], batch, "embed")["embed"][0])
plt.imshow(tokens[:, :5], cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
plt.xticks(range(5), ["x", "x", "x", "x", "y"])
plt.yticks(range(0, 2 * PAIRS + 1, 2))
plt.ylabel("token")
plt.colorbar()
plt.show()

# %% [markdown]
# First see that the models learn. The loss stays near the loss of predicting 0 for a while. Then it falls to about
# the loss of one step of gradient descent. Four seeds do the same.

# %% Loss over training of four seeds: a plateau, then a fall to one step of gradient descent
for seed, run in enumerate(runs):
    plt.plot(run.metrics.index, run.metrics["eval_loss"], label=f"seed {seed}")
plt.axhline(runs[0].metrics["eval_gd_loss"].iloc[-1], color="k", linestyle="--", label="one step of gradient descent")
plt.axhline(runs[0].summary["headline.zero_loss"], color="grey", linestyle=":", label="predicting 0")
plt.xlabel("training step")
plt.ylabel("loss")
plt.ylim(0)
plt.legend(fontsize=8)
plt.show()

# %% [markdown]
# ## Capture
#
# `icl_lab.capture` returns activations by name. A head's *pattern* says how much each token attends to each token. To
# copy, the token of an input must attend to the next token, which has its label: these are the entries just right of
# the diagonal in even rows.

# %% Mean attention patterns of both heads of the first layer, seed 0
pattern = icl_lab.capture(runs[0], batch, "blocks.0.attn.pattern")["blocks.0.attn.pattern"].mean(axis=0)
figure, panels = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
for head, axes in enumerate(panels):
    shown = axes.imshow(pattern[head], vmin=0)
    axes.set(
        title=f"head {head}", xlabel="attended token", ylabel="token", xticks=[0, 5, 10, 15], yticks=[0, 5, 10, 15]
    )
    figure.colorbar(shown)
plt.show()

# %% [markdown]
# For each seed and head, below is the mean attention from an input to its own label. We call the head with more of it
# the *copying head*.

# %% Attention from inputs to their own label, by head and seed
inputs = np.arange(0, 2 * PAIRS, 2)


def attention_to_label(run):
    """Mean attention from the token of an input to the token of its label, by head."""
    pattern = icl_lab.capture(run, batch, "blocks.0.attn.pattern")["blocks.0.attn.pattern"].mean(axis=0)
    return pattern[:, inputs, inputs + 1].mean(axis=1)


def by_head(values, label):
    """Dots for both heads of each seed."""
    for kind, row in zip(("copying head", "other head"), np.transpose(values), strict=True):
        plt.plot(SEEDS, row, "o", label=f"{kind}: mean {row.mean():.2f} ({row.min():.2f} to {row.max():.2f})")
    plt.axhline(0, color="grey", linestyle=":")
    plt.xticks(SEEDS)
    plt.xlabel("seed")
    plt.ylabel(label)
    plt.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, fontsize=8)


attention = np.array([attention_to_label(run) for run in runs])
copying = attention.argmax(axis=1)
order = [[head, 1 - head] for head in copying]
by_head(np.take_along_axis(attention, np.array(order), axis=1), "attention to the own label")
plt.show()

# %% [markdown]
# ## Patch
#
# Attention is a hint. It does not show that the model uses what a head writes. Patching does. Take two contexts with
# the same inputs, and labels of two different tasks. Run the model on the second context, but replace the output of
# one head by its output in the first context. How much of the difference between both predictions comes back? The
# *restored share* is 0 if nothing changes, and 1 if the model predicts as in the first context.

# %% Restored share when one head is patched, by head and seed
w = np.roll(batch.w, 1, axis=0)  # the task of another context
second = batch._replace(w=w, y=np.einsum("bnd,bd->bn", batch.x, w), y_query=np.einsum("bd,bd->b", batch.x_query, w))


def restored(run, name, layer=None, head=None, position=None):
    """The share of the difference of predictions that comes back when an activation is patched."""
    first = icl_lab.capture(run, batch, [name, "prediction"])
    plain = icl_lab.capture(run, second, "prediction")["prediction"]
    patched = icl_lab.patch(run, second, {name: first[name]}, layer=layer, head=head, position=position)
    difference = first["prediction"] - plain
    return np.sum((patched - plain) * difference) / np.sum(difference**2)


heads = "blocks.0.attn.result"
shares = [[restored(run, heads, layer=0, head=head) for head in pair] for run, pair in zip(runs, order, strict=True)]
by_head(shares, "restored share")
plt.show()

# %% [markdown]
# *Where* is the label after the first layer? We patch the stream after a layer at one token at a time. After the
# first layer, everything that distinguishes the two tasks is at the tokens of the inputs, in even positions. There is
# nothing at the labels any more, and nothing yet at the query. After the second layer it is all at the query. So the
# first layer copies, and the second takes the step.

# %% Restored share by token: at inputs after the first layer, at the query after the second
figure, panels = plt.subplots(1, 2, figsize=(8, 3), layout="constrained", sharey=True)
for layer, axes in enumerate(panels):
    for run in runs:
        name, rows = f"blocks.{layer}.resid_post", range(2 * PAIRS + 1)
        axes.plot(rows, [restored(run, name, position=row) for row in rows], "o-", color="C0", alpha=0.5, markersize=4)
    axes.set(title=f"after layer {layer}", xlabel="patched token (16 is the query)", xticks=range(0, 17, 2))
panels[0].set_ylabel("restored share")
plt.show()

# %% [markdown]
# ## Ablate
#
# Is a head necessary? `icl_lab.ablate` replaces its output by the mean over contexts. Below is how far the
# predictions then are from one step of gradient descent, as mean squared difference, in units of the mean square of
# the predictions of gradient descent.

# %% Distance to one step of gradient descent without one head, by head and seed
rows = []
for run, pair in zip(runs, order, strict=True):
    descent = icl_lab.baseline("gd", run)(batch)
    without = [icl_lab.ablate(run, batch, heads, "mean", layer=0, head=head) for head in pair]
    rows.append([np.mean((each - descent) ** 2) / np.mean(descent**2) for each in without])
by_head(rows, "distance to gradient descent")
plt.show()

# %% [markdown]
# **What you have seen.** One head copies labels to their inputs, and the model needs it: attention, patching and
# ablation agree. The second layer then takes a step of gradient descent on the copied pairs. The other head does not
# copy.
#
# **Try:** `num_heads=1` or `num_heads=4`; patch `"blocks.0.attn.result"` at one position; ablate with `"zero"` or
# `"resample"`.
#
# **Read on:** [Look inside a model](../docs/looking_inside.md) has all names and shapes, and the same experiment with
# eight seeds and larger contexts.
