# %% [markdown]
# # Watch a model develop, and when to distrust the LLC
#
# The *local learning coefficient* (LLC) says how degenerate a minimum of the loss is: the lower it is, the less the
# loss rises when noise moves the weights. Some studies estimate it during training, to find the stages in which a
# model learns. Here you watch one layer develop, estimate its LLC, and see what the estimate depends on.
#
# First the development. One layer of linear attention is trained on regression in four dimensions, with three seeds.
# The left panel has its loss, and the right panel the cosine between the gradients of its predictions and of those of
# gradient descent, with respect to the query.

# %% Loss and cosine with gradient descent over training, three seeds
import matplotlib.pyplot as plt
import numpy as np

import icl_lab

plt.rcParams |= {"figure.figsize": (7, 3), "figure.dpi": 120}

SEEDS = range(3)
SMALL = {"dim": 4, "num_pairs": 10, "steps": 1500, "batch_size": 512, "lr": 3e-3, "eval_every": 50, "snapshots": True}
SMALL |= {"test_tasks": 4000, "step_size_tasks": 8192, "quiet": True}
runs = [icl_lab.train("lsa1", seed=seed, out=f"runs/develop_{seed}", **SMALL) for seed in SEEDS]
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
for seed, run in enumerate(runs):
    left.plot(run.metrics.index, run.metrics["eval_loss"], label=f"seed {seed}")
    right.plot(run.metrics.index, run.metrics["eval_model_cos"])
left.axhline(runs[0].metrics["eval_gd_loss"].iloc[-1], color="k", linestyle="--", label="gradient descent")
left.set(xlabel="training step", ylabel="loss", ylim=0, xlim=(0, 1000))
right.set(xlabel="training step", ylabel="cosine of sensitivities", xlim=(0, 1000))
left.legend()
plt.show()

# %% [markdown]
# What happens inside? `run.checkpoints()` gives the weights over training. Below are the step sizes that the layer
# takes along the four coordinates of the inputs. They grow together, from zero to the best step size.

# %% Step sizes of the layer along four coordinates over training, three seeds


def step_sizes(run):
    """The step sizes along the coordinates [D]."""
    each = run.params["layer_0/attention"]
    compare = np.einsum("ik,jk->ij", each["key"][:, 0], each["query"][:, 0])
    read = np.einsum("iv,vo->io", each["value"][:, 0], each["projection"][0])
    return -np.diagonal(compare)[:-1] * read[-1, -1]


for seed, run in enumerate(runs):
    steps, sizes = zip(*((step, step_sizes(then)) for step, then in run.checkpoints()), strict=True)
    plt.plot(steps, sizes, f"C{seed}", label=[f"seed {seed}"] + [None] * 3)
plt.xlim(0, 1000)
plt.xlabel("training step")
plt.ylabel("step size")
plt.legend()
plt.show()

# %% [markdown]
# ## An estimate whose right value is known
#
# `icl_lab.llc` takes a loss for each sample, parameters and data. It draws weights near the parameters with a density
# proportional to `exp(-nbeta L(w) - gamma/2 |w - w*|²)`, and multiplies the mean rise of the loss by nbeta. gamma is
# the *pull* that keeps the draws near w*.
#
# Linear regression with d weights has the LLC d/2. If each weight is the sum of two parameters, there are 2d
# parameters, but the LLC is still d/2, because d directions are flat. The estimate gets both right. The verdicts are
# in the legend.

# %% LLC of linear regression against the number of weights: estimates lie on the line d/2


def regression_loss(params, batch):
    """Half the squared error of each sample."""
    x, y = batch
    return 0.5 * (x @ sum(params.values()) - y) ** 2


draw, dims = np.random.default_rng(0), (2, 4, 8)
for parts, name, marker in ((1, "d", "o"), (2, "2d", "s")):
    found = []
    for d in dims:
        x = draw.normal(size=(1000, d)).astype(np.float32)
        params = {f"part {k}": np.full(d, 1 / parts, np.float32) for k in range(parts)}
        found.append(icl_lab.llc(regression_loss, params, (x, x.sum(axis=1)), nbeta=1000.0, gamma=5.0, draws=3000))
    errors = [[each.value - each.low for each in found], [each.high - each.value for each in found]]
    verdicts = ", ".join(dict.fromkeys(each.verdict for each in found))
    label = f"{name} parameters: {verdicts}"
    plt.errorbar(dims, [each.value for each in found], errors, fmt=marker, capsize=3, label=label)
plt.plot([0, 9], [0, 4.5], "k--", label="d / 2")
plt.xlabel("weights of the regression, d")
plt.ylabel("LLC")
plt.legend()
plt.show()

