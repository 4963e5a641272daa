# %% [markdown]
# # Looking inside
#
# Two questions, each to eight seeds. Of two layers on split tokens, (x, 0) and (0, y): which head copies a label to its
# input, and which layer takes the step? Of a decoder that was trained on four tasks: does it hold w, after how many
# pairs, and which head finds it? Activations are read, replaced, ablated and probed. Run this as a script from the
# repository's root, `python -m demos_ref.looking_inside`. It takes about a quarter of an hour on two cores; runs that are
# there are not trained again. docs/looking_inside.md has the numbers. The notebook tutorials/4_which_head_copies.ipynb
# shows the first question in figures, in minutes.

# %%
from collections.abc import Sequence

import numpy as np

import icl_lab
from icl_lab.analysis import interventions, load_run
from icl_lab.analysis.probes.question import Question
from icl_lab.analysis.probes.table import probe
from icl_lab.analysis.run import Run
from icl_lab.analysis.trained import of_run
from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.families.diversity.task import pool_of
from icl_lab.src.statistics import mean_and_interval

SEEDS, CONTEXTS = range(8), 400


def show(name: str, values: Sequence[float]) -> None:
    """A number of each run that trained, and their mean with its 95 % interval over seeds."""
    mean, half = mean_and_interval(np.array(values, float))
    print(f"{name:46s} {mean:6.3f} [{mean - half:6.3f}, {mean + half:6.3f}]   {np.round(values, 2)}")


def those_that_trained(runs: Sequence[Run]) -> list[Run]:
    """Of these runs, those that trained by their family's criterion: of others there is nothing to find."""
    kept = [run for run in runs if of_run(run.path)]
    print(f"{len(kept)} of {len(runs)} runs trained")
    return kept


# %% [markdown]
# ## Which head copies, and which layer takes the step?
#
# The softmax layer has two heads. A label must get from the row (0, y) to the row (x, 0) before it.

# %%
runs = [
    icl_lab.train("twolayer", num_heads=2, seed=seed, quiet=True, out=f"runs/walk_inside/copy_{seed}") for seed in SEEDS
]
runs = those_that_trained(runs)

# %% [markdown]
# Attention is a first look, and no proof: how much of its attention does each head of the first layer pay, from the row
# of an input, to the row of its own label? We call the head that pays more the copying one, and the other the other.

# %%
copying = []
for run in runs:
    pattern = icl_lab.capture(run, icl_lab.sample(run, CONTEXTS, seed=1), "blocks.0.attn.pattern")
    pattern = pattern["blocks.0.attn.pattern"].mean(axis=0)  # [head, row, key]
    inputs = np.arange(0, pattern.shape[2], 2)
    copying.append(pattern[:, inputs, inputs + 1].mean(axis=1))
show("attention to the own label, copying head", [each.max() for each in copying])
show("attention to the own label, other head", [each.min() for each in copying])
copying = [int(each.argmax()) for each in copying]

# %% [markdown]
# Patching is the proof. Two contexts have the same inputs, and the labels of two tasks. What one head says in the first
# context is put into the second: how much of the difference between the predictions comes back? 1 is all of it. Then the
# same for the stream behind each layer, at the rows of inputs, at the rows of labels, and at the query's.

# %%
patched = []
for run in runs:
    table = interventions.patching_table(run, interventions.pairs_of(run, "labels", CONTEXTS))
    patched.append(table[table["direction"] == "clean into corrupted"].set_index(["table", "layer"]))
heads = [
    [table.loc[("head", layer), ["head", "share"]].set_index("head")["share"] for layer in range(2)]
    for table in patched
]
show("restored by the copying head", [shares[0][head] for shares, head in zip(heads, copying, strict=True)])
show("restored by the other head", [shares[0][1 - head] for shares, head in zip(heads, copying, strict=True)])
streams = [[table.loc[("position", layer), "share"].to_numpy(float) for layer in range(2)] for table in patched]
show("restored by rows of inputs, after layer 0", [first[0:-1:2].sum() for first, _ in streams])
show("restored by rows of labels, after layer 0", [first[1::2].sum() for first, _ in streams])
show("restored by the query's row, after layer 0", [first[-1] for first, _ in streams])
show("restored by the query's row, after layer 1", [second[-1] for _, second in streams])

# %% [markdown]
# After the first layer all of the difference stands in the rows of the inputs, and nothing in the query's: labels have
# moved, and no step is taken. The second layer takes it. A probe says the same: a linear map reads the label of the
# fifth pair off the row of its input after the first layer, and not before.

