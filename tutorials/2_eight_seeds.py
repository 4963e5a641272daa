# %% [markdown]
# # Eight seeds, two minima and a plateau
#
# In the [first tutorial](1_one_step.ipynb), all seeds became one step of gradient descent. Now the inputs have two
# dimensions instead of ten, and nothing else changes. Eight seeds are trained. A *seed* fixes the initial weights and
# the training contexts.
#
# The picture shows the loss of each run divided by the loss of one step of gradient descent. The seeds end near three
# different values, and some wait at the highest of them before they fall to the middle one. Why?

# %% Loss of eight seeds divided by the loss of gradient descent: they end near three values
import json

import matplotlib.pyplot as plt
import numpy as np

import icl_lab

plt.rcParams |= {"figure.figsize": (7, 3), "figure.dpi": 120}

SEEDS, SMALL_TEST = range(8), {"test_tasks": 2000, "step_size_tasks": 8192, "quiet": True}
runs = [icl_lab.train("lsa1", dim=2, seed=seed, eval_every=100, out=f"runs/two_{seed}", **SMALL_TEST) for seed in SEEDS]
for seed, run in enumerate(runs):
    ratio = run.metrics["eval_loss"] / run.metrics["eval_gd_loss"]
    plt.plot(ratio.index, ratio, label=f"seed {seed}")
plt.axhline(1, color="grey", linestyle=":")
plt.xlabel("training step")
plt.ylabel("loss / loss of gradient descent")
plt.ylim(0)
plt.legend(ncols=4, fontsize=8)
plt.show()

# %% [markdown]
# The layer has four weight matrices, but its prediction depends on two things only: a vector c, which says what is
# read of each token, and a matrix M, which says how tokens are compared with the query. The prediction is `cᵀ C M x`,
# where x is the query, and C is the sum of `t tᵀ` over the tokens t = (x, y).
#
# Gradient descent needs only the blue frames below: read the label, compare the inputs. The orange frames are
# *swapping weights*: they read the input, and compare the label. The three seeds below have one kind, the other kind,
# or both.

# %% What is read and how tokens are compared, in three seeds: plain weights, both kinds, swapping weights


def parts(run, head=0):
    """The vector c [D+1] and the matrix M [D+1, D] of one head, scaled so that both have the same norm."""
    each = run.params["layer_0/attention"]
    read = -np.einsum("iv,vo->io", each["value"][:, head], each["projection"][head])[
        :, -1
    ]  # minus: how labels are read out
    compare = np.einsum("ik,jk->ij", each["key"][:, head], each["query"][:, head])[:, :-1]
    scale = np.sqrt(np.linalg.norm(read) / np.linalg.norm(compare))
    return read / scale, compare * scale


figure, panels = plt.subplots(2, 3, figsize=(7, 4), layout="constrained", height_ratios=[1, 3])
for seed, column in zip((2, 1, 0), panels.T, strict=True):
    for axes, values in zip(column, (parts(runs[seed])[0][None], parts(runs[seed])[1]), strict=True):
        axes.imshow(values, cmap="RdBu", vmin=-1.5, vmax=1.5, aspect="auto")
        axes.set(xticks=[], yticks=[])
    plain, swap = (
        {"edgecolor": "C0", "facecolor": "none", "linewidth": 4},
        {"edgecolor": "C1", "facecolor": "none", "linewidth": 4},
    )
    column[0].add_patch(plt.Rectangle((1.53, -0.45), 0.94, 0.9, **plain))
    column[0].add_patch(plt.Rectangle((-0.47, -0.45), 1.94, 0.9, **swap))
    column[1].add_patch(plt.Rectangle((-0.47, -0.45), 1.94, 1.9, **plain))
    column[1].add_patch(plt.Rectangle((-0.47, 1.55), 1.94, 0.9, **swap))
    column[0].set_title(f"seed {seed}")
panels[0, 0].set_ylabel("read")
panels[1, 0].set_ylabel("compare")
plt.show()

# %% [markdown]
# Why can a layer that swaps inputs and labels predict at all? Take one dimension. Gradient descent predicts `c Σ y_i
# (x_i · x)`: it weights labels by the similarity of inputs. The swapped layer predicts `c Σ x_i (y_i · x)`. In one
# dimension these are the same number. In more dimensions, the swapped layer can do this only along one direction.
#
# The *swapped share* measures which kind a layer uses. Let s be the product of the norms of both orange parts, and t
# the product of the norms of both blue parts. The share is s / (s + t).

# %% Swapped share of the eight seeds: near zero, near one half, or one


def swapped_share(run):
    """s / (s + t)."""
    read, compare = parts(run)
    swapped = np.linalg.norm(read[:-1]) * np.linalg.norm(compare[-1])
    plain = np.linalg.norm(read[-1:]) * np.linalg.norm(compare[:-1])
    return swapped / (swapped + plain)


COLOURS = {"gradient descent": "C0", "mixed": "C1", "plateau": "C3", "swapped": "C2"}


def solution(run):
    """The solution that the laboratory has found in the run's weights; it compares them with closed forms."""
    return json.loads((run.path / "analysis" / "solutions.json").read_text())["solution"]


ends = [solution(run) for run in runs]
for name in dict.fromkeys(ends):
    found = [seed for seed in SEEDS if ends[seed] == name]
    plt.bar(found, [max(swapped_share(runs[seed]), 0.01) for seed in found], color=COLOURS[name], label=name)
plt.title(", ".join(f"{ends.count(name)} {name}" for name in ("gradient descent", "mixed", "plateau")))
plt.xlabel("seed")
plt.ylabel("swapped share")
plt.legend()
plt.show()

