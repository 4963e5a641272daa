"""Measures how corrupted pairs, and their positions in the context, affect in-context learning.

python -m eval_noise --models lsa1,twolayer --noise_mode label_noise --p 0,0.25 --sigma 0.5 --placement clean_first
"""

from icl_lab.sweeps import command

DEFAULTS = {
    "models": ("lsa1", "twolayer"),
    "noise_mode": ("label_noise", "random_pairs"),
    "noise_p": (0.0, 0.25),
    "noise_sigma": (0.5,),
    "noise_placement": ("clean_first", "noisy_first"),
}

if __name__ == "__main__":
    command.run("regression", "eval_noise", __doc__.splitlines()[0], DEFAULTS, "results_noise.csv", "runs/eval_noise")
