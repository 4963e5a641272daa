"""Trains decoders on pools of M tasks, and compares them with ridge and dMMSE.

python -m eval_diversity --num_tasks 1,16,256,inf --seeds 0,1,2 --out results_diversity.csv
"""

from icl_lab.sweeps import command

DEFAULTS = {"num_tasks": (1, 4, 16, 64, 256, 1024)}

if __name__ == "__main__":
    command.run(
        "diversity", "eval_diversity", __doc__.splitlines()[0], DEFAULTS, "results_diversity.csv", "runs/eval_diversity"
    )
