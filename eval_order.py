"""Measures how the order of a context's pairs affects in-context learning.

python -m eval_order --models lsa1,twolayer --ordering random,easy2hard --seeds 0,1,2 --out results_order.csv
"""

from icl_lab.src.registries import ORDERINGS
from icl_lab.sweeps import command

DEFAULTS = {"models": ("lsa1", "twolayer"), "ordering": tuple(ORDERINGS)}

if __name__ == "__main__":
    command.run("regression", "eval_order", __doc__.splitlines()[0], DEFAULTS, "results_order.csv", "runs/eval_order")
