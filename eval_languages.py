"""Trains models of membership in regular languages, and compares them with baselines.

python -m eval_languages --negatives random_hash,other_language --num_pairs 10,40 --seeds 0,1,2
"""

from icl_lab.sweeps import command

DEFAULTS = {"negatives": ("random_hash", "other_language")}

if __name__ == "__main__":
    command.run(
        "languages", "eval_languages", __doc__.splitlines()[0], DEFAULTS, "results_languages.csv", "runs/eval_languages"
    )