# %% [markdown]
# ## The LLC of the layer over training
#
# Now the same at the checkpoints of the layer. A hollow point has the verdict `none`: its number is not usable. The
# dashed line is the *quadratic prediction*: the value that follows from the Hessian and the gradient at the
# checkpoint, without any chain. The estimates rise while the layer becomes gradient descent. The prediction rises
# with them.

# %% LLC over training with its quadratic prediction, three seeds
batch = icl_lab.sample(runs[0], 1000, seed=1)
CHAINS = {"nbeta": 200.0, "gamma": 200.0, "draws": 800, "burn_in": 200, "chains": 8}
SHOWN = (0, 50, 100, 150, 200, 300, 500, 1000, 1500)
found = {}
for seed, run in enumerate(runs):
    chosen = [(step, then.params) for step, then in run.checkpoints() if step in SHOWN]
    found[seed] = icl_lab.llc_over_training(run.model.losses, chosen, batch, **CHAINS)
figure, panels = plt.subplots(1, 3, figsize=(9, 3), layout="constrained", sharey=True)
for axes, (seed, estimates) in zip(panels, found.items(), strict=True):
    for step, each in zip(SHOWN, estimates, strict=True):
        usable = each.verdict != "none"
        error = [[each.value - each.low], [each.high - each.value]]
        axes.errorbar(step, each.value, error, fmt="C0o", markerfacecolor="C0" if usable else "white", capsize=2)
    axes.plot(SHOWN, [each.prediction.total for each in estimates], "k--", label="quadratic prediction")
    axes.axhline(0, color="grey", linestyle=":")
    axes.set(title=f"seed {seed}", xlabel="training step")
panels[0].set_ylabel("LLC")
panels[0].legend(fontsize=8)
plt.show()

# %% [markdown]
# Why is an estimate not usable? A verdict comes with reasons. The cell prints those of seed 0. At the first
# checkpoints about half of the draws have a lower loss than the checkpoint itself, since it is no minimum. This is in
# the figure. Later checkpoints have the verdict `curvature` or `undecided`, and none has `LLC`. The last lines count
# the verdicts of each seed.

# %% Share of draws with a loss below the loss of the checkpoint: about half at first, none at the end
for step, each in zip(SHOWN, found[0], strict=True):
    print(f"step {step:4d}  LLC {each.value:6.2f}  {each.verdict}", *each.reasons, sep="\n    ")
for seed, estimates in found.items():
    verdicts = [each.verdict for each in estimates]
    print(f"seed {seed}:", ", ".join(f"{verdicts.count(name)} {name}" for name in dict.fromkeys(verdicts)))
    plt.plot(SHOWN, [each.below for each in estimates], "o-", label=f"seed {seed}")
plt.xlabel("training step")
plt.ylabel("share of draws with a loss below L(w*)")
plt.legend()
plt.show()

# %% [markdown]
# ## The pull
#
# Is the number a property of the minimum? Then it must not depend on the sampler's pull gamma. Below is the LLC at
# the last checkpoint for pulls from weak to strong.

# %% LLC of the trained layer against the pull gamma, with the quadratic prediction, three seeds
gammas = (2.0, 20.0, 200.0, 2000.0)
for seed, run in enumerate(runs):
    estimates = [icl_lab.llc(run.model.losses, run.params, batch, **CHAINS | {"gamma": gamma}) for gamma in gammas]
    plt.plot(gammas, [each.value for each in estimates], f"C{seed}o", label=f"seed {seed}")
    plt.plot(gammas, [each.prediction.total for each in estimates], f"C{seed}--")
    if seed == 0:
        print("\n".join(map(str, estimates)))
plt.xscale("log")
plt.xlabel("pull gamma")
plt.ylabel("LLC")
plt.legend()
plt.show()

# %% [markdown]
# The estimate follows the pull, as the quadratic prediction says that it must. So it is not a property of the minimum
# alone. Report it as a curvature, with its nbeta and gamma, and compare it at equal ones only. With the weakest pull
# the draws escape from the layer, and there is no prediction: the verdict says so.
#
# ## A checklist
#
# 1. Look at the verdict and its reasons. `LLC` can be compared with any other; `curvature` cannot.
# 2. Vary gamma and nbeta. A number that moves with them is theirs.
# 3. Compare with the quadratic prediction. If it explains the curve, the curve tells you about the Hessian, not about
# stages.
# 4. At an early checkpoint w* is no minimum. An LLC below zero says so.
# 5. Use several seeds: the interval of one estimate covers the chains, not the training.
#
# **Try:** `sampler="sghmc"`, `nbeta=2000.0`, or a loss of your own (`icl_lab.llc` takes any function of JAX).
#
# **Read on:** [The LLC of your model](../docs/llc.md), and [what the LLC measures over
# training](../report/stages.md).