# %%
for at in ("embed", "blocks.0.resid_post"):
    scores = []
    for run in runs:
        own = {"label": np.asarray(run.batch.y)[:, 4]}
        rows, _ = probe(load_run(run.path), Question((at,), own=own, positions=(8,)))
        scores.append(next(row["score"] for row in rows if row["probe"] == "trained"))
    show(f"R^2 of a label at its input, {at}", scores)

# %% [markdown]
# Without the copying head (its mean over contexts in its place) the model is no longer near gradient descent; without
# the other it stays. Distances are mean squared differences of predictions from one step's.

# %%
ablated = []
for run in runs:
    table = interventions.ablation_table(run, icl_lab.sample(run, CONTEXTS, seed=1), "gd")
    table = table[(table["table"] == "head") & (table["ablation"] == "mean") & (table["layer"] == 0)]
    ablated.append(table.set_index("head")["change"])
show("distance to one step without the copying head", [each[head] for each, head in zip(ablated, copying, strict=True)])
show(
    "distance to one step without the other head", [each[1 - head] for each, head in zip(ablated, copying, strict=True)]
)

# %% [markdown]
# ## Does a decoder on four tasks hold w?
#
# A decoder was trained on sequences of four tasks. A probe reads w off its last layer after 1, 2, ... pairs, at the row of
# the last label and at that of the next input. Beside it: what the exact posterior over the four tasks knows of w by then,
# which no reader of the pairs exceeds, and the same probe of the untrained network.

# %%
decoders = [
    icl_lab.train("tiny", num_tasks=4, steps=5000, seed=seed, quiet=True, out=f"runs/walk_inside/decoder_{seed}")
    for seed in SEEDS
]
decoders = those_that_trained(decoders)
losses = [run.summary for run in decoders]
ratios = [each["headline.id_tf_loss"] / each["headline.id_dmmse_loss"] for each in losses]
show("loss over that of the exact predictor, dMMSE", ratios)


def of_posterior(run: Run, pairs: int) -> float:
    """R^2 of the posterior mean of w after so many pairs, mean over coordinates."""
    assert isinstance(run.config, DiversityConfig)
    batch, tasks = run.batch, np.asarray(pool_of(run.config), np.float64)  # [M, D]
    x, y = (np.asarray(part, np.float64)[:, :pairs] for part in (batch.x, batch.y))
    errors = y[:, None] - np.einsum("bnd,md->bmn", x, tasks)
    logs = -0.5 * (errors**2).sum(axis=2) / run.config.data.noise_std**2
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    mean, w = (weights / weights.sum(axis=1, keepdims=True)) @ tasks, np.asarray(batch.w, np.float64)
    return float(np.mean(1 - ((w - mean) ** 2).mean(axis=0) / w.var(axis=0)))


# %%
last, seen = "blocks.1.resid_post", (1, 2, 4, 7)  # of two layers, and of eight pairs
places = {
    f"{where}, {pairs} seen": 2 * pairs + offset for pairs in seen for where, offset in (("label", -1), ("input", 0))
}
found = [probe(load_run(run.path), Question((last,), ("w",), positions=(*places.values(),)))[0] for run in decoders]
for kind in ("trained", "untrained"):
    for place, row in places.items():
        scores = [[s["score"] for s in rows if (s["probe"], s["position"]) == (kind, row)] for rows in found]
        show(f"R^2 of w at the row of the {place}, {kind}", [score for (score,) in scores])
for pairs in seen:
    print(f"R^2 of w, the posterior's, {pairs} seen", np.round([of_posterior(run, pairs) for run in decoders], 2))

# %% [markdown]
# Which head finds it? Each head in turn says what it says in another context, and the prediction moves away from the
# exact predictor's, dMMSE. In units of the mean square of the prediction, for the head that matters most, the second,
# and the median of all; and in which layer the first is.

# %%
moved = []
for run in decoders:
    batch = icl_lab.sample(run, CONTEXTS, seed=1)
    square = np.mean(np.asarray(icl_lab.capture(run, batch, "prediction")["prediction"])[:, -1] ** 2)
    table = interventions.ablation_table(run, batch, "dmmse")
    table = table[(table["table"] == "head") & (table["ablation"] == "resample")].sort_values("change", ascending=False)
    moved.append((table["change"].to_numpy(float) / square, int(table["layer"].iloc[0])))
show("moved by the head that matters most", [changes[0] for changes, _ in moved])
show("moved by the second", [changes[1] for changes, _ in moved])
show("moved by the median head", [np.median(changes) for changes, _ in moved])
print("layer of the first:", [layer for _, layer in moved])