# %% [markdown]
# Three seeds find gradient descent, and three find the *mixed minimum*: along one direction of the inputs the layer
# swaps, along the other it does gradient descent. Two seeds only swap. They wait on a plateau.
#
# All three layers multiply the gradient of the squared errors by a matrix, the *step matrix* `G = c_y B + c_x bᵀ`,
# where c_y and c_x are the blue and orange parts of c, and B and b those of M. For gradient descent, G is a multiple
# of the identity. Below you see what G makes of the circle of all directions, in units of the best step size.

# %% What the step matrix makes of a circle: a circle (gradient descent), an ellipse (mixed), a line (plateau)


def step_matrix(run):
    """G [D, D], of one head."""
    read, compare = parts(run)
    return read[-1] * compare[:-1] + np.outer(read[:-1], compare[-1])


pairs, variance = 10, 1 / 12
best = pairs * variance / (pairs * (1 / 80 + variance**2) + pairs * (pairs - 1) * variance**2)
angle = np.linspace(0, 2 * np.pi, 200)
circle = np.stack([np.cos(angle), np.sin(angle)])
figure, panels = plt.subplots(1, 3, figsize=(8, 3), layout="constrained", sharey=True)
for axes, name in zip(panels, ("gradient descent", "mixed", "plateau"), strict=True):
    axes.plot(*circle, ":", color="grey")
    for seed in SEEDS:
        if ends[seed] == name:
            axes.plot(*(step_matrix(runs[seed]) / best @ circle), color=COLOURS[name], alpha=0.8)
    axes.set(title=name, aspect="equal", xlim=(-1.5, 1.5), ylim=(-1.5, 1.5))
plt.show()

# %% [markdown]
# A run on the plateau takes a step along one diagonal of the square from which the inputs are drawn, and ignores the
# other diagonal. A run in the mixed minimum takes steps along both, but they are shorter than the best step, and have
# different lengths.
#
# Is the plateau an end, or only a place to wait? Train the two seeds four times as long. One leaves the plateau late,
# and ends in the mixed minimum. The other still waits.

# %% The two seeds of the plateau, trained four times as long
waiting = [seed for seed in SEEDS if ends[seed] == "plateau"]
longer = {"dim": 2, "steps": 20_000, "eval_every": 500, **SMALL_TEST}
for seed in waiting:
    run = icl_lab.train("lsa1", seed=seed, out=f"runs/longer_{seed}", **longer)
    ratio = run.metrics["eval_loss"] / run.metrics["eval_gd_loss"]
    plt.plot(ratio.index, ratio, label=f"seed {seed}: {solution(run)}")
plt.axvline(5000, color="grey", linestyle=":", label="end of the first training")
plt.xlabel("training step")
plt.ylabel("loss / loss of gradient descent")
plt.ylim(0)
plt.legend()
plt.show()

# %% [markdown]
# ## One dimension
#
# In one dimension there is only one direction, and the swapped layer predicts the same as gradient descent. So there
# are two global minima with different weights. Which of them a run finds is a matter of chance. In both panels each
# dot is a seed: the loss says gradient descent, the weights say which.

# %% One dimension, eight seeds: swapped shares of zero and one, and the loss of gradient descent for both
one = {"dim": 1, "steps": 2000, "eval_every": 500, **SMALL_TEST}
lines = [icl_lab.train("lsa1", seed=seed, out=f"runs/one_{seed}", **one) for seed in SEEDS]
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
for seed, run in enumerate(lines):
    colour = COLOURS[solution(run)]
    left.plot(seed, swapped_share(run), "o", color=colour)
    right.plot(seed, run.summary["headline.loss_ratio"], "o", color=colour)
left.set(xlabel="seed", ylabel="swapped share", ylim=(-0.1, 1.1))
right.axhline(1, color="grey", linestyle=":")
right.set(xlabel="seed", ylabel="loss / loss of gradient descent", ylim=(0.9, 1.1))
plt.show()

# %% [markdown]
# The predictions of a swapped layer are those of gradient descent, context by context. This holds exactly for the
# right weights: `Σ x_i (y_i · x)` and `Σ y_i (x_i · x)` are the same sum. What is left is what training has not
# learnt yet.

# %% One dimension: predictions of swapped layers and of plain ones against gradient descent
batch = icl_lab.sample(lines[0], 1000, seed=1)
descent = icl_lab.baseline("gd", lines[0])(batch)
figure, panels = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained", sharey=True)
for axes, name in zip(panels, ("gradient descent", "swapped"), strict=True):
    of_kind = [run for run in lines if solution(run) == name]
    answers = [run.predict(batch.x, batch.y, batch.x_query) for run in of_kind]
    axes.axline((0, 0), slope=1, color="grey", linewidth=1)
    for each in answers:
        axes.plot(descent, each, ".", color=COLOURS[name], markersize=2)
    most = max(np.abs(each - descent).mean() for each in answers)
    axes.set_title(f"{len(of_kind)} seeds: {name}\nmean |difference| at most {most:.4f}", fontsize=10)
    axes.set_xlabel("gradient descent")
panels[0].set_ylabel("the layer")
plt.show()

# %% [markdown]
# **What you have seen.** A bad seed is not bad luck in the loss alone: it is another solution, which you can read off
# the weights. Report the share of runs that find each solution, not the mean loss of all.
#
# **Try:** `num_heads=2` (two heads avoid the mixed minimum), `num_pairs=2`, or `dim=3`, where the mixed minimum needs
# more pairs.
#
# **Read on:** [Which solutions does one layer find?](../report/solutions.md) has 128 seeds for each number, and what
# predicts the solution from the initial weights.
