"""Trains decoders on classes of functions, and compares them with Bayes and other methods.

python -m eval_functions --function linear,decision_tree --num_functions 16,256,inf --seeds 0,1,2
"""

from icl_lab.sweeps import command

DEFAULTS = {"function": ("linear", "sparse_linear", "decision_tree", "relu_network")}

if __name__ == "__main__":
    command.run(
        "functions", "eval_functions", __doc__.splitlines()[0], DEFAULTS, "results_functions.csv", "runs/eval_functions"
    )
