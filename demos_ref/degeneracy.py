# %% [markdown]
# # How degenerate is what a decoder has learnt?
#
# The local learning coefficient (LLC) says how little noise in the weights raises the loss: nbeta times the mean excess loss
# of weights drawn around those of a checkpoint. Two small decoders learn one task and two tasks; the LLC is estimated over
# their training at an unsaturated setting and at the published one, where the chains leave the model. Run this as a script from
# the repository's root, `python -m demos_ref.degeneracy`. It takes about three minutes on two cores. The notebook
# tutorials/6_development_and_llc.ipynb shows in figures when to distrust an LLC.

# %%
from dataclasses import replace
from pathlib import Path

from icl_lab.analysis.llc.checkpoints import estimate_run
from icl_lab.analysis.llc.settings import Settings
from icl_lab.analysis.llc_saturation import PUBLISHED, line
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.plots.llc import draw_llc
from icl_lab.runners.loop import run_one
from icl_lab.store.llc_rows import is_usable

# %% [markdown]
# ## Training
#
# The decoder of Hoogland et al., narrow: D = 4, K = 8, two blocks, 16 channels. With snapshots a run keeps its parameters at
# every record.

# %%
SIZES = {"steps": 3000, "eval_every": 1000, "log_records": 10, "d_model": 16, "mlp_width": 16, "test_tasks": 512}
runs = {}
for num_tasks in (1, 2):
    config = preset("hoogland")
    set_values(config, SIZES | {"num_tasks": num_tasks})
    runs[num_tasks] = Path(f"runs/walk_degeneracy_{num_tasks}")
    print(f"M = {num_tasks}:", run_one(resolve(config), runs[num_tasks]))

# %% [markdown]
# ## Two settings
#
# A draw w comes from exp(-nbeta L(w) - gamma/2 |w - w*|^2). The published gamma holds the weights within a radius of
# sqrt(d / gamma) that is longer than the weights themselves. The saturation says how far the mean draw is on the way to a
# predictor that knows nothing: above .3 an estimate is not usable.

# %%
chains = Settings(chains=4, burn_in=200, draws=400, tasks=2048)
settings = {
    "unsaturated": replace(chains, eps=6e-5, nbeta=100.0, gamma=1000.0),
    "published": replace(chains, **PUBLISHED),
}
rows = {}
for num_tasks, run in runs.items():
    for name, setting in settings.items():
        rows[num_tasks, name] = list(estimate_run(run, setting, "every:2"))
        draw_llc(run, setting.name)
        print(f"\nM = {num_tasks}, {name}: eps {setting.eps:g}, nbeta {setting.nbeta:g}, gamma {setting.gamma:g}")
        for row in rows[num_tasks, name]:
            print(
                f"step {row['step']:5d}  loss {row['loss']:.3f}  LLC {row['llc']:7.2f} "
                f"[{row['llc_low']:.2f}, {row['llc_high']:.2f}]  saturation {row['saturation']:.2f}  {row['verdict']}  {row['reasons']}"
            )

# %% [markdown]
# ## Is it the loss?
#
# Where the draws know nothing, they have one loss at every checkpoint, and the LLC is nbeta times what L(w*) lacks to it: a
# line of slope -nbeta in the loss. At the unsaturated setting the early checkpoints, where w* is no minimum and the draws go below
# it, make a slope too; the checkpoints that are usable are on no such line.

# %%
for (num_tasks, name), setting_rows in rows.items():
    fit = line(name, setting_rows)
    usable = sum(map(is_usable, setting_rows))
    print(
        f"M = {num_tasks}, {name:11s}: slope / -nbeta {fit.slope_over_minus_nbeta:5.2f}, correlation "
        f"{fit.correlation:5.2f}, mean saturation {fit.saturation:.2f}, "
        f"{usable} of {len(setting_rows)} checkpoints usable"
    )

# %% [markdown]
# Each run's figs/llc.png shows the published setting, the last that was drawn, with hollow points where it is not usable;
# analysis/llc.csv has both. With two tasks the decoder has to tell them apart by the context, and its LLC is higher than
# with one.

# %%
for name in settings:
    for num_tasks in runs:
        end = rows[num_tasks, name][-1]
        print(f"{name:11s} M = {num_tasks}: LLC at the end {end['llc']:.1f}, {'' if is_usable(end) else 'not '}usable")
