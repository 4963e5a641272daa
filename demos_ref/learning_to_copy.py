# %% [markdown]
# # Learning to copy before learning to learn
#
# When a pair is split into two tokens, (x, 0) and (0, y), one linear layer cannot do gradient descent, since no token holds
# both. A softmax layer below it can copy y to its x, if it learns to attend to the following token. Run this as a script
# from the repository's root, `python -m demos_ref.learning_to_copy`. It takes about a minute on two cores. The notebook
# tutorials/4_which_head_copies.ipynb looks at the heads of such a model.

# %%
from pathlib import Path

import numpy as np

from icl_lab.analysis import load_run
from icl_lab.analysis.copying import first_layer_gradients, own_next_other
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.runners.loop import run_one
from icl_lab.src.data import interleaved_tokens, sample_batch
from icl_lab.src.prng import key
from icl_lab.store.metrics import read_metrics

# %% [markdown]
# ## The tokens

# %%
config = preset("twolayer")
set_values(config, {"eval_every": 250})
config = resolve(config)
tokens = interleaved_tokens(sample_batch(key(0), config.data, 1))
with np.printoptions(precision=2, suppress=True):
    print("first four rows (ten inputs, then the label):")
    print(np.asarray(tokens[0, :4]))

# %% [markdown]
# ## Training: a plateau, then a drop
#
# Until the first layer copies, the loss is that of predicting 0. With the initial weights of the published code
# (`--preset paper`) this plateau lasts longer, here until step 2500 to 4500; larger initial weights and smaller batches
# shorten it.

# %%
run = Path("runs/walk_copy")
print(run_one(config, run))
for record in read_metrics(run):
    print(f"step {record['step']:5d}  loss {record['eval_loss']:.4f}  " + "#" * int(100 * record["eval_loss"]))
print(f"one step of gradient descent: {record['eval_gd_loss']:.4f}")

# %% [markdown]
# ## What the first layer attends to
#
# The sensitivity of each output row to the tokens: its own (the residual path), the following one, and all others. First
# with the gradient averaged over tasks before its norm is taken, then with the norm of each task.

# %%
for name, norms in zip(
    ("averaged over tasks", "norm of each task"), first_layer_gradients(load_run(run))[""], strict=True
):
    print(f"{name:20s}", {key: round(value, 3) for key, value in own_next_other(norms).items()})

# %% [markdown]
# Rows with an x must attend to the next token. Rows with a y need not, but do: the layer has learnt to shift by one
# position, whatever the token.

# %%
norms, _ = first_layer_gradients(load_run(run))[""]
following = np.diagonal(norms, offset=1)
print("following token, rows with x:", np.round(following[0::2], 2))
print("following token, rows with y:", np.round(following[1::2], 2))
